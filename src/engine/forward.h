/*
 * A call that an engine in front of a cluster passes on without understanding it: the messages as
 * the client has sent them, with its token; the answers, code and text as the cluster sends them.
 *
 *     start ──► send … ──► half_close ──► on_message … ──► on_end
 *       └──────────────────── cancel: nothing is called any more
 *
 * on_end is called exactly once unless the call is cancelled, never from within start, and is the
 * last function that is called. A call that has been sent to a server is not sent again, unless it
 * certainly was not processed or only reads.
 *
 * Embedded in the caller's state; used on the shard's thread.
 */
#ifndef VIGIL_ENGINE_FORWARD_H
#define VIGIL_ENGINE_FORWARD_H

#include "engine/engine_ops.h"

struct engine_forward;

struct engine_forward_ops {
    void (*on_message)(struct engine_forward *forward, struct slice message); /* borrowed */
    void (*on_end)(struct engine_forward *forward, enum grpc_code code, struct slice text);
    /* For a call with one answer that is kept until the client has read it: a long one takes part
     * of a limit until engine_forward_cancel, also after on_end. on_overdue says that others have
     * waited long for it. NULL: answers are not kept. */
    void (*on_overdue)(struct engine_forward *forward);
};

struct engine_forward {
    /* Set by the caller; borrowed until the end. */
    const struct engine_forward_ops *ops;
    struct slice path; /* "/etcdserverpb.KV/Put" */
    struct auth_principal principal;
    struct slice via; /* the field grpcgateway-accept of the call, which other servers have set */
    int64_t deadline_ns; /* by the loop's clock; CLOCK_NEVER: none. The engine ends the call then */
    bool reads;          /* changes nothing, so it may be repeated before its first answer */
    bool lasts;          /* a stream without an end, such as Observe */
    bool waits;          /* it may take long, as a lock, a stream or a snapshot does */
    bool require_leader;

    /* Private to the engine. */
    struct engine_shard *shard;
    void *state, *kept;
    int64_t compacts; /* the revision of a compaction; 0: it is another call */
};

/* Whether the engine is in front of a cluster. Without one the functions below must not be used. */
static inline bool engine_forwards(const struct engine *engine)
{
    return engine->ops->forward_start;
}

static inline void engine_forward_start(struct engine_shard *shard, struct engine_forward *forward)
{
    forward->shard = shard;
    forward->state = NULL;
    shard->engine->ops->forward_start(shard, forward);
}

/* Queues a copy. ST_NOMEM; ST_LIMIT: the cluster takes messages more slowly than they come. */
MUST_CHECK
static inline enum status engine_forward_send(struct engine_forward *forward, struct slice message)
{
    return forward->shard->engine->ops->forward_send(forward, message);
}

static inline void engine_forward_half_close(struct engine_forward *forward)
{
    forward->shard->engine->ops->forward_half_close(forward);
}

/* While paused, the cluster gets no more window for this call. */
static inline void engine_forward_pause(struct engine_forward *forward, bool paused)
{
    forward->shard->engine->ops->forward_pause(forward, paused);
}

/* After the end it only says that an answer is not kept any more. */
static inline void engine_forward_cancel(struct engine_forward *forward)
{
    forward->shard->engine->ops->forward_cancel(forward);
}

#endif
