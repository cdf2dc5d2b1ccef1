/* Renewals over shared streams, with a fake of the cluster's calls. */
#include "mirror/shared_calls/lease_streams.h"

#include "codec/pb/wire.h"
#include "engine/leases.h"
#include "mirror/link/fake_upstream_test.h"
#include "mirror/link/state.h"
#include "simulated/sim.h"

enum { ITEMS_MAX = 8 };

struct fixture {
    struct sim *sim;
    struct loop *loop;
    struct mirror_state state;
    struct lease_streams *streams;
};

/* The renewals of one client. */
struct client {
    struct engine_renewals renewals; /* first */
    struct engine_renewal items[ITEMS_MAX];
    struct arena arena;
    unsigned done;
    struct client *next; /* renews when this one is done; may be NULL */
    struct fixture *fixture;
};

static void begin(struct fixture *f)
{
    struct sim_options options = SIM_OPTIONS_DEFAULT;
    *f = (struct fixture){.sim = sim_new(&options)};
    cluster_begin();
    assert_int_equal(network_loop_new(sim_network(f->sim), &f->loop), ST_OK);
    f->streams = lease_streams_new(f->loop, NULL, &f->state);
}

static void finish(struct fixture *f)
{
    lease_streams_check(f->streams);
    lease_streams_free(f->streams);
    assert_int_equal(cluster.count, 0);
    loop_free(f->loop);
    sim_free(f->sim);
}

static void on_wake(struct timer *timer)
{
    (void)timer;
}

/* The loop learns of the time when it has something to do. */
static void run(struct fixture *f, int64_t ns)
{
    int64_t until = clock_mono_ns(sim_clock(f->sim)) + ns;
    struct timer wake = {.fn = on_wake};
    loop_timer_set(f->loop, &wake, until);
    while (wake.set && sim_step(f->sim))
        lease_streams_check(f->streams);
    lease_streams_check(f->streams);
}

static void renew(struct fixture *f, struct client *c)
{
    lease_streams_renew(f->streams, &c->renewals);
}

static void on_done(struct engine_op *op)
{
    struct client *c = CONTAINER_OF(op, struct client, renewals.op);
    c->done++;
    lease_streams_check(c->fixture->streams);
    if (c->next)
        renew(c->fixture, c->next);
}

/* token: NULL for Vigil's own name. */
static void client_init(struct fixture *f, struct client *c, const char *token, int64_t first_id,
                        size_t count)
{
    *c = (struct client){.fixture = f};
    arena_init(&c->arena, NULL, 0, SIZE_MAX);
    c->renewals.op.done = on_done;
    c->renewals.op.arena = &c->arena;
    c->renewals.op.principal.is_server = !token;
    c->renewals.op.principal.token = slice_from_text(token ? token : "");
    c->renewals.items = c->items;
    c->renewals.count = count;
    for (size_t i = 0; i < count; i++)
        c->items[i].id = first_id + (int64_t)i;
}

static void client_start(struct fixture *f, struct client *c, const char *token, int64_t first_id,
                         size_t count)
{
    client_init(f, c, token, first_id, count);
    renew(f, c);
    lease_streams_check(f->streams);
}

static void client_fini(struct client *c)
{
    arena_fini(&c->arena);
}

static void assert_renewed(const struct client *c)
{
    assert_int_equal(c->done, 1);
    assert_int_equal(c->renewals.op.status, ST_OK);
    assert_int_equal(c->renewals.answered, c->renewals.count);
    for (size_t i = 0; i < c->renewals.count; i++)
        assert_int_equal(c->items[i].ttl_s, c->items[i].id % 1000);
}

static void assert_failed(const struct client *c, enum status status, size_t answered)
{
    assert_int_equal(c->done, 1);
    assert_int_equal(c->renewals.op.status, status);
    assert_int_equal(c->renewals.answered, answered);
}

