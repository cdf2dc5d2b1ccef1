/*
 * The changes of a cache that one consumer has not taken yet. Each consumer has its own listener,
 * so that a slow one delays no other.
 *
 * There is at most one change for each key: while one waits, later changes of the same object are
 * joined with it. A consumer that keeps up gets every change; one that is slow gets fewer, and
 * always the latest state, with the state that it saw before as the old one. So the memory is
 * bounded by the number of objects, however slow the consumer is:
 *
 *     waiting      then        becomes
 *     added        updated     added, with the newer state
 *     added        removed     nothing
 *     updated      updated     updated, from the first old state to the newest one
 *     updated      removed     removed, with the last known state
 *     removed      added       updated: the object was made again
 *
 * The cache's thread adds, and any thread takes.
 */
#ifndef VIGIL_KUBECLIENT_INFORMER_LISTENER_H
#define VIGIL_KUBECLIENT_INFORMER_LISTENER_H

#include "base/container/list.h"
#include "base/lock.h"
#include "io/readable.h"
#include "kubeclient/informer/cache.h"

/* A change that was taken. References to both objects, of which one may be NULL as in struct
 * cache_change. */
struct listener_change {
    enum cache_change_kind kind;
    struct vigil_kube_object *old, *now;
    bool in_list, state_unknown;
};
void listener_change_fini(struct listener_change *change);

struct listener {
    struct lock lock; /* protects what follows */
    pthread_cond_t changed;
    struct hash_map waiting; /* of struct waiting_change, owned */
    struct list order;       /* the same, oldest first */
    bool over;
    struct readable readable; /* while a change waits, and after the end */
};

/* ST_LIMIT: no descriptor is left. */
MUST_CHECK
enum status listener_init(struct listener *listener, uint64_t seed);
/* No other thread uses it any more. */
void listener_fini(struct listener *listener);

/* ST_NOMEM: the change is lost, so the consumer must be given the whole state again. */
MUST_CHECK
enum status listener_add(struct listener *listener, const struct cache_change *change);

/* Takes the oldest change, and waits for it until a time of the system's monotonic clock; 0 does
 * not wait, CLOCK_NEVER waits without a limit. ST_TIMEOUT; ST_CLOSED: listener_end was called. */
MUST_CHECK
enum status listener_take(struct listener *listener, int64_t until_ns,
                          struct listener_change *ret_change);
/* Changes that wait are dropped, and threads that wait return. */
void listener_end(struct listener *listener);

size_t listener_count(struct listener *listener);

/* Asserts every invariant; for tests. */
void listener_check(struct listener *listener);

#endif
