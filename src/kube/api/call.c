#include "kube/api/call.h"

#include "base/xalloc.h"
#include "kube/api/answer.h"
#include "kube/api/custom.h"
#include "kube/api/discovery.h"
#include "kube/api/event_cache.h"
#include "kube/api/event_ttl.h"
#include "kube/api/format.h"
#include "kube/api/keeper.h"
#include "kube/api/meta_routes.h"
#include "kube/api/openapi.h"
#include "kube/api/purge.h"
#include "kube/api/scope.h"
#include "kube/api/shape.h"
#include "kube/api/write.h"
#include "watch/cursor.h"

#include <stdio.h>

/* -- Answers -- */

static bool add_field(struct kube_call *call, const char *name, const char *value)
{
    if (http_add_field(call->exchange, slice_from_text(name), slice_from_text(value)) == ST_OK)
        return true;
    http_abort(call->exchange);
    return false;
}

/* After all other fields: one that has no room or bytes that no field may have is left out. */
static void add_warnings(struct kube_call *call)
{
    struct slice rest = buf_slice(&call->warnings);
    while (rest.len) {
        size_t len = strlen((const char *)rest.ptr);
        (void)!http_add_field(call->exchange, SLICE_LITERAL("Warning"), slice_sub(rest, 0, len));
        rest = slice_sub(rest, len + 1, rest.len - len - 1);
    }
}

static void send_answer(struct kube_call *call)
{
    struct kube_answer *answer = &call->work.answer;
    call->code = answer->code;
    kube_line_leave(&call->turn);
    if (!add_field(call, "Cache-Control", "no-cache, private") ||
        (answer->packed && !add_field(call, "Content-Encoding", "gzip")))
        return;
    add_warnings(call);
    /* http_respond copies the body, and the call may be gone when it returns. */
    struct buf made = answer->made;
    answer->made = (struct buf){0};
    http_respond(call->exchange, answer->code, kube_format_type(answer->format), answer->body);
    buf_fini(&made);
}

static void break_off(struct kube_call *call)
{
    http_abort(call->exchange);
}

void kube_call_respond(struct kube_call *call, unsigned code, struct slice json)
{
    /* An answer that was made while something was missing may be wrong, unless it says so. */
    if (UNLIKELY(arena_ran_out(&call->arena)) && !kube_code_is_no_memory(code)) {
        kube_fail_engine(&call->status, ST_NOMEM);
        kube_call_fail(call);
        return;
    }
    struct kube_answer *answer = &call->work.answer;
    *answer = (struct kube_answer){.code = code};
    enum status status = kube_answer_make(call, json, answer);
    /* What it was given may be gone when the call is back. */
    if (status == ST_OK && call->work.away && answer->body.ptr == json.ptr)
        status = arena_dup(&call->arena, json, &answer->body);
    void (*end)(struct kube_call * call) = status == ST_OK ? send_answer : break_off;
    if (!kube_call_defers(call, end))
        end(call);
}

void kube_call_begin(struct kube_call *call, unsigned code, struct slice content_type)
{
    call->code = code;
    if (!add_field(call, "Cache-Control", "no-cache, private"))
        return;
    add_warnings(call);
    http_begin(call->exchange, code, content_type);
}

/* A fault that was found while something was missing may be none. After a write there is none that
 * asks to come again: clients would write it twice. */
static void settle_status(struct kube_call *call)
{
    if (arena_ran_out(&call->arena) && !kube_code_is_no_memory(kube_status_code(&call->status)))
        kube_fail_engine(&call->status, ST_NOMEM);
    if (call->written && call->status.reason == KUBE_TOO_MANY_REQUESTS)
        kube_fail(&call->status, KUBE_INTERNAL_ERROR,
                  "Internal error occurred: the change was made, but there is no memory for the "
                  "answer");
}

