/* Bodies that are pulled, and connections that are upgraded, over the pool to our own server. */
#include "client/http/http_attempt.h"
#include "client/http/http_pool_fixture_test.h"
#include "wire/http/stream_routes_test.h"

static const struct pool_case {
    bool secure;
    enum http_pool_protocol protocol;
    bool http2;
} cases[] = {
    {false, HTTP_POOL_NEGOTIATED, false}, {false, HTTP_POOL_HTTP2, true},
    {true, HTTP_POOL_NEGOTIATED, true},   {true, HTTP_POOL_HTTP1, false},
    {true, HTTP_POOL_HTTP2, true},
};

static struct test_stream_site stream;

static void prepare(struct pool_world *w, const struct pool_case *c,
                    const struct sim_options *options)
{
    stream = (struct test_stream_site){0};
    pool_world_init(w, c->secure, options);
    w->options.protocol = c->protocol;
    w->extra = test_stream_routes;
    w->extra_count = COUNT_OF(test_stream_routes);
    w->extra_service = &stream;
}

static void begin(struct pool_world *w, const struct pool_case *c)
{
    prepare(w, c, NULL);
    pool_world_start(w);
}

static void end(struct pool_world *w)
{
    pool_world_fini(w);
    test_stream_site_fini(&stream);
}

static void start(struct pool_world *w, struct pool_test_request *r)
{
    assert_int_equal(pool_test_start(w->pool, r), ST_OK);
    assert_int_equal(r->ends + r->heads, 0);
}

static void give(struct pool_world *w, struct pool_test_request *r, const char *text)
{
    pulled_give(r->pulled, text);
    pool_request_wake(&r->request);
    pool_world_run(w, NS_PER_S);
}

static void give_end(struct pool_world *w, struct pool_test_request *r)
{
    r->pulled->ends = true;
    pool_request_wake(&r->request);
    pool_world_run(w, NS_PER_S);
}

/* -- Bodies -- */

static void body_is_sent_as_it_comes(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        for (int known = 0; known < 2; known++) {
            struct pool_world w;
            struct pulled pulled = PULLED;
            struct pool_test_request r = {.method = "POST",
                                          .target = "/take",
                                          .pulled = &pulled,
                                          .pulled_bytes = known ? 11 : POOL_BYTES_UNKNOWN};
            begin(&w, &cases[i]);
            stream.begins = stream.echoes = true;
            start(&w, &r);
            pool_request_wake(&r.request); /* it is not sent yet */
            pool_world_run(&w, 100 * NS_PER_S);
            assert_true(stream.has_body);
            assert_int_equal(r.heads, 1); /* before a byte of the body */
            give(&w, &r, "hello ");
            assert_string_equal(r.text, "hello ");
            give(&w, &r, "world");
            assert_string_equal(r.text, "hello world");
            assert_int_equal(r.ends, known);
            give_end(&w, &r);
            assert_true(pool_test_succeeded(&r));
            assert_int_equal(stream.got_ends, 1);
            assert_int_equal(http_pool_stats(w.pool).connects, 1);
            /* The connection can be used again, unless a server of HTTP/1.1 has answered before it
             * knew how long the body is. */
            struct pool_test_request again = {.target = "/health"};
            start(&w, &again);
            pool_world_run(&w, NS_PER_S);
            assert_true(pool_test_succeeded(&again));
            assert_int_equal(http_pool_stats(w.pool).connects, known || cases[i].http2 ? 1 : 2);
            pulled_fini(&pulled);
            end(&w);
        }
    }
}

