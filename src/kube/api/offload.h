/*
 * Pieces of a call that may take long: a large body read, a large object decided over, an answer
 * made in another form. A piece of few bytes is done at once; a larger one on the worker
 * (io/worker.h), so that nobody else on the I/O thread waits for it.
 *
 *     kube_call_work ─┬─ few bytes ──► step ──► an operation, the answer, …
 *                     └─► worker: step, which ends in kube_call_defers ──► back ──► that
 *
 * While a call is away, it is the worker's: its arena, status, warnings and handler. Of what is
 * shared a step sees only what does not change: the kind it was begun with, the kinds as they were
 * when it went (kube_call_kinds), the request, which is a copy of its own, and numbers from a
 * generator of its own. What a step ends in (an operation, an answer, a place in a line) waits
 * until the call is back on its I/O thread. If its peer has gone by then the call is freed.
 */
#ifndef VIGIL_KUBE_API_OFFLOAD_H
#define VIGIL_KUBE_API_OFFLOAD_H

#include "base/random.h"
#include "io/worker.h"
#include "kube/api/answer.h"

struct account;
struct engine_op;
struct http_request;
struct kube_call;
struct kube_face;
struct kube_kinds;
struct pb_range_request;

/* Looked at in a turn of an I/O thread, for one call. An apply of as many takes some 5 ms. */
enum { KUBE_WORK_BYTES_MAX = 16 << 10 };
/* Steps of a schema for each byte that count for one byte more: so many bytes take some 2 ms. */
enum { KUBE_WORK_EFFORT = 32 };

/* A job of a face, on its thread again when it is back. */
struct kube_job {
    struct worker_job worker;
    void (*back)(struct kube_job *job);
};

/* run, must_run and back are set; connections, which have their accounts, take turns. As
 * worker_submit. */
MUST_CHECK
enum status kube_job_send(struct kube_face *face, const struct account *account,
                          struct kube_job *job);

struct kube_work {
    struct kube_job job;
    bool away, keeps_request; /* call->request is a copy */
    void (*step)(struct kube_call *call);
    void (*next)(struct kube_call *call); /* what the step has ended in */
    struct kube_kinds *kinds;             /* counted, while it is away */
    struct random random;
    /* For next. */
    const struct pb_range_request *request;
    void (*done)(struct engine_op *op);
    struct kube_answer answer;
};

/* Calls step now, or on the worker if it has more than KUBE_WORK_BYTES_MAX to look at; fewer of a
 * custom resource whose schema takes much work. Connections take turns at the worker. One with too
 * much to do refuses the call, unless it has written or its answer has begun. After this the caller
 * does nothing more with the call. */
void kube_call_work(struct kube_call *call, size_t bytes, void (*step)(struct kube_call *call));

/* The two halves of that: whether it is for the worker, and sends it there. ST_NOMEM;
 * ST_REQUEST_TOO_MANY_REQUESTS, but if the worker finds out later that it has too much to do, the
 * call is refused. */
MUST_CHECK
bool kube_call_is_large(const struct kube_call *call, size_t bytes);
MUST_CHECK
enum status kube_call_send(struct kube_call *call, void (*step)(struct kube_call *call));

/* Its peer has gone: if it is away, it need not be worked on. */
void kube_call_give_up(struct kube_call *call);

/* One operation more is under way; kube_call_done is its end. */
void kube_call_hold(struct kube_call *call);

/* In what a step may end in: true while the call is away, and next is called when it is back. */
MUST_CHECK
bool kube_call_defers(struct kube_call *call, void (*next)(struct kube_call *call));

/* The kinds there are now, or were when the call went away. Borrowed. */
struct kube_kinds *kube_call_kinds(const struct kube_call *call);
struct random *kube_call_random(struct kube_call *call);

/* From here on call->request is a copy in its arena, and path and query lie there, too. False: no
 * memory. */
MUST_CHECK
bool kube_call_keep_request(struct kube_call *call);

/* Of a face: where its calls come back. */
void kube_work_init(struct kube_face *face);
void kube_work_fini(struct kube_face *face);

#endif
