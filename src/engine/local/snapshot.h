/*
 * Snapshots of the local engine: a thread that makes their bytes, for all of them in turns, so that
 * neither shards nor the keeper read through the log for one.
 *
 *     shard ── start ──► keeper: rows, hold ──► GATHERED ──► measured here, in steps ──► answer
 *                           ▲                                   │
 *                           └──── compacted beyond it ──────────┘
 *     shard ── read ──► here: the piece made ahead is handed out, then the next is made
 *     shard ── close ──► here
 */
#ifndef VIGIL_ENGINE_LOCAL_SNAPSHOT_H
#define VIGIL_ENGINE_LOCAL_SNAPSHOT_H

#include "base/container/list.h"
#include "engine/snapshot.h"

#include <pthread.h>

struct engine_local;
struct epoch_slot;

struct local_snapshotter {
    struct engine_local *engine;
    struct turn *turn;
    pthread_t thread;
    struct waker waker;
    struct mailbox requests; /* struct local_snapshot */
    struct list all;         /* struct local_snapshot: those that came here */
    struct list measuring;   /* of those */
    struct epoch_slot *slot;
    unsigned count;         /* there are: the keeper's, but for … */
    _Atomic unsigned ended; /* … how many of those are not any more */
    _Atomic bool sheds;     /* what is held is needed: end them all */
    _Atomic bool stopping;
};

void local_snapshotter_init(struct local_snapshotter *snapshotter, struct engine_local *engine);
void local_snapshotter_start(struct local_snapshotter *snapshotter);
/* After all shards are gone, before the keeper stops. */
void local_snapshotter_stop(struct local_snapshotter *snapshotter);
void local_snapshotter_fini(struct local_snapshotter *snapshotter);

/* On the keeper's thread: one was started, or must begin anew. */
void local_snapshot_gather(struct local_snapshotter *snapshotter, struct engine_op *op);
/* On the keeper's thread: the disk is full, and segments are only there because they are held. */
void local_snapshots_shed(struct local_snapshotter *snapshotter);

/* On the shard's thread: of one that was started. Closing needs nobody's answer. */
void local_snapshot_post(struct engine_snapshot *snapshot, bool closes);

#endif
