/*
 * The current objects of one kind, for decisions that need many of them at once: roles and bindings
 * for authorization; quotas, limit ranges, classes and service accounts for admission. They are
 * read at the first use and kept current by a watch, like an informer in kube-apiserver: what a
 * lookup has may be older than the store by one turn of the loop.
 *
 * The objects themselves are held once for all threads (kube/policy/lookup/stock.h). A lookup is
 * the part of it that belongs to one API and thread: the watch, and the version from which it
 * decides.
 *
 *            ┌─ no thread has read them ─► it reads them ─► it follows them ─► publishes ─┐
 *     unready┤                                                                            ├─► ready
 *       ▲    └─ another thread reads them: wait; or has read them ───────────────────────┘     │
 *       └──────────────────── the watch has ended, because its events were compacted ──────────┘
 *
 * A namespace whose objects take too much memory is not held; kube/policy/lookup/read.h reads what
 * is needed of it.
 */
#ifndef VIGIL_KUBE_POLICY_LOOKUP_LOOKUP_H
#define VIGIL_KUBE_POLICY_LOOKUP_LOOKUP_H

#include "base/container/list.h"
#include "kube/policy/lookup/stock.h"

struct engine_shard;
struct kube_lookup;
struct loop;

struct kube_lookup_options {
    struct engine_shard *shard;
    struct loop *loop;
    size_t *under_way; /* counter of the API: incremented while objects are read */
    struct kube_stock *stock;
};

/* Reads nothing yet. The options are copied. */
struct kube_lookup *kube_lookup_new(const struct kube_lookup_options *options);
/* Must be stopped, and its last reading must have ended. Accepts NULL. */
void kube_lookup_free(struct kube_lookup *lookup);
/* Stops watching. Waits and readings end with ST_STOPPED when what is under way ends. Accepts NULL.
 */
void kube_lookup_stop(struct kube_lookup *lookup);

/* Whether the objects are known; otherwise the caller waits first. */
bool kube_lookup_ready(struct kube_lookup *lookup);

/* Embedded by its caller until go. */
struct kube_lookup_wait {
    struct list in_lookup;
    void (*go)(struct kube_lookup_wait *wait);
    enum status status; /* in go; not ST_OK: the objects could not be read */
};

/* Calls go when the lookup is ready or has failed, perhaps at once. */
void kube_lookup_wait(struct kube_lookup *lookup, struct kube_lookup_wait *wait);

/* The objects of a namespace, or with an empty one those of a kind without namespaces; valid until
 * the next turn of the loop. NULL: they are not held. The lookup must be ready. */
const struct kube_shelf *kube_lookup_shelf(struct kube_lookup *lookup, struct slice namespace);

/* Every change up to this revision is known, and perhaps some later ones. Must be ready. */
int64_t kube_lookup_revision(const struct kube_lookup *lookup);

/* Namespaces that are not held; objects that are. */
size_t kube_lookup_not_held(struct kube_lookup *lookup);
size_t kube_lookup_count(struct kube_lookup *lookup);

/* Shows without a call that a kind has no objects, to what nearly every request asks. */
struct kube_lookup_peek {
    const _Atomic uint64_t *version; /* that the stock has now */
    uint64_t empty_at; /* the version that this thread has taken and found empty; 0: none */
};
/* Borrowed from the lookup; on its thread. */
const struct kube_lookup_peek *kube_lookup_peek(const struct kube_lookup *lookup);
/* False also while the objects are not known. */
static inline bool kube_lookup_is_empty(const struct kube_lookup_peek *peek)
{
    return peek->empty_at &&
           atomic_load_explicit(peek->version, memory_order_acquire) == peek->empty_at;
}

/* For tests: the objects are in order, and the counts are right. */
void kube_lookup_check(struct kube_lookup *lookup);

#endif
