#include "kube/api/call.h"

#include "base/xalloc.h"
#include "codec/json/pretty.h"
#include "kube/api/discovery.h"
#include "kube/api/expiry.h"
#include "kube/api/format.h"
#include "kube/api/keeper.h"
#include "kube/api/openapi.h"
#include "kube/api/pages.h"
#include "kube/api/purge.h"
#include "kube/api/scope.h"
#include "kube/api/sight.h"
#include "kube/api/write.h"
#include "watch/cursor.h"
#include "wire/http/gzip.h"

#include <stdio.h>

/* -- Answers -- */

static bool add_field(struct kube_call *call, const char *name, const char *value)
{
    if (http_add_field(call->exchange, slice_from_text(name), slice_from_text(value)) == ST_OK)
        return true;
    http_abort(call->exchange);
    return false;
}

/* People who look by hand get it indented, unless they say otherwise. */
static bool wants_pretty(const struct kube_call *call)
{
    static const char *const people[] = {"curl", "Wget", "Mozilla/5.0"};
    struct slice agent = SLICE_EMPTY;
    if (call->query.pretty_given)
        return call->query.pretty;
    (void)http_request_get(http_exchange_request(call->exchange), SLICE_LITERAL("user-agent"),
                           &agent);
    for (size_t i = 0; i < COUNT_OF(people); i++) {
        struct slice name = slice_from_text(people[i]);
        if (agent.len >= name.len && slice_equal(slice_sub(agent, 0, name.len), name))
            return true;
    }
    return false;
}

/* The body is worth the work of packing it, as in Kubernetes. */
enum { GZIP_BYTES_MIN = 128 * 1024 };

/* In the format that was asked for; what cannot be said in it is said in JSON. */
static enum status make_body(struct kube_call *call, struct slice json, enum kube_format *format,
                             struct buf *to)
{
    *format = call->accept.format;
    enum status status = ST_NOT_FOUND;
    if (*format != KUBE_JSON)
        status = kube_format_write(*format, json, to);
    if (status == ST_OK || status == ST_NOMEM)
        return status;
    *format = KUBE_JSON;
    to->len = 0;
    return wants_pretty(call) ? json_pretty(json, to) : buf_append(to, json);
}

static enum status respond(struct kube_call *call, unsigned code, struct slice json)
{
    AUTO(buf_fini) struct buf made = {0};
    AUTO(buf_fini) struct buf packed = {0};
    enum kube_format format = KUBE_JSON;
    struct slice body = json;
    if (call->accept.format != KUBE_JSON || wants_pretty(call)) {
        TRY(make_body(call, json, &format, &made));
        body = buf_slice(&made);
    }
    if (body.len > GZIP_BYTES_MIN && http_accepts_gzip(http_exchange_request(call->exchange))) {
        TRY(http_gzip(body, &packed));
        TRY(http_add_field(call->exchange, SLICE_LITERAL("Content-Encoding"),
                           SLICE_LITERAL("gzip")));
        body = buf_slice(&packed);
    }
    http_respond(call->exchange, code, kube_format_type(format), body);
    return ST_OK;
}

void kube_call_respond(struct kube_call *call, unsigned code, struct slice json)
{
    if (add_field(call, "Cache-Control", "no-cache, private") && respond(call, code, json) != ST_OK)
        http_abort(call->exchange);
}

void kube_call_begin(struct kube_call *call, unsigned code, struct slice content_type)
{
    if (add_field(call, "Cache-Control", "no-cache, private"))
        http_begin(call->exchange, code, content_type);
}

void kube_call_fail(struct kube_call *call)
{
    struct buf text = {0};
    char seconds[16];
    snprintf(seconds, sizeof(seconds), "%u", call->status.retry_after_s);
    if (kube_status_write(&call->status, &text) != ST_OK)
        http_abort(call->exchange);
    else if (!call->status.retry_after_s || add_field(call, "Retry-After", seconds))
        kube_call_respond(call, kube_status_code(&call->status), buf_slice(&text));
    buf_fini(&text);
}

bool kube_call_object(struct kube_call *call, struct slice json, int64_t revision,
                      struct slice *ret_json)
{
    struct kube_object object;
    if (kube_object_look(json, &object) != ST_OK)
        return kube_fail(&call->status, KUBE_STORAGE_READ_ERROR,
                         "Internal error occurred: what is stored here is no object in JSON");
    size_t size = kube_object_size(&object, revision, false);
    uint8_t *bytes = arena_alloc(&call->arena, size);
    if (!bytes)
        return kube_fail_engine(&call->status, ST_NOMEM);
    kube_object_copy(&object, revision, false, 0, bytes, size);
    *ret_json = slice_of(bytes, size);
    return true;
}

