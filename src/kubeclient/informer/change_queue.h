/*
 * The changes of a cache that one consumer has not taken yet. Each consumer has its own queue,
 * so that a slow one delays no other.
 *
 *     change_queue_reserve, change_queue_add ──► incoming ──change_queue_publish──► waiting ──► change_queue_take
 *
 * Changes are published some at a time, so that there is one lock for many of them. A consumer that
 * keeps up gets every change. If the consumer is slow, so that many changes wait, later changes are
 * joined with the one of the same object that waits: it gets fewer, and always the latest state,
 * with the state that it saw before. So the memory is bounded by the number of objects, however
 * slow the consumer is:
 *
 *     waiting      then        becomes
 *     added        updated     added, with the newer state
 *     added        removed     nothing
 *     updated      updated     updated, from the first old state to the newest one
 *     updated      removed     removed, with the last known state
 *     removed      added       updated: the object was made again
 *     anything     resync      what it was
 *     resync       anything    that
 *
 * Only change_queue_reserve needs memory. It is called before the cache changes, so a change that
 * is made can also be reported. (Without memory for the table of what waits, changes are not
 * joined.)
 *
 * The cache's owner adds and publishes, with the cache's lock if it has one, and any one thread
 * takes.
 */
#ifndef VIGIL_KUBECLIENT_INFORMER_CHANGE_QUEUE_H
#define VIGIL_KUBECLIENT_INFORMER_CHANGE_QUEUE_H

#include "base/container/list.h"
#include "base/lock.h"
#include "io/readable.h"
#include "kubeclient/informer/cache.h"

enum { CHANGES_UNJOINED_MAX = 1024, CHANGES_UNJOINED_BYTES_MAX = 8 << 20 };

/* A change for the consumer, with references to both objects. */
struct queued_change {
    enum cache_change_kind kind;
    struct vigil_kube_object *before; /* what the consumer saw last; NULL if it was added */
    struct vigil_kube_object *object; /* now; of an object that was removed its last known state */
    bool in_list, state_unknown;      /* as in struct cache_change */
    bool resync;                      /* updated: nothing has changed */
};
void queued_change_fini(struct queued_change *change);

struct change_queue {
    /* The cache's owner. */
    struct list incoming; /* struct waiting_change each: added, and not published */
    size_t incoming_count;
    struct waiting_change *spare; /* reserved; NULL: none */

    struct lock lock; /* protects what follows */
    pthread_cond_t changed;
    struct hash_map waiting; /* struct waiting_change each: those that others may be joined with */
    struct list order;       /* owned: all that wait, oldest first */
    size_t count, bytes;     /* number of those, and size of their objects */
    size_t join_count;       /* changes are joined while at least this many wait */
    uint64_t published;      /* so many changes were put into the order */
    uint64_t taken;          /* the number of the change that the consumer has not finished; or 0 */
    uint64_t mark;           /* the last change of the first state */
    bool marked;
    bool over;
    bool has_readable;
    struct readable readable; /* while a change waits, and after the end */
};

/* With a descriptor to wait for, if the consumer needs one. ST_LIMIT: none is left. */
MUST_CHECK
enum status change_queue_init(struct change_queue *queue, uint64_t seed, bool with_readable);
/* No other thread uses it any more. */
void change_queue_fini(struct change_queue *queue);

/* -- For the owner of the cache -- */

/* Before one change_queue_add or change_queue_resync. What is reserved may also be left unused.
 * ST_NOMEM.
 */
MUST_CHECK
enum status change_queue_reserve(struct change_queue *queue);
void change_queue_add(struct change_queue *queue, const struct cache_change *change);
/* The object is to be reported again. */
void change_queue_resync(struct change_queue *queue, const struct vigil_kube_object *object);
/* The consumer can take what was added. */
void change_queue_publish(struct change_queue *queue);
/* Publishes: what was added so far is the first complete state. The first call counts. */
void change_queue_mark_state(struct change_queue *queue);

/* -- For the consumer -- */

/* Takes the oldest change, and waits for it until a time of the system's monotonic clock; 0 does
 * not wait, CLOCK_NEVER waits without a limit. ST_TIMEOUT; ST_CLOSED: change_queue_end was called.
 */
MUST_CHECK
enum status change_queue_take(struct change_queue *queue, int64_t until_ns,
                              struct queued_change *ret_change);
/* The consumer has finished with what it took. */
void change_queue_finish(struct change_queue *queue);

/* -- Any thread -- */

/* The consumer has finished with the first complete state. */
bool change_queue_has_state(struct change_queue *queue);
/* Changes that wait are dropped, and threads that wait return. */
void change_queue_end(struct change_queue *queue);
/* How many changes were published and are still in the queue. */
size_t change_queue_count(struct change_queue *queue);

/* Asserts every invariant; for tests. */
void change_queue_check(struct change_queue *queue);

#endif
