/*
 * All that an engine keeps as one file, in the form of etcd's own (bolt/schema.h): what its tools
 * call a snapshot. It is as the store was at one revision, however long the reading takes. An
 * operation as in engine/engine.h, started and then read on, each time with one completion:
 *
 *   start ──► done: the length is known ──► read ──► done: a piece ──► read … ──► close
 *
 * Reading costs the engine two pieces of memory and a bit for each compacted version; while it goes
 * on, segments of the log that were cleaned stay on the disk. If that runs full it is given up.
 */
#ifndef VIGIL_ENGINE_SNAPSHOT_H
#define VIGIL_ENGINE_SNAPSHOT_H

#include "engine/operation.h"

enum {
    ENGINE_SNAPSHOTS_MAX = 8, /* at once */
    ENGINE_SNAPSHOT_PIECE_BYTES = 128 << 10,
    ENGINE_SNAPSHOT_DIGEST_BYTES = 32, /* SHA-256 */
};

/* What stands in the file and only its asker knows. Texts last until it is closed. */
struct engine_snapshot_about {
    const char *storage_version; /* "3.6.0"; "": of an etcd before it had one */
    const char *cluster_version;
    struct slice member; /* JSON, as etcd keeps what it knows of a member */
};

struct engine_snapshot {
    struct engine_op op;                /* first: of the start, and of each read */
    struct engine_snapshot_about about; /* in */
    uint64_t bytes;                     /* after the start: how many there are */
    struct slice piece;                 /* after a read: valid until the next one, or closing */
    /* After the read of the last piece: of the whole file. */
    uint8_t digest[ENGINE_SNAPSHOT_DIGEST_BYTES];
    void *state; /* the engine's, as is the rest */
    _Atomic bool given_up;
};

/* ST_REQUEST_TOO_MANY_REQUESTS: ENGINE_SNAPSHOTS_MAX are under way. */
void engine_snapshot_start(struct engine_shard *shard, struct engine_snapshot *snapshot);
/*
 * The next piece: ENGINE_SNAPSHOT_PIECE_BYTES, or what is left of `bytes`, which is not nothing.
 * After a failure there is only closing. ST_DISK_FULL, ST_DAMAGED.
 */
void engine_snapshot_read(struct engine_snapshot *snapshot);
/* Nobody waits for what is under way: done comes soon. */
void engine_snapshot_give_up(struct engine_snapshot *snapshot);
/* Not while anything is under way. Does nothing for one that was not started well, or was closed.
 */
void engine_snapshot_close(struct engine_snapshot *snapshot);

#endif
