#include "engine/lease.h"

#include "engine/engine_ops.h"

static void start(struct engine_shard *shard, struct engine_op *op, enum engine_lease_call call)
{
    op->shard = shard;
    shard->engine->ops->lease(shard, op, call);
}

void engine_lease_grant(struct engine_shard *shard, struct engine_lease *lease)
{
    start(shard, &lease->op, ENGINE_LEASE_GRANT);
}

void engine_lease_revoke(struct engine_shard *shard, struct engine_lease *lease)
{
    start(shard, &lease->op, ENGINE_LEASE_REVOKE);
}

void engine_lease_time_to_live(struct engine_shard *shard, struct engine_lease *lease)
{
    start(shard, &lease->op, ENGINE_LEASE_TIME_TO_LIVE);
}

void engine_lease_list(struct engine_shard *shard, struct engine_lease *lease)
{
    start(shard, &lease->op, ENGINE_LEASE_LIST);
}

void engine_lease_renew(struct engine_shard *shard, struct engine_renewals *renewals)
{
    start(shard, &renewals->op, ENGINE_LEASE_RENEW);
}

void engine_lease_stats(const struct engine *engine, struct engine_lease_stats *ret_stats)
{
    engine->ops->lease_stats(engine, ret_stats);
}
