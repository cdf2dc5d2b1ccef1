/*
 * The requests of a mirror that wait for the limit of calls (link/rate.h), in their order. A
 * collection has at most two: that of its reflector, and a fence.
 *
 * Owned by a mirror; the follower's thread.
 */
#ifndef VIGIL_TIER_MIRROR_REQUEST_QUEUE_H
#define VIGIL_TIER_MIRROR_REQUEST_QUEUE_H

#include "base/container/list.h"
#include "tier/link/rate.h"

struct request_queue {
    struct tier_lane lane;
    struct list waiters; /* request_waiter.in_queue */
};

/* Embedded by its owner; zeroed except for ready, it does not wait. */
struct request_waiter {
    void (*ready)(struct request_waiter *waiter); /* the request is made now */
    struct list in_queue;                         /* its links are NULL until first used */
};

/* rate: borrowed; NULL: no limit. */
void request_queue_init(struct request_queue *queue, struct tier_rate *rate, struct loop *loop);
void request_queue_fini(struct request_queue *queue); /* none waits; it may be zeroed */

/* It does not wait. True: the request is made now. False: ready is called later. */
MUST_CHECK
bool request_queue_enter(struct request_queue *queue, struct request_waiter *waiter);
void request_waiter_cancel(struct request_waiter *waiter); /* no effect if it does not wait */

#endif
