/*
 * For tests of what is passed on, on a simulated network:
 *
 *     a client's pool ──► the front, which passes on ──► another server of ours
 *
 * One file of a program includes this.
 */
#ifndef VIGIL_TIER_FORWARD_FORWARD_FIXTURE_TEST_H
#define VIGIL_TIER_FORWARD_FORWARD_FIXTURE_TEST_H

#include "client/http/http_pool_fixture_test.h"
#include "kube/request/life.h"
#include "kube/types/status.h"
#include "net/shard.h"
#include "tier/forward/forward.h"
#include "wire/http/stream_routes_test.h"

enum { HELD_MAX = 1024 * 1024 }; /* in sockets, windows and pipes on the way */

static struct world {
    struct pool_world w; /* the client, and the front */
    struct tier_forwards forwards;
    struct tier_forward_options options;
    unsigned requests, ends;
    struct http_exchange *front_exchange; /* the last one */
    /* Forwards have a listener, and what it has seen. It takes answers as refusals of the tier that
     * begin with this text; NULL: there is none. */
    const char *listens_for;
    struct {
        unsigned started, ended, asked;
        size_t body_bytes; /* that it has seen of the last one */
    } listened;
    /* What the front reaches the other server with. */
    struct http_pool_options pool_options;
    struct resolver *resolver;
    struct http_pool *pool;
    /* The other server. */
    struct net_wire wire;
    struct protocol_kind kind;
    struct http_routes *routes;
    struct net_server *server;
    struct url bound;
    struct test_site site;
    struct test_stream_site stream;
    unsigned ticks_ended;
    bool breaks; /* /f/ticks is aborted after its first tick */
} t;

/* -- The other server -- */

/* Answers with what it got. */
static inline void show_head(struct http_exchange *x, void *service,
                             const struct http_request *request)
{
    AUTO(buf_fini) struct buf text = {0};
    (void)service;
    assert_int_equal(buf_append_format(&text, "%.*s %.*s\n", SLICE_ARGS(request->method),
                                       SLICE_ARGS(request->target)),
                     ST_OK);
    for (size_t i = 0; i < request->field_count; i++) {
        const struct http_field *field = &request->fields[i];
        if (field->name.ptr[0] != ':' && !http_name_equal(field->name, SLICE_LITERAL("host")))
            assert_int_equal(buf_append_format(&text, "%.*s: %.*s\n", SLICE_ARGS(field->name),
                                               SLICE_ARGS(field->value)),
                             ST_OK);
    }
    assert_int_equal(buf_append(&text, request->body), ST_OK);
    http_respond(x, 200, SLICE_LITERAL("text/plain"), buf_slice(&text));
}

static inline void answer_with_fields(struct http_exchange *x, void *service,
                                      const struct http_request *request)
{
    static const char *const fields[][2] = {
        {"Etag", "\"a\""},   {"Warning", "one"},
        {"Warning", "two"},  {"Audit-Id", "7"},
        {"X-Hop", "1"}, /* HTTP/1.1 from here */
        {"Keep-Alive", "1"}, {"Connection", "x-hop, keep-alive"}};
    struct slice rest = request->query;
    uint64_t status = 0;
    (void)service;
    assert_true(slice_decimal(slice_cut(&rest, '&'), &status));
    for (size_t i = 0; i < (request->major == 1 ? COUNT_OF(fields) : 4); i++)
        assert_int_equal(
            http_add_field(x, slice_from_text(fields[i][0]), slice_from_text(fields[i][1])), ST_OK);
    http_respond(x, (unsigned)status, SLICE_LITERAL("text/x"), SLICE_LITERAL("the body"));
}

/* Fields that are as long as our own server allows; the front has the type among them. */
static inline void answer_with_a_long_head(struct http_exchange *x, void *service,
                                           const struct http_request *request)
{
    static char value[5105];
    (void)service;
    memset(value, 'x', sizeof(value));
    for (int i = 0; i < (request->query.len ? 1 : 2); i++)
        assert_int_equal(http_add_field(x, SLICE_LITERAL("X-Long"), slice_of(value, sizeof(value))),
                         ST_OK);
    http_respond(x, 200, SLICE_LITERAL("text/plain"), SLICE_EMPTY);
}

/* A refusal with as many bytes as the query says. */
static inline void refuse_at_length(struct http_exchange *x, void *service,
                                    const struct http_request *request)
{
    uint64_t bytes = 0;
    (void)service;
    assert_true(slice_decimal(request->query, &bytes));
    char *text = malloc(bytes + 1);
    assert_non_null(text);
    memset(text, 'r', bytes);
    http_respond(x, 403, SLICE_LITERAL("text/plain"), slice_of(text, bytes));
    free(text);
}

