/* pods/log, exec, attach, portforward, proxy */
#include "kube/call/respond.h"
#include "kube/handlers/connect/connect_internal.h"

#include <stdio.h>

static const char *const lists[] = {"initContainers", "containers", "ephemeralContainers"};

static bool has_container(struct connect *c, const struct json_node *pod, struct slice name)
{
    for (size_t i = 0; i < COUNT_OF(lists); i++)
        for (const struct json_node *one =
                 json_node_items_at(json_node_named(pod, "spec"), lists[i]);
             one; one = one->next)
            if (slice_equal(connect_text(c, one, "name"), name))
                return true;
    return false;
}

/* "[a b c]", as Go shows a list. */
static bool fail_ambiguous(struct connect *c, const struct json_node *pod)
{
    AUTO(buf_fini) struct buf names = {0};
    for (size_t i = 0; i < COUNT_OF(lists); i++)
        for (const struct json_node *one =
                 json_node_items_at(json_node_named(pod, "spec"), lists[i]);
             one; one = one->next) {
            struct slice name = connect_text(c, one, "name");
            if (buf_append_format(&names, "%s%.*s", names.len ? " " : "", SLICE_ARGS(name)) !=
                ST_OK) {
                kube_call_fail_engine(c->call, ST_NOMEM);
                return false;
            }
        }
    connect_fail(c, KUBE_BAD_REQUEST,
                 "a container name must be specified for pod %.*s, choose one of: [%.*s]",
                 SLICE_ARGS(c->name), SLICE_ARGS(buf_slice(&names)));
    return false;
}

/* The container of the query, or the only one. False: it was answered. */
static bool find_container(struct connect *c, const struct json_node *pod)
{
    const struct json_node *only = json_node_items_at(pod, "spec.containers");
    struct slice given = c->asked;
    c->container = given;
    if (given.len) {
        if (has_container(c, pod, given))
            return true;
        connect_fail(c, KUBE_BAD_REQUEST, "container %.*s is not valid for pod %.*s",
                     (int)size_min(given.len, 300), (const char *)given.ptr, SLICE_ARGS(c->name));
        return false;
    }
    if (only && only->next)
        return fail_ambiguous(c, pod);
    if (only) {
        c->container = connect_text(c, only, "name");
        return true;
    }
    connect_fail(c, KUBE_BAD_REQUEST, "a container name must be specified for pod %.*s",
                 SLICE_ARGS(c->name));
    return false;
}

/* -- The kubelet of its node -- */

static void on_node(struct connect *c, const struct json_node *node)
{
    struct slice host, port, upgrade, namespace = c->call->path.namespace;
    char text[CONNECT_DIAL_BYTES];
    if (!node) {
        connect_not_found(c);
        return;
    }
    if (!connect_kubelet(c, node, &host, &port))
        return;
    connect_dial_text(host, port, text);
    bool v6 = memchr(host.ptr, ':', host.len);
    if (c->sort == CONNECT_LOG)
        connect_fail(c, KUBE_UNKNOWN,
                     "Get \"https://%s%.*s%s:%.*s/containerLogs/%.*s/%.*s/%.*s\": %s",
                     v6 ? "[" : "", SLICE_ARGS(host), v6 ? "]" : "", SLICE_ARGS(port),
                     SLICE_ARGS(namespace), SLICE_ARGS(c->name), SLICE_ARGS(c->container), text);
    else if (http_request_get(c->call->request, SLICE_LITERAL("upgrade"), &upgrade))
        connect_fail(c, KUBE_UNKNOWN, "error dialing backend: %s", text);
    else
        connect_fail(c, KUBE_BAD_REQUEST, "Upgrade request required");
}

static void on_pod(struct connect *c, const struct json_node *pod)
{
    if (!pod) {
        connect_not_found(c);
        return;
    }
    if (c->sort != CONNECT_FORWARD && !find_container(c, pod))
        return;
    struct slice node = connect_text(c, pod, "spec.nodeName");
    if (node.len)
        connect_read(c, "nodes", false, node, on_node);
    else if (c->sort == CONNECT_LOG)
        connect_nothing(c);
    else
        connect_fail(c, KUBE_BAD_REQUEST, "pod %.*s does not have a host assigned",
                     SLICE_ARGS(c->name));
}

void connect_pod(struct connect *c)
{
    connect_read(c, "pods", true, c->name, on_pod);
}

/* -- The pod itself -- */

/* The port of the path, or the first that a container has. */
static struct slice port_of(struct connect *c, const struct json_node *pod)
{
    bool secure = slice_is(c->scheme, "https");
    struct slice port = c->port;
    const struct json_node *one = json_node_items_at(pod, "spec.containers");
    for (; one && !port.len; one = one->next) {
        const struct json_node *ports = json_node_named(one, "ports");
        if (ports && ports->type == JSON_TYPE_ARRAY && ports->first) {
            const struct json_node *number = json_node_named(ports->first, "containerPort");
            port = number ? number->text : SLICE_EMPTY;
        }
    }
    if (!port.len)
        port = secure ? SLICE_LITERAL("443") : SLICE_LITERAL("80");
    return port;
}

static void on_proxied(struct connect *c, const struct json_node *pod)
{
    if (!pod) {
        connect_not_found(c);
        return;
    }
    const struct json_node *list = json_node_path(pod, "status.podIPs");
    struct slice address = connect_text(c, pod, "status.podIP");
    if (list && list->type == JSON_TYPE_ARRAY && list->first)
        address = connect_text(c, list->first, "ip");
    if (connect_may_reach(address))
        connect_unreachable(c, address, port_of(c, pod));
    else
        connect_fail(c, KUBE_BAD_REQUEST, "address not allowed");
}

void connect_pod_proxy(struct connect *c)
{
    connect_read(c, "pods", true, c->name, on_proxied);
}