static void body_waits_for_the_server(void **state)
{
    (void)state;
    enum { HELD_MAX = 1024 * 1024 }; /* in sockets and windows */
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct pool_world w;
        struct pulled pulled = PULLED;
        struct pool_test_request r = {.method = "POST",
                                      .target = "/take",
                                      .pulled = &pulled,
                                      .pulled_bytes = 100 * (int64_t)HELD_MAX};
        struct pool_test_request other = {.target = "/health"};
        pulled.endless = true;
        begin(&w, &cases[i]);
        stream.withholds = true;
        start(&w, &r);
        pool_world_run(&w, NS_PER_S);
        size_t given = pulled.given;
        assert_in_range(given, 1, HELD_MAX);
        assert_in_range(stream.got_bytes, 0, given);
        pool_world_run(&w, 20 * NS_PER_S);
        assert_int_equal(pulled.given, given);
        start(&w, &other); /* does not wait for it */
        pool_world_run(&w, NS_PER_S);
        assert_true(pool_test_succeeded(&other));
        pool_request_cancel(&r.request);
        pool_world_run(&w, NS_PER_S);
        if (stream.latest) /* over HTTP/1.1 it has not read to the end */
            http_withhold(stream.latest, false);
        start(&w, &other); /* gives the server a turn */
        pool_world_run(&w, NS_PER_S);
        assert_null(stream.latest);
        end(&w);
    }
}

static void response_may_end_before_the_body(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct pool_world w;
        struct pulled pulled = PULLED;
        struct pool_test_request r = {.method = "POST",
                                      .target = "/take",
                                      .pulled = &pulled,
                                      .pulled_bytes = POOL_BYTES_UNKNOWN};
        begin(&w, &cases[i]);
        stream.answers = 403;
        start(&w, &r);
        pool_world_run(&w, NS_PER_S);
        assert_int_equal(r.ends, 1);
        assert_int_equal(r.end, ST_OK);
        assert_int_equal(r.status, 403);
        assert_string_equal(r.text, "early");
        pool_request_wake(&r.request); /* has no effect */
        r.pulled = NULL;
        stream.answers = 200; /* nothing of the first request disturbs the second one */
        start(&w, &r);
        pool_world_run(&w, NS_PER_S);
        assert_true(pool_test_succeeded(&r));
        end(&w);
    }
}

static void body_that_is_too_short_fails_the_request(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct pool_world w;
        struct pulled pulled = PULLED;
        struct pool_test_request r = {
            .method = "POST", .target = "/take", .pulled = &pulled, .pulled_bytes = 100};
        begin(&w, &cases[i]);
        start(&w, &r);
        give(&w, &r, "short");
        give_end(&w, &r);
        assert_int_equal(r.ends, 1);
        assert_int_equal(r.end, cases[i].http2 ? ST_CLOSED : ST_INVALID);
        assert_int_equal(stream.got_ends, 0);
        pulled_fini(&pulled);
        end(&w);
    }
}

/* -- Upgrades -- */

static void upgrade(struct pool_world *w, struct pool_test_request *r)
{
    stream.echoes = true;
    r->target = "/raw";
    r->upgrade = "test/1";
    start(w, r);
    pool_world_run(w, NS_PER_S);
    assert_int_equal(r->status, 101);
    assert_true(stream.upgrade);
}

static void upgraded_connection_is_made_for_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct pool_world w;
        struct pulled pulled = PULLED;
        struct pool_test_request r = {.pulled = &pulled};
        struct pool_test_request before = {.target = "/health"}, after = {.target = "/health"};
        begin(&w, &cases[i]);
        start(&w, &before);
        pool_world_run(&w, NS_PER_S);
        upgrade(&w, &r);
        assert_int_equal(http_pool_stats(w.pool).connects, 2);
        give(&w, &r, "GET / HTTP/1.1\r\n\r\n");
        assert_string_equal(r.text, "GET / HTTP/1.1\r\n\r\n");
        start(&w, &after);
        pool_world_run(&w, NS_PER_S);
        assert_true(pool_test_succeeded(&before) && pool_test_succeeded(&after));
        assert_int_equal(http_pool_stats(w.pool).connects, 2);
        /* It may be silent for long. */
        pool_world_run(&w, 10 * 86400 * NS_PER_S);
        assert_int_equal(r.ends, 0);
        give(&w, &r, "still");
        assert_int_equal(stream.got_bytes, 23);
        pool_request_cancel(&r.request);
        pool_world_run(&w, NS_PER_S);
        assert_null(stream.latest);
        assert_true(http_pool_stats(w.pool).connections <= 1);
        pulled_fini(&pulled);
        end(&w);
    }
}