/* -- Operations -- */

static void op_begin(struct kube_call *call, struct engine_op *op,
                     void (*done)(struct engine_op *op))
{
    *op = (struct engine_op){.done = done, .arena = &call->arena, .principal = ENGINE_SERVER};
    call->under_way++;
    call->face->under_way++;
}

void kube_call_range(struct kube_call *call, const struct pb_range_request *request,
                     void (*done)(struct engine_op *op))
{
    op_begin(call, &call->range.op, done);
    engine_range_start(call->face->shard, &call->range, request);
}

static void put(struct kube_call *call, void (*done)(struct engine_op *op))
{
    op_begin(call, &call->write.engine.op, done);
    kube_storage_put(call->face->shard, &call->write);
}

void kube_call_put(struct kube_call *call, void (*done)(struct engine_op *op))
{
    if (kube_expires(call->kind))
        kube_expiry_take(call, done, put);
    else
        put(call, done);
}

void kube_call_delete(struct kube_call *call, void (*done)(struct engine_op *op))
{
    op_begin(call, &call->write.engine.op, done);
    kube_storage_delete(call->face->shard, &call->write);
}

struct kube_call *kube_call_of_range(struct engine_op *op)
{
    return CONTAINER_OF(op, struct kube_call, range.op);
}

struct kube_call *kube_call_of_write(struct engine_op *op)
{
    return CONTAINER_OF(op, struct kube_call, write.engine.op);
}

static void call_free(struct kube_call *call)
{
    if (call->on_free)
        call->on_free(call);
    arena_fini(&call->arena);
    free(call);
}

void kube_call_hand_over(struct kube_call *call, struct kube_life *life)
{
    http_exchange_set_user(call->exchange, life);
}

void kube_call_release(struct kube_call *call)
{
    call->exchange = NULL;
    if (!call->under_way)
        call_free(call);
}

bool kube_call_done(struct kube_call *call)
{
    call->under_way--;
    call->face->under_way--;
    if (call->exchange)
        return true;
    if (!call->under_way)
        call_free(call);
    return false;
}

bool kube_call_key(struct kube_call *call, struct slice *ret_key)
{
    if (kube_key_make(&call->arena, call->kind->storage_prefix, call->path.namespace,
                      call->path.name, ret_key) == ST_OK)
        return true;
    kube_fail_engine(&call->status, ST_NOMEM);
    kube_call_fail(call);
    return false;
}

/* -- Requests -- */

static bool find_kind(struct kube_call *call)
{
    const struct kube_path *path = &call->path;
    call->kind = kube_builtin_find(path->group, path->version, path->resource);
    bool scoped = call->kind && (call->kind->flags & KUBE_NAMESPACED || !path->namespace.len);
    if (scoped)
        return true;
    return kube_fail_bare(&call->status, KUBE_NOT_FOUND,
                          "the server could not find the requested resource");
}

/* A name with watch=true is still a get; only the old paths watch one object. */
static bool is_watch(const struct kube_call *call)
{
    return call->path.watch || (call->query.watch && !call->path.name.len);
}

static bool parse_accept(struct kube_call *call, struct slice accept)
{
    unsigned formats = kube_formats_of(call->kind);
    if (is_watch(call)) /* as in Kubernetes, there is no stream of it */
        formats &= ~(1u << KUBE_YAML);
    call->takes_json = kube_accept_parse(accept, 1u << KUBE_JSON, &call->accept_json);
    if (kube_accept_parse(accept, formats, &call->accept))
        return true;
    call->accept = (struct kube_accept){0}; /* of the answer that says so */
    bool protobuf = formats & 1u << KUBE_PROTOBUF, yaml = formats & 1u << KUBE_YAML;
    return kube_fail(&call->status, KUBE_NOT_ACCEPTABLE,
                     "only the following media types are accepted: application/json%s%s",
                     yaml ? ", application/yaml" : "",
                     protobuf ? ", application/vnd.kubernetes.protobuf" : "");
}

static bool parse(struct kube_call *call, const struct http_request *request)
{
    struct slice accept = SLICE_EMPTY;
    (void)http_request_get(request, SLICE_LITERAL("accept"), &accept);
    enum status status = kube_path_parse(&call->arena, request->path, &call->path);
    if (status == ST_NOT_FOUND)
        return kube_fail_bare(&call->status, KUBE_NOT_FOUND,
                              "the server could not find the requested resource");
    if (status != ST_OK)
        return kube_fail_engine(&call->status, status);
    if (!find_kind(call) ||
        !kube_query_parse(&call->arena, request->query, &call->query, &call->status))
        return false;
    return parse_accept(call, accept);
}

