/*
 * Whether a kube-controller-manager is at work, which collects garbage itself: it renews the Lease
 * kube-system/kube-controller-manager. A lease counts as held for its duration after each change
 * that is seen, whatever its holder's clock says. Only if its renewTime is long past when it is
 * first seen, the holder is gone already.
 */
#ifndef VIGIL_KUBE_GARBAGE_LEASE_H
#define VIGIL_KUBE_GARBAGE_LEASE_H

#include "base/slice.h"

#define GARBAGE_LEASE_KEY "/registry/leases/kube-system/kube-controller-manager"

enum {
    GARBAGE_LEASE_S = 15,        /* if it does not say how long, as in Kubernetes */
    GARBAGE_LEASE_MAX_S = 600,   /* however long it says */
    GARBAGE_LEASE_CLOCKS_S = 60, /* how much the clocks of two machines may differ */
};

struct garbage_lease {
    int64_t revision; /* of its key, as last seen; 0: it does not exist */
    int64_t until_ns; /* monotonic: it is held until then, if it is not renewed */
};

/* The lease was read. An empty value: it does not exist. One that is not JSON was stored by a
 * kube-apiserver, for a holder that is not known. */
void garbage_lease_note(struct garbage_lease *lease, int64_t revision, struct slice value,
                        int64_t now_ns, int64_t real_ns);

static inline bool garbage_lease_held(const struct garbage_lease *lease, int64_t now_ns)
{
    return lease->revision && now_ns < lease->until_ns;
}

#endif
