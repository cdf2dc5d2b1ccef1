#include "kube/server/dispatch.h"

#include "kube/call/call.h"
#include "kube/call/call_offload.h"
#include "kube/call/gate.h"
#include "kube/call/operation.h"
#include "kube/call/respond.h"
#include "kube/handlers/connect/connect.h"
#include "kube/handlers/read/read.h"
#include "kube/handlers/write/scale.h"
#include "kube/handlers/write/subresource.h"
#include "kube/handlers/write/write.h"
#include "kube/jobs/namespaces.h"
#include "kube/policy/access/identity.h"
#include "kube/server/discovery.h"
#include "kube/types/object/kind_rules.h"
#include "kube/types/schema/schema.h"

/* -- Parsing -- */

static bool unknown_path(struct kube_call *call)
{
    return kube_fail_bare(&call->status, KUBE_NOT_FOUND,
                          "the server could not find the requested resource");
}

static bool find_kind(struct kube_call *call)
{
    const struct kube_path *path = &call->path;
    /* It is not a built-in kind, which `begin` has found: the registry has read its definition. */
    if (!call->kind) {
        call->kinds = kube_kinds_ref(kube_registry_kinds(call->api->registry));
        call->kind = kube_kinds_find(call->kinds, path->group, path->version, path->resource);
    }
    bool scoped = call->kind && (call->kind->flags & KUBE_NAMESPACED || !path->namespace.len);
    return scoped || unknown_path(call);
}

/* With a name, watch=true is ignored; only the old watch paths watch one object. */
static bool is_watch(const struct kube_call *call)
{
    return call->path.watch || (call->query.watch && !call->path.name.len);
}

#define TYPES "application/json, application/yaml, application/vnd.kubernetes.protobuf"
#define STREAMS "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"

static bool parse_accept(struct kube_call *call, const struct http_request *request)
{
    enum { JSON = 1 << KUBE_JSON, YAML = 1 << KUBE_YAML, ALL = JSON | YAML | 1 << KUBE_PROTOBUF };
    static const struct kube_offer json = {.whole = JSON, .table = JSON, .partial = JSON};
    static const struct kube_offer faults = {.whole = ALL};
    static const char one[] = "406: Not Acceptable\n\nAvailable representations: " TYPES;
    static const char all[] =
        "406: Not Acceptable\n\nAvailable representations: " TYPES ", " STREAMS;
    /* Protobuf needs the schema of the kind. A kind that is not stored has no columns. */
    const struct kube_offer offer = {
        .whole = kube_type_of_kind(call->kind) ? ALL : JSON | YAML,
        .table = call->kind->flags & KUBE_CREATE_ONLY ? 0 : JSON | YAML,
        .partial = ALL,
    };
    struct slice accept = SLICE_EMPTY;
    (void)http_request_get(request, SLICE_LITERAL("accept"), &accept);
    bool many = !call->path.name.len && slice_is(request->method, "GET");
    if (!kube_accept_parse(accept, &faults, &call->accept_fail))
        call->accept_fail.pretty = true; /* as in Kubernetes, for people */
    /* Kubernetes has a router before its handlers, except for custom resources: it compares the
     * types literally and has an error of its own. */
    if (!(call->kind->flags & KUBE_CUSTOM) && !kube_accept_routes(accept))
        return kube_fail_bare(&call->status, KUBE_NOT_ACCEPTABLE,
                              many || call->path.watch ? all : one);
    call->takes_json = kube_accept_parse(accept, &json, &call->accept_json);
    if (!kube_accept_parse(accept, &offer, &call->accept))
        return kube_fail(&call->status, KUBE_NOT_ACCEPTABLE,
                         "only the following media types are accepted: " TYPES);
    return true;
}

static bool parse(struct kube_call *call, const struct http_request *request)
{
    if (!find_kind(call) || !parse_accept(call, request) ||
        !kube_query_parse(&call->arena, request->query, &call->query, &call->status))
        return false;
    /* A watch cannot be sent as YAML. */
    return !is_watch(call) || call->accept.format != KUBE_YAML ||
           kube_fail(&call->status, KUBE_NOT_ACCEPTABLE,
                     "only the following media types are accepted: " STREAMS);
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
        if (!slice_is(method, verbs[i].method))
            continue;
        if (i == 0 && is_watch(call))
            return KUBE_VERB_WATCH;
        return call->path.name.len ? verbs[i].one : verbs[i].many;
    }
    return KUBE_VERB_OTHER;
}

