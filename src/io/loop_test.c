#include "io/loop.h"

#include "io/mailbox.h"

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static struct loop *new_loop(void)
{
    struct loop *loop = NULL;
    assert_int_equal(loop_new(clock_system(), &loop), ST_OK);
    return loop;
}

struct pair {
    struct io_watch watch; /* watches end 0 */
    int ends[2];
    unsigned calls;
    unsigned last;
    struct loop *loop;
    struct pair *other; /* unwatched by the first call, if set */
};

static void note_ready(struct io_watch *watch, unsigned ready)
{
    struct pair *pair = CONTAINER_OF(watch, struct pair, watch);
    pair->calls++;
    pair->last = ready;
    if (pair->other)
        loop_unwatch(pair->loop, &pair->other->watch);
}

static void pair_init(struct pair *pair, struct loop *loop)
{
    *pair = (struct pair){.loop = loop};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair->ends), 0);
    pair->watch = (struct io_watch){.handle = pair->ends[0], .fn = note_ready};
}

static void pair_fini(struct pair *pair)
{
    loop_unwatch(pair->loop, &pair->watch);
    close(pair->ends[0]);
    if (pair->ends[1] >= 0)
        close(pair->ends[1]);
}

static void watch_is_called_while_there_is_something_to_read(void **state)
{
    (void)state;
    AUTO(loop_freep) struct loop *loop = new_loop();
    struct pair pair;
    pair_init(&pair, loop);
    assert_int_equal(loop_watch(loop, &pair.watch, IO_READ), ST_OK);
    loop_turn(loop, 0);
    assert_int_equal(pair.calls, 0);

    assert_int_equal(write(pair.ends[1], "x", 1), 1);
    loop_turn(loop, NS_PER_S);
    loop_turn(loop, NS_PER_S);
    assert_int_equal(pair.calls, 2);
    assert_int_equal(pair.last, IO_READ);

    char byte;
    assert_int_equal(read(pair.ends[0], &byte, 1), 1);
    loop_turn(loop, 0);
    assert_int_equal(pair.calls, 2);

    assert_int_equal(loop_watch(loop, &pair.watch, IO_READ | IO_WRITE), ST_OK);
    loop_turn(loop, NS_PER_S);
    assert_int_equal(pair.last, IO_WRITE);
    pair_fini(&pair);
}

static void hang_up_is_reported_as_ready_and_broken(void **state)
{
    (void)state;
    AUTO(loop_freep) struct loop *loop = new_loop();
    struct pair pair;
    pair_init(&pair, loop);
    assert_int_equal(loop_watch(loop, &pair.watch, IO_WRITE), ST_OK);
    close(pair.ends[1]);
    pair.ends[1] = -1;
    loop_turn(loop, NS_PER_S);
    assert_int_equal(pair.last, IO_READ | IO_WRITE | IO_BROKEN);
    pair_fini(&pair);
}

static void unwatched_handle_is_not_called_in_the_same_turn(void **state)
{
    (void)state;
    AUTO(loop_freep) struct loop *loop = new_loop();
    struct pair a, b;
    pair_init(&a, loop);
    pair_init(&b, loop);
    a.other = &b;
    b.other = &a;
    assert_int_equal(loop_watch(loop, &a.watch, IO_WRITE), ST_OK);
    assert_int_equal(loop_watch(loop, &b.watch, IO_WRITE), ST_OK);
    loop_turn(loop, NS_PER_S);
    assert_int_equal(a.calls + b.calls, 1);
    pair_fini(&a);
    pair_fini(&b);
}

struct ticker {
    struct timer timer;
    struct deferred deferred;
    struct loop *loop;
    int calls;
    int again; /* how often it defers itself again */
};

static void tick_again(struct timer *timer)
{
    struct ticker *ticker = CONTAINER_OF(timer, struct ticker, timer);
    ticker->calls++;
    if (ticker->again-- > 0)
        loop_timer_set(ticker->loop, timer, loop_now_ns(ticker->loop) + NS_PER_MS);
}

