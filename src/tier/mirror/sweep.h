/*
 * The keys of a generation in the store, with what is known of them; and how those of generations
 * that are not read any more are deleted: a few at a time, so that it delays nothing else. The
 * follower's thread.
 */
#ifndef VIGIL_TIER_MIRROR_SWEEP_H
#define VIGIL_TIER_MIRROR_SWEEP_H

#include "base/container/list.h"
#include "tier/mirror/objects.h"

struct engine;
struct store_queue;

enum {
    SWEEP_KEYS = 512, /* in one revision; the next ones follow when it is applied */
    SWEEP_PREFIX_BYTES = 12,
};

struct generation_keys {
    uint64_t number; /* number of the generation */
    uint8_t prefix[SWEEP_PREFIX_BYTES];
    struct objects objects;
    struct list in_owner; /* links the lists of its owner, and then sweeper.all */
    /* While it is being deleted: */
    size_t at;       /* how far the sweeper has come */
    unsigned *count; /* the owner's number of those that are being deleted */
};

/* NULL: no memory. */
struct generation_keys *generation_keys_new(uint64_t number, uint64_t seed, struct usage *usage);
void generation_keys_free(struct generation_keys *keys); /* accepts NULL */

static inline struct slice generation_prefix(const struct generation_keys *keys)
{
    return slice_of(keys->prefix, sizeof(keys->prefix));
}

struct sweeper {
    struct engine *engine;
    struct store_queue *queue;
    struct usage usage; /* what the mirror takes */
    struct list all;    /* generation_keys.in_owner, the next one first */
    int64_t awaited;    /* the revision that must be applied before more is deleted */
};

void sweeper_init(struct sweeper *sweeper, struct engine *engine, struct store_queue *queue);
void sweeper_fini(struct sweeper *sweeper); /* what was not deleted remains in the store */

/* Takes the keys, and raises *count until they are deleted. */
void sweeper_add(struct sweeper *sweeper, struct generation_keys *keys, unsigned *count);
/* To be called when something was applied, and now and then. */
void sweeper_continue(struct sweeper *sweeper);

#endif
