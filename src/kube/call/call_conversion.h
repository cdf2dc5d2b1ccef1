/*
 * A call that waits for the webhook that converts its object (kube/call/conversion_batch.h). It
 * holds nothing meanwhile but its memory: a webhook that is slow delays other writes of the object
 * by KUBE_CONVERSION_PATIENCE_NS at most, because the call leaves its place in the queue then.
 */
#ifndef VIGIL_KUBE_CALL_CALL_CONVERSION_H
#define VIGIL_KUBE_CALL_CALL_CONVERSION_H

#include "kube/call/call.h"

#define KUBE_CONVERSION_PATIENCE_NS (INT64_C(1000000000))

/*
 * Converts an object, of this revision or 0, to a version of the call's kind. next is called once,
 * in a later turn, with the result in the arena, unless the client has disconnected, or the call
 * has failed and is answered. On the thread of the API.
 */
void kube_call_convert(struct kube_call *call, const struct kube_custom *to, struct slice json,
                       int64_t revision, struct arena *arena,
                       void (*next)(struct kube_call *call, struct slice converted));

#endif
