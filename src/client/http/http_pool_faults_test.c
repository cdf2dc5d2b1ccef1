/*
 * The pool when something goes wrong: one fault at every byte, allocation and system call. Whatever
 * happens, every request ends exactly once, nothing is executed twice, and the pool can be used
 * afterwards.
 */
#include "client/http/http_pool_fixture_test.h"

/* -- One scenario, with every fault -- */

enum { WATCHED_BYTES = 100 };

struct scene {
    struct pool_world w;
    struct pool_test_request get, post, watch;
    size_t posts; /* executed by the server */
};

static void count_post(struct http_exchange *x, void *service, const struct http_request *request)
{
    (void)request;
    ++*(size_t *)service;
    http_respond(x, 200, SLICE_LITERAL("text/plain"), SLICE_LITERAL("made"));
}

/* Some events, and no end. */
static void send_events(struct http_exchange *x, void *service, const struct http_request *request)
{
    static const uint8_t events[WATCHED_BYTES];
    (void)service, (void)request;
    http_begin(x, 200, SLICE_LITERAL("text/plain"));
    http_park(x, NULL);
    assert_int_equal(http_write(x, slice_of(events, sizeof(events))), ST_OK);
}

static const struct http_route count_routes[] = {
    {.path = "/count", .on_request = count_post},
    {.path = "/events", .on_request = send_events},
};

static void scene_init(struct scene *s, bool http2, const struct sim_options *options)
{
    *s = (struct scene){
        .get = {.target = "/health"},
        .post = {.method = "POST", .target = "/count", .body = "x"},
        .watch = {.target = "/events", .waits = true},
    };
    pool_world_init(&s->w, false, options);
    s->w.options.protocol = http2 ? HTTP_POOL_HTTP2 : HTTP_POOL_HTTP1;
    s->w.options.connector.http1.head_ns = s->w.options.connector.http1.stall_ns = 20 * NS_PER_S;
    s->w.extra = count_routes;
    s->w.extra_count = COUNT_OF(count_routes);
    s->w.extra_service = &s->posts;
}

static void scene_start(struct scene *s, struct pool_test_request *r)
{
    faulty_memory_begin();
    enum status status = pool_test_start(s->w.pool, r);
    faulty_memory_end();
    if (status == ST_OK)
        return;
    assert_int_equal(status, ST_NOMEM);
    r->ends = 1;
    r->end = ST_NOMEM;
}

static void scene_run_until(struct scene *s, const struct pool_test_request *r, bool ended)
{
    for (int i = 0; i < 100 && !r->ends && (ended || !r->heads); i++)
        pool_world_run(&s->w, i < 10 ? 10 * NS_PER_MS : NS_PER_S);
    assert_true(r->ends == 1 || (!ended && r->heads));
}

static void scene_run_until_ended(struct scene *s, const struct pool_test_request *r)
{
    scene_run_until(s, r, true);
}

/* A connection is made and used again, and used for two requests at a time. */
static void scene_run(struct scene *s)
{
    pool_world_start(&s->w);
    if (!s->w.pool)
        return;
    scene_start(s, &s->get);
    scene_run_until_ended(s, &s->get);
    scene_start(s, &s->post);
    scene_start(s, &s->watch);
    scene_run_until_ended(s, &s->post);
    scene_run_until(s, &s->watch, false);
    pool_world_run(&s->w, 30 * NS_PER_MS);
}

static void expect_end(const struct pool_test_request *r)
{
    if (r->end == ST_OK)
        assert_int_equal(r->request.reached, POOL_REQUEST_ANSWERED);
    else
        assert_true(r->end == ST_NOMEM || strstr(r->reason, "127.0.0.1:"));
    assert_true(r->received == 0 || r->status);
    if (r->request.reached != POOL_REQUEST_ANSWERED)
        assert_int_equal(r->heads, 0);
}

/* The pool works again. A connection with wrong limits is noticed when it carries nothing. */
static void probe(struct scene *s)
{
    struct pool_test_request r = {.target = "/health"};
    for (int i = 0; i < 3; i++) {
        scene_start(s, &r);
        scene_run_until_ended(s, &r);
        if (pool_test_succeeded(&r))
            return;
    }
    fail_msg("%s", r.reason);
}

static void scene_fini(struct scene *s)
{
    if (s->w.pool) {
        pool_request_cancel(&s->get.request);
        pool_request_cancel(&s->post.request);
        pool_request_cancel(&s->watch.request);
        http_pool_check(s->w.pool);
    }
    pool_world_fini(&s->w);
}

