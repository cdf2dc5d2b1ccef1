/* The options of a connection, which admission policies see: an object made of the query. */
#include "kube/call/respond.h"
#include "kube/handlers/connect/connect_internal.h"

#include <strings.h>

static bool put(struct connect *c, struct json_node *to, const char *name, struct json_node *value)
{
    return json_node_put(&c->call->arena, to, name, value) == ST_OK ||
           kube_fail_engine(&c->call->status, ST_NOMEM);
}

static bool put_text(struct connect *c, struct json_node *to, const char *name, struct slice text)
{
    return put(c, to, name, json_node_new_text(&c->call->arena, text));
}

/* Anything but "0" and "false" is true, as in Kubernetes; false is omitted. */
static bool put_bool(struct connect *c, struct json_node *to, const char *name)
{
    struct slice query = c->call->request->query, text;
    enum status status = kube_query_next(&c->call->arena, &query, name, &text);
    if (status == ST_END || slice_is(text, "0") ||
        (text.len == 5 && strncasecmp((const char *)text.ptr, "false", 5) == 0))
        return true;
    struct json_node *node = json_node_new(&c->call->arena, JSON_TYPE_BOOL);
    if (status != ST_OK || !node)
        return kube_fail_engine(&c->call->status, ST_NOMEM);
    node->truth = true;
    return put(c, to, name, node);
}

/* -- Lists -- */

/* Go's ParseUint with 16 bits. */
static bool add_port(struct connect *c, struct json_node *list, struct slice text)
{
    int64_t port = 0;
    bool digits = text.len;
    for (size_t i = 0; i < text.len; i++) {
        digits = digits && text.ptr[i] >= '0' && text.ptr[i] <= '9';
        if (digits && port <= UINT16_MAX)
            port = port * 10 + (text.ptr[i] - '0');
    }
    if (!digits || port > UINT16_MAX)
        return kube_fail(&c->call->status, KUBE_BAD_REQUEST,
                         "cannot convert to []int32: strconv.ParseUint: parsing \"%.*s\": %s",
                         (int)size_min(text.len, 64), (const char *)text.ptr,
                         digits ? "value out of range" : "invalid syntax");
    struct json_node *item = json_node_new_int(&c->call->arena, port);
    return (item && json_node_insert(list, NULL, item) == ST_OK) ||
           kube_fail_engine(&c->call->status, ST_NOMEM);
}

static bool add_ports(struct connect *c, struct json_node *list, struct slice text)
{
    bool added = true;
    /* An empty text is one port without digits. */
    for (bool more = true; more && added;) {
        more = text.len && memchr(text.ptr, ',', text.len);
        added = add_port(c, list, slice_cut(&text, ','));
    }
    return added;
}

static bool add_word(struct connect *c, struct json_node *list, struct slice text)
{
    struct json_node *item = json_node_new_text(&c->call->arena, text);
    return (item && json_node_insert(list, NULL, item) == ST_OK) ||
           kube_fail_engine(&c->call->status, ST_NOMEM);
}

/* An empty list is null, or it is omitted. */
static bool put_list(struct connect *c, struct json_node *to, const char *name,
                     bool (*add)(struct connect *c, struct json_node *list, struct slice text),
                     bool null)
{
    struct slice query = c->call->request->query, text;
    struct json_node *list = json_node_new(&c->call->arena, JSON_TYPE_ARRAY);
    enum status status = list ? ST_OK : ST_NOMEM;
    while (status == ST_OK) {
        status = kube_query_next(&c->call->arena, &query, name, &text);
        if (status == ST_OK && !add(c, list, text))
            return false;
    }
    if (status != ST_END)
        return kube_fail_engine(&c->call->status, status);
    if (list->count)
        return put(c, to, name, list);
    return !null || put(c, to, name, json_node_new(&c->call->arena, JSON_TYPE_NULL));
}

/* -- Options -- */

/* What follows …/proxy in the path, with a slash before it. Without one it is omitted. */
static bool put_path(struct connect *c, struct json_node *to)
{
    struct slice path = c->call->request->path, rest = path;
    /* /api/v1/nodes/NAME/proxy, /api/v1/namespaces/NAMESPACE/pods/NAME/proxy */
    for (unsigned parts = c->call->path.namespace.len ? 8 : 6; parts; parts--)
        (void)slice_cut(&rest, '/');
    if (!rest.len && path.ptr[path.len - 1] != '/')
        return true;
    return put_text(c, to, "path",
                    rest.len ? slice_of(rest.ptr - 1, rest.len + 1) : SLICE_LITERAL("/"));
}

static bool put_stream(struct connect *c, struct json_node *to)
{
    struct slice container = c->call->query.container;
    return put_bool(c, to, "stdin") && put_bool(c, to, "stdout") && put_bool(c, to, "stderr") &&
           put_bool(c, to, "tty") && (!container.len || put_text(c, to, "container", container));
}

bool connect_options(struct connect *c, const char *kind, struct json_node **ret_options)
{
    struct json_node *options = json_node_new(&c->call->arena, JSON_TYPE_OBJECT);
    if (!options)
        return kube_fail_engine(&c->call->status, ST_NOMEM);
    *ret_options = options;
    if (!put_text(c, options, "kind", slice_from_text(kind)) ||
        !put_text(c, options, "apiVersion", SLICE_LITERAL("v1")))
        return false;
    switch (c->sort) {
    case CONNECT_LOG:
        break;
    case CONNECT_STREAM:
        return put_stream(c, options) && (!slice_is(c->call->path.subresource, "exec") ||
                                          put_list(c, options, "command", add_word, true));
    case CONNECT_FORWARD:
        return put_list(c, options, "ports", add_ports, false);
    case CONNECT_PROXY:
        return put_path(c, options);
    }
    return true;
}
