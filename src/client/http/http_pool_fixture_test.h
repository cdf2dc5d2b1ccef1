/*
 * For tests of the pool: our own server and a pool on a simulated network on which one thing may go
 * wrong (client/sim/faulty_sim_test.h), and requests that record what becomes of them. One file of
 * a program includes this.
 */
#ifndef VIGIL_CLIENT_HTTP_HTTP_POOL_FIXTURE_TEST_H
#define VIGIL_CLIENT_HTTP_HTTP_POOL_FIXTURE_TEST_H

#include "client/http/http_pool.h"
#include "client/names/dns_table_test.h"
#include "client/names/resolver.h"
#include "client/sim/faulty_sim_test.h"
#include "net/server.h"
#include "net/tls/certs_test.h"
#include "net/tls/server_context.h"
#include "net/tls/tls.h"
#include "net/wire.h"
#include "wire/http/pulled_test.h"
#include "wire/http/routes_test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

struct pool_world {
    struct sim *sim;
    /* The server. */
    struct net_wire wire;
    struct protocol_kind inner, kind;
    struct http_routes *routes;
    struct test_site site;
    const struct http_route *extra; /* more routes, for the service `extra_service` */
    size_t extra_count;
    void *extra_service;
    const struct net_app *app; /* the server's; may be NULL */
    struct budget *budget;     /* borrowed; of its connections; may be NULL */
    struct net_server *server;
    struct url bound;
    struct test_certs certs;
    struct tls_options server_options;
    struct tls_source *server_source;
    struct net_tls server_tls;
    bool secure;
    /* The client. */
    struct loop *loop;
    struct dns_table table;
    struct resolver_backend backend;
    struct resolver *resolver;
    struct tls_client_source *source;
    struct http_pool_options options;
    struct http_pool *pool;
};

enum pool_test_action {
    POOL_TEST_NOTHING,
    POOL_TEST_CANCEL_IN_HEAD,
    POOL_TEST_CANCEL_IN_BODY,
    POOL_TEST_RESTART_IN_END,
};

struct pool_test_request {
    struct pool_request request;
    struct http_pool *pool;
    enum pool_test_action action;
    const char *method, *target, *body;
    bool waits;
    struct pulled *pulled; /* gives the body; may be NULL */
    int64_t pulled_bytes;
    const char *upgrade; /* may be NULL */
    unsigned input_ends; /* how often the end of raw bytes was reported */
    unsigned status;     /* status of the response; 0: none */
    size_t received;     /* bytes of the body */
    char text[600];      /* the beginning of the body */
    char type[32];
    char head[2048];                 /* the fields of the response: "name: value\n" each */
    const struct http_field *fields; /* the request's, in place of the usual ones */
    size_t field_count;
    unsigned heads, ends;
    enum status end;
    char reason[700];
    int64_t ended_ns;
};

static struct pool_world *pool_checked;

static inline void pool_world_check(void)
{
    if (pool_checked && pool_checked->pool)
        http_pool_check(pool_checked->pool);
}

static inline void pool_must(enum status status, const struct error *error)
{
    if (status != ST_OK)
        fail_msg("%s", error->text);
}

/* -- Requests -- */

static inline void pool_test_on_head(struct pool_request *request, unsigned status,
                                     const struct http_field *fields, size_t count)
{
    struct pool_test_request *r = CONTAINER_OF(request, struct pool_test_request, request);
    r->heads++;
    r->status = status;
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        if (http_name_equal(fields[i].name, SLICE_LITERAL("content-type")))
            snprintf(r->type, sizeof(r->type), "%.*s", SLICE_ARGS(fields[i].value));
        if (at < sizeof(r->head))
            at += (size_t)snprintf(r->head + at, sizeof(r->head) - at, "%.*s: %.*s\n",
                                   SLICE_ARGS(fields[i].name), SLICE_ARGS(fields[i].value));
    }
    if (r->action == POOL_TEST_CANCEL_IN_HEAD)
        pool_request_cancel(request);
}

