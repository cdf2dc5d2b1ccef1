/*
 * Custom resources that the webhook of their definition converts to another version: those of a
 * list, the objects of one event, or a single one. They are sent in as few calls as possible, and
 * what is answered is checked as in Kubernetes, pruned by the schema of its version, and kept until
 * the batch is freed. Objects that are in the wanted version already are not sent.
 *
 *     GATHERING ─► WRITING ─► CALLING ─► READING ─► DONE
 *                   ▲    (half of it)│        │
 *                   └────────────────┴────────┘ (the next objects)
 *
 * WRITING makes the question, CALLING waits for the webhook, and READING checks its answer: on the
 * worker (kube/call/offload.h) if it is long. If an answer is too long, or takes too much memory,
 * half of the objects are sent again. All of it together takes at most
 * KUBE_CONVERSION_NS.
 *
 * A batch has copies of its objects and a reference to their definition, so that nothing is held
 * while it waits: no thread, no lock, no state of the store. It may be freed at any time, on the
 * thread of its API. Aborts without memory, except for what an account refuses.
 */
#ifndef VIGIL_KUBE_CALL_CONVERSION_BATCH_H
#define VIGIL_KUBE_CALL_CONVERSION_BATCH_H

#include "kube/call/api_state.h"
#include "kube/custom/conversion_review.h"
#include "kube/custom/definition.h"
#include "kube/types/status.h"
#include "kube/types/storage.h"

enum {
    KUBE_CONVERSION_OBJECTS_MAX = 500,     /* in one call */
    KUBE_CONVERSION_BYTES_MAX = 4 << 20,   /* sum of their JSON; the last one may exceed it */
    KUBE_CONVERSION_TREE_BYTES = 64 << 20, /* memory for the tree of an answer */
};
/* Kubernetes' timeout of a call. */
#define KUBE_CONVERSION_NS (30 * INT64_C(1000000000))

struct kube_conversion_batch;

/* to: the wanted version; the account of the client for which it is done, which is charged; peer as
 * for kube_offload_send. */
struct kube_conversion_batch *kube_conversion_batch_new(struct kube_api *api,
                                                        const struct kube_custom *to,
                                                        struct account *account, uint64_t peer);
/* Copies an object and its key, which may be empty. mod_revision: that in which it was stored; 0:
 * it is new. ST_NOMEM; ST_MALFORMED: it is not an object. */
MUST_CHECK
enum status kube_conversion_batch_add(struct kube_conversion_batch *batch, struct kube_kv kv);
size_t kube_conversion_batch_count(const struct kube_conversion_batch *batch);
size_t kube_conversion_batch_bytes(const struct kube_conversion_batch *batch);
/* Whether it has as many objects as one call may have. */
bool kube_conversion_batch_is_full(const struct kube_conversion_batch *batch);
/* Whether one of them has to be sent. */
bool kube_conversion_batch_awaits(const struct kube_conversion_batch *batch);

/* Before the start: it ends earlier than after KUBE_CONVERSION_NS, as if the webhook had not
 * answered.
 */
void kube_conversion_batch_limit(struct kube_conversion_batch *batch, int64_t timeout_ns);
/* Once. done is called once, in a later turn. */
void kube_conversion_batch_start(struct kube_conversion_batch *batch,
                                 void (*done)(struct kube_conversion_batch *batch), void *owner);
void *kube_conversion_batch_owner(const struct kube_conversion_batch *batch);
/* In done: its reason is KUBE_OK if all objects were converted. Texts are those of the batch. */
const struct kube_status *kube_conversion_batch_status(const struct kube_conversion_batch *batch);
/* What has failed; CONVERSION_FINE: it has not, or before the webhook was called. */
enum conversion_failure kube_conversion_batch_failure(const struct kube_conversion_batch *batch);
/* Copies it for an answer whose texts are in the arena. Returns false. */
bool kube_conversion_batch_fail(const struct kube_conversion_batch *batch, struct arena *arena,
                                struct kube_status *status);
/* Object i in the wanted version, with the revision for kube_conversion_json: 0 if it was
 * converted. *ret_revision: that with which it was added. */
struct kube_kv kube_conversion_batch_get(const struct kube_conversion_batch *batch, size_t i,
                                         int64_t *ret_revision);

/* In any state; done is not called any more. Accepts NULL. */
void kube_conversion_batch_free(struct kube_conversion_batch *batch);

#endif
