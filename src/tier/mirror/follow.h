/*
 * The follower's side of a collection: requests its state and its changes, gives them to the store,
 * and publishes what readers may see (collection_private.h).
 *
 *     reflector: what is requested ──► fetcher ──► events ──► objects, store queue ──► published
 *     currency: fences ──► lists of metadata, which the events match
 *
 * Generations: what is being loaded has keys with a number of its own. When it is complete and
 * visible to readers, it becomes the current one, and the keys of the one before are deleted.
 *
 * The follower's thread.
 */
#ifndef VIGIL_TIER_MIRROR_FOLLOW_H
#define VIGIL_TIER_MIRROR_FOLLOW_H

#include "tier/mirror/collection_private.h"
#include "tier/mirror/currency.h"
#include "tier/mirror/generations.h"
#include "tier/mirror/reflector.h"

struct tier_follow;

/* What the collections of a mirror share. */
struct tier_follower {
    struct vigil_kube *kube; /* owned by the mirror */
    struct engine *engine;
    struct store_queue *queue;
    struct request_queue requests; /* that wait for the limit of calls */
    struct fence_line fences;
    struct sweeper sweeper;
    struct list awaiting;          /* tier_follow.in_awaiting: those that wait for the store */
    uint64_t collection_bytes_max; /* limits one state of a collection; 0: no limit */
    uint64_t bytes_max;            /* limits all states together; 0: no limit */
    /* There are more: gives up a collection, perhaps the one that has just grown. */
    void (*is_full)(void *ctx, struct tier_follow *grown);
    void *full_ctx;
    int64_t refused_ns, fence_ns;
    void (*log)(void *ctx, int level, const char *text); /* may be NULL */
    void *log_ctx;
};

struct tier_follow {
    struct tier_collection collection; /* first */
    struct tier_follower *follower;
    struct buf name; /* by which the mirror finds it */
    struct list in_mirror, in_awaiting;
    bool is_over; /* it is not followed any more, and freed when its keys are deleted */

    /* Requests. */
    struct tier_reflector reflector;
    struct fetcher_scope scope;
    struct fetcher fetcher;
    struct request_waiter waiter;
    struct timer wait;
    bool accepted;                  /* the server has accepted the watch under way */
    uint64_t resumed;               /* the watch began after this version */
    char reason[TIER_REASON_BYTES]; /* the last failure; "": none */
    bool fails;                     /* tier_collection.fails */
    bool has_item;                  /* probing: an item was seen */
    bool item_has_kinds;
    struct buf item_kind, item_api_version;
    struct buf key; /* key of the object that was read last */

    /* Objects. */
    struct tier_generations generations;
    uint64_t loading_fence, next_fence; /* numbers of the fences that states are */

    struct tier_currency currency;
    bool was_broken; /* a connection was lost since the watch was accepted */

    /* Refusals. */
    int64_t refused_until_ns;
    uint64_t refused_opened; /* how often it had been opened then */
    unsigned refusals;       /* that cost a whole state, in a row */
    unsigned contradictions; /* since the first of them */
    int64_t contradicted_ns;

    /* Idleness. */
    uint64_t opened_before;
    int64_t idle_since_ns;
};

/* Not followed yet, with one reference. ST_NOMEM. */
MUST_CHECK
enum status tier_follow_new(struct tier_follower *follower, const struct tier_name *name,
                            uint32_t number, uint64_t seed, struct tier_follow **ret_follow);
/* It is over, and nothing refers to it; or the loop has ended. */
void tier_follow_free(struct tier_follow *follow);

/* Looks at what readers want: begins to follow it, and fences. */
void tier_follow_look(struct tier_follow *follow);
/* More was applied: publishes it. */
void tier_follow_applied(struct tier_follow *follow);
/* The store has begun or ended to refuse what it is given, or to be under pressure. */
void tier_follow_store_changed(struct tier_follow *follow);
/* Now and then. */
void tier_follow_tick(struct tier_follow *follow);
/* There is no room for it. */
void tier_follow_refuse(struct tier_follow *follow);
/* It is not used any more. */
void tier_follow_end(struct tier_follow *follow);
/* The loop ends: all requests are cancelled. */
void tier_follow_stop(struct tier_follow *follow);
/* History up to this revision is dropped from now on. */
void tier_follow_compact(struct tier_follow *follow, int64_t revision);

/* Asserts every invariant; for tests. */
void tier_follow_check(struct tier_follow *follow);

#endif
