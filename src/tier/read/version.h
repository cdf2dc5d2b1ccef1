/*
 * Whether the kube-apiserver is of the version of Kubernetes whose Tables we can make. Its version
 * is requested when a client wants a Table, and again after a minute, because it may have been
 * replaced.
 *
 *     unknown ──► requested ──► known ──(a minute)──► requested, and known meanwhile
 *
 * Embedded by the face; one for each I/O thread, on that thread.
 */
#ifndef VIGIL_TIER_READ_VERSION_H
#define VIGIL_TIER_READ_VERSION_H

#include "tier/link/link.h"

struct tier_version {
    struct tier_call call;
    struct tier_link *link; /* borrowed */
    struct loop *loop;
    bool is_under_way, is_ours;
    int64_t requested_ns; /* 0: never */
};

void tier_version_init(struct tier_version *version, struct tier_link *link, struct loop *loop);
void tier_version_fini(struct tier_version *version);

/* Does not wait: false while it is not known. */
bool tier_version_is_ours(struct tier_version *version);

#endif
