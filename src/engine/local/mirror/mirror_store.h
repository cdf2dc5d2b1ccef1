/*
 * A local engine as the mirror of another server (engine_local_options.is_mirror): its content is
 * given to it revision by revision, with the numbers of that server. It has no leases, users and
 * alarms of its own, refuses writes, and does not sync: after a crash of the machine, and only
 * then, what is on disk is worthless (mirror/directory/directory.h).
 */
#ifndef VIGIL_ENGINE_LOCAL_MIRROR_MIRROR_STORE_H
#define VIGIL_ENGINE_LOCAL_MIRROR_MIRROR_STORE_H

#include "engine/keys.h"
#include "store/mvcc/applier.h"

struct watch_history;

/* All changes of one revision. A tombstone of a key that does not exist is left out. */
struct mirror_revision {
    int64_t revision;
    const struct imported_change *changes; /* in the order of sub, which counts from 0 */
    size_t count;
};

/* Something to be applied. Owned by the caller, and unchanged until done. */
struct mirror_batch {
    const struct mirror_revision *revisions; /* in order, newer than all before */
    size_t count;
    /* Afterwards everything up to this revision is known, even if nothing of it is in the mirror;
     * 0: up to the last one of the batch. */
    int64_t reach;
    /* Afterwards history up to this revision is dropped, and everything up to it is known: watches
     * that still need it end as compacted. 0: nothing is dropped. */
    int64_t compact;
    /*
     * More batches of the same state follow: readers see nothing of them before the last one, which
     * has it false. All have the same `compact`, the revision of the state, so that no watch reads
     * the revisions of a state as if they were its history. A start that finds only some of the
     * parts discards the mirror (mirror/directory/directory.h).
     */
    bool is_part;
    /* On the writer's thread, when it is visible to readers; of a part, when it is applied. A
     * failure is ST_DISK_FULL, ST_IO or ST_NOMEM, if a file of the log cannot be made, or
     * ST_INVALID: revisions of the batch before it may be applied; or ST_STOPPED, after on_failure.
     */
    void (*done)(struct mirror_batch *batch, enum status status);
    void *user;

    /* Set before done: how many of the revisions were applied. After a failure other than
     * ST_INVALID and ST_STOPPED the rest may be given again. */
    size_t applied;

    struct engine_op op; /* private to the engine */
};

/* Any thread. Batches are applied in the order in which they are given. */
void local_mirror_apply(struct engine *engine, struct mirror_batch *batch);
/*
 * After a batch has failed, all that follow fail with the same status, because the mirror would
 * lack something between them. To be called when they are all done: the next batch continues after
 * local_mirror_revision, or with the rest of a state.
 */
void local_mirror_retry(struct engine *engine);

/* The mirror's own newest and compact revision; any thread, without a lock. */
int64_t local_mirror_revision(const struct engine *engine);
int64_t local_mirror_compact_revision(const struct engine *engine);
/* Any thread: something that was read since the start is not what was written. */
bool local_mirror_is_damaged(const struct engine *engine);

/* Continues a range that was started with another engine on a mirror's shard. False: the mirror has
 * dropped the request's revision; done is not called, and the other engine may continue the range.
 */
MUST_CHECK
bool local_mirror_range_start(struct engine_shard *shard, struct engine_range *range);

/*
 * Walks the mirror's present keys in order, for a comparison with the cluster's: one walk at a time
 * per engine, on one thread. It shows the state in which it began, also if more is applied
 * meanwhile, unless that compacts it. What it returns is valid until the next call.
 */
struct mirror_walk;
struct mirror_walk *local_mirror_walk_new(struct engine *engine); /* aborts without memory */
/* False at the end, and before it if stored bytes are damaged. */
MUST_CHECK
bool local_mirror_walk_next(struct mirror_walk *walk, struct slice *ret_key,
                            int64_t *ret_mod_revision);
/* Everything about the key that was returned last, valid until the next call of either function. If
 * it cannot be read, only the key, and the walk is not complete. */
void local_mirror_walk_get(struct mirror_walk *walk, struct change_kv *ret_kv);
bool local_mirror_walk_is_complete(const struct mirror_walk *walk); /* it has come to the end */
void local_mirror_walk_free(struct mirror_walk *walk);              /* accepts NULL */

/*
 * Puts another history between that of a shard and its watches, for what is older than the mirror.
 * Called on the shard's thread before its hub is used; `wrap` is called when the hub is made, and
 * what it returns is used until the shard is freed.
 */
void local_mirror_wrap_history(struct engine_shard *shard,
                               struct watch_history *(*wrap)(void *ctx, struct watch_history *own),
                               void *ctx);

#endif
