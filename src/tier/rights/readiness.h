/*
 * Whether the kube-apiserver that answers reviews is ready (/readyz): one that has just started
 * answers them before it has read its roles, and denies everything that they permit.
 *
 * There may be several kube-apiservers, so what is known belongs to a connection: what has answered
 * 200 over it shortly before a review was sent has also answered the review. A proxy that gives
 * requests of one connection to several kube-apiservers must do without those that are not ready.
 *
 * The question is sent only while denials are to be confirmed, at most ten times a second. Over
 * HTTP/2 there is one connection for all reviews; over HTTP/1.1 the one that was used last gets it.
 *
 * One for each tier_rights, on its thread.
 */
#ifndef VIGIL_TIER_RIGHTS_READINESS_H
#define VIGIL_TIER_RIGHTS_READINESS_H

#include "tier/link/link.h"
#include "tier/link/rate.h"

enum { TIER_READY_MAX = 64 }; /* connections that are known to be ready */

/* A connection that has answered 200, again and again from the first time to the last. */
struct tier_ready {
    uint32_t connection; /* 0: unused */
    int64_t first_ns, last_ns;
};

struct tier_readiness {
    struct loop *loop;
    struct tier_link *link;
    struct tier_lane lane; /* --upstream-qps */
    struct tier_call call;
    int64_t asked_ns; /* when the call was made; 0: never */
    struct tier_ready ready[TIER_READY_MAX];
};

/* rate: borrowed; NULL: no limit. */
void tier_readiness_init(struct tier_readiness *readiness, struct loop *loop,
                         struct tier_link *link, struct tier_rate *rate);
void tier_readiness_fini(struct tier_readiness *readiness);

/* A denial is to be confirmed. No effect if the question was sent lately. */
void tier_readiness_ask(struct tier_readiness *readiness);
/* What has answered a review of that time over this connection was ready. */
bool tier_readiness_covers(struct tier_readiness *readiness, uint32_t connection, int64_t sent_ns);

#endif
