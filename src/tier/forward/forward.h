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
#include "tier/forward/head.h"
#include "wire/http/exchange.h"

/* The forwards of one thread. */
struct tier_forwards {
    size_t under_way;
    size_t max; /* beyond which requests get 429 */
};

struct tier_forward_options {
    struct tier_forwards *forwards; /* outlives the exchange */
    struct http_pool *pool;         /* the same */
    struct tier_head_options head;
};

void tier_forward(struct http_exchange *x, const struct tier_forward_options *options);
/* For the route's on_body. */
void tier_forward_body(struct http_exchange *x, struct slice bytes);

#endif