static void each_direction_of_an_upgraded_connection_ends_alone(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct pool_world w;
        struct pulled pulled = PULLED, other = PULLED;
        struct pool_test_request r = {.pulled = &pulled};
        begin(&w, &cases[i]);
        stream.echoes_max = 4; /* the server ends first, and still receives */
        upgrade(&w, &r);
        give(&w, &r, "ping");
        assert_string_equal(r.text, "ping");
        assert_int_equal(r.input_ends, 1);
        assert_int_equal(r.ends, 0);
        pool_world_run(&w, 1000 * NS_PER_S);
        give(&w, &r, "more");
        assert_int_equal(stream.got_bytes, 8);
        give_end(&w, &r);
        assert_int_equal(stream.ends, 1);
        assert_int_equal(r.ends, 1);
        assert_int_equal(r.end, ST_OK);

        stream.echoes_max = 0; /* the client ends first, and still receives */
        r.pulled = &other;
        upgrade(&w, &r);
        stream.echoes = false;
        give(&w, &r, "ping");
        give_end(&w, &r);
        assert_int_equal(stream.got_ends, 1);
        assert_int_equal(r.input_ends + r.ends, 0);
        pool_world_run(&w, 1000 * NS_PER_S);
        assert_int_equal(stream.ends, 1);
        http_abort(stream.latest);
        pool_world_run(&w, NS_PER_S);

        pulled_fini(&pulled);
        pulled_fini(&other);
        end(&w);
    }
}

static void raw_bytes_are_withheld_in_both_directions(void **state)
{
    (void)state;
    enum { HELD_MAX = 1024 * 1024 }; /* in sockets */
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct pool_world w;
        struct pulled pulled = PULLED;
        struct pool_test_request r = {.pulled = &pulled};
        begin(&w, &cases[i]);
        upgrade(&w, &r);
        pool_request_withhold(&r.request, true);
        pulled.endless = true;
        pool_request_wake(&r.request);
        for (int n = 0; n < 100000 && stream.got_bytes < 4 * HELD_MAX; n++)
            pool_world_run(&w, 10 * NS_PER_US);
        assert_in_range(stream.got_bytes, 4 * HELD_MAX, 8 * HELD_MAX); /* it takes everything */
        assert_in_range(r.received, 0, HELD_MAX);
        size_t received = r.received;
        http_withhold(stream.latest, true);
        pool_world_run(&w, NS_PER_MS);
        size_t given = pulled.given;
        pool_world_run(&w, 100 * NS_PER_S);
        assert_int_equal(pulled.given, given);
        assert_int_equal(r.received, received);
        pool_request_withhold(&r.request, false);
        pool_world_run(&w, NS_PER_S);
        assert_true(r.received >= 3 * HELD_MAX);
        pool_request_cancel(&r.request);
        end(&w);
    }
}

static void refused_upgrade_is_an_ordinary_response(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct pool_world w;
        struct pulled pulled = PULLED;
        struct pool_test_request r = {.target = "/health", .upgrade = "x", .pulled = &pulled};
        begin(&w, &cases[i]);
        start(&w, &r);
        pool_world_run(&w, NS_PER_S);
        assert_true(pool_test_succeeded(&r));
        assert_int_equal(pulled.fills, 0);
        assert_int_equal(http_pool_stats(w.pool).connections, 0); /* it is not used for others */
        r.upgrade = "a\nb";
        assert_int_equal(pool_test_start(w.pool, &r), ST_INVALID);
        end(&w);
    }
}

