/*
 * A snapshot is the whole content of the engine at one revision as one file in the format of etcd's
 * snapshots (bolt/schema.h). It is one operation (engine/engine.h) with several completions:
 *
 *   start ──► done: the length is known ──► read ──► done: a piece ──► read … ──► close
 *
 * It needs memory for two pieces and one bit for each compacted version. While it exists, segments
 * of the log that were cleaned stay on disk; if the disk becomes full, it fails with ST_DISK_FULL.
 */
#ifndef VIGIL_ENGINE_SNAPSHOT_H
#define VIGIL_ENGINE_SNAPSHOT_H

#include "engine/engine_ops.h"

enum {
    ENGINE_SNAPSHOTS_MAX = 8, /* at once */
    ENGINE_SNAPSHOT_PIECE_BYTES = 128 << 10,
    ENGINE_SNAPSHOT_DIGEST_BYTES = 32, /* SHA-256 */
};

/* Parts of the file that only the caller knows. Texts are borrowed until it is closed. */
struct engine_snapshot_about {
    const char *storage_version; /* "3.6.0"; "": an etcd version that did not store one */
    const char *cluster_version;
    struct slice member; /* JSON, as etcd stores the attributes of a member */
};

struct engine_snapshot {
    struct engine_op op;                /* first; used by the start and by each read */
    struct engine_snapshot_about about; /* in */
    uint64_t bytes;                     /* after the start: the length of the file */
    struct slice piece;                 /* after a read: valid until the next read or close */
    uint8_t digest[ENGINE_SNAPSHOT_DIGEST_BYTES]; /* after the last piece: of the whole file */

    void *state; /* private to the engine */
};

/* ST_REQUEST_TOO_MANY_REQUESTS if ENGINE_SNAPSHOTS_MAX exist. */
static inline void engine_snapshot_start(struct engine_shard *shard,
                                         struct engine_snapshot *snapshot)
{
    snapshot->state = NULL;
    engine_start(shard, &snapshot->op, ENGINE_SNAPSHOT_START, NULL);
}

/*
 * Reads the next piece: ENGINE_SNAPSHOT_PIECE_BYTES, or the rest of `bytes`, which must not be
 * empty. ST_DISK_FULL, ST_DAMAGED; after a failure it can only be closed.
 */
static inline void engine_snapshot_read(struct engine_snapshot *snapshot)
{
    engine_start(snapshot->op.shard, &snapshot->op, ENGINE_SNAPSHOT_READ, NULL);
}

/* Not while an operation is in progress. Does nothing after a failed start or a close. */
static inline void engine_snapshot_close(struct engine_snapshot *snapshot)
{
    if (snapshot->state)
        snapshot->op.shard->engine->ops->snapshot_close(snapshot);
    snapshot->state = NULL;
}

#endif
