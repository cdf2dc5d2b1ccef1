/*
 * What watches need that is older than the mirror: fetched from the cluster, shared by all watches
 * of the shard, and joined with the mirror's own history.
 *
 *     compacted by the     the cluster's past             the mirror's history
 *     cluster
 *     ─────────────────┼──────────────────────────────┼──────────────────────────►  revisions
 *                compact_revision               oldest                   newest
 *
 *     a watch reads revision r ──► r is in a range (event_range.h): its events
 *                              ──► a fetch (fetch.h) is at r: the watch waits for it
 *                              ──► otherwise a fetch is started there, or r waits for one to end
 *
 * It is a watch_history around that of the mirror's shard. One for each shard, on its thread.
 */
#ifndef VIGIL_MIRROR_BACKFILL_BACKFILL_H
#define VIGIL_MIRROR_BACKFILL_BACKFILL_H

#include "mirror/backfill/source.h"

struct backfill;
struct watch_hub;

enum {
    BACKFILL_BYTES_MAX = 64 << 20, /* kept by a shard; one revision at a time may go beyond it */
    BACKFILL_FETCHES_MAX = 4,      /* limit on the fetches of a shard at once */
};

struct backfill_options {
    struct loop *loop;
    struct backfill_cluster cluster;
    const struct slice *prefixes; /* that are mirrored, borrowed; none: all keys */
    size_t prefix_count;
    /* The cluster has compacted its history up to here: raises cluster.compacted. */
    void (*compacted)(void *ctx, int64_t revision);
    /* See watch_history_ops.is_void. NULL: there was no other history. */
    bool (*is_void)(void *ctx, int64_t revision);
    void *ctx;
    size_t bytes_max;          /* 0: BACKFILL_BYTES_MAX */
    size_t revision_bytes_max; /* 0: BACKFILL_REVISION_BYTES_MAX */
};

struct backfill *backfill_new(const struct backfill_options *options); /* aborts without memory */
/* The history of the mirror's shard is borrowed. Returns the one around it. */
struct watch_history *backfill_wrap(struct backfill *backfill, struct watch_history *own);
/* From now on it can fetch. The hub is borrowed until backfill_stop. */
void backfill_start(struct backfill *backfill, const struct backfill_calls *calls,
                    struct watch_hub *hub);
/* Ends all fetches and their calls. */
void backfill_stop(struct backfill *backfill);
/* After the mirror's shard was freed. Accepts NULL. */
void backfill_free(struct backfill *backfill);

/* At the end of a turn, after the mirror's: what was handed out may be dropped. */
void backfill_flushed(struct backfill *backfill);

struct backfill_stats {
    size_t bytes;
    unsigned fetches;
    uint64_t started; /* fetches, since the start */
};

struct backfill_stats backfill_stats(const struct backfill *backfill);
/* Asserts every invariant; for tests. */
void backfill_check(const struct backfill *backfill);

#endif
