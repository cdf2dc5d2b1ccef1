/* Requests through proxies. */
#include "client/connect/relay_test.h"
#include "client/http/http_pool_fixture_test.h"

#define BYTES(text)                               \
    {                                             \
        (const uint8_t *)(text), sizeof(text) - 1 \
    }

struct proxied {
    struct pool_world w;
    struct relay relay;
    char url[256];
};

static void begin(struct proxied *p, bool secure, enum http_pool_protocol protocol,
                  const char *scheme, const char *user)
{
    pool_world_init(&p->w, secure, NULL);
    relay_start(&p->relay, sim_network(p->w.sim));
    if (strcmp(scheme, "https") == 0)
        relay_use_tls(&p->relay, p->w.certs.cert_file, p->w.certs.key_file);
    p->w.options.protocol = protocol;
    p->w.options.proxy_url = relay_url(&p->relay, scheme, user, p->url, sizeof(p->url));
}

static void end(struct proxied *p)
{
    http_pool_free(p->w.pool);
    p->w.pool = NULL;
    relay_stop(&p->relay);
    pool_world_fini(&p->w);
}

static void send_one(struct proxied *p, struct pool_test_request *r)
{
    r->target = "/health";
    assert_int_equal(pool_test_start(p->w.pool, r), ST_OK);
    pool_world_run(&p->w, 40 * NS_PER_S);
    assert_int_equal(r->ends, 1);
}

static void tunnels_reach_the_server(void **state)
{
    (void)state;
    static const struct {
        const char *scheme, *user;
        bool secure;
        enum http_pool_protocol protocol;
    } rows[] = {
        {"http", "", true, HTTP_POOL_NEGOTIATED},
        {"http", "a:b%20c", true, HTTP_POOL_HTTP1},
        {"http", "", false, HTTP_POOL_HTTP2},
        {"socks5", "", true, HTTP_POOL_NEGOTIATED},
        {"socks5", "a:b%20c", true, HTTP_POOL_HTTP1},
        {"socks5h", "", false, HTTP_POOL_HTTP2},
        {"socks5", "", false, HTTP_POOL_NEGOTIATED},
        {"https", "a:b%20c", true, HTTP_POOL_NEGOTIATED},
        {"https", "", true, HTTP_POOL_HTTP1},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct proxied p;
        struct pool_test_request r = {.method = "GET"};
        begin(&p, rows[i].secure, rows[i].protocol, rows[i].scheme, rows[i].user);
        if (*rows[i].user) {
            p.relay.authorization = "\r\nProxy-Authorization: Basic YTpiIGM=";
            p.relay.user = "a";
            p.relay.password = "b c";
        }
        pool_world_start(&p.w);
        send_one(&p, &r);
        assert_string_equal(r.reason, "");
        assert_true(pool_test_succeeded(&r));
        assert_int_equal(p.relay.tunnels, 1);
        assert_string_equal(p.relay.asked, p.w.options.endpoint.text);
        end(&p);
    }
}

static void much_passes_through_two_layers_of_tls(void **state)
{
    (void)state;
    static const enum http_pool_protocol protocols[] = {HTTP_POOL_HTTP1, HTTP_POOL_HTTP2};
    for (size_t i = 0; i < COUNT_OF(protocols); i++) {
        struct proxied p;
        size_t len = 200000;
        char *body = malloc(len + 1);
        memset(body, 'b', len);
        body[len] = 0;
        struct pool_test_request get = {.target = "/pull"};
        struct pool_test_request post = {.method = "POST", .target = "/chunks/", .body = body};
        begin(&p, true, protocols[i], "https", "");
        p.w.site.big_bytes = 2 << 20;
        pool_world_start(&p.w);
        assert_int_equal(pool_test_start(p.w.pool, &get), ST_OK);
        assert_int_equal(pool_test_start(p.w.pool, &post), ST_OK);
        pool_world_run(&p.w, 60 * NS_PER_S);
        assert_true(pool_test_succeeded(&get) && pool_test_succeeded(&post));
        assert_int_equal(get.received, p.w.site.big_bytes);
        assert_int_equal(post.received, len + 2);
        end(&p);
        free(body);
    }
}

static void proxy_is_verified(void **state)
{
    (void)state;
    struct proxied p;
    struct pool_test_request r = {.method = "GET"};
    begin(&p, true, HTTP_POOL_NEGOTIATED, "https", "");
    snprintf(p.url, sizeof(p.url), "https://server.test:%u",
             address_port(&p.relay.listener.address));
    pool_world_start(&p.w);
    send_one(&p, &r);
    assert_non_null(strstr(r.reason, "through the proxy server.test:"));
    assert_non_null(strstr(r.reason, "certificate is valid for localhost, not server.test"));
    assert_int_equal(p.relay.tunnels, 0);
    end(&p);
}

