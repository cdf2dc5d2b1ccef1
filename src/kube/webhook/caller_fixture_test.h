/*
 * For tests of the caller: a webhook server with TLS on a simulated network, a store with the
 * objects of services, and calls that record what becomes of them. One file of a program includes
 * this.
 */
#ifndef VIGIL_KUBE_WEBHOOK_CALLER_FIXTURE_TEST_H
#define VIGIL_KUBE_WEBHOOK_CALLER_FIXTURE_TEST_H

#include "base/memory/budget.h"
#include "client/http/http_pool_fixture_test.h"
#include "codec/base64.h"
#include "engine/engine.h"
#include "fake/fake.h"
#include "kube/types/storage.h"
#include "kube/webhook/caller.h"

enum { HOOK_HELD_MAX = 4096 };

struct hook_site;

/* What the server answers, and what it has seen. */
struct hook_site {
    unsigned code;
    struct slice body;
    /* Unless NULL: makes the body. */
    void (*answer)(struct hook_site *site, struct slice question, struct buf *to);
    const char *type;         /* NULL: application/json */
    const char *name, *value; /* another field; NULL: none */
    bool holds;               /* it does not answer, or only with a head and */
    bool begins;              /* one byte of the body */
    bool floods;              /* the body does not end */
    struct http_source source;
    unsigned requests, ends;
    char seen[1024]; /* the latest request */
    size_t body_bytes;
    struct http_exchange *held; /* the latest that was not answered */
};

struct hook_world {
    struct pool_world server;
    struct hook_site site;
    struct engine *engine;
    struct engine_shard *shard;
    struct kube_webhook_settings settings;
    struct kube_webhook_caller *caller;
    size_t under_way;
    struct arena arena;
    char ca[4096]; /* base64 */
};

struct hook_call {
    struct kube_webhook_call call;
    unsigned ends;
    int64_t ended_ns;
    char error[4096];
    char answer[64]; /* its beginning */
    size_t answer_bytes, charged;
    size_t turns; /* until it was done */
    struct hook_world *world;
    bool starts_again, stops;
    struct deferred start;
};

static unsigned hook_inline_percent = 50; /* for the engine of the next world */

static inline void hook_note(struct hook_site *site, const struct http_request *request)
{
    int at = snprintf(site->seen, sizeof(site->seen), "%.*s %.*s %u host=%.*s",
                      SLICE_ARGS(request->method), SLICE_ARGS(request->target), request->major,
                      SLICE_ARGS(request->host));
    static const char *const names[] = {"user-agent",      "accept",        "content-type",
                                        "accept-encoding", "authorization", "impersonate-user"};
    struct slice value;
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (http_request_get(request, slice_from_text(names[i]), &value))
            at += snprintf(site->seen + at, sizeof(site->seen) - (size_t)at, " %s=%.*s", names[i],
                           SLICE_ARGS(value));
    site->body_bytes = request->body.len;
    site->requests++;
}

static inline enum http_fill hook_flood(struct http_source *source, uint8_t *dst, size_t room,
                                        size_t *ret_len)
{
    (void)source;
    memset(dst, 'x', room);
    *ret_len = room;
    return HTTP_FILL_MORE;
}

static inline void hook_on_request(struct http_exchange *x, void *service,
                                   const struct http_request *request)
{
    struct hook_site *site = service;
    struct slice type = slice_from_text(site->type ? site->type : "application/json");
    AUTO(buf_fini) struct buf made = {0};
    hook_note(site, request);
    if (site->name)
        assert_int_equal(
            http_add_field(x, slice_from_text(site->name), slice_from_text(site->value)), ST_OK);
    if (site->holds && !site->begins) {
        site->held = x;
        http_need_peer(x, true); /* so that the end of a call is noticed */
        return;
    }
    if (!site->begins && !site->floods) {
        if (site->answer)
            site->answer(site, request->body, &made);
        http_respond(x, site->code, type, site->answer ? buf_slice(&made) : site->body);
        return;
    }
    http_begin(x, site->code, type);
    assert_int_equal(http_write(x, SLICE_LITERAL("{")), ST_OK);
    http_need_peer(x, true);
    if (!site->floods)
        return;
    site->source.fill = hook_flood;
    http_set_source(x, &site->source);
}

static inline void hook_on_end(struct http_exchange *x, void *service)
{
    struct hook_site *site = service;
    site->ends++;
    if (site->held == x)
        site->held = NULL;
}

