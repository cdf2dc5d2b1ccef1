/*
 * Snapshots of the local engine. A thread of their own, the snapshotter, produces their bytes, for
 * all snapshots in turn, so that neither shards nor the keeper read the whole log for one.
 *
 *     shard ── start ──► keeper: collects rows, holds segments ──► snapshotter: measures, in steps
 *                           ▲                                          │           └──► answer
 *                           └───────── compacted meanwhile ────────────┘
 *     shard ── read ──► snapshotter: returns the piece made in advance, then makes the next
 *     shard ── close ──► snapshotter
 */
#ifndef VIGIL_ENGINE_LOCAL_SNAPSHOT_SNAPSHOT_H
#define VIGIL_ENGINE_LOCAL_SNAPSHOT_SNAPSHOT_H

#include "engine/local/state/shared.h"

#include <pthread.h>

struct upkeep;

struct local_snapshotter {
    struct local_shared *shared;
    struct local_snapshot_inbox *inbox; /* the shared one */
    struct turn *turn;
    pthread_t thread;
    struct list all;       /* struct local_snapshot: those that this thread owns */
    struct list measuring; /* the subset that is being measured */
    struct epoch_slot *slot;
    _Atomic bool stopping;
};

void local_snapshotter_init(struct local_snapshotter *snapshotter, struct local_shared *shared);
void local_snapshotter_start(struct local_snapshotter *snapshotter);
/* After all shards were freed, before the keeper stops. */
void local_snapshotter_stop(struct local_snapshotter *snapshotter);
void local_snapshotter_fini(struct local_snapshotter *snapshotter);

/* On the keeper's thread: starts a snapshot, or begins one again. */
void local_snapshot_collect(struct local_shared *shared, struct upkeep *upkeep,
                            struct engine_op *op);
/* On the keeper's thread: the disk is full, and snapshots hold segments that could be removed. */
void local_snapshots_end_all(struct local_snapshot_inbox *inbox);

/* On the shard's thread, after a successful start: reads on or closes. Closing has no completion.
 */
void local_snapshot_post(struct local_snapshot_inbox *inbox, struct engine_snapshot *snapshot,
                         bool closes);

#endif