void kube_call_fail(struct kube_call *call)
{
    struct buf text = {0};
    char seconds[16];
    if (kube_call_defers(call, kube_call_fail))
        return;
    settle_status(call);
    call->accept = call->accept_fail;
    snprintf(seconds, sizeof(seconds), "%u", call->status.retry_after_s);
    if (kube_status_write(&call->status, &text) != ST_OK)
        http_abort(call->exchange);
    else if (!call->status.retry_after_s || add_field(call, "Retry-After", seconds))
        kube_call_respond(call, kube_status_code(&call->status), buf_slice(&text));
    buf_fini(&text);
}

/* In another shape than its own. */
static bool make_shape(struct kube_call *call, const struct kube_object *object, int64_t revision,
                       struct slice *ret_json)
{
    AUTO(buf_fini) struct buf text = {0};
    struct kube_shaping shaping = kube_shaping_of(call);
    if (!kube_shape_fits(call, false))
        return false;
    enum status status = kube_shape_single(&shaping, object, revision, true, &text);
    if (status == ST_OK)
        status = arena_dup(&call->arena, buf_slice(&text), ret_json);
    return status == ST_OK || kube_fail_engine(&call->status, status);
}

bool kube_call_object(struct kube_call *call, struct slice json, int64_t revision,
                      struct slice *ret_json)
{
    struct kube_object object;
    struct slice seen = json;
    if (!kube_custom_see(call, json, revision, &seen))
        return false;
    if (kube_object_parse(seen, &object) != ST_OK)
        return kube_fail(&call->status, KUBE_STORAGE_READ_ERROR,
                         "Internal error occurred: what is stored here is no object in JSON");
    if (call->accept.shape != KUBE_WHOLE)
        return make_shape(call, &object, revision, ret_json);
    size_t size = kube_object_size(&object, revision, false);
    uint8_t *bytes = arena_alloc(&call->arena, size);
    if (!bytes)
        return kube_fail_engine(&call->status, ST_NOMEM);
    kube_object_copy(&object, revision, false, 0, bytes, size);
    *ret_json = slice_of(bytes, size);
    return true;
}

/* -- Operations -- */

void kube_call_hold(struct kube_call *call)
{
    call->under_way++;
    call->face->under_way++;
}

static void op_begin(struct kube_call *call, struct engine_op *op,
                     void (*done)(struct engine_op *op))
{
    struct arena *arena = call->ops_arena ? call->ops_arena : &call->arena;
    *op = (struct engine_op){.done = done, .arena = arena, .principal = call->principal};
    kube_call_hold(call);
}

static void range_deferred(struct kube_call *call)
{
    kube_call_range(call, call->work.request, call->work.done);
}

void kube_call_range(struct kube_call *call, const struct pb_range_request *request,
                     void (*done)(struct engine_op *op))
{
    call->work.request = request;
    call->work.done = done;
    if (kube_call_defers(call, range_deferred))
        return;
    op_begin(call, &call->range.op, done);
    engine_range_start(call->face->shard, &call->range, request);
}

static void put(struct kube_call *call, void (*done)(struct engine_op *op))
{
    op_begin(call, &call->write.engine.op, done);
    kube_storage_put(call->face->shard, &call->write);
}

static void put_deferred(struct kube_call *call)
{
    kube_call_put(call, call->work.done);
}

void kube_call_put(struct kube_call *call, void (*done)(struct engine_op *op))
{
    call->work.done = done;
    if (kube_call_defers(call, put_deferred))
        return;
    /* Here, because the revision of a definition may change under those who use it. */
    if (!kube_custom_guard(call))
        kube_call_fail(call);
    else if (kube_expires(call->kind))
        kube_expiry_take(call, done, put);
    else
        put(call, done);
}

static void delete_deferred(struct kube_call *call)
{
    kube_call_delete(call, call->work.done);
}