static inline void tick(struct http_exchange *x)
{
    if (http_write(x, SLICE_LITERAL("tick\n")) != ST_OK)
        return;
    if (t.breaks)
        http_abort(x);
    else
        http_set_deadline(x, http_exchange_now(x) + NS_PER_S, tick);
}

/* Five bytes every second. */
static inline void begin_ticks(struct http_exchange *x, void *service,
                               const struct http_request *request)
{
    (void)service, (void)request;
    http_begin(x, 200, SLICE_LITERAL("application/json"));
    http_park(x, NULL);
    tick(x);
}

static inline void end_ticks(struct http_exchange *x, void *service)
{
    (void)x, (void)service;
    t.ticks_ended++;
}

static inline void abort_at_once(struct http_exchange *x, void *service,
                                 const struct http_request *request)
{
    (void)service, (void)request;
    http_begin(x, 200, SLICE_EMPTY);
    http_abort(x);
}

static const struct http_route other_routes[] = {
    {.path = "/up/f/head", .on_request = show_head},
    {.path = "/up/f/fields", .on_request = answer_with_fields},
    {.path = "/up/f/refuse", .on_request = refuse_at_length},
    {.path = "/up/f/long", .on_request = answer_with_a_long_head},
    {.path = "/up/f/ticks", .on_request = begin_ticks, .on_end = end_ticks},
    {.path = "/up/f/broken", .on_request = abort_at_once},
};
static const struct http_route other_site_routes[] = {
    {.path = "/up/f/pull", .on_request = test_site_pull, .on_end = test_site_end},
    {.path = "/up/f/later", .on_request = test_site_later, .on_end = test_site_end},
};
static const struct http_route other_stream_routes[] = {
    {.path = "/up/f/take",
     .on_request = test_stream_take,
     .on_body = test_stream_body,
     .on_end = test_stream_end},
    {.path = "/up/f/raw",
     .on_request = test_stream_raw,
     .on_body = test_stream_body,
     .on_end = test_stream_end},
};

static inline void start_other(bool http2)
{
    struct net_options net = NET_OPTIONS_DEFAULT;
    struct url url;
    struct error error;
    char text[ADDRESS_TEXT_BYTES], name[ADDRESS_TEXT_BYTES + 16];
    net.shards = 1;
    t.wire.limits = WIRE_LIMITS_DEFAULT;
    t.wire.limits.http.stall_ns = 10000 * NS_PER_S; /* only the front's counts */
    assert_int_equal(http_routes_new(&t.routes), ST_OK);
    assert_int_equal(http_routes_add(t.routes, other_routes, COUNT_OF(other_routes), NULL), ST_OK);
    assert_int_equal(
        http_routes_add(t.routes, other_site_routes, COUNT_OF(other_site_routes), &t.site), ST_OK);
    assert_int_equal(
        http_routes_add(t.routes, other_stream_routes, COUNT_OF(other_stream_routes), &t.stream),
        ST_OK);
    t.wire.routes = t.routes;
    t.kind = net_wire_kind(&t.wire);
    assert_int_equal(net_server_new(sim_network(t.w.sim), &net, NULL, &t.server), ST_OK);
    pool_must(url_parse(SLICE_LITERAL("http://127.0.0.1:0"), &url, &error), &error);
    pool_must(net_server_listen(t.server, &url, &t.kind, &t.bound, &error), &error);
    assert_int_equal(net_server_start(t.server), ST_OK);
    address_format(&t.bound.address, text);
    snprintf(name, sizeof(name), "http://%s", text);
    pool_must(endpoint_parse(slice_from_text(name), &t.pool_options.endpoint, &error), &error);
    t.pool_options.protocol = http2 ? HTTP_POOL_HTTP2 : HTTP_POOL_HTTP1;
}

static inline void stop_other(void)
{
    if (!t.server)
        return;
    net_server_stop(t.server);
    net_server_free(t.server);
    t.server = NULL;
}

/* -- The front -- */

static inline enum status start_shard(void *ctx, struct net_shard *shard)
{
    struct error error;
    (void)ctx;
    t.pool_options.connector.loop = net_shard_loop(shard);
    t.pool_options.connector.network = sim_network(t.w.sim);
    TRY(resolver_new(net_shard_loop(shard), &t.w.backend, 1, &t.resolver));
    t.pool_options.connector.resolver = t.resolver;
    TRY(http_pool_new(&t.pool_options, &t.pool, &error));
    t.options.pool = t.pool;
    return ST_OK;
}