static void dispatch_read(struct kube_call *call)
{
    bool computed = call->kind->flags & KUBE_COMPUTED;
    bool whole = call->subresource == KUBE_SUBRESOURCE_NONE ||
                 call->subresource == KUBE_SUBRESOURCE_STATUS ||
                 call->subresource == KUBE_SUBRESOURCE_PART;
    if (computed && call->path.subresource.len) {
        kube_no_subresource(call);
    } else if (computed && call->verb == KUBE_VERB_WATCH) {
        kube_fail(&call->status, KUBE_METHOD_NOT_ALLOWED,
                  "watch is not supported on resources of kind \"%s\"", call->kind->plural);
        kube_call_fail(call);
    } else if (computed) {
        kube_components(call);
    } else if (call->verb == KUBE_VERB_WATCH) {
        kube_watch(call);
    } else if (call->subresource == KUBE_SUBRESOURCE_SCALE) {
        kube_scale_get(call);
    } else if (!whole) {
        kube_no_subresource(call);
    } else if (call->path.name.len) {
        kube_get(call); /* a GET of the status, or of another part, answers with the object */
    } else {
        kube_list(call);
    }
}

static void dispatch_now(struct kube_call *call)
{
    const struct http_request *request = call->request;
    bool stored = !(call->kind->flags & KUBE_CREATE_ONLY);
    if (call->path.subresource.len) {
        if (kube_is_connect(call)) {
            kube_connect(call);
            return;
        }
        call->subresource = kube_subresource_of(call);
    }
    if (stored && slice_is(request->method, "GET")) {
        dispatch_read(call);
        return;
    }
    call->rules = kube_kind_rules(call->kind);
    /* A new request for a certificate names its user, who is only known on this thread. */
    if (call->rules & KUBE_IS_CERTIFICATE_REQUEST)
        (void)kube_call_user(call);
    /* delete_collection starts on the I/O thread: it uses its shared state, and its body is short
     * (KUBE_DELETE_OPTIONS_BYTES_MAX). */
    kube_call_work(call, call->verb == KUBE_VERB_DELETE_COLLECTION ? 0 : request->body.len,
                   kube_mutate);
}

static void compile_schema(struct kube_call *call)
{
    (void)kube_custom_schema(kube_custom_of(call->kind));
    if (!kube_call_defers(call, dispatch_now))
        dispatch_now(call);
}

/* The first call that uses a large schema compiles it, for all threads. */
static void dispatch(struct kube_call *call)
{
    const struct kube_custom *custom = kube_custom_of(call->kind);
    size_t work = custom ? pool_schema_work(custom->schema) : 0;
    if (work)
        kube_call_work(call, work, compile_schema);
    else
        dispatch_now(call);
}

static bool is_builtin_group(struct slice group)
{
    size_t count;
    const struct kube_kind *kinds = kube_builtin_kinds(&count);
    for (size_t i = 0; i < count; i++)
        if (slice_is(group, kinds[i].group))
            return true;
    return false;
}

/* -- What must be there first: the kind, the default namespaces -- */

struct namespaces_wait {
    struct kube_namespaces_wait wait;
    struct kube_call *call;
};

static void on_namespaces(struct kube_namespaces_wait *wait)
{
    struct kube_call *call = CONTAINER_OF(wait, struct namespaces_wait, wait)->call;
    if (kube_call_done(call))
        dispatch(call);
}

static void make_namespaces(struct kube_call *call)
{
    struct namespaces_wait *wait = arena_calloc(&call->arena, 1, sizeof(*wait));
    if (!wait) {
        kube_call_fail_engine(call, ST_NOMEM);
        return;
    }
    *wait = (struct namespaces_wait){.wait.go = on_namespaces, .call = call};
    kube_call_hold(call);
    kube_namespaces_make(call->api, &wait->wait);
}

