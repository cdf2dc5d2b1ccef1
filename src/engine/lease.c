#include "engine/lease.h"

#include "engine/engine_private.h"
#include "engine/permission.h"

static void start(struct engine_shard *shard, struct engine_op *op, enum engine_lease_call call)
{
    static const enum auth_need needs[] = {
        [ENGINE_LEASE_GRANT] = AUTH_NEED_USER,
        [ENGINE_LEASE_REVOKE] = AUTH_NEED_LEASE_WRITE,
        [ENGINE_LEASE_TIME_TO_LIVE] = AUTH_NEED_LEASE_READ,
        [ENGINE_LEASE_LIST] = AUTH_NEED_LEASES_READ,
        [ENGINE_LEASE_RENEW] = AUTH_NEED_USER, /* and for each of them gate_check_renewal */
    };
    gate_begin(op, shard, needs[call], NULL);
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
    renewals->answered = 0;
    start(shard, &renewals->op, ENGINE_LEASE_RENEW);
}
