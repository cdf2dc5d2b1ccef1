/*
 * What passes between the threads of the local engine, and the mailboxes through which it passes:
 *
 *   shards ── writes, lease reads ──────────────► writer ── answers ──► shards
 *   shards ── hashes, defragments, snapshots ───► keeper ── answers ──► shards
 *   shards ── reads of a snapshot ─────────► snapshotter ── answers ──► shards
 *
 *   keeper ── jobs ──► writer ── the same jobs, and compactions ──► keeper
 *   keeper ── snapshots with their rows ──► snapshotter ── snapshots to begin again ──► keeper
 *
 * A mailbox belongs to the thread that receives; every thread may post.
 */
#ifndef VIGIL_ENGINE_LOCAL_STATE_MESSAGES_H
#define VIGIL_ENGINE_LOCAL_STATE_MESSAGES_H

#include "engine/engine_ops.h"

struct relocation;

/* -- Operations -- */

/* The kind of engine_op that only the writer of a mirror gets: a struct mirror_batch. */
enum { LOCAL_MIRROR = ENGINE_KINDS };

/* For reports of long turns (base/metric/turn.h). Empty for operations that are never long. */
struct slice local_op_name(const struct engine_op *op);

static inline struct engine_op *op_of(struct mailbox_node *node)
{
    return CONTAINER_OF(node, struct engine_op, in_mailbox);
}

/* -- Jobs -- */

/* Work that the keeper gives to the writer. All but LOCAL_FORGET return to the keeper when done. */
enum local_job_kind {
    LOCAL_RELOCATE, /* point the index to the copies */
    LOCAL_FORGET,   /* remove the segment */
    LOCAL_TRIM,     /* finish trimming compacted versions */
    LOCAL_SHRINK,   /* reduce the reported size to the bytes in use */
};
struct local_job {
    struct mailbox_node in_mailbox;
    enum local_job_kind kind;
    struct relocation *relocation; /* owned */
    uint64_t segment;
};

void local_job_free(struct local_job *job);

/* A compaction was applied. The keeper hashes the history before it drops any of it. */
struct local_compacted {
    struct mailbox_node in_mailbox;
    int64_t before, revision; /* compacted up to here before, and now */
};

/* -- Mailboxes -- */

struct local_writer_inbox {
    struct waker waker;
    struct mailbox requests;    /* struct engine_op */
    struct mailbox lease_reads; /* struct engine_op: calls that usually need no record */
    struct mailbox jobs;        /* struct local_job */
};

/* Limits of operations that wait for the keeper, for all shards together. */
enum { LOCAL_HASHES_MAX = 16, LOCAL_DEFRAGMENTS_MAX = 64 };

struct local_keeper_inbox {
    struct waker waker;
    struct mailbox requests;    /* struct engine_op: hashes, defragments, long lists of leases */
    struct mailbox compactions; /* struct local_compacted */
    struct mailbox finished;    /* struct local_job */
    _Atomic unsigned hashes_waiting, defragments_waiting;
    _Atomic bool dirty;    /* the log has grown since the last checkpoint */
    _Atomic bool unmarked; /* the log has grown since the last mark (log_mark) */
};

struct local_snapshot_inbox {
    struct waker waker;
    struct mailbox requests; /* struct local_snapshot */
    unsigned count;          /* snapshots that exist; the keeper's, which subtracts … */
    _Atomic unsigned ended;  /* … those that have ended since */
    _Atomic bool disk_full;  /* end all snapshots: the segments they hold are needed */
};

/* The part of a shard that other threads use. */
struct local_shard_base {
    struct engine_shard shard; /* first */
    unsigned number;
    bool is_direct;         /* a thread without a shard: the answering thread calls done
                             * (engine/local/shard/direct.h) … */
    struct mailbox answers; /* … otherwise attached to the shard's loop */
    /* Number of threads that are posting to answers. The last answer may be received before its
     * sender has woken the loop; neither may be freed until it has. */
    _Atomic unsigned posting;
};

static inline unsigned local_shard_number(const struct engine_op *op)
{
    return CONTAINER_OF(op->shard, struct local_shard_base, shard)->number;
}

/* Any thread: completes operations on their shard. */
void local_answer(struct engine_op *op);
void local_answer_chain(struct local_shard_base *shard, const struct mailbox_chain *chain);
/* Completes operations of any shards, which are linked by next, with an error; and those of a
 * chain, which becomes empty. */
void local_refuse(struct mailbox_node *node, enum status status);
void local_refuse_chain(struct mailbox_chain *chain, enum status status);

#endif