static inline void pool_test_on_body(struct pool_request *request, struct slice bytes)
{
    struct pool_test_request *r = CONTAINER_OF(request, struct pool_test_request, request);
    assert_int_equal(r->heads, 1);
    assert_int_equal(r->ends, 0);
    assert_int_equal(r->input_ends, 0);
    assert_true(bytes.len || r->status == 101);
    r->input_ends += bytes.len == 0;
    for (size_t i = 0; i < bytes.len && r->received + i < sizeof(r->text) - 1; i++)
        r->text[r->received + i] = (char)bytes.ptr[i];
    r->received += bytes.len;
    if (r->action == POOL_TEST_CANCEL_IN_BODY)
        pool_request_cancel(request);
}

static inline void pool_test_on_end(struct pool_request *request, enum status status,
                                    const char *reason);

static const struct pool_request_ops pool_test_ops = {
    .on_head = pool_test_on_head,
    .on_body = pool_test_on_body,
    .on_end = pool_test_on_end,
};

/* Its method, target, body and action are set. The fields are User-Agent and Accept, unless it has
 * others. */
static inline enum status pool_test_start(struct http_pool *pool, struct pool_test_request *r)
{
    static const struct http_field fields[] = {
        {{(const uint8_t *)"User-Agent", 10}, {(const uint8_t *)"test", 4}},
        {{(const uint8_t *)"Accept", 6}, {(const uint8_t *)"application/json", 16}},
    };
    struct pool_request_params params = {
        .method = slice_from_text(r->method ? r->method : "GET"),
        .target = slice_from_text(r->target),
        .fields = r->fields ? r->fields : fields,
        .field_count = r->fields ? r->field_count : COUNT_OF(fields),
        .body = slice_from_text(r->body ? r->body : ""),
        .waits = r->waits,
        .source = r->pulled ? &r->pulled->source : NULL,
        .source_bytes = r->pulled_bytes,
        .upgrade = slice_from_text(r->upgrade ? r->upgrade : ""),
    };
    r->pool = pool;
    r->request.ops = &pool_test_ops;
    r->heads = r->ends = r->status = r->input_ends = 0;
    r->received = 0;
    memset(r->text, 0, sizeof(r->text));
    return http_pool_start(pool, &r->request, &params);
}

static inline void pool_test_on_end(struct pool_request *request, enum status status,
                                    const char *reason)
{
    struct pool_test_request *r = CONTAINER_OF(request, struct pool_test_request, request);
    assert_int_equal(r->ends++, 0);
    assert_null(request->attempt);
    assert_true((status == ST_OK) == (*reason == 0));
    r->end = status;
    snprintf(r->reason, sizeof(r->reason), "%s", reason);
    if (faults.loop)
        r->ended_ns = loop_now_ns(faults.loop);
    if (r->action != POOL_TEST_RESTART_IN_END)
        return;
    r->action = POOL_TEST_NOTHING;
    if (pool_test_start(r->pool, r) != ST_OK)
        r->ends = 1;
}

static inline bool pool_test_succeeded(const struct pool_test_request *r)
{
    return r->ends == 1 && r->end == ST_OK && r->status == 200;
}

/* -- The world -- */

/* Options may be changed before the start. */
static inline void pool_world_init(struct pool_world *w, bool secure,
                                   const struct sim_options *sim_options)
{
    static const struct dns_row names[] = {{"server.test", "127.0.0.1"}, {NULL, NULL}};
    struct sim_options defaults = SIM_OPTIONS_DEFAULT;
    *w = (struct pool_world){
        .sim = sim_new(sim_options ? sim_options : &defaults),
        .secure = secure,
        .server_options = TLS_OPTIONS_NONE,
        .options = HTTP_POOL_OPTIONS_DEFAULT,
        .wire.limits = WIRE_LIMITS_DEFAULT,
        .table.rows = names,
    };
    if (secure)
        test_certs_init(&w->certs);
    (void)faulty_network(sim_network(w->sim));
    faults.check = pool_world_check;
    pool_checked = w;
    w->backend = dns_table_backend(&w->table);
    assert_int_equal(network_loop_new(&faults.network, &w->loop), ST_OK);
    assert_int_equal(resolver_new(w->loop, &w->backend, 1, &w->resolver), ST_OK);
    w->options.connector.loop = w->loop;
    w->options.connector.network = &faults.network;
    w->options.connector.resolver = w->resolver;
}