/* The next id that was sent on a stream, which is taken from it; 0: none. */
static int64_t take_id(struct upstream_call *call)
{
    uint64_t id = 0;
    if (!call->sent.len)
        return 0;
    const uint8_t *end = call->sent.ptr + call->sent.len;
    assert_int_equal(call->sent.ptr[0], PB_TAG(1, PB_WIRE_VARINT));
    const uint8_t *next = pb_varint_read(call->sent.ptr + 1, end, &id);
    assert_non_null(next);
    buf_consume(&call->sent, (size_t)(next - call->sent.ptr));
    return (int64_t)id;
}

static void answer(struct upstream_call *call, int64_t id, int64_t revision)
{
    struct buf message = {0};
    struct pb_response_header header = {.revision = revision};
    struct pb_lease_keep_alive_response response = {.header = &header, .id = id, .ttl = id % 1000};
    assert_int_equal(pb_append(&pb_lease_keep_alive_response_table, &response, &message), ST_OK);
    call->ops->on_message(call, buf_slice(&message));
    buf_fini(&message);
}

static size_t answer_all(struct fixture *f, struct upstream_call *call)
{
    size_t count = 0;
    for (int64_t id; (id = take_id(call)); count++) {
        answer(call, id, 7);
        lease_streams_check(f->streams);
        if (!cluster.count)
            return count + 1;
    }
    return count;
}

/* -- Tests -- */

static void clients_of_one_token_share_a_stream(void **state)
{
    (void)state;
    struct fixture f;
    struct client a, b, other, own;
    begin(&f);
    client_start(&f, &a, "t", 1, 3);
    client_start(&f, &b, "t", 11, 2);
    client_start(&f, &other, "u", 21, 1);
    client_start(&f, &own, NULL, 31, 1);
    assert_int_equal(cluster.count, 3);
    struct upstream_call *call = call_at(0);
    assert_true(slice_is(call->request.caller.token, "t"));
    assert_true(call->request.lasts && call->request.require_leader && !call->request.reads);
    assert_true(call_at(2)->request.caller.is_self);
    assert_int_equal(take_id(call), 1);
    answer(call, 1, 5);
    assert_int_equal(a.done, 0);
    assert_int_equal(answer_all(&f, call), 4);
    assert_renewed(&a);
    assert_renewed(&b);
    assert_int_equal(a.renewals.op.revision, 7);
    assert_int_equal(atomic_load(&f.state.heard), 7);
    assert_int_equal(other.done, 0);
    answer_all(&f, call_at(1));
    answer_all(&f, call_at(2));
    assert_renewed(&other);
    assert_renewed(&own);
    client_start(&f, &a, "t", 1, 1);
    assert_int_equal(cluster.started, 3);
    answer_all(&f, call);
    assert_renewed(&a);
    finish(&f);
}

static void idle_stream_is_closed(void **state)
{
    (void)state;
    struct fixture f;
    struct client c;
    begin(&f);
    client_start(&f, &c, "t", 1, 1);
    answer_all(&f, call_at(0));
    run(&f, 59 * NS_PER_S);
    assert_int_equal(cluster.count, 1);
    run(&f, 2 * NS_PER_S);
    assert_int_equal(cluster.count, 0);
    assert_int_equal(lease_streams_count(f.streams), 0);
    finish(&f);
}

static void broken_stream_repeats_what_was_not_answered(void **state)
{
    (void)state;
    struct fixture f;
    struct client a, b;
    begin(&f);
    client_start(&f, &a, "t", 1, 3);
    client_start(&f, &b, "t", 11, 2);
    answer(call_at(0), take_id(call_at(0)), 5);
    call_end(call_at(0), GRPC_UNAVAILABLE, "broken");
    assert_int_equal(cluster.started, 2);
    assert_int_equal(answer_all(&f, call_at(0)), 4);
    assert_renewed(&a);
    assert_renewed(&b);
    finish(&f);
}

