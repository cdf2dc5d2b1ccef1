/*
 * Events expire after an hour, as in Kubernetes: each put of one is attached to a lease, which is
 * shared by the puts of about a minute, as in kube-apiserver. kube/call/operation.c grants them.
 */
#ifndef VIGIL_KUBE_CALL_EVENT_TTL_H
#define VIGIL_KUBE_CALL_EVENT_TTL_H

#include "base/clock.h"
#include "kube/types/kind.h"

/* How long an event lives, and for how long and how many puts one lease is used. */
enum { KUBE_EVENT_TTL_S = 3600, KUBE_LEASE_REUSE_S = 60, KUBE_LEASE_PUTS_MAX = 1000 };

/* The lease of the current puts of an API. */
struct kube_event_lease {
    int64_t lease; /* 0: none yet */
    int64_t until_ns;
    unsigned puts;
};

static inline bool kube_kind_expires(const struct kube_kind *kind)
{
    return strcmp(kind->storage_prefix, "/registry/events/") == 0;
}

/* The lease for one more put. False: there is none, or it is used up; a new one has to be granted.
 */
static inline bool kube_event_lease_take(struct kube_event_lease *current, int64_t now_ns,
                                         int64_t *ret_lease)
{
    if (!current->lease || current->puts >= KUBE_LEASE_PUTS_MAX || now_ns >= current->until_ns)
        return false;
    current->puts++;
    *ret_lease = current->lease;
    return true;
}

/* A lease with the TTL KUBE_EVENT_TTL_S + KUBE_LEASE_REUSE_S has been granted. */
static inline void kube_event_lease_set(struct kube_event_lease *current, int64_t lease,
                                        int64_t now_ns)
{
    *current = (struct kube_event_lease){
        .lease = lease, .until_ns = clock_add(now_ns, KUBE_LEASE_REUSE_S * NS_PER_S)};
}

#endif
