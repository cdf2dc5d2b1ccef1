/* The address of a node's kubelet, and nodes/proxy. */
#include "kube/handlers/connect/connect_internal.h"

#include <stdio.h>

/* Where kubelets listen that do not say otherwise. */
#define KUBELET_PORT SLICE_LITERAL("10250")

/* "[{Type Address} …]", as Go shows a list of structs. */
static bool fail_unknown(struct connect *c, const struct json_node *node)
{
    char known[512] = "";
    size_t len = 0;
    const struct json_node *one = json_node_items_at(node, "status.addresses");
    for (; one && len < sizeof(known); one = one->next) {
        struct slice type = connect_text(c, one, "type"), text = connect_text(c, one, "address");
        len += (size_t)snprintf(known + len, sizeof(known) - len, "%s{%.*s %.*s}", len ? " " : "",
                                (int)size_min(type.len, 64), (const char *)type.ptr,
                                (int)size_min(text.len, 64), (const char *)text.ptr);
    }
    connect_fail(c, KUBE_UNKNOWN, "no preferred addresses found; known addresses: [%s]", known);
    return false;
}

/* The order of preference of kube-apiserver's flag. */
static struct slice host_of(struct connect *c, const struct json_node *node)
{
    static const char *const types[] = {"Hostname", "InternalDNS", "InternalIP", "ExternalDNS",
                                        "ExternalIP"};
    for (size_t i = 0; i < COUNT_OF(types); i++)
        for (const struct json_node *one = json_node_items_at(node, "status.addresses"); one;
             one = one->next)
            if (json_node_text_is(one, "type", types[i]))
                return connect_text(c, one, "address");
    return SLICE_EMPTY;
}

bool connect_kubelet(struct connect *c, const struct json_node *node, struct slice *ret_host,
                     struct slice *ret_port)
{
    const struct json_node *port =
        json_node_path(node, "status.daemonEndpoints.kubeletEndpoint.Port");
    int64_t number = 0;
    struct slice host = host_of(c, node);
    if (!host.len)
        return fail_unknown(c, node);
    *ret_host = host;
    *ret_port = port && json_node_int(port, &number) && number > 0 ? port->text : KUBELET_PORT;
    return true;
}

static void on_node(struct connect *c, const struct json_node *node)
{
    struct slice host, port;
    if (!node) {
        connect_not_found(c);
        return;
    }
    if (!connect_kubelet(c, node, &host, &port))
        return;
    if (connect_is_name(host))
        connect_fail(c, KUBE_BAD_REQUEST, "lookup %.*s: no such host", (int)size_min(host.len, 253),
                     (const char *)host.ptr);
    else if (connect_may_reach(host))
        connect_unreachable(c, host, c->port.len ? c->port : port);
    else
        connect_fail(c, KUBE_BAD_REQUEST, "address not allowed");
}

void connect_node_proxy(struct connect *c)
{
    connect_read(c, "nodes", false, c->name, on_node);
}
