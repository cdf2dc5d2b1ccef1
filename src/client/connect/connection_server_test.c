/* Connections against our own server, with and without TLS: over real sockets, where the server has
 * threads of its own, and over a simulated network. */
#include "base/failing_memory_test.h"
#include "client/connect/connection_fixture_test.h"
#include "net/server.h"
#include "net/tls/certs_test.h"
#include "net/tls/server_context.h"
#include "net/tls/tls.h"
#include "net/wire.h"

#include <unistd.h>

static void echo(struct http_exchange *exchange, void *service, const struct http_request *request)
{
    (void)service;
    http_respond(exchange, 200, SLICE_LITERAL("text/plain"), request->body);
}

static const struct http_route routes[] = {{.path = "/echo", .on_request = echo}};
static const struct dns_row names[] = {{"server.test", "127.0.0.1"}, {NULL, NULL}};

struct world {
    struct sim *sim; /* NULL: over the operating system */
    struct network *network;
    /* the server */
    struct net_wire wire;
    struct protocol_kind inner, kind;
    struct http_routes *routes;
    struct net_server *server;
    struct url bound;
    struct test_certs certs;
    struct tls_options server_options;
    struct tls_source *server_source;
    struct net_tls server_tls;
    /* the client */
    struct loop *loop;
    struct dns_table table;
    struct resolver_backend backend;
    struct resolver *resolver;
    struct tls_client_options options;
    struct tls_client_source *source;
    struct connector connector;
    struct test_owner owner;
};

static void must(enum status status, const struct error *error)
{
    if (status != ST_OK)
        fail_msg("%s", error->text);
}

static void start_server(struct world *w, bool secure, const char *url_text)
{
    struct error error;
    struct url url;
    struct tls_recipe recipe;
    struct net_options net = NET_OPTIONS_DEFAULT;
    net.shards = 1;
    w->wire.limits = WIRE_LIMITS_DEFAULT;
    assert_int_equal(http_routes_new(&w->routes), ST_OK);
    assert_int_equal(http_routes_add(w->routes, routes, COUNT_OF(routes), NULL), ST_OK);
    w->wire.routes = w->routes;
    w->kind = w->inner = net_wire_kind(&w->wire);
    if (secure) {
        must(tls_server_recipe(&w->server_options, &recipe, &error), &error);
        must(tls_source_new(&recipe, (struct tls_source_hooks){0}, &w->server_source, &error),
             &error);
        w->server_tls = (struct net_tls){
            .inner = &w->inner, .source = w->server_source, .limits = NET_TLS_LIMITS_DEFAULT};
        w->kind = net_tls_kind(&w->server_tls);
    }
    assert_int_equal(net_server_new(w->network, &net, NULL, &w->server), ST_OK);
    must(url_parse(slice_from_text(url_text), &url, &error), &error);
    must(net_server_listen(w->server, &url, &w->kind, &w->bound, &error), &error);
    assert_int_equal(net_server_start(w->server), ST_OK);
}

static void start_client(struct world *w, bool secure)
{
    struct connector_options options = CONNECTOR_OPTIONS_DEFAULT;
    struct error error;
    w->table.rows = names;
    w->backend = dns_table_backend(&w->table);
    assert_int_equal(network_loop_new(w->network, &w->loop), ST_OK);
    assert_int_equal(resolver_new(w->loop, &w->backend, 1, &w->resolver), ST_OK);
    if (secure)
        must(tls_client_source_new(&w->options, (struct tls_source_hooks){0}, &w->source, &error),
             &error);
    options.loop = w->loop;
    options.network = w->network;
    options.resolver = w->resolver;
    options.tls = w->source;
    connector_init(&w->connector, &options);
    w->owner.requests_on_open = 5;
    w->owner.body = 1000;
}

/* Options may be changed before world_start. */
static void world_init(struct world *w, struct sim *sim)
{
    *w = (struct world){.sim = sim,
                        .network = sim ? sim_network(sim) : network_posix(),
                        .server_options = TLS_OPTIONS_NONE,
                        .options = TLS_CLIENT_OPTIONS_NONE};
    test_certs_init(&w->certs);
    w->server_options.cert_file = w->certs.cert_file;
    w->server_options.key_file = w->certs.key_file;
    w->options.ca_file = w->certs.ca_file;
}

