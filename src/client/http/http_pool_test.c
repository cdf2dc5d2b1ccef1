/* Requests over the pool to our own server: protocols, connections, limits, failures. */
#include "client/connect/relay_test.h"
#include "client/http/http_attempt.h"
#include "client/http/http_pool_fixture_test.h"

/* With TLS and both protocols, and without TLS. */
static const struct pool_case {
    bool secure;
    enum http_pool_protocol protocol;
    bool http2;
} cases[] = {
    {false, HTTP_POOL_NEGOTIATED, false}, {false, HTTP_POOL_HTTP2, true},
    {true, HTTP_POOL_NEGOTIATED, true},   {true, HTTP_POOL_HTTP1, false},
    {true, HTTP_POOL_HTTP2, true},
};

static void begin(struct pool_world *w, const struct pool_case *c)
{
    pool_world_init(w, c->secure, NULL);
    w->options.protocol = c->protocol;
    pool_world_start(w);
}

static void start(struct pool_world *w, struct pool_test_request *r)
{
    assert_int_equal(pool_test_start(w->pool, r), ST_OK);
    assert_int_equal(r->ends + r->heads, 0);
}

static void requests_are_answered(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct pool_world w;
        struct pool_test_request get = {.target = "/health"};
        struct pool_test_request post = {.method = "POST", .target = "/chunks/", .body = "hello"};
        begin(&w, &cases[i]);
        start(&w, &get);
        start(&w, &post);
        pool_world_run(&w, NS_PER_S);
        assert_true(pool_test_succeeded(&get));
        assert_string_equal(get.text, "{\"health\":\"true\"}");
        assert_string_equal(get.type, "application/json");
        assert_int_equal(get.request.reached, POOL_REQUEST_ANSWERED);
        assert_true(pool_test_succeeded(&post));
        assert_string_equal(post.text, "<hello>");
        assert_true(get.request.connection && post.request.connection);
        assert_int_equal(get.request.connection == post.request.connection, cases[i].http2);
        struct http_pool_stats stats = http_pool_stats(w.pool);
        assert_int_equal(stats.connects, cases[i].http2 ? 1 : 2);
        assert_int_equal(stats.connections, cases[i].http2 ? 1 : 2);
        assert_int_equal(stats.connect_errors + stats.disconnects + stats.repeats, 0);
        assert_true(stats.bytes_sent > 50 && stats.bytes_received > 50);
        pool_world_fini(&w);
    }
}

/* Over HTTP/2 it would not fit into one frame, so it has a connection of HTTP/1.1. */
static void long_heads_are_sent(void **state)
{
    static char target[20000];
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct pool_world w;
        int len = snprintf(target, sizeof(target), "/health?");
        for (size_t bytes = 10000; bytes < sizeof(target) - 100; bytes += 3001) {
            struct pool_test_request get = {.target = target};
            memset(target + len, 'x', bytes);
            target[(size_t)len + bytes] = 0;
            begin(&w, &cases[i]);
            start(&w, &get);
            pool_world_run(&w, NS_PER_S);
            assert_true(pool_test_succeeded(&get));
            assert_string_equal(get.text, "{\"health\":\"true\"}");
            pool_world_fini(&w);
        }
    }
}

/* With TLS and without a selected protocol it is HTTP/1.1. */
static void server_that_selects_nothing_gets_http1(void **state)
{
    (void)state;
    struct pool_world w;
    struct relay server;
    struct pool_test_request r = {.target = "/health"};
    pool_world_init(&w, true, NULL);
    pool_world_listen(&w); /* for its certificates */
    relay_start(&server, sim_network(w.sim));
    relay_use_tls(&server, w.certs.cert_file, w.certs.key_file);
    server.answer = SLICE_LITERAL("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
    pool_world_connect(&w, &server.listener.address);
    start(&w, &r);
    pool_world_run(&w, NS_PER_S);
    assert_true(pool_test_succeeded(&r));
    assert_string_equal(r.text, "hi");
    assert_true(strncmp(server.request, "GET /health HTTP/1.1\r\n", 22) == 0);
    http_pool_free(w.pool);
    w.pool = NULL;
    relay_stop(&server);
    pool_world_fini(&w);
}

/* What is left of a request whose response has begun: no text of it, and no buffer. */
static void idle_watch_holds_little_memory(void **state)
{
    (void)state;
    enum { BYTES_MAX = 512 };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct pool_world w;
        struct pool_test_request r = {.target = "/watch", .waits = true};
        begin(&w, &cases[i]);
        start(&w, &r);
        pool_world_run(&w, NS_PER_S);
        assert_int_equal(r.heads, 1);
        const struct http_attempt *a = r.request.attempt;
        assert_true(sizeof(*a) <= BYTES_MAX);
        assert_null(a->text);
        if (cases[i].http2)
            assert_true(!a->http2.head.ptr && !a->http2.body.ptr);
        pool_world_fini(&w);
    }
}