/* A name that only the proxy can look up. */
static void names_are_looked_up_by_the_proxy(void **state)
{
    (void)state;
    static const char *const schemes[] = {"http", "socks5"};
    for (size_t i = 0; i < COUNT_OF(schemes); i++) {
        struct proxied p;
        struct pool_test_request r = {.method = "GET"};
        struct error error;
        char url[64];
        begin(&p, true, HTTP_POOL_NEGOTIATED, schemes[i], "");
        p.relay.server = "127.0.0.1";
        p.w.options.connector.server_name = "localhost";
        pool_world_listen(&p.w);
        snprintf(url, sizeof(url), "https://kube.internal:%u", address_port(&p.w.bound.address));
        pool_must(endpoint_parse(slice_from_text(url), &p.w.options.endpoint, &error), &error);
        pool_must(http_pool_new(&p.w.options, &p.w.pool, &error), &error);
        send_one(&p, &r);
        assert_string_equal(r.reason, "");
        assert_string_equal(p.relay.asked, url + strlen("https://"));
        assert_int_equal(p.w.table.lookups, 0);
        end(&p);
    }
}

static void requests_without_tls_are_forwarded(void **state)
{
    (void)state;
    static const char *const users[] = {"", "u:p"};
    for (size_t i = 0; i < COUNT_OF(users); i++) {
        struct proxied p;
        struct pool_test_request r = {.method = "GET"};
        char expected[1024];
        begin(&p, false, HTTP_POOL_NEGOTIATED, "http", users[i]);
        p.relay.answer = SLICE_LITERAL("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
        pool_world_start(&p.w);
        send_one(&p, &r);
        assert_true(pool_test_succeeded(&r));
        assert_string_equal(r.text, "hi");
        snprintf(expected, sizeof(expected),
                 "GET http://%s/health HTTP/1.1\r\nHost: %s\r\nUser-Agent: test\r\n"
                 "Accept: application/json\r\n%s\r\n",
                 p.w.options.endpoint.text, p.w.options.endpoint.text,
                 i ? "Proxy-Authorization: Basic dTpw\r\n" : "");
        assert_string_equal(p.relay.request, expected);
        end(&p);
    }
}

/* It is verified by its own name, and not by the one that is expected of the server. */
static void proxy_with_tls_forwards(void **state)
{
    (void)state;
    struct proxied p;
    struct pool_test_request r = {.method = "GET"};
    struct error error;
    begin(&p, true, HTTP_POOL_NEGOTIATED, "https", "");
    p.relay.answer = SLICE_LITERAL("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
    p.w.options.connector.server_name = "kube.test";
    pool_world_listen(&p.w);
    pool_must(endpoint_parse(SLICE_LITERAL("http://kube.test:80"), &p.w.options.endpoint, &error),
              &error);
    pool_must(http_pool_new(&p.w.options, &p.w.pool, &error), &error);
    send_one(&p, &r);
    assert_string_equal(r.reason, "");
    assert_non_null(strstr(p.relay.request, "GET http://kube.test/health HTTP/1.1\r\nHost: "
                                            "kube.test\r\n"));
    end(&p);
}

static void refusals_name_the_server_and_the_proxy(void **state)
{
    (void)state;
    static const struct {
        const char *scheme;
        struct slice answer;
        bool closes;
        const char *reason;
    } rows[] = {
        {"http", BYTES("HTTP/1.1 403 No\r\n\r\n"), false,
         "the proxy answered CONNECT with status 403"},
        {"http", BYTES("HTTP/1.1 200 OK\r\n\r\nx"), false, "the proxy sent more than its response"},
        {"http", BYTES("HTTP/1.1 200 OK\r\n"), true, "the proxy closed the connection"},
        {"http", BYTES("HTTP/1.1 200 OK\r\n"), false, "timeout: the proxy did not answer"},
        {"http", BYTES("HTTP/1.1 200 OK\r\n\r\n"), false, "TLS handshake timeout"},
        {"http", BYTES("HTTP/1.1 200 OK\r\n\r\n"), true, "EOF"},
        {"socks5", BYTES("\5\0\5\4\0\1\0\0\0\0\0\0"), true, "the proxy answered: host unreachable"},
        {"socks5", BYTES("\5"), true, "the proxy closed the connection"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct proxied p;
        struct pool_test_request r = {.method = "GET"};
        char expected[1024];
        begin(&p, true, HTTP_POOL_NEGOTIATED, rows[i].scheme, "u:secret");
        p.relay.answer = rows[i].answer;
        p.relay.closes = rows[i].closes;
        pool_world_start(&p.w);
        send_one(&p, &r);
        snprintf(expected, sizeof(expected), "cannot connect to %s through the proxy %s: %s",
                 p.w.options.endpoint.text, strchr(p.url, '@') + 1, rows[i].reason);
        assert_string_equal(r.reason, expected);
        assert_int_equal(r.end, strstr(rows[i].reason, "timeout") ? ST_TIMEOUT : ST_CLOSED);
        assert_int_equal(r.request.reached, POOL_REQUEST_UNREACHED);
        end(&p);
    }
}

/* -- Faults while a tunnel is made -- */

static const struct {
    const char *scheme, *user;
    bool secure;
    enum http_pool_protocol protocol;
} routes[] = {
    {"http", "", false, HTTP_POOL_HTTP2},
    {"http", "u:p", false, HTTP_POOL_NEGOTIATED}, /* forwards */
    {"socks5", "u:p", false, HTTP_POOL_HTTP2},
    {"https", "", true, HTTP_POOL_NEGOTIATED},
};

static void begin_route(struct proxied *p, size_t i)
{
    begin(p, routes[i].secure, routes[i].protocol, routes[i].scheme, routes[i].user);
    if (*routes[i].user) {
        p->relay.user = "u";
        p->relay.password = "p";
    }
    if (routes[i].protocol == HTTP_POOL_NEGOTIATED && !routes[i].secure) {
        p->relay.answer = SLICE_LITERAL("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
        p->relay.closes = true;
    }
}

/* Ends once with a reason, and the next request succeeds. */
static void send_in_trouble(struct proxied *p)
{
    struct pool_test_request r = {.target = "/health"}, next = {.target = "/health"};
    faulty_memory_begin();
    enum status status = pool_test_start(p->w.pool, &r);
    faulty_memory_end();
    assert_true(status == ST_OK || status == ST_NOMEM);
    pool_world_run(&p->w, 40 * NS_PER_S);
    assert_true(status == ST_NOMEM || r.ends == 1);
    assert_true(status == ST_NOMEM || r.end == ST_OK || *r.reason);
    faults.kind = FAULT_NONE;
    faulty_memory_at = 0;
    send_one(p, &next);
    assert_true(pool_test_succeeded(&next));
}

static void proxied_connection_may_break_after_every_byte(void **state)
{
    (void)state;
    static const enum fault_kind kinds[] = {FAULT_LOST_READING, FAULT_LOST_WRITING, FAULT_END,
                                            FAULT_CALL};
    for (size_t i = 0; i < COUNT_OF(routes) * COUNT_OF(kinds); i++) {
        size_t route = i / COUNT_OF(kinds);
        size_t step = routes[route].secure ? 97 : 1; /* some steps of a handshake are enough */
        size_t places = 1;
        for (size_t at = 0; at < places; at += step) {
            struct proxied p;
            begin_route(&p, route);
            pool_world_start(&p.w);
            faults.kind = at ? kinds[i % COUNT_OF(kinds)] : FAULT_NONE;
            faults.at = at;
            send_in_trouble(&p);
            if (at == 0)
                places = fault_places(kinds[i % COUNT_OF(kinds)], &faults) / 2;
            end(&p);
        }
        assert_true(places > 5);
    }
}

static void every_allocation_of_a_tunnel_may_fail(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(routes); i++) {
        bool failed = true;
        for (size_t nth = 1; failed; nth++) {
            struct proxied p;
            begin_route(&p, i);
            pool_world_start(&p.w);
            faulty_memory_at = nth;
            struct pool_test_request r = {.target = "/health"};
            faulty_memory_begin();
            enum status status = pool_test_start(p.w.pool, &r);
            faulty_memory_end();
            pool_world_run(&p.w, 40 * NS_PER_S);
            failed = faulty_memory_at == 0;
            faulty_memory_at = 0;
            assert_true(status == ST_NOMEM || r.ends == 1);
            send_in_trouble(&p);
            end(&p);
            assert_true(failed || nth > 5);
        }
    }
}

static void malformed_proxy_is_refused(void **state)
{
    (void)state;
    struct proxied p;
    struct error error = {0};
    begin(&p, false, HTTP_POOL_NEGOTIATED, "ftp", "");
    pool_world_listen(&p.w);
    pool_must(endpoint_parse(SLICE_LITERAL("http://127.0.0.1:1"), &p.w.options.endpoint, &error),
              &error);
    assert_int_equal(http_pool_new(&p.w.options, &p.w.pool, &error), ST_INVALID);
    assert_non_null(strstr(error.text, "the URL of the proxy must begin with"));
    end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tunnels_reach_the_server),
        cmocka_unit_test(much_passes_through_two_layers_of_tls),
        cmocka_unit_test(proxy_is_verified),
        cmocka_unit_test(names_are_looked_up_by_the_proxy),
        cmocka_unit_test(requests_without_tls_are_forwarded),
        cmocka_unit_test(proxy_with_tls_forwards),
        cmocka_unit_test(refusals_name_the_server_and_the_proxy),
        cmocka_unit_test(proxied_connection_may_break_after_every_byte),
        cmocka_unit_test(every_allocation_of_a_tunnel_may_fail),
        cmocka_unit_test(malformed_proxy_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