void kube_call_delete(struct kube_call *call, void (*done)(struct engine_op *op))
{
    call->work.done = done;
    if (kube_call_defers(call, delete_deferred))
        return;
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

static bool has_written(const struct kube_call *call)
{
    bool writes = call->verb >= KUBE_VERB_POST && call->verb <= KUBE_VERB_DELETE_COLLECTION;
    return writes && call->code / 100 == 2;
}

static void count_call(const struct kube_call *call)
{
    if (has_written(call) && call->face->config->written)
        atomic_store_explicit(call->face->config->written, true, memory_order_relaxed);
    int64_t duration_ns = clock_mono_ns(call->face->clock) - call->started_ns;
    kube_count_request(&call->face->counter, call->verb, call->kind, call->code,
                       call->verb == KUBE_VERB_WATCH || duration_ns < 0 ? -1 : duration_ns);
}

static void call_free(struct kube_call *call)
{
    if (call->code && call->path.resource.len)
        count_call(call);
    kube_line_leave(&call->turn);
    if (call->on_free)
        call->on_free(call);
    kube_kinds_unref(call->kinds);
    buf_fini(&call->work.answer.made);
    buf_fini(&call->warnings);
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
    kube_call_give_up(call);
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

static bool nowhere(struct kube_call *call)
{
    return kube_fail_bare(&call->status, KUBE_NOT_FOUND,
                          "the server could not find the requested resource");
}

static bool find_kind(struct kube_call *call)
{
    const struct kube_path *path = &call->path;
    call->kinds = kube_kinds_ref(kube_registry_kinds(call->face->registry));
    call->kind = kube_kinds_find(call->kinds, path->group, path->version, path->resource);
    bool scoped = call->kind && (call->kind->flags & KUBE_NAMESPACED || !path->namespace.len);
    return scoped || nowhere(call);
}

/* A name with watch=true is still a get; only the old paths watch one object. */
static bool is_watch(const struct kube_call *call)
{
    return call->path.watch || (call->query.watch && !call->path.name.len);
}

#define TYPES "application/json, application/yaml, application/vnd.kubernetes.protobuf"
#define STREAMS "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"

/* In the words of the router that Kubernetes has before its handlers. Custom resources have none.
 */
static bool check_route(struct kube_call *call, struct slice accept, bool many)
{
    static const char one[] = "406: Not Acceptable\n\nAvailable representations: " TYPES;
    static const char all[] =
        "406: Not Acceptable\n\nAvailable representations: " TYPES ", " STREAMS;
    if (call->kind->flags & KUBE_CUSTOM || kube_accept_routes(accept))
        return true;
    return kube_fail_bare(&call->status, KUBE_NOT_ACCEPTABLE, many ? all : one);
}

static bool parse_accept(struct kube_call *call, const struct http_request *request)
{
    enum { JSON = 1 << KUBE_JSON, YAML = 1 << KUBE_YAML, ALL = JSON | YAML | 1 << KUBE_PROTOBUF };
    static const struct kube_offer json = {.whole = JSON, .table = JSON, .partial = JSON};
    static const struct kube_offer faults = {.whole = ALL};
    /* What is not stored has no columns. */
    const struct kube_offer offer = {
        .whole = kube_formats_of(call->kind),
        .table = call->kind->flags & KUBE_CREATE_ONLY ? 0 : JSON | YAML,
        .partial = ALL,
    };
    struct slice accept = SLICE_EMPTY;
    (void)http_request_get(request, SLICE_LITERAL("accept"), &accept);
    bool many = !call->path.name.len && slice_equal(request->method, SLICE_LITERAL("GET"));
    if (!kube_accept_parse(accept, &faults, &call->accept_fail))
        call->accept_fail.pretty = true; /* as there, for people */
    if (!check_route(call, accept, many || call->path.watch))
        return false;
    call->takes_json = kube_accept_parse(accept, &json, &call->accept_json);
    if (!kube_accept_parse(accept, &offer, &call->accept))
        return kube_fail(&call->status, KUBE_NOT_ACCEPTABLE,
                         "only the following media types are accepted: " TYPES);
    return true;
}

/* There is no stream of YAML. */
static bool check_stream(struct kube_call *call)
{
    return !is_watch(call) || call->accept.format != KUBE_YAML ||
           kube_fail(&call->status, KUBE_NOT_ACCEPTABLE,
                     "only the following media types are accepted: " STREAMS);
}

static bool parse(struct kube_call *call, const struct http_request *request)
{
    return find_kind(call) && parse_accept(call, request) &&
           kube_query_parse(&call->arena, request->query, &call->query, &call->status) &&
           check_stream(call);
}

static enum kube_verb verb_of(const struct kube_call *call, struct slice method)
{
    static const struct {
        const char *method;
        enum kube_verb one, many;
    } verbs[] = {
        {"GET", KUBE_VERB_GET, KUBE_VERB_LIST},
        {"POST", KUBE_VERB_POST, KUBE_VERB_POST},
        {"PUT", KUBE_VERB_PUT, KUBE_VERB_PUT},
        {"PATCH", KUBE_VERB_PATCH, KUBE_VERB_PATCH},
        {"DELETE", KUBE_VERB_DELETE, KUBE_VERB_DELETE_COLLECTION},
    };
    for (size_t i = 0; i < COUNT_OF(verbs); i++) {
        if (!slice_equal(method, slice_from_text(verbs[i].method)))
            continue;
        if (i == 0 && is_watch(call))
            return KUBE_VERB_WATCH;
        return call->path.name.len ? verbs[i].one : verbs[i].many;
    }
    return KUBE_VERB_OTHER;
}

static void dispatch_read(struct kube_call *call)
{
    if (call->verb == KUBE_VERB_WATCH)
        kube_watch(call);
    else if (kube_is_scale(call))
        kube_scale_get(call);
    else if (call->path.subresource.len && !kube_is_status(call))
        kube_no_subresource(call);
    else if (call->path.name.len)
        kube_get(call);
    else
        kube_list(call);
}

static void not_allowed(struct kube_call *call)
{
    kube_fail_bare(&call->status, KUBE_METHOD_NOT_ALLOWED,
                   "the server does not allow this method on the requested resource");
    kube_call_fail(call);
}

static void mutate(struct kube_call *call)
{
    if (!kube_mutate(call, call->request))
        not_allowed(call);
}

static void dispatch_now(struct kube_call *call)
{
    const struct http_request *request = call->request;
    bool stored = !(call->kind->flags & KUBE_CREATE_ONLY);
    if (stored && slice_equal(request->method, SLICE_LITERAL("GET"))) {
        dispatch_read(call);
        return;
    }
    /* Deleting many begins with what the I/O thread has: its body is short (delete.h). */
    kube_call_work(call, call->verb == KUBE_VERB_DELETE_COLLECTION ? 0 : request->body.len, mutate);
}

static void compile_schema(struct kube_call *call)
{
    (void)kube_custom_schema(kube_custom_of(call->kind));
    if (!kube_call_defers(call, dispatch_now))
        dispatch_now(call);
}

/* The first to use a large definition has it compiled, for all threads. */
static void dispatch(struct kube_call *call)
{
    const struct kube_custom *custom = kube_custom_of(call->kind);
    size_t work = custom ? pool_schema_work(custom->schema) : 0;
    if (work)
        kube_call_work(call, work, compile_schema);
    else
        dispatch_now(call);
}

static void call_end(struct kube_life *life)
{
    struct kube_call *call = CONTAINER_OF(life, struct kube_call, life);
    if (call->on_end)
        call->on_end(call);
    kube_call_release(call);
}

/* -- Which kinds there are -- */

static bool is_builtin_group(struct slice group)
{
    size_t count;
    const struct kube_kind *kinds = kube_builtin_kinds(&count);
    for (size_t i = 0; i < count; i++)
        if (slice_equal(group, slice_from_text(kinds[i].group)))
            return true;
    return false;
}

/* -- The first request for a resource -- */

static void on_namespaces(struct kube_namespaces_wait *wait)
{
    struct kube_call *call = CONTAINER_OF(wait, struct kube_call, namespaces_wait);
    if (kube_call_done(call))
        dispatch(call);
}

static void make_namespaces(struct kube_call *call)
{
    call->namespaces_wait.go = on_namespaces;
    call->under_way++;
    call->face->under_way++;
    kube_namespaces_make(call->face, &call->namespaces_wait);
}

/* The kind is known, or known not to be there. */
static void go_on(struct kube_call *call)
{
    const struct http_request *request = call->request;
    const struct kube_custom *custom;
    bool fine = parse(call, request);
    call->verb = verb_of(call, request->method);
    if (!fine) {
        if (!call->kind && !is_builtin_group(call->path.group))
            http_respond(call->exchange, 404, SLICE_LITERAL("text/plain; charset=utf-8"),
                         SLICE_LITERAL("404 page not found\n"));
        else
            kube_call_fail(call);
        return;
    }
    custom = kube_custom_of(call->kind);
    if (custom && custom->warning)
        kube_call_warn(call, slice_from_text(custom->warning));
    if (call->kind->flags & KUBE_CREATE_ONLY || kube_namespaces_ready(call->face))
        dispatch(call);
    else
        make_namespaces(call);
}

/* Every definition is known as it is now. */
static void on_definitions(struct kube_registry_wait *wait)
{
    struct kube_call *call = CONTAINER_OF(wait, struct kube_call, wait);
    if (!kube_call_done(call))
        return;
    const struct http_request *request = call->request;
    if (wait->status != ST_OK) {
        kube_fail_engine(&call->status, wait->status);
        kube_call_fail(call);
    } else if (!kube_discovery(call->exchange, request,
                               kube_registry_kinds(call->face->registry))) {
        go_on(call);
    }
}

static void read_definitions(struct kube_call *call)
{
    call->wait.go = on_definitions;
    call->under_way++;
    call->face->under_way++;
    kube_registry_read(call->face->registry, &call->wait);
}

static void on_definition(struct engine_op *op)
{
    struct kube_call *call = kube_call_of_range(op);
    enum status status = op->status;
    struct slice field, prefix = SLICE_LITERAL(KUBE_DEFINITIONS_PREFIX);
    struct kube_kv kv = {0};
    if (status == ST_OK && engine_range_next(&call->range, &field))
        kv = kube_kv_of(field);
    if (status == ST_OK) {
        const struct pb_range_request *request = call->handler;
        struct slice key = request->key;
        status = kube_registry_take(call->face->registry,
                                    slice_sub(key, prefix.len, key.len - prefix.len), kv);
    }
    engine_range_close(&call->range);
    call->handler = NULL;
    if (!kube_call_done(call))
        return;
    if (status == ST_OK) {
        go_on(call);
    } else {
        kube_fail_engine(&call->status, status);
        kube_call_fail(call);
    }
}

/* "widgets.example.com", as it is now. */
static void read_definition(struct kube_call *call)
{
    const struct kube_path *path = &call->path;
    struct pb_range_request *request = arena_calloc(&call->arena, 1, sizeof(*request));
    struct slice prefix = SLICE_LITERAL(KUBE_DEFINITIONS_PREFIX);
    size_t len = prefix.len + path->resource.len + 1 + path->group.len;
    uint8_t *key = arena_alloc(&call->arena, len);
    if (!request || !key) {
        kube_fail_engine(&call->status, ST_NOMEM);
        kube_call_fail(call);
        return;
    }
    slice_copy(key, prefix);
    slice_copy(key + prefix.len, path->resource);
    key[prefix.len + path->resource.len] = '.';
    slice_copy(key + prefix.len + path->resource.len + 1, path->group);
    request->key = slice_of(key, len);
    call->handler = request;
    kube_call_range(call, request, on_definition);
}

/* Whether a path leads to a definition, whose names must not be those of another. */
static bool writes_definition(const struct kube_path *path, const struct http_request *request)
{
    return slice_equal(path->group, SLICE_LITERAL("apiextensions.k8s.io")) &&
           !slice_equal(request->method, SLICE_LITERAL("GET"));
}

/* Documents are read, whatever else is asked of them. */
static bool is_document(const struct http_request *request)
{
    struct http_request get = *request;
    get.method = SLICE_LITERAL("GET");
    return kube_is_discovery(&get);
}

static void begin(struct kube_call *call, const struct http_request *request)
{
    if (kube_is_discovery(request)) {
        read_definitions(call);
        return;
    }
    if (is_document(request)) {
        not_allowed(call);
        return;
    }
    const struct kube_path *path = &call->path;
    enum status status = kube_path_parse(&call->arena, request->path, &call->path);
    bool builtin = status == ST_OK && kube_builtin_find(path->group, path->version, path->resource);
    if (status == ST_NOT_FOUND)
        nowhere(call);
    else if (status != ST_OK)
        kube_fail_engine(&call->status, status);
    if (status != ST_OK)
        kube_call_fail(call);
    else if (builtin && writes_definition(path, request))
        read_definitions(call);
    else if (builtin || !path->group.len || !path->resource.len)
        go_on(call);
    else
        read_definition(call);
}

static void on_request(struct http_exchange *x, void *service, const struct http_request *request)
{
    struct kube_call *call = xcalloc(1, sizeof(*call));
    call->life.end = call_end;
    call->face = service;
    call->exchange = x;
    arena_init(&call->arena, NULL, 0, call->face->call_bytes_max);
    arena_charge(&call->arena, http_exchange_account(x));
    http_exchange_set_user(x, &call->life);
    call->started_ns = clock_mono_ns(call->face->clock);
    call->principal = kube_principal(call->face, request);
    call->request = request;
    if (request->body.len && !kube_lets_in(call->face, request)) { /* since its head was seen */
        kube_unauthorized(call->face, &call->status);
        kube_call_fail(call);
        return;
    }
    if (slice_equal(request->method, SLICE_LITERAL("GET")) || kube_call_keep_request(call)) {
        begin(call, call->request);
        return;
    }
    kube_fail_engine(&call->status, ST_NOMEM);
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
    AUTO(kube_face_freep)
    struct kube_face *face = xalloc_check(aligned_alloc(64, align_up(sizeof(*face), 64)), 1);
    memset(face, 0, sizeof(*face));
    face->config = config;
    face->call_bytes_max = face->attempt_bytes_max = KUBE_CALL_ARENA_BYTES_MAX;
    face->engine = engine;
    face->shard = shard;
    face->loop = loop;
    random_init(&face->random, random_seed_system());
    face->sights = kube_sights_new();
    kube_looks_init(&face->looks, loop);
    kube_line_init(&face->line, loop, random_u64(&face->random));
    kube_selections_init(&face->selections, random_u64(&face->random), on_selection_gone, face);
    watch_hub_set_tagger(engine_watch_hub(shard), kube_scope_tags, face);
    face->clock = loop ? loop_clock(loop) : clock_system();
    kube_work_init(face);
    list_init(&face->purges);
    kube_namespaces_init(&face->namespaces);
    kube_watches_init(&face->watches, shard, loop);
    TRY(kube_counter_init(&face->counter, config->metrics));
    face->registry = kube_registry_new(face);
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
    struct kube_face *face = CONTAINER_OF(deferred, struct kube_face, keep.next);
    kube_keeper_start(face);
    kube_definitions_keep(face);
}

static void on_keep_again(struct timer *timer)
{
    struct kube_face *face = CONTAINER_OF(timer, struct kube_face, keep.again);
    loop_defer(face->loop, &face->keep.next);
}

enum { KEEP_AGAIN_S = 10 };

void kube_keep_again(struct kube_face *face)
{
    if (face->stopped)
        return;
    face->keep.next.fn = on_keep;
    face->keep.again.fn = on_keep_again;
    loop_timer_set(face->loop, &face->keep.again,
                   clock_add(loop_now_ns(face->loop), KEEP_AGAIN_S * NS_PER_S));
}

void kube_face_keep(struct kube_face *face)
{
    face->keep.next.fn = on_keep;
    loop_defer(face->loop, &face->keep.next);
}

void kube_face_stop(struct kube_face *face)
{
    loop_defer_cancel(&face->keep.next);
    if (face->loop)
        loop_timer_cancel(face->loop, &face->keep.again);
    kube_looks_stop(&face->looks);
    kube_registry_stop(face->registry);
    kube_purges_stop(face);
}

void kube_face_free(struct kube_face *face)
{
    if (!face)
        return;
    kube_face_stop(face);
    assert(face->under_way == 0);
    kube_work_fini(face);
    kube_line_fini(&face->line);
    kube_watches_fini(&face->watches);
    kube_registry_free(face->registry);
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
