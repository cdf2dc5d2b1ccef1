/*
 * The current objects of all kinds that decisions need, once for all I/O threads of a server.
 *
 *     pool ─► stock of a kind ─► shelves (one version of all) ─► shelf of a namespace ─► objects
 *
 * Every thread reads the same events in the order of their revisions (kube/policy/lookup/lookup.h)
 * and applies them here; the first one to bring an event parses it and publishes the next version,
 * the others skip it. So what a thread sees here is never older than what it has read itself, and
 * no thread waits for another one to follow the store. A thread reads a version without a lock, as
 * long as it has a reference; the lock is taken to get the next version and to apply an event.
 *
 * The memory of a stock is bounded, and the bound is shared fairly: when there is no room, the
 * namespace that takes the most is no longer held, and requests that need its objects read them
 * from the store (kube/policy/lookup/read.h). A namespace that takes no more than the limit divided
 * by the number of namespaces is therefore always held, whatever the others do.
 */
#ifndef VIGIL_KUBE_POLICY_LOOKUP_STOCK_H
#define VIGIL_KUBE_POLICY_LOOKUP_STOCK_H

#include "base/metric/page.h"
#include "kube/policy/lookup/shelf.h"

struct budget;
struct kube_lookup_pool;
struct kube_stock;

enum {
    KUBE_LOOKUP_KINDS_MAX = 16,
    KUBE_LOOKUP_BYTES_MAX = 32 << 20, /* limit on the size of one kind; with a budget, at most */
    KUBE_LOOKUP_BUDGET_PART = 32,     /* one part of so many of the budget for each kind */
    KUBE_LOOKUP_OBJECT_BYTES_MAX = 256
                                   << 10, /* limit on the size of a quota or limit range, twice */
};

/* budget: charged with what is held; NULL: nothing is. */
struct kube_lookup_pool *kube_lookup_pool_new(struct budget *budget);
/* There must be no lookups. Accepts NULL. */
void kube_lookup_pool_free(struct kube_lookup_pool *pool);
void kube_lookup_pool_write_metrics(struct kube_lookup_pool *pool, struct metric_page *page);

/* The stock of a kind, which is borrowed from the pool; created at the first call. bytes_max 0: the
 * default. */
struct kube_stock *kube_lookup_pool_get(struct kube_lookup_pool *pool,
                                        const struct kube_lookup_kind *kind, size_t bytes_max);

/* -- One version of all shelves of a kind -- */

struct kube_shelves {
    _Atomic size_t refs;
    uint64_t generation; /* changes when all objects have been read again */
    struct version_map shelves;
    size_t bytes, count;
    size_t not_held; /* namespaces */
    bool may_fit;    /* there may be room again for a namespace that is not held */
};

struct kube_shelves *kube_shelves_new(void);
void kube_shelves_unref(struct kube_shelves *shelves); /* accepts NULL */
DEFINE_CLEANUP(struct kube_shelves *, kube_shelves_unref)

/* Applies a change to a version that only the caller has. kv NULL: the object is gone. */
void kube_shelves_apply(struct kube_shelves *shelves, const struct kube_stock *stock,
                        struct slice key, const struct kube_kv *kv);
/* NULL: the namespace is not held. Borrowed from the version. */
const struct kube_shelf *kube_shelves_find(const struct kube_shelves *shelves,
                                           struct slice namespace);

/* -- The current version. Any thread. -- */

const struct kube_lookup_kind *kube_stock_kind(const struct kube_stock *stock);
/* Changes with each version. 0: there is none yet. */
const _Atomic uint64_t *kube_stock_version(const struct kube_stock *stock);
/* A reference to the current version; NULL: there is none. *ret_revision: up to which every event
 * was applied. */
struct kube_shelves *kube_stock_get(struct kube_stock *stock, uint64_t *ret_version,
                                    int64_t *ret_revision);
int64_t kube_stock_revision(struct kube_stock *stock);

/* The caller has applied every event before the revision of this one. kv NULL: a deletion. Events
 * of a cursor that was opened for another generation are not applied. */
void kube_stock_apply(struct kube_stock *stock, uint64_t generation, int64_t revision,
                      struct slice key, const struct kube_kv *kv);
/* The caller has applied every event up to this revision. */
void kube_stock_complete(struct kube_stock *stock, uint64_t generation, int64_t revision);

/* Only one thread at a time reads all objects. False: another one does. */
MUST_CHECK
bool kube_stock_begin(struct kube_stock *stock);
/* Publishes what was read, and ends the reading; NULL: it has failed. */
void kube_stock_end(struct kube_stock *stock, struct kube_shelves *shelves, int64_t revision);

/* For tests: the counts are right. */
void kube_shelves_check(const struct kube_shelves *shelves);

#endif