static const struct http_route hook_routes[] = {
    {.path = "/hook/",
     .on_request = hook_on_request,
     .on_end = hook_on_end,
     .body_bytes_max = 8 << 20},
};

/* -- The world -- */

static inline char *hook_no_environment(const char *name)
{
    (void)name;
    return NULL;
}

static inline void hook_read_ca(struct hook_world *w)
{
    uint8_t pem[2048];
    FILE *file = fopen(w->server.certs.ca_file, "r");
    assert_non_null(file);
    size_t len = fread(pem, 1, sizeof(pem), file);
    fclose(file);
    base64_encode(slice_of(pem, len), (uint8_t *)w->ca);
    w->ca[base64_encoded_len(len)] = 0;
}

/* A certificate for these names instead of the usual ones. */
static inline void hook_certify(struct hook_world *w, struct test_wish wish)
{
    struct test_certs *certs = &w->server.certs;
    test_identity_free(&certs->server);
    wish.usage = "serverAuth";
    certs->server = test_identity_make(wish, &certs->ca);
    test_certs_write_server(certs);
}

/* With the settings as they are now. */
static inline void hook_make_caller(struct hook_world *w)
{
    w->caller = kube_webhook_caller_new(&(struct kube_webhook_caller_options){
        .shard = w->shard,
        .loop = w->server.loop,
        .under_way = &w->under_way,
        .settings = &w->settings,
    });
}

/* With these users for webhooks that validate. */
static inline void hook_world_init_users(struct hook_world *w, struct kube_webhook_users users)
{
    static const struct dns_row names[] = {{"server.test", "127.0.0.1"}, {NULL, NULL}};
    struct sim_options options = SIM_OPTIONS_DEFAULT;
    *w = (struct hook_world){.site = {.code = 200, .body = SLICE_LITERAL("{}")}};
    pool_world_init(&w->server, true, &options);
    pool_checked = NULL;
    w->server.table.rows = names;
    w->server.wire.limits.http.body_bytes_max = 8 << 20;
    w->server.extra = hook_routes;
    w->server.extra_count = COUNT_OF(hook_routes);
    w->server.extra_service = &w->site;
    hook_certify(w, TEST_WISH(.names = "DNS:localhost,IP:127.0.0.1,DNS:server.test,"
                                       "DNS:hook.space.svc"));
    hook_read_ca(w);
    pool_world_listen(&w->server);
    arena_init(&w->arena, NULL, 0, SIZE_MAX);
    w->engine = fake_new(&(struct fake_options){.seed = 1, .inline_percent = hook_inline_percent});
    assert_int_equal(engine_shard_new(w->engine, w->server.loop, &w->shard), ST_OK);
    w->settings = (struct kube_webhook_settings){
        .network = &faults.network,
        .resolver = &w->server.backend,
        .environment = hook_no_environment,
        .users = {[KUBE_WEBHOOK_VALIDATES] = users},
    };
    hook_make_caller(w);
}

static inline void hook_world_init(struct hook_world *w)
{
    hook_world_init_users(w, (struct kube_webhook_users){0});
}

static inline void hook_run(struct hook_world *w, int64_t ns)
{
    int64_t step = ns / 500 > NS_PER_MS ? ns / 500 : NS_PER_MS;
    for (int64_t end = pool_world_now(&w->server) + ns; pool_world_now(&w->server) < end;) {
        sim_run_until(w->server.sim, pool_world_now(&w->server) + step);
        while (fake_step(w->engine))
            ;
        if (w->caller)
            kube_webhook_caller_check(w->caller);
    }
}

static inline void hook_world_fini(struct hook_world *w)
{
    kube_webhook_caller_stop(w->caller);
    hook_run(w, 10 * NS_PER_MS);
    assert_int_equal(w->under_way, 0);
    kube_webhook_caller_free(w->caller);
    w->caller = NULL;
    hook_run(w, 10 * NS_PER_MS);
    engine_shard_stop(w->shard);
    engine_shard_free(w->shard);
    fake_free(w->engine);
    arena_fini(&w->arena);
    pool_world_fini(&w->server);
    assert_int_equal(w->site.requests, w->site.ends);
}

/* -- Targets -- */

static inline const struct kube_webhook_target *hook_target(struct hook_world *w,
                                                            const char *format, ...)
    PRINTF_LIKE(2, 3);

