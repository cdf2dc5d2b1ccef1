/*
 * Whether a kube-controller-manager is at work, which collects garbage and empties namespaces
 * itself: it renews the Lease kube-system/kube-controller-manager. A lease counts as held for its
 * duration after each change that is seen, whatever its holder's clock says. Only if its renewTime
 * is long past when it is first seen, the holder is gone already.
 */
#ifndef VIGIL_KUBE_JOBS_MANAGER_LEASE_H
#define VIGIL_KUBE_JOBS_MANAGER_LEASE_H

#include "base/clock.h"
#include "base/slice.h"

#define KUBE_MANAGER_LEASE_KEY "/registry/leases/kube-system/kube-controller-manager"

enum {
    KUBE_MANAGER_LEASE_S = 15,        /* if it does not say how long, as in Kubernetes */
    KUBE_MANAGER_LEASE_MAX_S = 600,   /* however long it says */
    KUBE_MANAGER_LEASE_CLOCKS_S = 60, /* how much the clocks of two machines may differ */
};

struct kube_manager_lease {
    int64_t revision; /* revision of its key, as last seen; 0: it does not exist */
    int64_t until_ns; /* monotonic: it is held until then, if it is not renewed */
};

/* The lease was read. An empty value: it does not exist. One that is not JSON was stored by a
 * kube-apiserver, for a holder that is not known. */
void kube_manager_lease_note(struct kube_manager_lease *lease, int64_t revision, struct slice value,
                             int64_t now_ns, int64_t real_ns);

static inline bool kube_manager_lease_held(const struct kube_manager_lease *lease, int64_t now_ns)
{
    return lease->revision && now_ns < lease->until_ns;
}

/* The seconds until it is no longer held, if it is not renewed; at least 1. */
static inline int64_t kube_manager_lease_left_s(const struct kube_manager_lease *lease,
                                                int64_t now_ns)
{
    return lease->until_ns > now_ns ? (lease->until_ns - now_ns) / NS_PER_S + 1 : 1;
}

#endif