static void world_start(struct world *w, bool secure)
{
    start_server(w, secure, secure ? "https://127.0.0.1:0" : "http://127.0.0.1:0");
    start_client(w, secure);
}

static void world_fini(struct world *w)
{
    owner_fini(&w->owner);
    connector_fini(&w->connector);
    tls_client_source_free(w->source);
    resolver_free(w->resolver);
    net_server_stop(w->server);
    net_server_free(w->server);
    tls_source_free(w->server_source);
    http_routes_free(w->routes);
    loop_free(w->loop);
    test_certs_fini(&w->certs);
    sim_free(w->sim);
}

static void dial(struct world *w, const char *host)
{
    char url[128];
    struct endpoint endpoint;
    snprintf(url, sizeof(url), "%s://%s:%u", w->source ? "https" : "http", host,
             address_port(&w->bound.address));
    endpoint = endpoint_of(url);
    assert_int_equal(owner_connect(&w->owner, &w->connector, &endpoint), ST_OK);
}

static bool is_done(const struct world *w)
{
    return w->owner.closed || (w->owner.opened && owner_answers(&w->owner) == w->owner.count);
}

/* Until all requests are answered or the connection is closed; the limit is for tests that fail. */
static void run(struct world *w)
{
    for (int i = 0; i < 30000 && !is_done(w); i++) {
        if (w->sim)
            (void)sim_step(w->sim);
        else
            loop_turn(w->loop, NS_PER_MS);
        if (w->owner.connection)
            connection_check(w->owner.connection);
    }
}

static void requests_are_answered_over_real_sockets(void **state)
{
    (void)state;
    for (int secure = 0; secure < 2; secure++) {
        struct world w;
        world_init(&w, NULL);
        world_start(&w, secure);
        dial(&w, "localhost");
        run(&w);
        assert_string_equal(w.owner.text, "");
        assert_int_equal(owner_answers(&w.owner), 5);
        assert_int_equal(connection_is_secure(w.owner.connection), secure);
        world_fini(&w);
    }
}

static void unix_sockets_carry_tls(void **state)
{
    (void)state;
    struct world w;
    char path[64], url[80];
    snprintf(path, sizeof(path), "/tmp/vigil-%d-localhost:0", (int)getpid());
    snprintf(url, sizeof(url), "unixs://%s", path);
    world_init(&w, NULL);
    start_server(&w, true, url);
    start_client(&w, true);
    struct endpoint endpoint = endpoint_of(url);
    w.connector.options.server_name = "localhost";
    assert_int_equal(owner_connect(&w.owner, &w.connector, &endpoint), ST_OK);
    run(&w);
    assert_string_equal(w.owner.text, "");
    assert_int_equal(owner_answers(&w.owner), 5);
    world_fini(&w);
}

static void endpoint_without_scheme_uses_tls_if_it_is_configured(void **state)
{
    (void)state;
    for (int secure = 0; secure < 2; secure++) {
        struct world w;
        char text[64];
        world_init(&w, NULL);
        world_start(&w, secure);
        snprintf(text, sizeof(text), "127.0.0.1:%u", address_port(&w.bound.address));
        struct endpoint endpoint = endpoint_of(text);
        assert_int_equal(owner_connect(&w.owner, &w.connector, &endpoint), ST_OK);
        run(&w);
        assert_int_equal(owner_answers(&w.owner), 5);
        world_fini(&w);
    }
}

