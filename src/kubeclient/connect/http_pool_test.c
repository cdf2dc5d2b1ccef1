/* Requests over the pool to our own server: protocols, connections, limits, failures. */
#include "kubeclient/connect/http_pool_fixture_test.h"

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
        struct http_pool_stats stats = http_pool_stats(w.pool);
        assert_int_equal(stats.connects, cases[i].http2 ? 1 : 2);
        assert_int_equal(stats.connections, cases[i].http2 ? 1 : 2);
        assert_int_equal(stats.connect_errors + stats.disconnects + stats.repeats, 0);
        assert_true(stats.bytes_sent > 50 && stats.bytes_received > 50);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_answered),
        cmocka_unit_test(connections_are_kept_for_the_next_request),
        cmocka_unit_test(cancelled_requests_are_silent),
        cmocka_unit_test(unreachable_server_fails_all_that_wait),
        cmocka_unit_test(requests_that_cannot_be_sent_are_refused),
        cmocka_unit_test(freeing_the_pool_ends_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
