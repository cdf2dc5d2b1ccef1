#include "simulated/sim.h"

#include "base/buf.h"
#include "io/loop.h"
#include "io/mailbox.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Two loops: one sends a known stream, the other checks it. */
struct stream {
    struct sim *sim;
    struct loop *near, *far;
    struct listener listener;
    struct io_watch listener_watch, near_watch, far_watch;
    struct socket client, server;
    size_t sent, received, goal;
    bool broken, ended;
    uint64_t trace; /* a hash over everything observed */
};

static uint8_t byte_at(size_t i)
{
    return (uint8_t)(i * 31 + i / 251);
}

static void observe(struct stream *s, uint64_t what)
{
    s->trace = (s->trace ^ what) * UINT64_C(1099511628211);
    s->trace ^= (uint64_t)clock_mono_ns(sim_clock(s->sim));
}

static void on_near_writable(struct io_watch *watch, unsigned ready)
{
    (void)ready;
    struct stream *s = CONTAINER_OF(watch, struct stream, near_watch);
    uint8_t bytes[5000];
    size_t n = size_min(sizeof(bytes), s->goal - s->sent);
    for (size_t i = 0; i < n; i++)
        bytes[i] = byte_at(s->sent + i);
    size_t written;
    enum status status = n ? socket_write(&s->client, slice_of(bytes, n), &written) : ST_END;
    if (status == ST_OK) {
        s->sent += written;
        observe(s, written);
        return;
    }
    if (status == ST_AGAIN)
        return;
    loop_unwatch(s->near, watch);
    if (status == ST_END)
        socket_shutdown(&s->client);
    else
        s->broken = true;
}

static void on_far_readable(struct io_watch *watch, unsigned ready)
{
    (void)ready;
    struct stream *s = CONTAINER_OF(watch, struct stream, far_watch);
    uint8_t bytes[3000];
    size_t n;
    enum status status = socket_read(&s->server, bytes, sizeof(bytes), &n);
    if (status == ST_AGAIN)
        return;
    if (status != ST_OK) {
        s->ended = status == ST_END;
        s->broken |= status == ST_CLOSED;
        loop_unwatch(s->far, watch);
        return;
    }
    for (size_t i = 0; i < n; i++)
        assert_int_equal(bytes[i], byte_at(s->received + i));
    s->received += n;
    observe(s, n);
}

static void on_connection(struct io_watch *watch, unsigned ready)
{
    (void)ready;
    struct stream *s = CONTAINER_OF(watch, struct stream, listener_watch);
    assert_int_equal(listener_accept(&s->listener, &s->server), ST_OK);
    s->far_watch = (struct io_watch){.handle = s->server.handle, .fn = on_far_readable};
    assert_int_equal(loop_watch(s->far, &s->far_watch, IO_READ), ST_OK);
}

static void stream_run(struct stream *s, const struct sim_options *options, size_t goal)
{
    *s = (struct stream){.sim = sim_new(options), .goal = goal};
    struct network *network = sim_network(s->sim);
    struct address address;
    struct error error;
    assert_int_equal(network_loop_new(network, &s->near), ST_OK);
    assert_int_equal(network_loop_new(network, &s->far), ST_OK);
    assert_int_equal(address_from_host(SLICE_LITERAL("127.0.0.1"), 0, &address), ST_OK);
    assert_int_equal(network_listen(network, &address, &s->listener, &error), ST_OK);
    s->listener_watch = (struct io_watch){.handle = s->listener.handle, .fn = on_connection};
    assert_int_equal(loop_watch(s->far, &s->listener_watch, IO_READ), ST_OK);
    assert_int_equal(network_connect(network, &s->listener.address, &s->client, &error), ST_OK);
    s->near_watch = (struct io_watch){.handle = s->client.handle, .fn = on_near_writable};
    assert_int_equal(loop_watch(s->near, &s->near_watch, IO_WRITE), ST_OK);

    while (sim_step(s->sim))
        continue;

    loop_unwatch(s->near, &s->near_watch);
    loop_unwatch(s->far, &s->far_watch);
    loop_unwatch(s->far, &s->listener_watch);
    socket_close(&s->client);
    socket_close(&s->server);
    listener_close(&s->listener);
    loop_free(s->near);
    loop_free(s->far);
    sim_free(s->sim);
}

static void stream_arrives_whole_and_in_order(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct sim_options options = SIM_OPTIONS_DEFAULT;
        options.seed = seed;
        options.buffer_bytes = seed % 2 ? 1000 : 100000;
        struct stream s;
        stream_run(&s, &options, 50000);
        assert_true(s.ended && !s.broken);
        assert_int_equal(s.received, 50000);
    }
}

static void same_seed_is_the_same_run(void **state)
{
    (void)state;
    struct sim_options options = SIM_OPTIONS_DEFAULT;
    struct stream a, b, c;
    stream_run(&a, &options, 30000);
    stream_run(&b, &options, 30000);
    options.seed = 2;
    stream_run(&c, &options, 30000);
    assert_true(a.trace == b.trace);
    assert_true(a.trace != c.trace);
}

static void broken_connections_are_seen_by_both_ends(void **state)
{
    (void)state;
    struct sim_options options = SIM_OPTIONS_DEFAULT;
    options.reset_per_million = 50000;
    int broken = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        options.seed = seed;
        struct stream s;
        stream_run(&s, &options, 50000);
        assert_true(s.broken || s.ended);
        broken += s.broken;
    }
    assert_true(broken > 10);
}