static void connections_are_kept_for_the_next_request(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct pool_world w;
        struct pool_test_request r = {.target = "/health"};
        begin(&w, &cases[i]);
        for (int n = 0; n < 5; n++) {
            start(&w, &r);
            pool_world_run(&w, NS_PER_S);
            assert_true(pool_test_succeeded(&r));
            assert_int_equal(r.request.connection, 1);
        }
        r.action = POOL_TEST_RESTART_IN_END;
        start(&w, &r);
        pool_world_run(&w, NS_PER_S);
        assert_true(pool_test_succeeded(&r) && r.action == POOL_TEST_NOTHING);
        assert_int_equal(http_pool_stats(w.pool).connects, 1);
        assert_int_equal(w.site.requests, 7);
        pool_world_fini(&w);
    }
}

static void cancelled_requests_are_silent(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct pool_world w;
        struct pool_test_request at_once = {.target = "/later"}, later = {.target = "/later"},
                                 in_head = {.target = "/health",
                                            .action = POOL_TEST_CANCEL_IN_HEAD},
                                 in_body = {.target = "/health",
                                            .action = POOL_TEST_CANCEL_IN_BODY},
                                 other = {.target = "/health"};
        begin(&w, &cases[i]);
        start(&w, &at_once);
        start(&w, &later);
        start(&w, &in_head);
        start(&w, &in_body);
        start(&w, &other);
        pool_request_cancel(&at_once.request);
        pool_world_run(&w, NS_PER_S);
        pool_request_cancel(&later.request);
        pool_request_cancel(&later.request);
        pool_world_run(&w, NS_PER_S);
        assert_int_equal(at_once.ends + later.ends + in_head.ends + in_body.ends, 0);
        assert_int_equal(in_head.heads, 1);
        assert_int_equal(in_head.received, 0);
        assert_true(in_body.received > 0);
        assert_true(pool_test_succeeded(&other));
        assert_int_equal(http_pool_stats(w.pool).connections, 1);
        pool_world_fini(&w);
    }
}

static void unreachable_server_fails_all_that_wait(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct pool_world w;
        struct pool_test_request requests[5] = {{.target = NULL}};
        begin(&w, &cases[i]);
        net_server_drain(w.server);
        pool_world_run(&w, 10 * NS_PER_S);
        for (int round = 0; round < 2; round++) {
            for (size_t n = 0; n < COUNT_OF(requests); n++) {
                requests[n].target = "/health";
                start(&w, &requests[n]);
            }
            pool_world_run(&w, NS_PER_S);
            for (size_t n = 0; n < COUNT_OF(requests); n++) {
                assert_int_equal(requests[n].ends, 1);
                assert_int_equal(requests[n].end, ST_CLOSED);
                assert_int_equal(requests[n].request.reached, POOL_REQUEST_UNREACHED);
                assert_int_equal(requests[n].request.connection, 0);
                assert_non_null(strstr(requests[n].reason, "cannot connect to 127.0.0.1:"));
            }
        }
        assert_int_equal(http_pool_stats(w.pool).connections, 0);
        pool_world_fini(&w);
    }
}

static void requests_that_cannot_be_sent_are_refused(void **state)
{
    (void)state;
    struct pool_world w;
    begin(&w, &cases[0]);
    static const char *const names[] = {"Host",       "content-length",
                                        "Connection", "te",
                                        "keep-alive", "Transfer-Encoding",
                                        "upgrade",    "a b",
                                        "",           ":path"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct pool_request request = {.ops = &pool_test_ops};
        struct http_field field = {slice_from_text(names[i]), SLICE_LITERAL("x")};
        struct pool_request_params params = {.method = SLICE_LITERAL("GET"),
                                             .target = SLICE_LITERAL("/"),
                                             .fields = &field,
                                             .field_count = 1};
        assert_int_equal(http_pool_start(w.pool, &request, &params), ST_INVALID);
    }
    struct pool_test_request r = {.target = "/a b"};
    assert_int_equal(pool_test_start(w.pool, &r), ST_INVALID);
    r = (struct pool_test_request){.target = "/", .method = "GET\r\n"};
    assert_int_equal(pool_test_start(w.pool, &r), ST_INVALID);
    pool_world_fini(&w);
}

