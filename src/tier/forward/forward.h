/*
 * Passes a request on to the kube-apiserver, and its answer back, as bytes.
 *
 *     sent ──► answering ──► complete
 *       └───────────┴──► failed (a Status, or the answer is cut off)
 *
 * Bodies are passed on as they arrive, in both directions at the same time; the side that does not
 * read makes the other one stop, and what is held in between (64 KiB, and the window of a stream of
 * HTTP/2) is charged to the client. The same applies to the bytes of a connection that is upgraded
 * (exec, port-forward, proxied WebSockets), in which each direction ends alone. A client that
 * leaves cancels its request, and a server that shuts down ends watches, logs that are followed and
 * upgraded connections.
 *
 * A request that was certainly not received by the kube-apiserver gets 503, with Retry-After;
 * others that fail get 502 or 504.
 *
 * The exchange belongs to the forward: its user pointer is a struct kube_life, whose end the
 * owner calls. The exchange's thread, which is that of the pool.
 */
#ifndef VIGIL_TIER_FORWARD_FORWARD_H
#define VIGIL_TIER_FORWARD_FORWARD_H

#include "client/http/http_pool.h"
#include "tier/forward/forwards.h"
#include "tier/forward/head.h"
#include "wire/http/exchange.h"

struct kube_status;

enum { TIER_REFUSAL_BYTES = 16 * 1024 }; /* the part of a refusal that its listener sees */

/* Follows a forward. Embedded by its owner. */
struct tier_forward_listener {
    /*
     * The answer is 401 or 403, with this body, or the beginning of a longer one. True: the
     * kube-apiserver has refused the tier and not the client, who gets *ret_status instead of the
     * answer. NULL: every answer is the client's.
     */
    bool (*refused)(struct tier_forward_listener *listener, unsigned code, struct slice body,
                    struct kube_status *ret_status);
    /* The last call, when the exchange ends. */
    void (*ended)(struct tier_forward_listener *listener);
};

struct tier_forward_options {
    struct tier_forwards *forwards; /* outlives the exchange */
    struct http_pool *pool;         /* the same */
    struct tier_head_options head;
    struct tier_forward_listener *listener; /* borrowed until it has ended; may be NULL */
};

/* False: too many are under way. The exchange was answered, and has no user pointer; the listener
 * is not called. */
bool tier_forward(struct http_exchange *x, const struct tier_forward_options *options);
/* For the route's on_body. */
void tier_forward_body(struct http_exchange *x, struct slice bytes);
/* It must not continue: the client gets the status, or its answer is cut off if it has begun. */
void tier_forward_stop(struct http_exchange *x, const struct kube_status *status);

#endif
