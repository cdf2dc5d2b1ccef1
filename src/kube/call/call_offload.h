/*
 * Steps of a call that may take long: parsing a large body, deciding over a large object, writing
 * an answer in another format. A step with few bytes runs at once; a larger one runs on the worker,
 * so that other requests of the I/O thread do not wait for it.
 *
 *     kube_call_work ─┬─ few bytes ──► step ──► an operation, the answer, …
 *                     └─► worker: step, which ends in kube_call_defers ──► back ──► that
 *
 * While a call is away, the worker owns its arena, status, warnings and handler. Of shared data a
 * step uses only what does not change: the kind, the kinds as they were when the call was sent
 * (kube_call_kinds), a copy of the request, and the call's own random numbers. What a step ends in
 * (an operation, an answer, a place in the write queue) is deferred until the call is back on its
 * I/O thread. If its client has disconnected by then, the call is freed.
 */
#ifndef VIGIL_KUBE_CALL_CALL_OFFLOAD_H
#define VIGIL_KUBE_CALL_CALL_OFFLOAD_H

#include "kube/call/call.h"

/* Validation steps of a custom schema per byte that count as one more byte: KUBE_WORK_BYTES_MAX of
 * them take about 2 ms. */
enum { KUBE_WORK_EFFORT = 32 };

/* Calls step now, or on the worker if it processes more than KUBE_WORK_BYTES_MAX bytes (fewer for a
 * custom resource with an expensive schema). A worker with too much to do makes the call fail,
 * unless it has written or its answer has begun. The caller does not use the call afterwards. */
void kube_call_work(struct kube_call *call, size_t bytes, void (*step)(struct kube_call *call));

/* The two halves of kube_call_work: whether the step is for the worker, and sending it there.
 * ST_NOMEM; ST_REQUEST_TOO_MANY_REQUESTS, unless the worker finds out later that it has too much to
 * do: then the call fails. */
MUST_CHECK
bool kube_call_is_large(const struct kube_call *call, size_t bytes);
MUST_CHECK
enum status kube_call_send(struct kube_call *call, void (*step)(struct kube_call *call));

/* Whether a step that turns out to be long could begin again on the worker. */
static inline bool kube_call_can_leave(const struct kube_call *call)
{
    return call->api->offload.worker && !call->work.away;
}

/* Replaces call->request by a copy in the arena, to which path and query then refer. False: no
 * memory. */
MUST_CHECK
bool kube_call_keep_request(struct kube_call *call);

#endif
