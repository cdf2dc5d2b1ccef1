/* The part of an engine that belongs to one I/O thread and is used only there (engine/engine.h). */
#ifndef VIGIL_ENGINE_SHARD_H
#define VIGIL_ENGINE_SHARD_H

#include "engine/engine_ops.h"
#include "io/loop.h"

/* On the thread that owns the loop. Operations of this shard complete in turns of that loop. */
MUST_CHECK
static inline enum status engine_shard_new(struct engine *engine, struct loop *loop,
                                           struct engine_shard **ret_shard)
{
    return engine->ops->shard_new(engine, loop, ret_shard);
}

static inline void engine_shard_free(struct engine_shard *shard) /* accepts NULL */
{
    if (shard)
        shard->engine->ops->shard_free(shard);
}

/* The server stops: operations that wait for another server fail soon, with ST_STOPPED. */
static inline void engine_shard_stop(struct engine_shard *shard)
{
    if (shard->engine->ops->shard_stop)
        shard->engine->ops->shard_stop(shard);
}

/*
 * Called by the owner of the loop in each turn, after the ready sockets were read, and at the end.
 * The first loads the newest published state for the watches of the turn and continues long reads;
 * the second passes the writes of the turn on together.
 */
static inline void engine_shard_turn_begin(struct engine_shard *shard)
{
    shard->engine->ops->turn_begin(shard);
}

static inline void engine_shard_turn_end(struct engine_shard *shard)
{
    shard->engine->ops->turn_end(shard);
}

/*
 * Called after output was sent, before the loop waits; every turn that began ends with it. Stored
 * bytes that watches sent without copying are released, and writes that were started while sending
 * are passed on.
 */
static inline void engine_shard_flushed(struct engine_shard *shard)
{
    shard->engine->ops->flushed(shard);
}

/* The shard's only hub, which holds its watch streams (watch/stream/stream.h). Owned by the shard.
 */
static inline struct watch_hub *engine_watch_hub(struct engine_shard *shard)
{
    return shard->engine->ops->watch_hub(shard);
}

enum { ENGINE_VERSION_BYTES_MAX = 32 };

struct engine_status {
    int64_t revision;
    int64_t compact_revision;
    uint64_t keys; /* that exist */
    uint64_t raft_index;
    uint64_t applied_index;
    int64_t db_size_bytes;
    int64_t db_size_in_use_bytes;
    int64_t quota_bytes;
    unsigned alarms; /* bit 1 << type is set for each raised alarm, of any member */
    char downgrade_target[ENGINE_VERSION_BYTES_MAX]; /* "": no downgrade is in progress */
};

/* From the shard's own data, immediately. */
static inline void engine_status_get(struct engine_shard *shard, struct engine_status *ret_status)
{
    shard->engine->ops->status_get(shard, ret_status);
}

/* The caller waits until engine_status_get returns this revision. An engine in front of a cluster
 * then requests it, since revisions without keys that it mirrors do not reach it by themselves. */
static inline void engine_await_revision(struct engine_shard *shard, int64_t revision)
{
    if (shard->engine->ops->await_revision)
        shard->engine->ops->await_revision(shard, revision);
}

static inline void engine_metrics_write(struct engine_shard *shard, struct metric_page *page)
{
    shard->engine->ops->metrics_write(shard, page);
}

#endif