static void upgrades_end_with_their_connections_and_the_pool(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct pool_world w;
        struct pulled pulled = PULLED;
        struct pool_test_request waiting = {.target = "/raw", .upgrade = "x", .pulled = &pulled};
        struct pool_test_request connecting = waiting, raw = waiting, broken = waiting;
        begin(&w, &cases[i]);
        start(&w, &waiting);
        pool_request_cancel(&waiting.request);
        start(&w, &connecting);
        pool_world_run(&w, 1);
        pool_request_cancel(&connecting.request);
        pool_world_run(&w, NS_PER_S);
        assert_int_equal(http_pool_stats(w.pool).connections, 0);
        assert_int_equal(waiting.ends + connecting.ends, 0);
        upgrade(&w, &broken);
        http_abort(stream.latest);
        w.options.endpoint.host[0] = 0; /* the copy of the pool is used */
        start(&w, &waiting);
        pool_world_run(&w, NS_PER_S);
        pool_request_cancel(&waiting.request);
        upgrade(&w, &raw);
        start(&w, &connecting);
        pool_world_run(&w, 1);
        start(&w, &waiting);
        http_pool_free(w.pool);
        w.pool = NULL;
        assert_int_equal(waiting.end, ST_CLOSED);
        assert_int_equal(connecting.end, ST_CLOSED);
        assert_int_equal(raw.end, ST_CLOSED);
        assert_int_equal(raw.ends, 1);
        pool_world_run(&w, NS_PER_S);
        assert_null(stream.latest);
        end(&w);
    }
}

static void unreachable_server_fails_each_upgrade_alone(void **state)
{
    (void)state;
    struct pool_world w;
    struct pool_test_request r[3];
    begin(&w, &cases[0]);
    net_server_stop(w.server);
    net_server_free(w.server);
    w.server = NULL;
    for (size_t i = 0; i < COUNT_OF(r); i++) {
        r[i] = (struct pool_test_request){.target = "/raw", .upgrade = i < 2 ? "x" : NULL};
        start(&w, &r[i]);
    }
    pool_world_run(&w, NS_PER_S);
    for (size_t i = 0; i < COUNT_OF(r); i++) {
        assert_int_equal(r[i].ends, 1);
        assert_int_equal(r[i].end, ST_CLOSED);
        assert_int_equal(r[i].request.reached, POOL_REQUEST_UNREACHED);
        assert_non_null(strstr(r[i].reason, "connection refused"));
    }
    assert_int_equal(http_pool_stats(w.pool).connect_errors, 3);
    end(&w);
}

static void upgrades_have_a_number_of_connections_of_their_own(void **state)
{
    (void)state;
    struct pool_world w;
    struct pool_test_request r[3], other = {.target = "/health"};
    prepare(&w, &cases[2], NULL);
    w.options.connections_max = 2;
    pool_world_start(&w);
    for (size_t i = 0; i < COUNT_OF(r); i++) {
        r[i] = (struct pool_test_request){.target = "/raw", .upgrade = "x"};
        start(&w, &r[i]);
    }
    start(&w, &other);
    pool_world_run(&w, NS_PER_S);
    assert_true(pool_test_succeeded(&other));
    assert_int_equal(r[0].status, 101);
    assert_int_equal(r[1].status, 101);
    assert_int_equal(r[2].status, 0); /* waits */
    pool_request_cancel(&r[0].request);
    pool_world_run(&w, NS_PER_S);
    assert_int_equal(r[2].status, 101);
    pool_request_cancel(&r[1].request);
    pool_request_cancel(&r[2].request);
    end(&w);
}

/* -- Faults -- */

/* A body in parts to which the server answers at once, then an upgraded connection in which both
 * sides say something and end. */
struct scene {
    struct pool_world w;
    struct pulled body, raw_bytes;
    struct pool_test_request upload, raw;
};

