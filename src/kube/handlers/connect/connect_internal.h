/* One request to connect under way, for the files of this folder. */
#ifndef VIGIL_KUBE_HANDLERS_CONNECT_CONNECT_INTERNAL_H
#define VIGIL_KUBE_HANDLERS_CONNECT_CONNECT_INTERNAL_H

#include "codec/json/tree.h"
#include "codec/pb/rpc.pb.h"
#include "kube/call/call.h"
#include "kube/handlers/write/change.h"

enum connect_sort { CONNECT_LOG, CONNECT_STREAM, CONNECT_FORWARD, CONNECT_PROXY };

/* In the arena of the call. */
struct connect {
    struct kube_change change; /* what admission policies decide about; nothing is stored */
    struct kube_call *call;
    const struct connect_row *row;
    enum connect_sort sort;
    /* What the path names: "name", "name:port" or "scheme:name:port". */
    struct slice scheme, name, port;
    /* The object that is being read. */
    const char *plural;
    struct slice object_name;
    void (*then)(struct connect *c, const struct json_node *object);
    struct pb_range_request request;
    struct slice value;
    bool found;
    /* For a pod's subresource. */
    struct slice asked; /* the container that the query names, or a policy; may be empty */
    struct slice container;
    /* For a service: addresses that were not examined yet. */
    const struct json_node *const *addresses;
    size_t address_count, address;
    struct slice target_port;
};

static inline struct connect *connect_of(struct kube_call *call)
{
    return CONTAINER_OF(call->handler.change, struct connect, change);
}

/* The options of the connection as the query gives them, "PodExecOptions". False: call->status. */
MUST_CHECK
bool connect_options(struct connect *c, const char *kind, struct json_node **ret_options);

/* Reads an object of the core group in the namespace of the path, or without one. `then` gets NULL
 * if it does not exist. */
void connect_read(struct connect *c, const char *plural, bool namespaced, struct slice name,
                  void (*then)(struct connect *c, const struct json_node *object));

/* -- Answers -- */

/* The object that was read last does not exist. */
void connect_not_found(struct connect *c);
void connect_fail(struct connect *c, enum kube_reason reason, const char *format, ...)
    PRINTF_LIKE(3, 4);
/* An empty answer. */
void connect_nothing(struct connect *c);
/* The connection was refused: to a client of a proxy. */
void connect_unreachable(struct connect *c, struct slice host, struct slice port);

/* -- Addresses -- */

/* "dial tcp 127.0.0.1:10250: connect: connection refused", in Go's words. */
enum { CONNECT_DIAL_BYTES = 400 };
void connect_dial_text(struct slice host, struct slice port, char text[CONNECT_DIAL_BYTES]);
/* Whether it is a name, and not an address. */
bool connect_is_name(struct slice host);
/* An address to which requests are forwarded: not of this machine, and of one receiver. */
bool connect_may_reach(struct slice address);

/* The member at this path as a text without escapes; empty: there is none. */
struct slice connect_text(struct connect *c, const struct json_node *object, const char *path);

/* -- Handlers -- */

void connect_pod(struct connect *c);
void connect_pod_proxy(struct connect *c);
void connect_node_proxy(struct connect *c);
void connect_service_proxy(struct connect *c);

/* The address and port of a node's kubelet. False: it was answered. */
MUST_CHECK
bool connect_kubelet(struct connect *c, const struct json_node *node, struct slice *ret_host,
                     struct slice *ret_port);

#endif