/* Small buffers and splits; long bodies are held and wait for windows. */
static void everything_arrives_over_a_bad_network(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 24; seed++) {
        struct sim_options options = SIM_OPTIONS_DEFAULT;
        struct world w;
        options.seed = seed;
        options.buffer_bytes = seed % 3 ? 100000 : 700;
        world_init(&w, sim_new(&options));
        world_start(&w, seed % 2);
        w.owner.body = seed % 3 ? 200000 : 20000;
        dial(&w, "localhost");
        for (int i = 0; i < 3000000 && !is_done(&w); i++)
            assert_true(sim_step(w.sim));
        assert_string_equal(w.owner.text, "");
        assert_int_equal(owner_answers(&w.owner), 5);
        connection_check(w.owner.connection);
        assert_int_equal(w.connector.counters.bytes_sent > 5 * w.owner.body, 1);
        world_fini(&w);
    }
}

static void broken_network_is_reported_once(void **state)
{
    (void)state;
    unsigned lost = 0, failed = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct sim_options options = SIM_OPTIONS_DEFAULT;
        struct world w;
        options.seed = seed;
        options.reset_per_million = 50000;
        world_init(&w, sim_new(&options));
        world_start(&w, seed % 2);
        w.owner.body = 30000;
        dial(&w, "localhost");
        for (int i = 0; i < 100000 && !is_done(&w); i++)
            assert_true(sim_step(w.sim));
        assert_true(is_done(&w));
        lost += strstr(w.owner.text, "lost the connection to localhost:") == w.owner.text;
        failed += strstr(w.owner.text, "cannot connect to localhost:") == w.owner.text;
        world_fini(&w);
    }
    assert_true(lost > 10);
    assert_true(failed > 5);
}

static void expect_failure(struct world *w, const char *host, const char *reason)
{
    char expected[512];
    dial(w, host);
    run(w);
    snprintf(expected, sizeof(expected), "cannot connect to %s:%u (127.0.0.1:%u): %s", host,
             address_port(&w->bound.address), address_port(&w->bound.address), reason);
    assert_string_equal(w->owner.text, expected);
    assert_int_equal(w->owner.opened, 0);
    world_fini(w);
}

static void refused_certificates_are_explained(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, NULL);
    world_start(&w, true);
    expect_failure(&w, "server.test",
                   "tls: failed to verify certificate: x509: certificate is valid for localhost, "
                   "not server.test");
    struct test_certs other = {0};
    test_certs_init(&other);
    world_init(&w, NULL);
    w.options.ca_file = other.ca_file;
    world_start(&w, true);
    w.connector.options.server_name = "localhost";
    expect_failure(&w, "server.test",
                   "tls: failed to verify certificate: x509: certificate signed by unknown "
                   "authority");
    test_certs_fini(&other);
    world_init(&w, NULL); /* the server wants a certificate that the client does not have */
    w.server_options.trusted_ca_file = w.certs.ca_file;
    world_start(&w, true);
    w.connector.options.server_name = "localhost";
    expect_failure(&w, "server.test", "remote error: tls: certificate required");
}

/* A client with TLS, and a server that answers with these bytes. */
static void expect_answer(struct slice bytes, const char *reason)
{
    struct sim_options options = SIM_OPTIONS_DEFAULT;
    struct world w;
    struct script_server server;
    struct address address;
    world_init(&w, sim_new(&options));
    world_start(&w, true);
    assert_int_equal(address_from_host(SLICE_LITERAL("127.0.0.1"), 0, &address), ST_OK);
    script_listen(&server, w.network, w.loop, &address);
    server.first = bytes;
    w.bound.address = server.listener.address;
    dial(&w, "127.0.0.1");
    sim_run_until(w.sim, clock_mono_ns(sim_clock(w.sim)) + 6 * NS_PER_S);
    assert_int_equal(w.owner.closed, 1);
    if (!strstr(w.owner.text, reason))
        fail_msg("%s", w.owner.text);
    script_fini(&server);
    world_fini(&w);
}

static void server_without_tls_is_explained(void **state)
{
    (void)state;
    expect_answer(SLICE_LITERAL("HTTP/1.1 400 Bad Request\r\n\r\n"),
                  ": tls: first record does not look like a TLS handshake");
}

static void silent_tls_server_times_out(void **state)
{
    (void)state;
    expect_answer(SLICE_EMPTY, ": TLS handshake timeout");
}