/* From clientConfig, in which ' stands for ". */
static inline const struct kube_webhook_target *hook_target(struct hook_world *w,
                                                            const char *format, ...)
{
    char text[8192];
    va_list args;
    struct json_node *root;
    struct error error;
    struct slice copy;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    for (char *at = text; *at; at++)
        *at = *at == '\'' ? '"' : *at;
    assert_int_equal(arena_dup(&w->arena, slice_from_text(text), &copy), ST_OK);
    pool_must(json_tree_read(&w->arena, copy, &root, &error), &error);
    return kube_webhook_target_read(&w->arena, root);
}

static inline unsigned hook_port(const struct hook_world *w)
{
    return address_port(&w->server.bound.address);
}

/* At the server, by the name "server.test", which is called over HTTP/1.1. */
static inline const struct kube_webhook_target *hook_at(struct hook_world *w, const char *path)
{
    return hook_target(w, "{'url':'https://server.test:%u%s','caBundle':'%s'}", hook_port(w), path,
                       w->ca);
}

/* -- Objects -- */

static inline void hook_put_done(struct engine_op *op)
{
    assert_int_equal(op->status, ST_OK);
}

/* ' stands for ". An empty value: the key is deleted. */
static inline void hook_put(struct hook_world *w, const char *key, const char *value)
{
    struct arena arena;
    char text[4096];
    struct engine_write write = {
        .op = {.done = hook_put_done, .arena = &arena, .principal = ENGINE_SERVER}};
    snprintf(text, sizeof(text), "%s", value);
    for (char *at = text; *at; at++)
        *at = *at == '\'' ? '"' : *at;
    struct pb_put_request put = {.key = slice_from_text(key), .value = slice_from_text(text)};
    struct pb_delete_range_request gone = {.key = slice_from_text(key)};
    arena_init(&arena, NULL, 0, SIZE_MAX);
    if (*value)
        engine_put(w->shard, &write, &put);
    else
        engine_delete_range(w->shard, &write, &gone);
    while (fake_step(w->engine))
        ;
    engine_write_close(&write);
    arena_fini(&arena);
}

/* -- Calls -- */

static inline void hook_start(struct hook_world *w, struct hook_call *c,
                              const struct kube_webhook_target *target, int64_t timeout_ns);

/* In a turn of the loop, whose time is right. */
static inline void hook_on_start(struct deferred *deferred)
{
    struct hook_call *c = CONTAINER_OF(deferred, struct hook_call, start);
    c->turns = faults.turns;
    kube_webhook_call_start(c->world->caller, &c->call);
    assert_int_equal(c->ends, 0);
}

static inline void hook_done(struct kube_webhook_call *call)
{
    struct hook_call *c = call->owner;
    assert_int_equal(c->ends++, 0);
    assert_null(call->attempt);
    assert_true((call->status == ST_OK) == (call->answer.len > 0));
    assert_true(call->status == ST_OK || call->status == ST_STOPPED || call->error.len > 0);
    c->ended_ns = pool_world_now(&c->world->server);
    c->answer_bytes = call->answer.len;
    c->turns = faults.turns - c->turns;
    c->charged = call->account ? account_held_bytes(call->account) : 0;
    snprintf(c->answer, sizeof(c->answer), "%.*s", SLICE_ARGS(buf_slice(&call->answer)));
    snprintf(c->error, sizeof(c->error), "%.*s", SLICE_ARGS(buf_slice(&call->error)));
    kube_webhook_call_fini(call);
    if (c->stops)
        kube_webhook_caller_stop(c->world->caller);
    if (c->starts_again) {
        c->starts_again = false;
        hook_start(c->world, c, call->target, call->timeout_ns);
    }
}

static inline void hook_start(struct hook_world *w, struct hook_call *c,
                              const struct kube_webhook_target *target, int64_t timeout_ns)
{
    assert_non_null(target);
    c->call.target = target;
    if (!c->call.body.len)
        c->call.body = SLICE_LITERAL("{\"kind\":\"AdmissionReview\"}");
    c->call.timeout_ns = timeout_ns;
    c->call.agent = SLICE_LITERAL("kube-apiserver-admission");
    c->call.done = hook_done;
    c->call.owner = c;
    c->world = w;
    c->ends = 0;
    c->start.fn = hook_on_start;
    loop_defer(w->server.loop, &c->start);
}

/* One call, with two seconds of time. */
static inline struct hook_call hook_ask(struct hook_world *w,
                                        const struct kube_webhook_target *target)
{
    struct hook_call c = {.ends = 0};
    hook_start(w, &c, target, 2 * NS_PER_S);
    hook_run(w, 3 * NS_PER_S);
    assert_int_equal(c.ends, 1);
    c.call.owner = NULL;
    return c;
}

#endif