static void freeing_the_pool_ends_everything(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct pool_world w;
        struct pool_test_request waiting = {.target = "/health"}, sent = {.target = "/watch"},
                                 again = {.target = "/later", .action = POOL_TEST_RESTART_IN_END};
        begin(&w, &cases[i]);
        start(&w, &sent);
        start(&w, &again);
        pool_world_run(&w, NS_PER_S);
        assert_int_equal(sent.heads, 1);
        start(&w, &waiting);
        http_pool_free(w.pool);
        w.pool = NULL;
        assert_int_equal(waiting.ends + sent.ends + again.ends, 3);
        assert_int_equal(waiting.end, ST_CLOSED);
        assert_int_equal(sent.end, ST_CLOSED);
        assert_non_null(strstr(sent.reason, "the client was closed"));
        pool_world_run(&w, NS_PER_S);
        pool_world_fini(&w);
    }
}

/* -- Connections -- */

static struct pool_test_request *start_many(struct pool_world *w, size_t count, const char *target)
{
    struct pool_test_request *requests = calloc(count, sizeof(*requests));
    for (size_t i = 0; i < count; i++) {
        requests[i].target = target;
        start(w, &requests[i]);
    }
    return requests;
}

static size_t succeeded(const struct pool_test_request *requests, size_t count)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        n += pool_test_succeeded(&requests[i]);
    return n;
}

static void streams_beyond_the_limit_get_connections_of_their_own(void **state)
{
    (void)state;
    enum { COUNT = 1000, LIMIT = 100 };
    struct pool_world w;
    struct sim_options options = SIM_OPTIONS_DEFAULT;
    options.delay_min_ns = options.delay_max_ns = 100 * NS_PER_MS;
    pool_world_init(&w, false, &options);
    w.options.protocol = HTTP_POOL_HTTP2;
    w.wire.limits.h2.streams_max = LIMIT;
    pool_world_start(&w);
    struct pool_test_request *requests = start_many(&w, COUNT, "/watch");
    pool_world_run(&w, 1500 * NS_PER_MS); /* the first is made, then the others at once */
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(requests[i].heads, 1);
    assert_int_equal(http_pool_stats(w.pool).connects, COUNT / LIMIT);
    assert_int_equal(http_pool_stats(w.pool).connections, COUNT / LIMIT);
    for (size_t i = 0; i < COUNT - 1; i++)
        pool_request_cancel(&requests[i].request);
    pool_world_run(&w, 2 * w.options.idle_ns); /* all but one have nothing to do */
    assert_int_equal(http_pool_stats(w.pool).connections, 1);
    assert_int_equal(requests[COUNT - 1].ends, 0);
    pool_world_fini(&w);
    free(requests);
}

static void requests_wait_for_the_highest_number_of_connections(void **state)
{
    (void)state;
    enum { COUNT = 40, LIMIT = 3 };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct pool_world w;
        pool_world_init(&w, cases[i].secure, NULL);
        w.options.protocol = cases[i].protocol;
        w.options.connections_max = LIMIT;
        w.wire.limits.h2.streams_max = 4;
        pool_world_start(&w);
        struct pool_test_request *requests = start_many(&w, COUNT, "/health");
        pool_world_run(&w, 5 * NS_PER_S);
        assert_int_equal(succeeded(requests, COUNT), COUNT);
        assert_int_equal(http_pool_stats(w.pool).connects, LIMIT);
        pool_world_fini(&w);
        free(requests);
    }
}

static void idle_connections_are_closed(void **state)
{
    (void)state;
    enum { COUNT = 30, KEPT = 25 };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct pool_world w;
        begin(&w, &cases[i]);
        w.site.big_bytes = 2 << 20;
        struct pool_test_request *requests = start_many(&w, COUNT, "/pull");
        for (size_t n = 0; n < COUNT; n++)
            pool_request_withhold(&requests[n].request, true); /* each has its connection */
        pool_world_run(&w, NS_PER_S);
        for (size_t n = 0; n < COUNT; n++)
            pool_request_withhold(&requests[n].request, false);
        pool_world_run(&w, NS_PER_S);
        assert_int_equal(succeeded(requests, COUNT), COUNT);
        assert_true(cases[i].http2 || http_pool_stats(w.pool).connects > KEPT);
        assert_int_equal(http_pool_stats(w.pool).connections, cases[i].http2 ? 1 : KEPT);
        pool_world_run(&w, w.options.idle_ns - 2 * NS_PER_S);
        assert_int_equal(http_pool_stats(w.pool).connections, cases[i].http2 ? 1 : KEPT);
        pool_world_run(&w, 3 * NS_PER_S);
        assert_int_equal(http_pool_stats(w.pool).connections, 0);
        start(&w, &requests[0]);
        pool_world_run(&w, NS_PER_S);
        assert_true(pool_test_succeeded(&requests[0]));
        assert_int_equal(requests[0].request.connection, http_pool_stats(w.pool).connects);
        pool_world_fini(&w);
        free(requests);
    }
}

