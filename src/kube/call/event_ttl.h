/*
 * Events expire after an hour, as in Kubernetes: each put of one is attached to a lease, which is
 * shared by the puts of about a minute, as in kube-apiserver. kube/call/operation.c grants them.
 */
#ifndef VIGIL_KUBE_CALL_EVENT_TTL_H
#define VIGIL_KUBE_CALL_EVENT_TTL_H

#include <stdbool.h>
#include <stdint.h>

struct kube_kind;

/* How long an event lives, and for how long and how many puts one lease is used. */
enum { KUBE_EVENT_TTL_S = 3600, KUBE_LEASE_REUSE_S = 60, KUBE_LEASE_PUTS_MAX = 1000 };

/* The lease of the current puts of an API. */
struct kube_event_lease {
    int64_t lease; /* 0: none yet */
    int64_t until_ns;
    unsigned puts;
};

bool kube_kind_expires(const struct kube_kind *kind);

/* The lease for one more put. False: there is none, or it is used up; a new one has to be granted.
 */
bool kube_event_lease_take(struct kube_event_lease *current, int64_t now_ns, int64_t *ret_lease);
/* A lease with the TTL KUBE_EVENT_TTL_S + KUBE_LEASE_REUSE_S has been granted. */
void kube_event_lease_set(struct kube_event_lease *current, int64_t lease, int64_t now_ns);

#endif
