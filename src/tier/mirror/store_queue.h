/*
 * Gives changes to the store, a limited number of batches at a time, and returns to the follower's
 * thread when one is applied:
 *
 *     store_queue_put … ──► open batch ──(full, or the turn ends)──► waiting ──► in flight ──► done
 *                                                                      ▲             │
 *                                                                      └─(refused)───┘
 *
 * Nothing is given to the store before the turn ends, so that what readers must know about a change
 * can be said after it was put here. A batch that is refused, because the disk is full, is given
 * again after a while, in its place, until the store accepts it.
 *
 * Owned by the follower; its thread, except where it says otherwise.
 */
#ifndef VIGIL_TIER_MIRROR_STORE_QUEUE_H
#define VIGIL_TIER_MIRROR_STORE_QUEUE_H

#include "base/slice.h"
#include "base/status.h"

#include <stdbool.h>

struct driver;
struct engine;
struct store_queue;

enum {
    STORE_QUEUE_BATCHES_MAX = 4,       /* in flight: one is applied while the next ones are made */
    STORE_QUEUE_BATCH_BYTES = 1 << 20, /* about, unless a single change has more */
    /* Beyond this what was not applied is under pressure, until half of it is applied. */
    STORE_QUEUE_BYTES_MAX = 16 << 20,
};

struct store_queue_options {
    struct engine *engine;
    struct driver *driver; /* the queue takes a reference */
    /* Something was applied: local_mirror_revision has grown. */
    void (*applied)(void *ctx);
    /* store_queue_is_pressed has changed. */
    void (*pressure)(void *ctx);
    /* The store refuses what it is given, with the reason; ST_OK: it does not any more. */
    void (*refused)(void *ctx, enum status status);
    void *ctx;
};

/* ST_NOMEM. */
MUST_CHECK
enum status store_queue_new(const struct store_queue_options *options,
                            struct store_queue **ret_queue);
/* On the loop's thread when it ends: nothing is given to the store any more. */
void store_queue_stop(struct store_queue *queue);
/* Any thread, when the loop has ended: waits for the store. Accepts NULL. */
void store_queue_free(struct store_queue *queue);

/* The newest revision that was used; the next change gets the one after it. */
int64_t store_queue_revision(const struct store_queue *queue);
/* What was put here and is not applied. */
size_t store_queue_bytes(const struct store_queue *queue);
/* Too much is not applied: what is not needed at once should not be read. */
bool store_queue_is_pressed(const struct store_queue *queue);
enum status store_queue_failure(const struct store_queue *queue); /* ST_OK: it does not refuse */

struct store_put {
    struct slice prefix, key;
    struct slice value[3]; /* one after the other */
    uint64_t version;
    int64_t create_revision; /* 0: the key is new */
};

/* Each uses one revision. ST_NOMEM: nothing was done. */
MUST_CHECK
enum status store_queue_put(struct store_queue *queue, const struct store_put *put,
                            int64_t *ret_revision);
/* Tombstones. At least one key. */
MUST_CHECK
enum status store_queue_delete(struct store_queue *queue, struct slice prefix,
                               const struct slice *keys, size_t count, int64_t *ret_revision);
/* A revision without changes. */
MUST_CHECK
enum status store_queue_reach(struct store_queue *queue, int64_t *ret_revision);
/* Drops history up to a revision that was applied. */
MUST_CHECK
enum status store_queue_compact(struct store_queue *queue, int64_t revision);

/* Asserts every invariant; for tests. */
void store_queue_check(const struct store_queue *queue);

#endif
