/*
 * How new an answer must be: the resourceVersion of a request, and waiting until the store has
 * reached it. What a client has seen elsewhere may come here a moment later; after 3 s it gets the
 * Timeout that Kubernetes gives. Embedded in a handler's state, which cancels it when it ends.
 */
#ifndef VIGIL_KUBE_API_REVISION_WAIT_H
#define VIGIL_KUBE_API_REVISION_WAIT_H

#include "kube/api/call.h"

struct kube_fresh {
    struct kube_call *call;
    int64_t revision;
    int64_t until_ns;
    struct timer timer;
    void (*done)(struct kube_call *call, bool fresh);
};

/* done is called once, maybe at once; if it is not fresh, call->status says so. */
void kube_fresh_wait(struct kube_fresh *fresh, struct kube_call *call, int64_t revision,
                     void (*done)(struct kube_call *call, bool fresh));
void kube_fresh_cancel(struct kube_fresh *fresh);

/*
 * Digits only, as Go's ParseUint reads them; "" and "0" are 0. NULL, or what is wrong with it in
 * Go's words. What is too large for the store is as far in the future as can be.
 */
const char *kube_revision_parse(struct slice text, int64_t *ret_revision);

#endif
