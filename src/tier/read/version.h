/*
 * Whether the kube-apiserver is of the version of Kubernetes whose Tables we can make. It is asked
 * when somebody wants a Table, and again after a minute, because it may have been replaced.
 *
 *     UNKNOWN ──ask──► asking ──► known for a minute, also while it is asked again
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
    bool is_asking, is_ours;
    int64_t asked_ns; /* 0: never */
};

void tier_version_init(struct tier_version *version, struct tier_link *link, struct loop *loop);
void tier_version_fini(struct tier_version *version);

/* Does not wait: false while it is not known. */
bool tier_version_is_ours(struct tier_version *version);

#endif
