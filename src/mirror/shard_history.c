/* Joins the history of the mirror's shard with the cluster's own past (backfill/backfill.h). */
#include "codec/pb/rpc.pb.h"
#include "engine/local/mirror/mirror_store.h"
#include "mirror/backfill/backfill.h"
#include "mirror/directory/directory.h"
#include "mirror/follow/follower.h"
#include "mirror/link/upstream.h"
#include "mirror/shard.h"

static struct watch_history *wrap(void *backfill, struct watch_history *own)
{
    return backfill_wrap(backfill, own);
}

static void cluster_compacted(void *ctx, int64_t revision)
{
    struct mirror_shard *shard = ctx;
    mirror_state_raise(&shard->shared->state.compacted, revision);
    follower_note_compaction(shard->shared->follower, revision);
}

static bool cluster_is_void(void *ctx, int64_t revision)
{
    struct mirror_shard *shard = ctx;
    return mirror_state_is_void(&shard->shared->state, revision);
}

enum status mirror_store_shard_new(struct mirror_shard *shard)
{
    struct mirror_shared *shared = shard->shared;
    shard->backfill = backfill_new(&(struct backfill_options){
        .loop = shard->loop,
        .cluster = {.oldest = &shared->state.oldest,
                    .compacted = &shared->state.compacted,
                    .void_until = &shared->state.void_until,
                    .progress_reliable = &shared->state.progress_reliable,
                    .cluster_id = &shared->state.cluster_id,
                    .connected = &shared->state.connected,
                    .times_connected = &shared->state.times_connected},
        .prefixes = shared->options.prefixes,
        .prefix_count = shared->options.prefix_count,
        .compacted = cluster_compacted,
        .is_void = cluster_is_void,
        .ctx = shard,
    });
    TRY(engine_shard_new(shared->mirror->engine, shard->loop, &shard->store_shard));
    local_mirror_wrap_history(shard->store_shard, wrap, shard->backfill);
    return ST_OK;
}

/* -- Calls -- */

static void on_message(struct upstream_call *call, struct slice message)
{
    backfill_source_received(upstream_call_user(call), message);
}

static void on_end(struct upstream_call *call, enum grpc_code code, struct slice text)
{
    (void)code; /* upstream_failure says why the cluster cannot be reached */
    backfill_source_ended(upstream_call_user(call), text);
}

static struct upstream_call *open_watch(void *ctx, struct backfill_source *source)
{
    static const struct upstream_ops ops = {.on_message = on_message, .on_end = on_end};
    struct upstream_request request = {
        .path = SLICE_LITERAL(PB_WATCH_WATCH_PATH),
        .caller.is_self = true,
        .deadline_ns = CLOCK_NEVER,
        .reads = true,
        .lasts = true,
    };
    struct mirror_shard *shard = ctx;
    struct upstream_call *call;
    enum status status = upstream_start(shard->upstream, &request, &ops, source, &call);
    return status == ST_OK ? call : NULL;
}

void mirror_backfill_start(struct mirror_shard *shard)
{
    struct backfill_calls calls = {
        .open = open_watch,
        .send = upstream_send,
        .pause = upstream_pause,
        .renew_token = upstream_renew_token,
        .cancel = upstream_cancel,
        .ctx = shard,
    };
    backfill_start(shard->backfill, &calls, engine_watch_hub(shard->store_shard));
}