static inline void stop_shard(void *ctx, struct net_shard *shard)
{
    (void)ctx, (void)shard;
    http_pool_free(t.pool);
    resolver_free(t.resolver);
    t.pool = NULL;
}

static inline void check_shard(void *ctx, struct net_shard *shard)
{
    (void)ctx, (void)shard;
    http_pool_check(t.pool);
}

static inline bool on_refused(struct tier_forward_listener *listener, unsigned code,
                              struct slice body, struct kube_status *ret_status)
{
    (void)listener;
    t.listened.asked++;
    t.listened.body_bytes = body.len;
    if (!*t.listens_for || !slice_has_prefix(body, slice_from_text(t.listens_for)))
        return false;
    (void)!kube_fail(ret_status, KUBE_FORBIDDEN, "the tier is refused with %u", code);
    return true;
}

static inline void on_forward_ended(struct tier_forward_listener *listener)
{
    t.listened.ended++;
    free(listener);
}

static inline void on_request(struct http_exchange *x, void *service,
                              const struct http_request *request)
{
    struct tier_forward_listener *listener = NULL;
    (void)service, (void)request;
    t.requests++;
    t.front_exchange = x;
    if (t.listens_for) {
        listener = calloc(1, sizeof(*listener));
        assert_non_null(listener);
        *listener = (struct tier_forward_listener){on_refused, on_forward_ended};
    }
    t.options.listener = listener;
    bool started = tier_forward(x, &t.options);
    t.listened.started += started && listener;
    if (!started)
        free(listener);
}

static inline void on_body(struct http_exchange *x, void *service, struct slice bytes)
{
    (void)service;
    tier_forward_body(x, bytes);
}

static inline void on_end(struct http_exchange *x, void *service)
{
    struct kube_life *life = http_exchange_user(x);
    (void)service;
    t.ends++;
    if (life)
        life->end(life);
}

static const struct http_route front_routes[] = {
    {.path = "/f/", .on_request = on_request, .on_body = on_body, .on_end = on_end},
};

/* -- Both -- */

static const struct fixture_case {
    bool http2, other_http2;
} cases[] = {{false, false}, {false, true}, {true, false}, {true, true}};

static inline void prepare(const struct fixture_case *c, const struct sim_options *options)
{
    static const struct net_app app = {
        .shard_start = start_shard, .shard_stop = stop_shard, .after_flush = check_shard};
    t = (struct world){0};
    pool_world_init(&t.w, false, options);
    t.w.options.protocol = c->http2 ? HTTP_POOL_HTTP2 : HTTP_POOL_HTTP1;
    t.w.options.connector.http1.head_ns = t.w.options.connector.http1.stall_ns = 1000 * NS_PER_S;
    t.w.extra = front_routes;
    t.w.extra_count = COUNT_OF(front_routes);
    t.w.app = &app;
    tier_forwards_init(&t.forwards, 100, 1);
    t.forwards.share_max = 100; /* all clients have the same address */
    t.options.forwards = &t.forwards;
    t.options.head.path_prefix = SLICE_LITERAL("/up");
    t.pool_options = HTTP_POOL_OPTIONS_DEFAULT;
    t.pool_options.connector.http1.head_ns = 30 * NS_PER_S;
    start_other(c->other_http2);
}

static inline void begin(const struct fixture_case *c)
{
    prepare(c, NULL);
    pool_world_start(&t.w);
}

static inline void end(void)
{
    http_pool_free(t.w.pool);
    t.w.pool = NULL;
    pool_world_run(&t.w, 3 * NS_PER_S);
    net_server_stop(t.w.server);
    net_server_free(t.w.server);
    t.w.server = NULL;
    tier_forwards_fini(&t.forwards);
    assert_int_equal(t.listened.ended, t.listened.started);
    assert_int_equal(t.requests, t.ends);
    stop_other();
    http_routes_free(t.routes);
    assert_int_equal(t.site.requests, t.site.ends);
    test_stream_site_fini(&t.stream);
    pool_world_fini(&t.w);
}

static inline void start(struct pool_test_request *r)
{
    assert_int_equal(pool_test_start(t.w.pool, r), ST_OK);
}

static inline void run(int64_t ns)
{
    pool_world_run(&t.w, ns);
}

static inline void exchange(struct pool_test_request *r)
{
    start(r);
    run(NS_PER_S);
}

static inline void give(struct pool_test_request *r, const char *text)
{
    pulled_give(r->pulled, text);
    pool_request_wake(&r->request);
    run(NS_PER_S);
}

static inline void give_end(struct pool_test_request *r)
{
    r->pulled->ends = true;
    pool_request_wake(&r->request);
    run(NS_PER_S);
}

#endif
