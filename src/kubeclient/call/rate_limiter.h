/*
 * The limit of calls per second, as in client-go: a bucket of tokens that refills evenly, of which
 * every call takes one. Calls that find none wait, in their order; one that is cancelled
 * leaves its token to the next.
 *
 * Owned by a client; all functions on its loop's thread, whose clock is used.
 */
#ifndef VIGIL_KUBECLIENT_CALL_RATE_LIMITER_H
#define VIGIL_KUBECLIENT_CALL_RATE_LIMITER_H

#include "base/container/list.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct loop;
struct rate_limiter;

/* Embedded by its owner; zeroed except for ready, it does not wait. */
struct rate_waiter {
    void (*ready)(struct rate_waiter *waiter); /* it has a token; may free the waiter */
    struct list in_limiter; /* links rate_limiter.waiters; its links are NULL until first used */
};

/* With a full bucket. per_second is not 0; a burst of 0 is 1. ST_NOMEM. */
MUST_CHECK
enum status rate_limiter_new(struct loop *loop, uint32_t per_second, uint32_t burst,
                             struct rate_limiter **ret_limiter);
/* No call may wait. Accepts NULL. */
void rate_limiter_free(struct rate_limiter *limiter);

/* Takes a token. False: there is none, and ready is called later. */
MUST_CHECK
bool rate_limiter_take(struct rate_limiter *limiter, struct rate_waiter *waiter);
/* No effect if it does not wait. */
void rate_waiter_cancel(struct rate_waiter *waiter);

/* Asserts every invariant; for tests. */
void rate_limiter_check(const struct rate_limiter *limiter);

#endif
