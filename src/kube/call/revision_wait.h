/*
 * How new an answer must be: the resourceVersion of a request, and waiting until the store has
 * reached it. What a client has seen elsewhere may come here a moment later; after 3 s it gets the
 * Timeout that Kubernetes gives. Embedded in a handler's state, which cancels it when it ends.
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

/* done is called once, maybe at once; if it is not fresh, call->status says so. */
void kube_revision_wait_start(struct kube_revision_wait *wait, struct kube_call *call,
                              int64_t revision, void (*done)(struct kube_call *call, bool fresh));
void kube_revision_wait_cancel(struct kube_revision_wait *wait);

#endif