static inline struct tls_client_source *pool_world_source(const struct pool_world *w)
{
    struct tls_client_options options = TLS_CLIENT_OPTIONS_NONE;
    struct tls_client_source *source;
    struct error error;
    options.ca_file = w->certs.ca_file;
    pool_must(tls_client_source_new(&options, (struct tls_source_hooks){0}, &source, &error),
              &error);
    return source;
}

static inline void pool_world_secure_server(struct pool_world *w)
{
    struct tls_recipe recipe;
    struct error error;
    w->server_options.cert_file = w->certs.cert_file;
    w->server_options.key_file = w->certs.key_file;
    pool_must(tls_server_recipe(&w->server_options, &recipe, &error), &error);
    pool_must(tls_source_new(&recipe, (struct tls_source_hooks){0}, &w->server_source, &error),
              &error);
    w->server_tls = (struct net_tls){
        .inner = &w->inner, .source = w->server_source, .limits = NET_TLS_LIMITS_DEFAULT};
    w->kind = net_tls_kind(&w->server_tls);
    w->source = pool_world_source(w);
    w->options.connector.tls = w->source;
}

static inline void pool_world_listen(struct pool_world *w)
{
    struct net_options net = NET_OPTIONS_DEFAULT;
    struct url url;
    struct error error;
    net.shards = 1;
    net.budget = w->budget;
    assert_int_equal(http_routes_new(&w->routes), ST_OK);
    assert_int_equal(http_routes_add(w->routes, test_routes, COUNT_OF(test_routes), &w->site),
                     ST_OK);
    if (w->extra)
        assert_int_equal(http_routes_add(w->routes, w->extra, w->extra_count, w->extra_service),
                         ST_OK);
    w->wire.routes = w->routes;
    w->kind = w->inner = net_wire_kind(&w->wire);
    if (w->secure)
        pool_world_secure_server(w);
    assert_int_equal(net_server_new(sim_network(w->sim), &net, w->app, &w->server), ST_OK);
    pool_must(url_parse(slice_from_text(w->secure ? "https://127.0.0.1:0" : "http://127.0.0.1:0"),
                        &url, &error),
              &error);
    pool_must(net_server_listen(w->server, &url, &w->kind, &w->bound, &error), &error);
    assert_int_equal(net_server_start(w->server), ST_OK);
}

static inline void pool_world_connect(struct pool_world *w, const struct address *address)
{
    char text[ADDRESS_TEXT_BYTES], url[ADDRESS_TEXT_BYTES + 16];
    struct error error;
    address_format(address, text);
    snprintf(url, sizeof(url), "%s://%s", w->secure ? "https" : "http", text);
    pool_must(endpoint_parse(slice_from_text(url), &w->options.endpoint, &error), &error);
    faulty_memory_begin();
    enum status status = http_pool_new(&w->options, &w->pool, &error);
    faulty_memory_end();
    assert_true(status == ST_OK || status == ST_NOMEM);
}

static inline void pool_world_start(struct pool_world *w)
{
    pool_world_listen(w);
    pool_world_connect(w, &w->bound.address);
}

static inline void pool_world_fini(struct pool_world *w)
{
    http_pool_free(w->pool);
    w->pool = NULL;
    tls_client_source_free(w->source);
    if (w->server) {
        net_server_stop(w->server);
        net_server_free(w->server);
    }
    resolver_free(w->resolver);
    loop_free(w->loop);
    tls_source_free(w->server_source);
    http_routes_free(w->routes);
    if (w->secure)
        test_certs_fini(&w->certs);
    assert_int_equal(w->site.requests, w->site.ends);
    sim_free(w->sim);
    pool_checked = NULL;
}

static inline int64_t pool_world_now(const struct pool_world *w)
{
    return clock_mono_ns(sim_clock(w->sim));
}

static inline void pool_world_run(struct pool_world *w, int64_t ns)
{
    sim_run_until(w->sim, pool_world_now(w) + ns);
}

#endif
