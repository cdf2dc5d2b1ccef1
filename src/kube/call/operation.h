/*
 * Operations of the engine for a call: each completes in `done`, which ends with kube_call_done. A
 * call on the worker starts them when it is back on its thread.
 */
#ifndef VIGIL_KUBE_CALL_OPERATION_H
#define VIGIL_KUBE_CALL_OPERATION_H

#include "kube/call/call.h"

/* Starts the range of a request in the arena; `done` gets the call by kube_call_of_range. */
void kube_call_range(struct kube_call *call, const struct pb_range_request *request,
                     void (*done)(struct engine_op *op));
/* Start call->write, whose key, value and expected are set: a put, which fails if the definition of
 * its kind is no longer the one that the object was validated with, or a delete. `done` gets the
 * call by kube_call_of_write. */
void kube_call_put(struct kube_call *call, void (*done)(struct engine_op *op));
void kube_call_delete(struct kube_call *call, void (*done)(struct engine_op *op));
struct kube_call *kube_call_of_range(struct engine_op *op);
struct kube_call *kube_call_of_write(struct engine_op *op);

/* The key of the object that the path names; without memory the call fails. */
MUST_CHECK
bool kube_call_key(struct kube_call *call, struct slice *ret_key);

/*
 * Waits until the store has reached the resourceVersion of a request. A client may have seen it on
 * another thread a moment before; after 3 s it gets the same Timeout as from Kubernetes. Embedded
 * in the state of a handler, which cancels it when it ends.
 */
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
