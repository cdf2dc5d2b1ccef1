/*
 * Proves that the mirror has everything that happened before a moment: a list of the objects'
 * metadata, without a version and so the most recent one, begun after that moment.
 *
 *     idle ──begin──► listing ──► matching ──► done
 *
 * The list is of the server's version R. It is matched when the watch has delivered every item that
 * it had not delivered when the list came (those are early), and the deletion of every object that
 * is known with a version up to R and is not in the list (those are late). Then the mirror has the
 * state of R, although the watch may not have said so: the version of a list is that of all
 * resources together, which a quiet one never reaches. What may still be delivered are changes up
 * to R that cancel each other out.
 *
 * The list also shows whether what is known belongs to the server's history at all.
 *
 * Embedded by the follower of a collection; its thread.
 */
#ifndef VIGIL_TIER_MIRROR_FENCE_H
#define VIGIL_TIER_MIRROR_FENCE_H

#include "kubeclient/informer/fetcher.h"
#include "tier/mirror/objects.h"
#include "tier/mirror/request_queue.h"

struct tier_fence;

enum tier_fence_end {
    TIER_FENCE_MATCHED,
    TIER_FENCE_FAILED, /* the list was refused, or could not be read */
    TIER_FENCE_LATE,   /* not matched in time */
    TIER_FENCE_BEHIND, /* the server's version is lower than what was known at the beginning */
    TIER_FENCE_CONTRADICTED, /* what is known is not of the server's history */
};

struct tier_fence_ops {
    /* The list has come, and is matched now. */
    void (*listed)(struct tier_fence *fence);
    /* Not from within begin; it may begin another one. */
    void (*done)(struct tier_fence *fence, enum tier_fence_end end, const char *reason);
};

enum tier_fence_state { TIER_FENCE_IDLE, TIER_FENCE_LISTING, TIER_FENCE_MATCHING };

/* A key of the list. */
struct listed_item {
    uint64_t hash;
    uint64_t early; /* its version, while it was not delivered; otherwise 0 */
};

struct tier_fence {
    const struct tier_fence_ops *ops;
    enum tier_fence_state state;
    struct vigil_kube *kube;     /* borrowed */
    struct request_queue *queue; /* the same */
    struct request_waiter waiter;
    struct fetcher fetcher;
    struct fetcher_scope scope;
    const char *accept;            /* for whole objects, if the server has no metadata */
    const struct objects *objects; /* borrowed while it is not idle */
    const uint64_t *newest;        /* everything up to this version was delivered; borrowed */
    bool glances;                  /* it only compares the server's version */
    uint64_t known;                /* *newest at the beginning */
    uint64_t version;              /* R */
    struct listed_item *items;     /* owned: a set, by hash; 0: free */
    size_t item_count, item_capacity;
    size_t early, late;    /* how many are awaited; late objects are marked as is_late */
    bool has_deleted;      /* something was deleted since the beginning */
    uint64_t newest_early; /* the newest version of those that were early */
    struct buf key;
    int64_t begun_ns;
    struct timer timer;
};

/* The target's texts are borrowed. accept: of a list of whole objects. */
void tier_fence_init(struct tier_fence *fence, struct vigil_kube *kube, struct request_queue *queue,
                     const struct vigil_kube_target *target, const char *accept,
                     const struct tier_fence_ops *ops);
void tier_fence_fini(struct tier_fence *fence); /* it is idle */

/* While idle. A glance only compares the server's version with what is known. */
void tier_fence_begin(struct tier_fence *fence, const struct objects *objects,
                      const uint64_t *newest, bool glances, int64_t limit_ns);
/* done is not called. No effect if it is idle. */
void tier_fence_cancel(struct tier_fence *fence);

/* What was delivered meanwhile. An object has got this version, which is set by the caller
 * afterwards; or was deleted with it, and is about to be forgotten. */
void tier_fence_put(struct tier_fence *fence, struct known_object *object, uint64_t version);
void tier_fence_delete(struct tier_fence *fence, struct known_object *object, uint64_t version);
/* *newest has grown, after what it stands for was said above. May call done. */
void tier_fence_advance(struct tier_fence *fence);

#endif