static int fired;

/* A connection without loops. */
static void connect_directly(struct sim *sim, struct listener *ret_listener,
                             struct socket *ret_here, struct socket *ret_there)
{
    struct address address;
    struct error error;
    assert_int_equal(address_from_host(SLICE_LITERAL("127.0.0.1"), 7, &address), ST_OK);
    assert_int_equal(network_listen(sim_network(sim), &address, ret_listener, &error), ST_OK);
    assert_int_equal(network_connect(sim_network(sim), &address, ret_here, &error), ST_OK);
    assert_int_equal(listener_accept(ret_listener, ret_there), ST_OK);
}

static enum status send_one(struct sim *sim, struct socket *from, struct socket *to,
                            int64_t wait_ns)
{
    char byte;
    size_t len;
    enum status status = socket_write(from, SLICE_LITERAL("x"), &len);
    if (status != ST_OK)
        return status;
    sim_run_until(sim, clock_mono_ns(sim_clock(sim)) + wait_ns);
    return socket_read(to, &byte, 1, &len);
}

static void connections_break_fall_silent_and_become_slow(void **state)
{
    static const struct {
        enum sim_fault fault;
        enum status soon, later;
    } cases[] = {
        {SIM_BREAK, ST_CLOSED, ST_CLOSED},
        {SIM_SILENCE, ST_AGAIN, ST_AGAIN},
        {SIM_SLOW, ST_AGAIN, ST_OK},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct sim *sim = sim_new(&SIM_OPTIONS_DEFAULT);
        struct listener listener;
        struct socket here, there;
        connect_directly(sim, &listener, &here, &there);
        assert_int_equal(send_one(sim, &here, &there, NS_PER_MS), ST_OK);
        sim_disturb(sim, cases[i].fault);
        assert_int_equal(send_one(sim, &here, &there, NS_PER_MS), cases[i].soon);
        assert_int_equal(send_one(sim, &there, &here, 2 * NS_PER_S), cases[i].later);
        sim_run_until(sim, clock_mono_ns(sim_clock(sim)) + 100 * NS_PER_S);
        bool works = cases[i].fault == SIM_SLOW;
        assert_int_equal(send_one(sim, &there, &here, 2 * NS_PER_S), works ? ST_OK : ST_CLOSED);
        socket_close(&here);
        socket_close(&there);
        listener_close(&listener);
        sim_free(sim);
    }
}

static void unplugged_machine_is_not_reached_until_another_listens(void **state)
{
    (void)state;
    struct sim *sim = sim_new(&SIM_OPTIONS_DEFAULT);
    struct listener listener, next;
    struct socket here, there, again;
    struct error error;
    connect_directly(sim, &listener, &here, &there);
    sim_unplug(sim, &listener.address);
    assert_int_equal(send_one(sim, &here, &there, NS_PER_MS), ST_CLOSED);
    assert_int_equal(network_connect(sim_network(sim), &listener.address, &again, &error),
                     ST_CLOSED);
    assert_int_equal(network_listen(sim_network(sim), &listener.address, &next, &error), ST_OK);
    assert_int_equal(network_connect(sim_network(sim), &listener.address, &again, &error), ST_OK);
    socket_close(&here);
    socket_close(&there);
    socket_close(&again);
    listener_close(&listener);
    listener_close(&next);
    sim_free(sim);
}

static void fire(struct timer *timer)
{
    (void)timer;
    fired++;
}

static void receive(void *owner, struct mailbox_node *node)
{
    (void)node;
    (*(int *)owner)++;
}

static void time_advances_to_timers_and_messages_need_no_time(void **state)
{
    (void)state;
    struct sim_options options = SIM_OPTIONS_DEFAULT;
    struct sim *sim = sim_new(&options);
    struct loop *loop;
    assert_int_equal(network_loop_new(sim_network(sim), &loop), ST_OK);
    int64_t start = clock_mono_ns(sim_clock(sim));
    struct timer timer = {.fn = fire};
    loop_timer_set(loop, &timer, start + 3600 * NS_PER_S);

    int received = 0;
    struct mailbox mailbox;
    struct mailbox_node node;
    loop_attach(loop, &mailbox, receive, &received);
    mailbox_post(&mailbox, &node);
    sim_run_until(sim, start + NS_PER_S);
    assert_int_equal(received, 1);
    assert_int_equal(fired, 0);
    assert_int_equal(clock_mono_ns(sim_clock(sim)), start + NS_PER_S);

    while (sim_step(sim))
        continue;
    assert_int_equal(fired, 1);
    assert_int_equal(clock_mono_ns(sim_clock(sim)), start + 3600 * NS_PER_S);
    mailbox_detach(&mailbox);
    loop_free(loop);
    sim_free(sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stream_arrives_whole_and_in_order),
        cmocka_unit_test(same_seed_is_the_same_run),
        cmocka_unit_test(broken_connections_are_seen_by_both_ends),
        cmocka_unit_test(connections_break_fall_silent_and_become_slow),
        cmocka_unit_test(unplugged_machine_is_not_reached_until_another_listens),
        cmocka_unit_test(time_advances_to_timers_and_messages_need_no_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