static void body_is_withheld(void **state)
{
    (void)state;
    enum { BYTES = 8 << 20 };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct pool_world w;
        struct pool_test_request big = {.target = "/pull"}, other = {.target = "/health"};
        begin(&w, &cases[i]);
        w.site.big_bytes = BYTES;
        start(&w, &big);
        pool_request_withhold(&big.request, true);
        pool_world_run(&w, 30 * NS_PER_S);
        size_t ahead = big.received;
        assert_true(ahead < 1 << 20);
        start(&w, &other);
        pool_world_run(&w, 25 * NS_PER_S);
        assert_true(pool_test_succeeded(&other));
        assert_int_equal(big.received, ahead);
        pool_request_withhold(&big.request, false);
        pool_world_run(&w, 10 * NS_PER_S);
        assert_true(pool_test_succeeded(&big));
        assert_int_equal(big.received, BYTES);
        pool_world_fini(&w);
    }
}

static void count_done(void *ctx)
{
    ++*(unsigned *)ctx;
}

static void tls_source_is_replaced_when_its_requests_have_ended(void **state)
{
    (void)state;
    for (int http1 = 0; http1 < 2; http1++) {
        struct pool_world w;
        unsigned first = 0, second = 0;
        struct pool_test_request old = {.target = "/watch", .waits = true},
                                 new = {.target = "/watch", .waits = true},
                                 other = {.target = "/health"};
        begin(&w, &cases[http1 ? 3 : 2]);
        start(&w, &old);
        pool_world_run(&w, NS_PER_S);
        struct tls_client_source *a = pool_world_source(&w), *b = pool_world_source(&w);
        start(&w, &other);
        http_pool_set_tls(w.pool, a, count_done, &first);
        pool_world_run(&w, NS_PER_S);
        assert_true(pool_test_succeeded(&other));
        assert_int_equal(http_pool_stats(w.pool).connects, 2);
        start(&w, &new);
        pool_world_run(&w, NS_PER_S);
        http_pool_set_tls(w.pool, b, count_done, &second);
        pool_request_cancel(&new.request);
        pool_world_run(&w, NS_PER_S);
        assert_int_equal(first + second, 0); /* the first source is still in use */
        pool_request_cancel(&old.request);
        pool_world_run(&w, NS_PER_S);
        assert_int_equal(first, 1);
        assert_int_equal(second, 1);
        tls_client_source_free(w.source);
        w.source = b;
        start(&w, &other);
        tls_client_source_free(a);
        pool_world_run(&w, NS_PER_S);
        assert_true(pool_test_succeeded(&other));
        assert_int_equal(http_pool_stats(w.pool).connections, 1);
        pool_world_fini(&w);
    }
}

static void without_memory_old_connections_are_closed_at_once(void **state)
{
    (void)state;
    struct pool_world w;
    unsigned done = 0;
    struct pool_test_request old = {.target = "/watch"}, other = {.target = "/health"};
    begin(&w, &cases[2]);
    start(&w, &old);
    pool_world_run(&w, NS_PER_S);
    struct tls_client_source *source = pool_world_source(&w);
    memory_fail_at = 1;
    http_pool_set_tls(w.pool, source, count_done, &done);
    assert_int_equal(memory_fail_at, 0);
    assert_int_equal(done, 1);
    assert_int_equal(old.end, ST_NOMEM);
    tls_client_source_free(w.source);
    w.source = source;
    start(&w, &other);
    pool_world_run(&w, NS_PER_S);
    assert_true(pool_test_succeeded(&other));
    pool_world_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_answered),
        cmocka_unit_test(long_heads_are_sent),
        cmocka_unit_test(server_that_selects_nothing_gets_http1),
        cmocka_unit_test(idle_watch_holds_little_memory),
        cmocka_unit_test(connections_are_kept_for_the_next_request),
        cmocka_unit_test(cancelled_requests_are_silent),
        cmocka_unit_test(unreachable_server_fails_all_that_wait),
        cmocka_unit_test(requests_that_cannot_be_sent_are_refused),
        cmocka_unit_test(freeing_the_pool_ends_everything),
        cmocka_unit_test(streams_beyond_the_limit_get_connections_of_their_own),
        cmocka_unit_test(requests_wait_for_the_highest_number_of_connections),
        cmocka_unit_test(idle_connections_are_closed),
        cmocka_unit_test(body_is_withheld),
        cmocka_unit_test(tls_source_is_replaced_when_its_requests_have_ended),
        cmocka_unit_test(without_memory_old_connections_are_closed_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
