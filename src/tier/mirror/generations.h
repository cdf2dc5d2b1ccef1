/*
 * The generations of a collection: what is received goes to the store under the prefix of one of
 * them, and what readers may see of it is published.
 *
 *     begin ──► loading ──complete──► current, not visible yet ──publish──► what readers use
 *                  │drop                                                         │ replaced
 *                  └────────────────────► deleted by the sweeper ◄───────────────┘
 *
 * Embedded by the follower of a collection; its thread.
 */
#ifndef VIGIL_TIER_MIRROR_GENERATIONS_H
#define VIGIL_TIER_MIRROR_GENERATIONS_H

#include "base/buf.h"
#include "tier/mirror/collection_private.h"
#include "tier/mirror/sweep.h"

struct arrived;
struct store_queue;
struct tier_fence;

struct tier_generations {
    struct tier_collection *collection;
    struct store_queue *queue;
    struct sweeper *sweeper;
    unsigned sweeps;                 /* generations that are being deleted */
    uint64_t last_number;            /* the number of the last generation */
    struct generation_keys *current; /* owned: the newest complete one; NULL: none */
    struct generation_keys *loading; /* owned: a state that is being received; NULL: none */
    struct list replaced; /* complete ones before, which readers may use until the next is there */
    uint64_t loading_newest;
    int64_t last_revision; /* the last change of the current one, or its beginning */
    uint64_t last_version; /* the newest that was delivered, of the newest complete one or before */
    uint64_t void_after, void_until; /* as in struct tier_view */
    struct tier_generation next;     /* the current one while it is not visible; number 0: it is */
    /* What JSON objects lack that have no kind, no apiVersion, or neither. */
    struct buf head[4];
};

void generations_init(struct tier_generations *g, struct tier_collection *collection,
                      struct store_queue *queue, struct sweeper *sweeper);
/* Their keys remain in the store, except for those that the sweeper has. */
void generations_fini(struct tier_generations *g);

/* ST_NOMEM. */
MUST_CHECK
enum status generations_set_kinds(struct tier_generations *g, struct slice kind,
                                  struct slice api_version);

/* -- A state that is being received -- */

MUST_CHECK
enum status generations_begin(struct tier_generations *g, uint64_t seed); /* ST_NOMEM */
void generations_drop(struct tier_generations *g); /* no effect if there is none */
MUST_CHECK
enum status generations_load(struct tier_generations *g, const struct arrived *arrived,
                             struct slice object); /* ST_NOMEM */
MUST_CHECK
enum status generations_unload(struct tier_generations *g, const struct arrived *arrived);
/* It is complete, and has everything up to this version. ST_NOMEM. */
MUST_CHECK
enum status generations_complete(struct tier_generations *g, uint64_t version);

/* -- Changes of the current one; its fence learns of them -- */

/* ST_NOMEM; ST_DAMAGED: it exists, although the event says that it is created, or does not although
 * the event says that it does. Then nothing was done. */
MUST_CHECK
enum status generations_put(struct tier_generations *g, const struct arrived *arrived,
                            struct slice object, bool creates, struct tier_fence *fence);
MUST_CHECK
enum status generations_delete(struct tier_generations *g, const struct arrived *arrived,
                               struct tier_fence *fence);
/* Nothing else has happened up to this version. ST_NOMEM. */
MUST_CHECK
enum status generations_reach(struct tier_generations *g, uint64_t version);

/* -- Readers -- */

/* Everything that was put here is visible to them. */
bool generations_are_visible(const struct tier_generations *g);
/* If the current one has become visible, readers use it from now on. True: it was published; the
 * caller tells readers. */
MUST_CHECK
bool generations_publish(struct tier_generations *g);
/* With the collection's lock held: readers may use none any more. */
void generations_hide(struct tier_generations *g);
/* All are deleted. Readers may use none. */
void generations_sweep(struct tier_generations *g);
/* History up to this revision is dropped from now on. */
void generations_compact(struct tier_generations *g, int64_t revision);

/* What its states take that may be read or are being received (usage.h). */
uint64_t generations_usage(const struct tier_generations *g);

/* Asserts every invariant; for tests. */
void generations_check(const struct tier_generations *g);

#endif