static void timers_fire_in_time_and_not_before(void **state)
{
    (void)state;
    AUTO(loop_freep) struct loop *loop = new_loop();
    struct ticker ticker = {.timer.fn = tick_again, .loop = loop, .again = 2};
    int64_t start = loop_now_ns(loop);
    loop_timer_set(loop, &ticker.timer, start + 2 * NS_PER_MS);
    while (ticker.calls < 3)
        loop_turn(loop, NS_PER_S);
    int64_t took = loop_now_ns(loop) - start;
    assert_true(took >= 4 * NS_PER_MS);
    assert_true(took < 2000 * NS_PER_MS);
    loop_timer_cancel(loop, &ticker.timer);
}

static void call_again(struct deferred *deferred)
{
    struct ticker *ticker = CONTAINER_OF(deferred, struct ticker, deferred);
    ticker->calls++;
    if (ticker->again-- > 0)
        loop_defer(ticker->loop, deferred);
}

static void deferred_call_runs_once_a_turn(void **state)
{
    (void)state;
    AUTO(loop_freep) struct loop *loop = new_loop();
    struct ticker ticker = {.deferred.fn = call_again, .loop = loop, .again = 1};
    loop_defer(loop, &ticker.deferred);
    loop_defer(loop, &ticker.deferred);
    loop_turn(loop, NS_PER_S);
    assert_int_equal(ticker.calls, 1);
    loop_turn(loop, CLOCK_NEVER); /* does not wait, because a call is pending */
    assert_int_equal(ticker.calls, 2);
    loop_defer(loop, &ticker.deferred);
    loop_defer_cancel(&ticker.deferred);
    loop_turn(loop, 0);
    assert_int_equal(ticker.calls, 2);
}

static char order[32];

static void note(const char *what)
{
    strncat(order, what, sizeof(order) - strlen(order) - 1);
}

static void note_input(void *ctx)
{
    (void)ctx;
    note("i");
}

static bool note_end(void *ctx)
{
    (void)ctx;
    note("e");
    return strlen(order) < 8;
}

static void note_timer(struct timer *timer)
{
    (void)timer;
    note("t");
}

static void note_deferred(struct deferred *deferred)
{
    (void)deferred;
    note("d");
}

static void note_message(void *owner, struct mailbox_node *node)
{
    (void)node;
    note(owner);
}

static void parts_of_a_turn_run_in_order(void **state)
{
    (void)state;
    AUTO(loop_freep) struct loop *loop = new_loop();
    loop_set_hooks(loop, (struct loop_hooks){.after_input = note_input, .end_of_turn = note_end});
    struct timer timer = {.fn = note_timer};
    struct deferred deferred = {.fn = note_deferred};
    struct mailbox mailbox;
    struct mailbox_node node;
    loop_attach(loop, &mailbox, note_message, "m");
    loop_timer_set(loop, &timer, loop_now_ns(loop));
    loop_defer(loop, &deferred);
    mailbox_post(&mailbox, &node);
    order[0] = 0;
    loop_turn(loop, NS_PER_S);
    assert_string_equal(order, "mtide");
    loop_turn(loop, CLOCK_NEVER); /* does not wait, because the hook returned true */
    loop_turn(loop, CLOCK_NEVER);
    assert_string_equal(order, "mtideieie");
    mailbox_detach(&mailbox);
}

static bool is_readable(int fd)
{
    struct pollfd waited = {.fd = fd, .events = POLLIN};
    return poll(&waited, 1, 0) == 1;
}

static void count_message(void *owner, struct mailbox_node *node)
{
    (void)node;
    (*(unsigned *)owner)++;
}

struct posting {
    struct mailbox mailbox;
    struct mailbox_node nodes[3];
};