/* Three streams in a row end without an answer. The second repetition follows after a pause. */
static void unavailable_cluster_fails_renewals(void **state)
{
    (void)state;
    struct fixture f;
    struct client a, b;
    begin(&f);
    client_start(&f, &a, "t", 1, 3);
    client_start(&f, &b, "t", 11, 2);
    call_fail(call_at(0), ST_NO_LEADER);
    call_fail(call_at(0), ST_NO_LEADER);
    assert_int_equal(cluster.count, 0);
    run(&f, 100 * NS_PER_MS);
    assert_int_equal(cluster.count, 1);
    assert_int_equal(a.done + b.done, 0);
    call_fail(call_at(0), ST_NO_LEADER);
    assert_failed(&a, ST_NO_LEADER, 0);
    assert_failed(&b, ST_NO_LEADER, 0);
    finish(&f);
    client_fini(&a);
    client_fini(&b);
}

/* As upstream.c says after five seconds without a connection. */
static void unreachable_cluster_fails_renewals(void **state)
{
    (void)state;
    struct fixture f;
    struct client a;
    begin(&f);
    client_start(&f, &a, "t", 1, 1);
    run(&f, 5 * NS_PER_S);
    call_end(call_at(0), GRPC_UNAVAILABLE, "the cluster cannot be reached: x");
    assert_int_equal(a.done, 1);
    assert_true(slice_is(a.renewals.op.text, "the cluster cannot be reached: x"));
    finish(&f);
    client_fini(&a);
}

static void refused_lease_fails_its_client_only(void **state)
{
    (void)state;
    struct fixture f;
    struct client a, b, c;
    begin(&f);
    client_start(&f, &a, "t", 1, 2);
    client_start(&f, &b, "t", 11, 3);
    client_start(&f, &c, "t", 21, 2);
    for (int i = 0; i < 3; i++)
        answer(call_at(0), take_id(call_at(0)), 5);
    call_fail(call_at(0), ST_PERMISSION_DENIED);
    assert_renewed(&a);
    assert_failed(&b, ST_PERMISSION_DENIED, 1);
    assert_int_equal(c.done, 0);
    assert_int_equal(answer_all(&f, call_at(0)), 2);
    assert_renewed(&c);
    finish(&f);
    client_fini(&b);
}

static void refused_token_fails_all_its_clients(void **state)
{
    (void)state;
    struct fixture f;
    struct client a, b, other;
    begin(&f);
    client_start(&f, &a, "t", 1, 2);
    client_start(&f, &b, "t", 11, 3);
    client_start(&f, &other, "u", 21, 2);
    call_fail(call_at(0), ST_INVALID_AUTH_TOKEN);
    assert_failed(&a, ST_INVALID_AUTH_TOKEN, 0);
    assert_failed(&b, ST_INVALID_AUTH_TOKEN, 0);
    assert_int_equal(cluster.count, 1);
    answer_all(&f, call_at(0));
    assert_renewed(&other);
    finish(&f);
    client_fini(&a);
    client_fini(&b);
}

static void late_answer_fails_those_that_have_waited(void **state)
{
    (void)state;
    struct fixture f;
    struct client a, b;
    begin(&f);
    client_start(&f, &a, "t", 1, 2);
    run(&f, 6 * NS_PER_S);
    client_start(&f, &b, "t", 11, 2);
    run(&f, 5 * NS_PER_S);
    assert_failed(&a, ST_TIMEOUT, 0);
    assert_int_equal(b.done, 0);
    assert_int_equal(answer_all(&f, call_at(0)), 2);
    assert_renewed(&b);
    finish(&f);
    client_fini(&a);
}

static void answer_of_another_lease_breaks_the_stream(void **state)
{
    (void)state;
    struct fixture f;
    struct client a;
    begin(&f);
    client_start(&f, &a, "t", 1, 2);
    struct upstream_call *first = call_at(0);
    answer(first, 99, 5);
    assert_int_equal(cluster.started, 2);
    answer_all(&f, call_at(0));
    assert_renewed(&a);
    answer(call_at(0), 1, 5); /* no renewal waits for it */
    assert_int_equal(cluster.count, 0);
    finish(&f);
}

