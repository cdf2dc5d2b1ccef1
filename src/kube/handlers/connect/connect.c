#include "kube/handlers/connect/connect.h"

#include "kube/call/call_offload.h"
#include "kube/call/operation.h"
#include "kube/call/respond.h"
#include "kube/handlers/connect/connect_internal.h"
#include "kube/policy/policies/validate.h"
#include "kube/types/storage.h"

#include <stdarg.h>
#include <stdio.h>

struct connect_row {
    const char *plural, *subresource;
    enum connect_sort sort;
    void (*begin)(struct connect *c);
    struct kube_policy_object_kind options; /* what admission policies see; none: a read */
};

static const struct connect_row rows[] = {
    {"pods", "log", CONNECT_LOG, connect_pod, {0}},
    {"pods", "exec", CONNECT_STREAM, connect_pod, {"", "v1", "PodExecOptions"}},
    {"pods", "attach", CONNECT_STREAM, connect_pod, {"", "v1", "PodAttachOptions"}},
    {"pods", "portforward", CONNECT_FORWARD, connect_pod, {"", "v1", "PodPortForwardOptions"}},
    {"pods", "proxy", CONNECT_PROXY, connect_pod_proxy, {"", "v1", "PodProxyOptions"}},
    {"nodes", "proxy", CONNECT_PROXY, connect_node_proxy, {"", "v1", "NodeProxyOptions"}},
    {"services", "proxy", CONNECT_PROXY, connect_service_proxy, {"", "v1", "ServiceProxyOptions"}},
};

/* COUNT_OF(rows): none. */
static size_t row_of(const struct kube_call *call)
{
    size_t i = 0;
    bool placed = call->path.namespace.len || !(call->kind->flags & KUBE_NAMESPACED);
    if (call->kind->group[0] || !placed)
        return COUNT_OF(rows);
    while (i < COUNT_OF(rows) && !(strcmp(call->kind->plural, rows[i].plural) == 0 &&
                                   slice_is(call->path.subresource, rows[i].subresource)))
        i++;
    return i;
}

bool kube_is_connect(const struct kube_call *call)
{
    return row_of(call) < COUNT_OF(rows);
}

static bool allows(enum connect_sort sort, struct slice method)
{
    static const char *const methods[] = {"GET",    "POST", "PUT",    "PATCH",
                                          "DELETE", "HEAD", "OPTIONS"};
    size_t count = sort == CONNECT_LOG ? 1 : sort == CONNECT_PROXY ? COUNT_OF(methods) : 2;
    for (size_t i = 0; i < count; i++)
        if (slice_is(method, methods[i]))
            return true;
    return false;
}

/* -- Reading objects -- */

static void parse(struct kube_call *call)
{
    struct connect *c = connect_of(call);
    struct json_node *object = NULL;
    struct error error;
    enum status status = ST_OK;
    if (c->found)
        status = json_tree_read(&call->arena, c->value, &object, &error);
    if (status == ST_OK)
        c->then(c, object);
    else if (status == ST_NOMEM)
        kube_call_fail_engine(call, status);
    else
        connect_fail(c, KUBE_INTERNAL_ERROR, "Internal error occurred: %s", error.text);
}

static void on_read(struct engine_op *op)
{
    struct kube_call *call = kube_call_of_range(op);
    struct connect *c = connect_of(call);
    struct slice field;
    enum status status = op->status;
    c->found = status == ST_OK && engine_range_next(&call->range, &field);
    if (c->found)
        status = arena_dup(&call->arena, kube_kv_of(field).value, &c->value);
    engine_range_close(&call->range);
    if (kube_call_succeeded(call, status))
        kube_call_work(call, c->found ? c->value.len : 0, parse);
}

void connect_read(struct connect *c, const char *plural, bool namespaced, struct slice name,
                  void (*then)(struct connect *c, const struct json_node *object))
{
    struct kube_call *call = c->call;
    const struct kube_kind *kind =
        kube_builtin_find(SLICE_EMPTY, SLICE_LITERAL("v1"), slice_from_text(plural));
    c->plural = plural;
    c->object_name = name;
    c->then = then;
    c->request = (struct pb_range_request){0};
    if (kube_key_make(&call->arena, kind->storage_prefix,
                      namespaced ? call->path.namespace : SLICE_EMPTY, name,
                      &c->request.key) == ST_OK)
        kube_call_range(call, &c->request, on_read);
    else
        kube_call_fail_engine(call, ST_NOMEM);
}

struct slice connect_text(struct connect *c, const struct json_node *object, const char *path)
{
    struct slice text = SLICE_EMPTY;
    /* Without memory the text is empty, and the arena remembers why. */
    (void)!json_node_text(json_node_path(object, path), &c->call->arena, &text);
    return text;
}

/* -- Answers -- */

void connect_not_found(struct connect *c)
{
    kube_fail_not_found(&c->call->status, SLICE_EMPTY, slice_from_text(c->plural), c->object_name);
    kube_call_fail(c->call);
}