static void dispatch_read(struct kube_call *call)
{
    if (is_watch(call))
        kube_watch(call);
    else if (kube_is_scale(call))
        kube_scale_get(call);
    else if (call->path.name.len)
        kube_get(call);
    else
        kube_list(call);
}

static void dispatch(struct kube_call *call, const struct http_request *request)
{
    bool stored = !(call->kind->flags & KUBE_CREATE_ONLY);
    if (stored && slice_equal(request->method, SLICE_LITERAL("GET"))) {
        dispatch_read(call);
        return;
    }
    if (kube_mutate(call, request))
        return;
    kube_fail_bare(&call->status, KUBE_METHOD_NOT_ALLOWED,
                   "the server does not allow this method on the requested resource");
    kube_call_fail(call);
}

static void call_end(struct kube_life *life)
{
    struct kube_call *call = CONTAINER_OF(life, struct kube_call, life);
    if (call->on_end)
        call->on_end(call);
    kube_call_release(call);
}

static void on_request(struct http_exchange *x, void *service, const struct http_request *request)
{
    if (kube_discovery(x, request))
        return;
    struct kube_call *call = xcalloc(1, sizeof(*call));
    call->life.end = call_end;
    call->face = service;
    call->exchange = x;
    arena_init(&call->arena, NULL, 0, KUBE_CALL_ARENA_BYTES_MAX);
    http_exchange_set_user(x, &call->life);
    if (parse(call, request))
        dispatch(call, request);
    else
        kube_call_fail(call);
}

static void on_end(struct http_exchange *x, void *service)
{
    struct kube_life *life = http_exchange_user(x);
    (void)service;
    if (life)
        life->end(life);
}

/* -- The face -- */

static const struct http_route routes[] = {
    {.path = "/api", .on_request = on_request, .on_end = on_end},
    {.path = "/apis", .on_request = on_request, .on_end = on_end},
    {.path = "/api/", .on_request = on_request, .on_end = on_end},
    {.path = "/apis/", .on_request = on_request, .on_end = on_end},
};

static void on_selection_gone(void *ctx)
{
    kube_sights_forget(((struct kube_face *)ctx)->sights);
}

enum status kube_face_new(const struct kube_config *config, struct engine *engine,
                          struct engine_shard *shard, struct loop *loop,
                          struct kube_face **ret_face)
{
    AUTO(kube_face_freep) struct kube_face *face = xcalloc(1, sizeof(*face));
    face->config = config;
    face->engine = engine;
    face->shard = shard;
    face->loop = loop;
    random_init(&face->random, random_seed_system());
    face->sights = kube_sights_new();
    kube_selections_init(&face->selections, random_u64(&face->random), on_selection_gone, face);
    watch_hub_set_tagger(engine_watch_hub(shard), kube_scope_tags, face);
    face->clock = loop ? loop_clock(loop) : clock_system();
    list_init(&face->purges);
    TRY(http_routes_new(&face->routes));
    TRY(kube_pages_add(face));
    TRY(kube_openapi_add(face));
    TRY(http_routes_add(face->routes, routes, COUNT_OF(routes), face));
    *ret_face = TAKE(face);
    return ST_OK;
}

void kube_face_set_metrics(struct kube_face *face,
                           void (*write)(void *ctx, struct metric_page *page), void *ctx)
{
    face->write_metrics = write;
    face->metrics_ctx = ctx;
}

static void on_keep(struct deferred *deferred)
{
    kube_keeper_start(CONTAINER_OF(deferred, struct kube_face, keep));
}

void kube_face_keep(struct kube_face *face)
{
    face->keep.fn = on_keep;
    loop_defer(face->loop, &face->keep);
}

void kube_face_stop(struct kube_face *face)
{
    loop_defer_cancel(&face->keep);
    kube_purges_stop(face);
}

void kube_face_free(struct kube_face *face)
{
    if (!face)
        return;
    kube_face_stop(face);
    assert(face->under_way == 0);
    http_routes_free(face->routes);
    kube_selections_fini(&face->selections);
    kube_sights_free(face->sights);
    free(face);
}

bool kube_face_busy(const struct kube_face *face)
{
    return face->under_way > 0;
}

const struct http_routes *kube_face_routes(const struct kube_face *face)
{
    return face->routes;
}