static void *post_all(void *arg)
{
    struct posting *posting = arg;
    for (size_t i = 0; i < COUNT_OF(posting->nodes); i++)
        mailbox_post(&posting->mailbox, &posting->nodes[i]);
    return NULL;
}

/* A foreign loop sees only the descriptor and the next time. */
static void nested_loop_is_readable_when_it_has_something_to_do(void **state)
{
    (void)state;
    AUTO(loop_freep) struct loop *loop = new_loop();
    struct posting posting = {.mailbox.waker = NULL};
    unsigned received = 0;
    loop_attach(loop, &posting.mailbox, count_message, &received);
    loop_turn_nested(loop);
    for (int round = 0; round < 3; round++) {
        assert_false(is_readable(loop_fd(loop)));
        assert_true(loop_next_ns(loop) == CLOCK_NEVER);
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, post_all, &posting), 0);
        pthread_join(thread, NULL);
        assert_true(is_readable(loop_fd(loop)));
        loop_turn_nested(loop);
        assert_int_equal(received, 3 * (round + 1));
    }

    struct pair pair;
    pair_init(&pair, loop);
    assert_int_equal(loop_watch(loop, &pair.watch, IO_READ), ST_OK);
    assert_false(is_readable(loop_fd(loop)));
    assert_int_equal(write(pair.ends[1], "x", 1), 1);
    assert_true(is_readable(loop_fd(loop)));
    loop_turn_nested(loop);
    assert_int_equal(pair.calls, 1);
    pair_fini(&pair);
    mailbox_detach(&posting.mailbox);
}

static void *stop_soon(void *loop)
{
    usleep(2000);
    loop_stop(loop);
    return NULL;
}

static void stop_from_another_thread_ends_the_run(void **state)
{
    (void)state;
    AUTO(loop_freep) struct loop *loop = new_loop();
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, stop_soon, loop), 0);
    loop_run(loop);
    pthread_join(thread, NULL);

    loop_turn(loop, 0); /* consumes the wake-up, if it was awake at that time */
    int64_t start = clock_mono_ns(clock_system()); /* single turns afterwards wait as usual */
    loop_turn(loop, 3 * NS_PER_MS);
    assert_true(clock_mono_ns(clock_system()) - start >= 2 * NS_PER_MS);
}

static void slow_watch(struct io_watch *watch, unsigned ready)
{
    note_ready(watch, ready);
    usleep(200);
}

static void long_turn_leaves_the_rest_for_the_next(void **state)
{
    (void)state;
    enum { COUNT = 40 };
    AUTO(loop_freep) struct loop *loop = new_loop();
    static struct pair pairs[COUNT];
    for (int i = 0; i < COUNT; i++) {
        pair_init(&pairs[i], loop);
        pairs[i].watch.fn = slow_watch;
        assert_int_equal(loop_watch(loop, &pairs[i].watch, IO_WRITE), ST_OK);
    }
    loop_turn(loop, NS_PER_S);
    unsigned first_turn = 0, all = 0;
    for (int i = 0; i < COUNT; i++)
        first_turn += pairs[i].calls;
    assert_true(first_turn >= 8 && first_turn < COUNT);
    for (int i = 0; i < COUNT && all < COUNT; i++) {
        loop_turn(loop, 0);
        all = 0;
        for (int k = 0; k < COUNT; k++) {
            assert_true(pairs[k].calls <= 1 || all == COUNT);
            all += pairs[k].calls;
        }
    }
    assert_int_equal(all, COUNT);
    for (int i = 0; i < COUNT; i++)
        pair_fini(&pairs[i]);
}

/* More handles are ready than one wait returns: the time is updated only after all of them were
 * served. */