void connect_fail(struct connect *c, enum kube_reason reason, const char *format, ...)
{
    char text[KUBE_MESSAGE_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    /* The text may be made of names for which there was no memory. */
    if (arena_ran_out(&c->call->arena)) {
        kube_call_fail_engine(c->call, ST_NOMEM);
        return;
    }
    kube_fail(&c->call->status, reason, "%s", text);
    kube_call_fail(c->call);
}

static void send_nothing(struct kube_call *call)
{
    call->code = 204;
    http_respond(call->exchange, 204, SLICE_EMPTY, SLICE_EMPTY);
}

void connect_nothing(struct connect *c)
{
    if (!kube_call_defers(c->call, send_nothing))
        send_nothing(c->call);
}

/* To the same path with a slash at its end, as a browser needs it for relative links. */
static void send_elsewhere(struct kube_call *call)
{
    const struct http_request *request = call->request;
    AUTO(buf_fini) struct buf place = {0};
    bool made =
        buf_append(&place, request->path) == ST_OK &&
        buf_append_text(&place, request->query.len ? "/?" : "/") == ST_OK &&
        buf_append(&place, request->query) == ST_OK &&
        http_add_field(call->exchange, SLICE_LITERAL("Location"), buf_slice(&place)) == ST_OK;
    call->code = 301;
    if (made)
        http_respond(call->exchange, 301, SLICE_EMPTY, SLICE_EMPTY);
    else
        http_abort(call->exchange);
}

void connect_unreachable(struct connect *c, struct slice host, struct slice port)
{
    struct kube_call *call = c->call;
    char text[CONNECT_DIAL_BYTES];
    struct slice field;
    connect_dial_text(host, port, text);
    if (http_request_get(call->request, SLICE_LITERAL("upgrade"), &field))
        connect_fail(c, KUBE_UNKNOWN, "error dialing backend: %s", text);
    else if (!slice_has_suffix(call->request->path, SLICE_LITERAL("/proxy")))
        connect_fail(c, KUBE_SERVICE_UNAVAILABLE, "error trying to reach service: %s", text);
    else if (!kube_call_defers(call, send_elsewhere))
        send_elsewhere(call);
}

/* -- Requests -- */

/* "name", "name:port", "scheme:name:port" */
static bool split(struct connect *c)
{
    struct slice parts[3] = {{0}}, rest = c->call->path.name;
    size_t count = 0;
    for (bool more = true; more; count++) {
        const uint8_t *colon = rest.len ? memchr(rest.ptr, ':', rest.len) : NULL;
        size_t len = colon ? (size_t)(colon - rest.ptr) : rest.len;
        if (count == COUNT_OF(parts))
            return false;
        parts[count] = slice_sub(rest, 0, len);
        more = colon;
        rest = colon ? slice_sub(rest, len + 1, rest.len - len - 1) : SLICE_EMPTY;
    }
    c->scheme = count == 3 ? parts[0] : SLICE_EMPTY;
    c->name = parts[count == 3];
    c->port = count == 1 ? SLICE_EMPTY : parts[count - 1];
    return c->name.len &&
           (!c->scheme.len || slice_is(c->scheme, "http") || slice_is(c->scheme, "https"));
}

static bool find_name(struct connect *c)
{
    if (c->sort != CONNECT_PROXY)
        c->name = c->call->path.name;
    return c->sort != CONNECT_PROXY || split(c) ||
           kube_fail(&c->call->status, KUBE_BAD_REQUEST, "invalid %s request \"%.*s\"",
                     c->call->kind->singular, (int)size_min(c->call->path.name.len, 300),
                     (const char *)c->call->path.name.ptr);
}

/* Policies may have chosen another container. */
static enum kube_decision take_options(struct kube_change *change, const struct json_node *stored,
                                       struct json_node **ret_object)
{
    struct connect *c = CONTAINER_OF(change, struct connect, change);
    (void)stored, (void)ret_object;
    c->asked = connect_text(c, change->posted, "container");
    return KUBE_DECIDE_KEEP;
}

static void on_admitted(struct kube_change *change)
{
    struct connect *c = CONTAINER_OF(change, struct connect, change);
    c->row->begin(c);
}

static void admit(struct connect *c)
{
    struct kube_call *call = c->call;
    struct json_node *options;
    if (!connect_options(c, c->row->options.kind, &options)) {
        kube_call_fail(call);
        return;
    }
    c->change = (struct kube_change){
        .call = call,
        .namespace = call->path.namespace,
        .name = call->path.name,
        .acts = KUBE_MATCH_CONNECT,
        .posted = options,
        .posted_kind = &c->row->options,
        .decide = take_options,
        .done = on_admitted,
    };
    kube_change_admit(&c->change);
}

void kube_connect(struct kube_call *call)
{
    const struct connect_row *row = &rows[row_of(call)];
    struct connect *c = arena_calloc(&call->arena, 1, sizeof(*c));
    /* The names refer to the request, also on the worker. */
    if (!c || !kube_call_keep_request(call)) {
        kube_call_fail_engine(call, ST_NOMEM);
        return;
    }
    c->call = call;
    c->row = row;
    c->sort = row->sort;
    c->asked = call->query.container;
    call->handler.change = &c->change;
    if (!allows(c->sort, call->request->method)) {
        kube_fail_not_allowed(&call->status);
        kube_call_fail(call);
    } else if (!find_name(c)) {
        kube_call_fail(call);
    } else if (row->options.kind) {
        admit(c);
    } else {
        row->begin(c);
    }
}
