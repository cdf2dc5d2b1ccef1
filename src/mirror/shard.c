#include "mirror/shard.h"

#include "base/xalloc.h"
#include "io/socket.h"
#include "mirror/backfill/backfill.h"
#include "mirror/directory/directory.h"
#include "mirror/follow/follower.h"
#include "mirror/link/upstream.h"
#include "mirror/shared_calls/grants.h"
#include "mirror/shared_calls/lease_streams.h"
#include "mirror/shared_calls/probe.h"
#include "watch/hub.h"

#include <stdlib.h>

/* The cluster has answered otherwise about the rights of a caller. */
static void rights_changed(void *ctx)
{
    struct mirror_shard *shard = ctx;
    engine_auth_notify(&shard->base);
}

static void free_parts(struct mirror_shard *shard)
{
    mirror_waits_fini(&shard->mirror_waits);
    mirror_reads_free(shard->reads);
    backfill_stop(shard->backfill);
    if (shard->probe)
        probe_free(shard->probe);
    if (shard->grants)
        grants_free(shard->grants);
    lease_streams_free(shard->lease_streams);
    upstream_free(shard->upstream);
    engine_shard_free(shard->store_shard);
    backfill_free(shard->backfill);
    free(shard);
}

static enum status make_parts(struct mirror_shard *shard)
{
    struct error error; /* wrong options were found when the engine was opened */
    struct mirror_shared *shared = shard->shared;
    shard->number = atomic_fetch_add(&shared->shard_count, 1);
    TRY(mirror_store_shard_new(shard));
    shard->reads = mirror_reads_new(shard);
    mirror_waits_init(&shard->mirror_waits, shard->loop, &shared->state, shared->follower);
    TRY(upstream_new(shard->loop, network_posix(), &shared->options.upstream, &shard->upstream,
                     &error));
    mirror_backfill_start(shard);
    shard->grants = grants_new(&(struct grants_options){
        .loop = shard->loop,
        .upstream = shard->upstream,
        .state = &shared->state,
        .fresh_ns = shared->options.grant_ns,
        .changed = rights_changed,
        .ctx = shard,
    });
    shard->lease_streams = lease_streams_new(shard->loop, shard->upstream, &shared->state);
    /* A user that may not read everything may at least read what is mirrored. */
    struct slice key = shared->options.prefix_count ? shared->options.prefixes[0] : SLICE_EMPTY;
    shard->probe = probe_new(shard->loop, shard->upstream, &shared->state, key);
    return ST_OK;
}

enum status mirror_shard_new(struct engine *engine, struct loop *loop,
                             struct engine_shard **ret_shard)
{
    struct mirror_shard *shard = xcalloc(1, sizeof(*shard));
    shard->base.engine = engine;
    shard->shared = CONTAINER_OF(engine, struct mirror_shared, engine);
    shard->loop = loop;
    enum status status = make_parts(shard);
    if (status != ST_OK) {
        free_parts(shard);
        return status;
    }
    *ret_shard = &shard->base;
    return ST_OK;
}

void mirror_shard_stop(struct engine_shard *base)
{
    upstream_stop(mirror_shard_of(base)->upstream);
}

void mirror_shard_free(struct engine_shard *base)
{
    struct mirror_shard *shard = mirror_shard_of(base);
    assert(shard->in_progress == 0);
    free_parts(shard);
}

/* Another member answers, or it has another leader. */
static void refresh_identity(struct mirror_shard *shard)
{
    struct engine_identity now = engine_identity_get(shard->base.engine);
    if (LIKELY(shard->identity.cluster_id == now.cluster_id &&
               shard->identity.member_id == now.member_id &&
               shard->identity.raft_term == now.raft_term))
        return;
    shard->identity = now;
    struct watch_identity shown = {now.cluster_id, now.member_id, now.raft_term};
    watch_hub_set_identity(engine_watch_hub(shard->store_shard), &shown);
}

void mirror_turn_begin(struct engine_shard *base)
{
    struct mirror_shard *shard = mirror_shard_of(base);
    refresh_identity(shard);
    engine_shard_turn_begin(shard->store_shard);
    mirror_reads_continue(shard);
}

void mirror_turn_end(struct engine_shard *base)
{
    engine_shard_turn_end(mirror_shard_of(base)->store_shard);
}

/* For metrics, which any thread writes. */
static void show_backfill(struct mirror_shard *shard)
{
    struct mirror_state *state = &shard->shared->state;
    struct backfill_stats now = backfill_stats(shard->backfill), *shown = &shard->backfill_shown;
    if (LIKELY(now.bytes == shown->bytes && now.fetches == shown->fetches &&
               now.started == shown->started))
        return;
    atomic_fetch_add(&state->backfill_bytes, (int64_t)now.bytes - (int64_t)shown->bytes);
    atomic_fetch_add(&state->backfill_fetches, (int64_t)now.fetches - (int64_t)shown->fetches);
    atomic_fetch_add(&state->backfill_fetches_started, now.started - shown->started);
    *shown = now;
}

void mirror_flushed(struct engine_shard *base)
{
    struct mirror_shard *shard = mirror_shard_of(base);
    engine_shard_flushed(shard->store_shard);
    backfill_flushed(shard->backfill);
    show_backfill(shard);
}

struct watch_hub *mirror_watch_hub(struct engine_shard *base)
{
    return engine_watch_hub(mirror_shard_of(base)->store_shard);
}

/* Those of the mirror, in which authentication is disabled: the cluster itself decides, see
 * grants.h. */
const struct auth_rights *mirror_auth_rights(struct engine_shard *base)
{
    return engine_auth_rights(mirror_shard_of(base)->store_shard);
}

void mirror_status_get(struct engine_shard *base, struct engine_status *ret_status)
{
    struct mirror_shard *shard = mirror_shard_of(base);
    struct mirror_state *state = &shard->shared->state;
    engine_status_get(shard->store_shard, ret_status);
    ret_status->revision = atomic_load(&state->mirrored);
    ret_status->compact_revision = atomic_load(&state->compacted);
    ret_status->quota_bytes = 0;
    ret_status->alarms = atomic_load(&state->alarms);
}

void mirror_await_revision(struct engine_shard *base, int64_t revision)
{
    struct mirror_shared *shared = mirror_shard_of(base)->shared;
    if (atomic_load(&shared->state.mirrored) < revision)
        follower_request_progress(shared->follower);
}

void mirror_lease_renew(struct engine_op *op)
{
    lease_streams_renew(mirror_shard_of(op->shard)->lease_streams,
                        CONTAINER_OF(op, struct engine_renewals, op));
}