static void served_time_covers_everything_that_was_ready_before(void **state)
{
    (void)state;
    enum { COUNT = 300 };
    struct clock_sim clock;
    clock_sim_init(&clock, 0);
    AUTO(loop_freep) struct loop *loop = NULL;
    assert_int_equal(loop_new(&clock.clock, &loop), ST_OK);
    int64_t begun_ns = loop_served_ns(loop);
    struct pair *pairs = calloc(COUNT, sizeof(*pairs));
    assert_non_null(pairs);
    for (int i = 0; i < COUNT; i++) {
        pair_init(&pairs[i], loop);
        assert_int_equal(loop_watch(loop, &pairs[i].watch, IO_READ), ST_OK);
    }
    clock_sim_advance(&clock, NS_PER_S);
    loop_turn(loop, 0); /* nothing is ready: the time is that of the wait before */
    assert_int_equal(loop_served_ns(loop), begun_ns);
    int64_t sent_ns = loop_now_ns(loop);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(write(pairs[i].ends[1], "x", 1), 1);
    for (int turns = 0; loop_served_ns(loop) < sent_ns && turns < 10; turns++) {
        clock_sim_advance(&clock, NS_PER_S);
        loop_turn(loop, 0);
    }
    assert_int_equal(loop_served_ns(loop), sent_ns);
    for (int i = 0; i < COUNT; i++)
        assert_true(pairs[i].calls > 0);
    for (int i = 0; i < COUNT; i++)
        pair_fini(&pairs[i]);
    free(pairs);
}

struct slow_pair {
    struct pair pair;
    struct clock_sim *clock;
};

static void take_long(struct io_watch *watch, unsigned ready)
{
    struct slow_pair *slow = CONTAINER_OF(watch, struct slow_pair, pair.watch);
    (void)ready;
    turn_work("reading", SLICE_LITERAL("slowly"));
    clock_sim_advance(slow->clock, 2 * TURN_LONG_NS);
}

static void copy_work(void *ctx, const struct turn_report *report)
{
    snprintf(ctx, 64, "%s %lld", report->work, (long long)(report->took_ns / NS_PER_MS));
}

static void turn_that_takes_long_is_reported(void **state)
{
    (void)state;
    char reported[64] = "";
    struct clock_sim clock;
    clock_sim_init(&clock, 0);
    AUTO(turns_freep) struct turns *turns = NULL;
    struct turns_options options = {.clock = &clock.clock, .on_long = copy_work, .ctx = reported};
    assert_int_equal(turns_new(&options, &turns), ST_OK);
    struct turn *turn;
    assert_int_equal(turns_join(turns, "io", &turn), ST_OK);
    AUTO(loop_freep) struct loop *loop = NULL;
    assert_int_equal(loop_new(&clock.clock, &loop), ST_OK);
    loop_set_turn(loop, turn);
    struct slow_pair slow = {.clock = &clock};
    pair_init(&slow.pair, loop);
    slow.pair.watch.fn = take_long;
    assert_int_equal(loop_watch(loop, &slow.pair.watch, IO_READ), ST_OK);
    loop_turn(loop, 0);
    assert_string_equal(reported, "");
    assert_int_equal(write(slow.pair.ends[1], "x", 1), 1);
    loop_turn(loop, 0);
    assert_string_equal(reported, "reading slowly 200");
    assert_null(turn_here);
    pair_fini(&slow.pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(watch_is_called_while_there_is_something_to_read),
        cmocka_unit_test(hang_up_is_reported_as_ready_and_broken),
        cmocka_unit_test(unwatched_handle_is_not_called_in_the_same_turn),
        cmocka_unit_test(timers_fire_in_time_and_not_before),
        cmocka_unit_test(deferred_call_runs_once_a_turn),
        cmocka_unit_test(parts_of_a_turn_run_in_order),
        cmocka_unit_test(nested_loop_is_readable_when_it_has_something_to_do),
        cmocka_unit_test(stop_from_another_thread_ends_the_run),
        cmocka_unit_test(long_turn_leaves_the_rest_for_the_next),
        cmocka_unit_test(served_time_covers_everything_that_was_ready_before),
        cmocka_unit_test(turn_that_takes_long_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
