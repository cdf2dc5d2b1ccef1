/*
 * A call that waits for the webhook that converts its objects (kube/call/conversion_batch.h). It
 * holds nothing meanwhile but its memory: a write leaves its places in the queues of its object and
 * of its quotas, so that others do not wait for the webhook.
 *
 *     start ─┬─► converted ─► done
 *            ├─► the time of the request is over (kube/call/deadline.h): it is answered with 504
 *            └─► the client disconnects: the webhook is not called any more, and nothing follows
 */
#ifndef VIGIL_KUBE_CALL_CALL_CONVERSION_H
#define VIGIL_KUBE_CALL_CALL_CONVERSION_H

#include "kube/call/call.h"

struct kube_conversion_batch;

/*
 * Starts a batch, which now belongs to the call. done is called once, in a later turn, as for every
 * operation (kube_call_done), and frees the batch; never if the client has disconnected, or the
 * call has failed and is answered, as for lack of time: the batch is freed then. A call has one at
 * a time. On the thread of the API.
 */
typedef void kube_call_converted_fn(struct kube_call *call, struct kube_conversion_batch *batch);
void kube_call_convert_batch(struct kube_call *call, struct kube_conversion_batch *batch,
                             kube_call_converted_fn *done);

/* The same for one object, of this revision or 0, in a version of the call's kind. next has the
 * result in the arena; a failure is answered. */
void kube_call_convert(struct kube_call *call, const struct kube_custom *to, struct slice json,
                       int64_t revision, struct arena *arena,
                       void (*next)(struct kube_call *call, struct slice converted));

#endif