static void done_may_renew_again(void **state)
{
    (void)state;
    struct fixture f;
    struct client a, b, c;
    begin(&f);
    client_init(&f, &b, "t", 11, 2);
    client_init(&f, &c, "other", 21, 2);
    client_init(&f, &a, "t", 1, 2);
    a.next = &b;
    b.next = &c;
    renew(&f, &a);
    answer_all(&f, call_at(0));
    assert_renewed(&a);
    assert_renewed(&b);
    call_fail(call_at(1), ST_INVALID_AUTH_TOKEN);
    assert_failed(&c, ST_INVALID_AUTH_TOKEN, 0);
    finish(&f);
    client_fini(&c);
}

static void window_limits_what_is_sent(void **state)
{
    (void)state;
    enum { CLIENTS = 300 };
    struct fixture f;
    struct client *clients = calloc(CLIENTS, sizeof(*clients));
    assert_non_null(clients);
    begin(&f);
    for (size_t i = 0; i < CLIENTS; i++)
        client_start(&f, &clients[i], "t", 1 + (int64_t)i * ITEMS_MAX, ITEMS_MAX);
    size_t sent = 0;
    struct buf copy = {0};
    assert_int_equal(buf_append(&copy, buf_slice(&call_at(0)->sent)), ST_OK);
    while (take_id(call_at(0)))
        sent++;
    assert_int_equal(sent, LEASE_STREAM_WINDOW);
    assert_int_equal(buf_append(&call_at(0)->sent, buf_slice(&copy)), ST_OK);
    assert_int_equal(answer_all(&f, call_at(0)), CLIENTS * ITEMS_MAX);
    for (size_t i = 0; i < CLIENTS; i++)
        assert_renewed(&clients[i]);
    buf_fini(&copy);
    finish(&f);
    free(clients);
}

/* Idle streams make room for others; if all are in use, more are made, which end with their
 * renewals. */
static void streams_are_limited(void **state)
{
    (void)state;
    enum { CLIENTS = LEASE_STREAMS_MAX + 50 };
    struct fixture f;
    struct client *clients = calloc(CLIENTS, sizeof(*clients));
    char token[CLIENTS][16];
    assert_non_null(clients);
    begin(&f);
    for (size_t i = 0; i < CLIENTS; i++) {
        snprintf(token[i], sizeof(token[i]), "token.%zu", i);
        client_start(&f, &clients[i], token[i], 1, 2);
    }
    assert_int_equal(lease_streams_count(f.streams), CLIENTS);
    for (size_t i = 0; i < CLIENTS; i++) {
        /* Those that are not kept disappear with their answers. */
        struct upstream_call *call = call_at(i < LEASE_STREAMS_MAX ? i : LEASE_STREAMS_MAX);
        answer(call, 1, 5);
        answer(call, 2, 5);
        assert_renewed(&clients[i]);
    }
    lease_streams_check(f.streams);
    assert_int_equal(lease_streams_count(f.streams), LEASE_STREAMS_MAX);
    client_start(&f, &clients[0], "another", 1, 1);
    assert_int_equal(lease_streams_count(f.streams), LEASE_STREAMS_MAX);
    assert_true(slice_is(call_at(0)->request.caller.token, "token.1"));
    answer_all(&f, call_at(LEASE_STREAMS_MAX - 1));
    finish(&f);
    free(clients);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clients_of_one_token_share_a_stream),
        cmocka_unit_test(idle_stream_is_closed),
        cmocka_unit_test(broken_stream_repeats_what_was_not_answered),
        cmocka_unit_test(unavailable_cluster_fails_renewals),
        cmocka_unit_test(unreachable_cluster_fails_renewals),
        cmocka_unit_test(refused_lease_fails_its_client_only),
        cmocka_unit_test(refused_token_fails_all_its_clients),
        cmocka_unit_test(late_answer_fails_those_that_have_waited),
        cmocka_unit_test(answer_of_another_lease_breaks_the_stream),
        cmocka_unit_test(done_may_renew_again),
        cmocka_unit_test(window_limits_what_is_sent),
        cmocka_unit_test(streams_are_limited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