/* The kind has been looked up. */
static void dispatch_known(struct kube_call *call)
{
    const struct http_request *request = call->request;
    const struct kube_custom *custom;
    bool fine = parse(call, request);
    call->verb = verb_of(call, request->method);
    if (!fine) {
        /* As in Kubernetes, a group that is not known is answered by the router, in plain text. */
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
    if (call->kind->flags & KUBE_COMPUTED)
        kube_call_warn(call, SLICE_LITERAL("v1 ComponentStatus is deprecated in v1.19+"));
    if (call->api->namespaces->made || call->kind->flags & KUBE_CREATE_ONLY ||
        kube_namespaces_ready(call->api))
        dispatch(call);
    else
        make_namespaces(call);
}

/* The registry has read all definitions. */
static void on_definitions(struct kube_registry_wait *wait)
{
    struct kube_call *call = CONTAINER_OF(wait, struct kube_call, wait);
    if (!kube_call_succeeded(call, wait->status))
        return;
    if (call->path.resource.len)
        dispatch_known(call);
    else
        kube_discovery(call);
}

static void read_definitions(struct kube_call *call)
{
    call->wait.go = on_definitions;
    kube_call_hold(call);
    kube_registry_read(call->api->registry, &call->wait);
}

static void on_definition(struct engine_op *op);

/* The registry has taken over the definition, or asks to read it again. */
static void finish_definition(struct kube_call *call, enum status status)
{
    const struct pb_range_request *request = call->handler.definition;
    /* The worker was parsing another definition, and this one may have changed meanwhile. */
    if (status == ST_AGAIN) {
        kube_call_range(call, request, on_definition);
        return;
    }
    call->handler.definition = NULL;
    if (status == ST_OK) {
        dispatch_known(call);
    } else {
        kube_call_fail_engine(call, status);
    }
}

static void on_taken(struct kube_registry_wait *wait)
{
    struct kube_call *call = CONTAINER_OF(wait, struct kube_call, wait);
    if (kube_call_done(call))
        finish_definition(call, wait->status);
}

static void on_definition(struct engine_op *op)
{
    struct kube_call *call = kube_call_of_range(op);
    struct slice field, prefix = SLICE_LITERAL(KUBE_DEFINITIONS_PREFIX);
    const struct pb_range_request *request = call->handler.definition;
    struct slice name = slice_sub(request->key, prefix.len, request->key.len - prefix.len);
    struct kube_kv kv = {0};
    enum status status = op->status;
    bool taken = true;
    if (status == ST_OK && engine_range_next(&call->range, &field))
        kv = kube_kv_of(field);
    if (status == ST_OK) {
        call->wait.go = on_taken;
        taken = kube_registry_take(call->api->registry, name, kv, &call->wait);
        status = call->wait.status;
    }
    engine_range_close(&call->range);
    /* If it is not taken yet, the operation is under way until on_taken. */
    if (taken && kube_call_done(call))
        finish_definition(call, status);
}

/* Reads the definition of the path's resource, such as "widgets.example.com". */
static void read_definition(struct kube_call *call)
{
    const struct kube_path *path = &call->path;
    struct pb_range_request *request = arena_calloc(&call->arena, 1, sizeof(*request));
    struct slice prefix = SLICE_LITERAL(KUBE_DEFINITIONS_PREFIX);
    size_t len = prefix.len + path->resource.len + 1 + path->group.len;
    uint8_t *key = arena_alloc(&call->arena, len);
    if (!request || !key) {
        kube_call_fail_engine(call, ST_NOMEM);
        return;
    }
    slice_copy(key, prefix);
    slice_copy(key + prefix.len, path->resource);
    key[prefix.len + path->resource.len] = '.';
    slice_copy(key + prefix.len + path->resource.len + 1, path->group);
    request->key = slice_of(key, len);
    request->serializable = true; /* as the informers that read them in Kubernetes */
    call->handler.definition = request;
    kube_call_range(call, request, on_definition);
}

/* A write of a definition needs all others, because their names must be unique. A policy names the
 * kind of its parameters, which its user must be able to read if permissions are checked. */
static bool writes_what_needs_kinds(const struct kube_call *call,
                                    const struct http_request *request)
{
    struct slice group = call->path.group;
    return (slice_is(group, "apiextensions.k8s.io") ||
            (call->identity && slice_is(group, "admissionregistration.k8s.io"))) &&
           !slice_is(request->method, "GET");
}

static void begin(struct kube_call *call, const struct http_request *request)
{
    const struct kube_path *path = &call->path;
    enum status status = kube_path_parse(&call->arena, request->path, &call->path);
    bool names_resource = status == ST_OK && path->resource.len;
    if (!names_resource && kube_is_discovery(request->path)) {
        /* The documents list custom resources too. */
        if (slice_is(request->method, "GET"))
            read_definitions(call);
        else
            kube_not_allowed(call);
        return;
    }
    if (status != ST_OK) {
        if (status == ST_NOT_FOUND)
            unknown_path(call);
        else
            kube_fail_engine(&call->status, status);
        kube_call_fail(call);
        return;
    }
    call->kind = kube_builtin_find(path->group, path->version, path->resource);
    if (call->kind && writes_what_needs_kinds(call, request))
        read_definitions(call);
    else if (call->kind || !path->group.len || !path->resource.len)
        dispatch_known(call);
    else
        read_definition(call);
}

void kube_dispatch_request(struct http_exchange *x, void *service,
                           const struct http_request *request)
{
    struct kube_api *api = service;
    bool guarded = api->access && !request->own;
    struct kube_identity *identity = guarded ? kube_identity_take(x) : NULL;
    struct kube_call *call = kube_call_new(api, x, request);
    call->identity = identity;
    call->principal = kube_principal(api, request);
    /* Access may have been withdrawn since the gate has seen the head of the request. */
    if (request->body.len && !kube_lets_in(api, kube_sender_of(api, request))) {
        kube_unauthorized(api, &call->status);
        kube_call_fail(call);
        return;
    }
    /* A write uses the request after the exchange may have ended, so it works on a copy. A read
     * copies it only if it goes to the worker. */
    if (slice_is(request->method, "GET") || kube_call_keep_request(call)) {
        begin(call, call->request);
        return;
    }
    kube_call_fail_engine(call, ST_NOMEM);
}

void kube_dispatch_too_long(struct http_exchange *x)
{
    struct kube_status status = {0};
    AUTO(buf_fini) struct buf text = {0};
    (void)kube_fail_too_long(&status, KUBE_BODY_BYTES_MAX);
    if (kube_status_write(&status, &text) == ST_OK)
        http_respond(x, 413, SLICE_LITERAL("application/json"), buf_slice(&text));
    else
        http_abort(x);
}
