/*
 * Waits until the store has reached the resourceVersion of a request. A client may have seen it on
 * another thread a moment before; after 3 s it gets the same Timeout as from Kubernetes. Embedded
 * in the state of a handler, which cancels it when it ends.
 */
#ifndef VIGIL_KUBE_CALL_REVISION_WAIT_H
#define VIGIL_KUBE_CALL_REVISION_WAIT_H

#include "kube/call/call.h"

struct kube_revision_wait {
    struct kube_call *call;
    int64_t revision;
    int64_t until_ns;
    struct timer timer;
    void (*done)(struct kube_call *call, bool fresh);
};

/* done is called once, perhaps at once; fresh false: call->status has the Timeout. */
void kube_revision_wait_start(struct kube_revision_wait *wait, struct kube_call *call,
                              int64_t revision, void (*done)(struct kube_call *call, bool fresh));
void kube_revision_wait_cancel(struct kube_revision_wait *wait);

#endif