static void drained_server_is_left(void **state)
{
    (void)state;
    struct sim_options options = SIM_OPTIONS_DEFAULT;
    struct world w;
    world_init(&w, sim_new(&options));
    world_start(&w, true);
    dial(&w, "localhost");
    run(&w);
    assert_int_equal(owner_answers(&w.owner), 5);
    net_server_drain(w.server);
    sim_run_until(w.sim, clock_mono_ns(sim_clock(w.sim)) + 10 * NS_PER_S);
    assert_int_equal(w.owner.closed, 1);
    assert_non_null(strstr(w.owner.text, ": the server closed it: GOAWAY, code 0, graceful_stop"));
    world_fini(&w);
}

/* -- memory -- */

/* Returns false when no allocation failed any more. The server has threads of its own, in which
 * nothing fails. */
static bool live_without(size_t *fail_at, size_t nth, const char *host)
{
    struct world w;
    world_init(&w, NULL);
    world_start(&w, true);
    char url[64];
    snprintf(url, sizeof(url), "https://%s:%u", host, address_port(&w.bound.address));
    struct endpoint endpoint = endpoint_of(url);
    *fail_at = nth;
    enum status status = owner_connect(&w.owner, &w.connector, &endpoint);
    bool refused = false; /* there was no memory for the requests themselves */
    for (int i = 0; status == ST_OK && i < 5000 && !is_done(&w) && !refused; i++) {
        loop_turn(w.loop, NS_PER_MS);
        refused = w.owner.opened && w.owner.count < w.owner.requests_on_open;
    }
    bool failed = *fail_at == 0;
    *fail_at = 0;
    if (status != ST_OK)
        assert_int_equal(status, ST_NOMEM);
    else
        assert_true(is_done(&w) || refused);
    if (w.owner.status == ST_NOMEM)
        assert_non_null(strstr(w.owner.text, "out of memory"));
    world_fini(&w);
    return failed;
}

static void each_missing_allocation_is_reported(void **state)
{
    (void)state;
    static const char *const hosts[] = {"localhost", "server.test"}; /* and a refused certificate */
    for (size_t i = 0; i < COUNT_OF(hosts); i++) {
        size_t nth = 1;
        while (live_without(&memory_fail_at, nth, hosts[i]))
            nth++;
        assert_true(nth > 8);
    }
}

static _Thread_local size_t openssl_fail_at;

static bool openssl_fails(void)
{
    return openssl_fail_at && --openssl_fail_at == 0;
}

static void *openssl_malloc(size_t size, const char *file, int line)
{
    (void)file, (void)line;
    return openssl_fails() ? NULL : __real_malloc(size);
}

static void *openssl_realloc(void *ptr, size_t size, const char *file, int line)
{
    (void)file, (void)line;
    return openssl_fails() ? NULL : __real_realloc(ptr, size);
}

static void openssl_free(void *ptr, const char *file, int line)
{
    (void)file, (void)line;
    free(ptr);
}

static void each_missing_allocation_of_openssl_is_survived(void **state)
{
    (void)state;
    enum { STEP = 67 }; /* there are some two thousand, and each takes a handshake */
    size_t nth = 1;
    while (live_without(&openssl_fail_at, nth, "localhost"))
        nth += STEP;
    assert_true(nth > 10 * STEP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_answered_over_real_sockets),
        cmocka_unit_test(unix_sockets_carry_tls),
        cmocka_unit_test(endpoint_without_scheme_uses_tls_if_it_is_configured),
        cmocka_unit_test(everything_arrives_over_a_bad_network),
        cmocka_unit_test(broken_network_is_reported_once),
        cmocka_unit_test(refused_certificates_are_explained),
        cmocka_unit_test(server_without_tls_is_explained),
        cmocka_unit_test(silent_tls_server_times_out),
        cmocka_unit_test(drained_server_is_left),
        cmocka_unit_test(each_missing_allocation_is_reported),
        cmocka_unit_test(each_missing_allocation_of_openssl_is_survived),
    };
    if (CRYPTO_set_mem_functions(openssl_malloc, openssl_realloc, openssl_free) != 1)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
