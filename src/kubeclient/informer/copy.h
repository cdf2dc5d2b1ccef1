/*
 * The copy of a collection that an informer keeps: its cache, which any thread may read, and the
 * consumers of its changes.
 *
 *     informer (loop's thread) ──► cache ──► queue of each consumer ──► handler
 *                                    ▲
 *     any thread ── copy_get … ──────┘
 *
 * The loop's thread changes the cache in short steps with the lock held; other threads hold it
 * while they take references. No function of the program is called with the lock held, except for
 * those of its indexes.
 *
 * The cache is changed only if every consumer will get the change (cache.reserve), so no consumer
 * misses a change when memory is short: the informer repeats what it could not apply.
 *
 * Counted by reference: the informer and its handlers have one each. It holds a reference to the
 * driver.
 */
#ifndef VIGIL_KUBECLIENT_INFORMER_COPY_H
#define VIGIL_KUBECLIENT_INFORMER_COPY_H

#include "client/driver/driver.h"
#include "kubeclient/informer/change_queue.h"

/* Embedded in a handler. */
struct copy_consumer {
    struct change_queue queue;
    struct list in_copy; /* links copy.consumers */
    /* On the loop's thread, with the lock held: changes may have been published. May be NULL. */
    void (*published)(struct copy_consumer *consumer);
};

struct copy {
    _Atomic uint32_t refs;
    struct driver *driver; /* a reference */
    struct lock lock;      /* protects what follows */
    pthread_cond_t changed;
    struct cache cache;
    struct list consumers; /* copy_consumer.in_copy */
    bool synced;           /* it was complete once */
    bool ended;            /* it does not change any more */
};

/* ST_NOMEM. */
MUST_CHECK
enum status copy_new(struct driver *driver, uint64_t seed, struct copy **ret_copy);
void copy_ref(struct copy *copy);
void copy_unref(struct copy *copy);

/* -- The loop's thread -- */

/* With the lock held: the copy is complete. */
void copy_set_synced(struct copy *copy);
/* Consumers can take what has changed. */
void copy_publish(struct copy *copy);

/* -- Any thread -- */

/* Adds a consumer, which gets the current objects as added. Its queue is initialized. ST_NOMEM;
 * ST_CLOSED: the copy has ended. Then it is not added, and can only be finished. */
MUST_CHECK
enum status copy_add_consumer(struct copy *copy, struct copy_consumer *consumer);
/* No effect if it was not added. */
void copy_remove_consumer(struct copy *copy, struct copy_consumer *consumer);
/* Reports every object to the consumer again; without memory for all, some of them. */
void copy_resync(struct copy *copy, struct copy_consumer *consumer);

/* It does not change any more; waiting threads return. */
void copy_end(struct copy *copy);
/* Drops the objects. It has ended. */
void copy_clear(struct copy *copy);
/* Waits until it was complete, or until a time of the system's monotonic clock. ST_TIMEOUT;
 * ST_CLOSED: it has ended. */
MUST_CHECK
enum status copy_wait_synced(struct copy *copy, int64_t until_ns);
/* ST_OK, ST_CLOSED, or ST_AGAIN: it was not complete yet. */
MUST_CHECK
enum status copy_sync_state(struct copy *copy);

/* With a reference for the caller. NULL: there is none. */
struct vigil_kube_object *copy_get(struct copy *copy, struct slice key);
/* ST_NOMEM. */
MUST_CHECK
enum status copy_list(struct copy *copy, struct vigil_kube_objects *ret_objects);
/* ST_NOMEM; ST_NOT_FOUND: there is no such index. */
MUST_CHECK
enum status copy_find(struct copy *copy, const char *index, struct slice value,
                      struct vigil_kube_objects *ret_objects);

/* Asserts every invariant; for tests. */
void copy_check(struct copy *copy);

#endif