static void scene_init(struct scene *s, bool http2, const struct sim_options *options)
{
    struct pool_case c = {false, http2 ? HTTP_POOL_HTTP2 : HTTP_POOL_HTTP1, http2};
    prepare(&s->w, &c, options);
    s->w.options.connector.http1.head_ns = s->w.options.connector.http1.stall_ns = 20 * NS_PER_S;
    s->body = s->raw_bytes = PULLED;
    s->upload = (struct pool_test_request){.method = "POST",
                                           .target = "/take",
                                           .pulled = &s->body,
                                           .pulled_bytes = POOL_BYTES_UNKNOWN};
    s->raw = (struct pool_test_request){.target = "/raw", .upgrade = "x", .pulled = &s->raw_bytes};
    stream.begins = stream.echoes = true;
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

/* Gives three parts and the end. */
static void scene_drive(struct scene *s, struct pool_test_request *r)
{
    scene_start(s, r);
    pool_world_run(&s->w, 10 * NS_PER_MS);
    for (int part = 0; part < 4; part++) {
        r->pulled->ends = part == 3;
        if (part < 3)
            pulled_give(r->pulled, "0123456789");
        pool_request_wake(&r->request);
        pool_world_run(&s->w, 10 * NS_PER_MS);
    }
    for (int i = 0; i < 100 && !r->ends; i++)
        pool_world_run(&s->w, i < 10 ? 10 * NS_PER_MS : NS_PER_S);
}

static void scene_run(struct scene *s)
{
    pool_world_start(&s->w);
    if (!s->w.pool)
        return;
    scene_drive(s, &s->upload);
    scene_drive(s, &s->raw);
}

static void scene_fini(struct scene *s)
{
    if (s->w.pool) {
        pool_request_cancel(&s->upload.request);
        pool_request_cancel(&s->raw.request);
        http_pool_check(s->w.pool);
    }
    pulled_fini(&s->body);
    pulled_fini(&s->raw_bytes);
    end(&s->w);
}

static bool is_whole(const struct pool_test_request *r)
{
    return r->ends == 1 && r->end == ST_OK && r->received == 30 &&
           strcmp(r->text, "012345678901234567890123456789") == 0;
}

static struct faults run_clean(bool http2)
{
    struct scene s;
    scene_init(&s, http2, NULL);
    scene_run(&s);
    struct faults totals = faults;
    assert_true(is_whole(&s.upload));
    assert_true(is_whole(&s.raw));
    assert_int_equal(s.raw.input_ends, 1);
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
    if (kind != FAULT_GARBAGE) {
        assert_int_equal(s.upload.ends, 1);
        /* An upgraded connection may be silent for ever, and its end by the server is regular. */
        bool unknown = kind == FAULT_SILENCE || kind == FAULT_END;
        assert_true(s.raw.ends == 1 || (unknown && s.raw.status == 101));
        assert_true(s.upload.end != ST_OK || is_whole(&s.upload));
        assert_true(s.raw.end != ST_OK || unknown || is_whole(&s.raw));
        assert_int_equal(http_pool_stats(s.w.pool).repeats, 0);
    }
    faults.kind = FAULT_NONE;
    scene_fini(&s);
}

static void any_fault_ends_requests_once(void **state)
{
    static const enum fault_kind kinds[] = {FAULT_LOST_READING, FAULT_LOST_WRITING, FAULT_RESET,
                                            FAULT_END,          FAULT_SILENCE,      FAULT_GARBAGE,
                                            FAULT_CALL};
    (void)state;
    for (int http2 = 0; http2 < 2; http2++) {
        struct faults totals = run_clean(http2);
        assert_true(totals.bytes_read > 100 && totals.bytes_written > 100);
        for (size_t i = 0; i < COUNT_OF(kinds); i++)
            for (size_t at = 0; at < fault_places(kinds[i], &totals); at++)
                run_with_fault(http2, kinds[i], at);
    }
}

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
        assert_int_equal(s.upload.ends, 1);
        assert_int_equal(s.raw.ends, 1);
        assert_true(s.upload.end != ST_OK || is_whole(&s.upload));
        assert_true(s.raw.end != ST_OK || is_whole(&s.raw));
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
        assert_true(is_whole(&s.upload) && is_whole(&s.raw));
        scene_fini(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(body_is_sent_as_it_comes),
        cmocka_unit_test(body_waits_for_the_server),
        cmocka_unit_test(response_may_end_before_the_body),
        cmocka_unit_test(body_that_is_too_short_fails_the_request),
        cmocka_unit_test(upgraded_connection_is_made_for_it),
        cmocka_unit_test(each_direction_of_an_upgraded_connection_ends_alone),
        cmocka_unit_test(raw_bytes_are_withheld_in_both_directions),
        cmocka_unit_test(refused_upgrade_is_an_ordinary_response),
        cmocka_unit_test(upgrades_end_with_their_connections_and_the_pool),
        cmocka_unit_test(unreachable_server_fails_each_upgrade_alone),
        cmocka_unit_test(upgrades_have_a_number_of_connections_of_their_own),
        cmocka_unit_test(any_fault_ends_requests_once),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(bad_network_delays_but_loses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
