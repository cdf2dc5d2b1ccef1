/* services/proxy: the first address of the service's endpoints that is that of a pod. */
#include "kube/call/respond.h"
#include "kube/handlers/connect/connect_internal.h"

#include <stdio.h>
#include <stdlib.h>

/* Addresses that are compared with their pods; kube-apiserver tries all, which takes as many
 * reads. */
enum { ADDRESSES_MAX = 64 };

static void fail_none(struct connect *c, struct slice service)
{
    connect_fail(c, KUBE_SERVICE_UNAVAILABLE, "no endpoints available for service \"%.*s\"",
                 (int)size_min(service.len, 300), (const char *)service.ptr);
}

/* -- Addresses -- */

static void try_next(struct connect *c);

static void on_pod(struct connect *c, const struct json_node *pod)
{
    struct slice address = connect_text(c, c->addresses[c->address - 1], "ip");
    const struct json_node *one = json_node_items_at(pod, "status.podIPs");
    bool same = pod && slice_equal(connect_text(c, pod, "status.podIP"), address);
    for (; one && !same; one = one->next)
        same = slice_equal(connect_text(c, one, "ip"), address);
    if (same && address.len)
        connect_unreachable(c, address, c->target_port);
    else
        try_next(c);
}

/* Only pods of the same namespace are connected to. */
static void try_next(struct connect *c)
{
    while (c->address < c->address_count) {
        const struct json_node *one = c->addresses[c->address++];
        struct slice namespace = connect_text(c, one, "targetRef.namespace");
        struct slice name = connect_text(c, one, "targetRef.name");
        if (name.len && slice_equal(namespace, c->call->path.namespace)) {
            connect_read(c, "pods", true, name, on_pod);
            return;
        }
    }
    fail_none(c, c->call->path.name);
}

/* The addresses of the first subset that has some and the port. */
static bool choose(struct connect *c, const struct json_node *subset)
{
    const struct json_node *port = json_node_items_at(subset, "ports"),
                           *one = json_node_items_at(subset, "addresses");
    while (port && !slice_equal(connect_text(c, port, "name"), c->port))
        port = port->next;
    const struct json_node *number = port ? json_node_named(port, "port") : NULL;
    const struct json_node **list = arena_calloc(&c->call->arena, ADDRESSES_MAX, sizeof(*list));
    if (!number || !one || !list)
        return false;
    for (; one && c->address_count < ADDRESSES_MAX; one = one->next)
        list[c->address_count++] = one;
    c->addresses = list;
    c->target_port = number->text;
    return true;
}

static void on_endpoints(struct connect *c, const struct json_node *endpoints)
{
    const struct json_node *subset = json_node_items_at(endpoints, "subsets");
    if (!endpoints) {
        c->plural = "services"; /* as Kubernetes calls it then */
        connect_not_found(c);
        return;
    }
    if (!subset) {
        fail_none(c, c->name);
        return;
    }
    while (subset && !choose(c, subset))
        subset = subset->next;
    try_next(c);
}

/* -- The port -- */

/* The name of the port with the number of the path. */
static void on_service(struct connect *c, const struct json_node *service)
{
    const struct json_node *port = json_node_items_at(service, "spec.ports");
    if (!service) {
        connect_not_found(c);
        return;
    }
    for (; port; port = port->next) {
        const struct json_node *number = json_node_named(port, "port");
        if (!number || !slice_equal(number->text, c->port))
            continue;
        c->port = connect_text(c, port, "name");
        connect_read(c, "endpoints", true, c->name, on_endpoints);
        return;
    }
    connect_fail(c, KUBE_SERVICE_UNAVAILABLE, "no service port %.*s found for service \"%.*s\"",
                 SLICE_ARGS(c->port), SLICE_ARGS(c->name));
}

void connect_service_proxy(struct connect *c)
{
    size_t i = 0;
    while (i < c->port.len && c->port.ptr[i] >= '0' && c->port.ptr[i] <= '9')
        i++;
    if (c->port.len && i == c->port.len && c->port.len < 10)
        connect_read(c, "services", true, c->name, on_service);
    else
        connect_read(c, "endpoints", true, c->name, on_endpoints);
}