static struct faults run_clean(bool http2)
{
    struct scene s;
    scene_init(&s, http2, NULL);
    scene_run(&s);
    struct faults totals = faults;
    assert_true(pool_test_succeeded(&s.get) && pool_test_succeeded(&s.post));
    assert_int_equal(s.watch.received, WATCHED_BYTES);
    assert_int_equal(s.watch.ends, 0);
    scene_fini(&s);
    return totals;
}

static void run_with_fault(bool http2, enum fault_kind kind, size_t at)
{
    struct scene s;
    scene_init(&s, http2, NULL);
    faults.kind = kind;
    faults.at = at;
    scene_run(&s);
    if (kind != FAULT_GARBAGE) { /* then what the server seems to say may be wrong */
        expect_end(&s.get);
        expect_end(&s.post);
        assert_true(s.posts <= 1);
        assert_true(s.posts == 1 || s.post.end != ST_OK);
        assert_true(s.post.request.reached != POOL_REQUEST_UNREACHED || s.posts == 0);
        assert_true(pool_test_succeeded(&s.get) || s.post.end == ST_OK);
    }
    if (s.watch.ends)
        assert_true(s.watch.end != ST_OK || kind == FAULT_GARBAGE);
    faults.kind = kind == FAULT_SILENCE ? kind : FAULT_NONE; /* what is dead stays dead */
    probe(&s);
    scene_fini(&s);
}

static void each_place(enum fault_kind kind)
{
    for (int http2 = 0; http2 < 2; http2++) {
        struct faults totals = run_clean(http2);
        assert_true(totals.bytes_read > 100 && totals.bytes_written > 100 && totals.calls > 5);
        for (size_t at = 0; at < fault_places(kind, &totals); at++)
            run_with_fault(http2, kind, at);
    }
}

static void connection_may_be_lost_after_every_received_byte(void **state)
{
    (void)state;
    each_place(FAULT_LOST_READING);
}

static void connection_may_be_lost_after_every_sent_byte(void **state)
{
    (void)state;
    each_place(FAULT_LOST_WRITING);
}

static void connection_may_be_reset_after_every_byte(void **state)
{
    (void)state;
    each_place(FAULT_RESET);
}

static void server_may_end_after_every_byte(void **state)
{
    (void)state;
    each_place(FAULT_END);
}

static void connection_may_fall_silent_after_every_byte(void **state)
{
    (void)state;
    each_place(FAULT_SILENCE);
}

static void bytes_may_be_wrong_anywhere(void **state)
{
    (void)state;
    each_place(FAULT_GARBAGE);
}

static void every_system_call_may_fail(void **state)
{
    (void)state;
    each_place(FAULT_CALL);
}

/* False: there were fewer allocations. */
static bool run_without_memory(bool http2, size_t nth, bool all_following)
{
    struct scene s;
    scene_init(&s, http2, NULL);
    memory_fail_on = all_following;
    faulty_memory_at = nth;
    scene_run(&s);
    bool failed = faulty_memory_at == (all_following ? 1 : 0);
    faulty_memory_at = 0;
    if (s.w.pool) {
        assert_true(s.posts <= 1 && (s.posts == 1 || s.post.end != ST_OK));
        probe(&s);
    }
    scene_fini(&s);
    return failed;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    for (int http2 = 0; http2 < 2; http2++) {
        for (int on = 0; on < 2; on++) {
            size_t nth = 1;
            while (run_without_memory(http2, nth, on))
                nth++;
            assert_true(nth > 15);
        }
    }
    memory_fail_on = false;
}

static void bad_network_delays_but_loses_nothing(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct sim_options options = SIM_OPTIONS_DEFAULT;
        struct scene s;
        options.seed = seed;
        options.split_per_1000 = 900;
        options.buffer_bytes = 16;
        options.delay_max_ns = 5 * NS_PER_MS;
        scene_init(&s, seed % 2, &options);
        scene_run(&s);
        pool_world_run(&s.w, 5 * NS_PER_S);
        assert_true(pool_test_succeeded(&s.get) && pool_test_succeeded(&s.post));
        assert_int_equal(s.posts, 1);
        assert_int_equal(http_pool_stats(s.w.pool).disconnects, 0);
        scene_fini(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connection_may_be_lost_after_every_received_byte),
        cmocka_unit_test(connection_may_be_lost_after_every_sent_byte),
        cmocka_unit_test(connection_may_be_reset_after_every_byte),
        cmocka_unit_test(server_may_end_after_every_byte),
        cmocka_unit_test(connection_may_fall_silent_after_every_byte),
        cmocka_unit_test(bytes_may_be_wrong_anywhere),
        cmocka_unit_test(every_system_call_may_fail),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(bad_network_delays_but_loses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
