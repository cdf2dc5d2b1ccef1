#include "mirror/unsupported.h"

static void refuse(struct engine_op *op)
{
    op->status = ST_UNIMPLEMENTED;
    op->text = SLICE_LITERAL("vigil: this call is not available in front of a cluster");
    op->done(op);
}

void cluster_hash_kv(struct engine_shard *shard, struct engine_hash *hash)
{
    (void)shard;
    refuse(&hash->op);
}

void cluster_hash_give_up(struct engine_hash *hash)
{
    (void)hash; /* it is done */
}

void cluster_alarm(struct engine_shard *shard, struct engine_alarm *alarm,
                   const struct pb_alarm_request *request)
{
    (void)shard;
    (void)request;
    refuse(&alarm->op);
}

size_t cluster_alarms_get(struct engine_shard *shard,
                          struct engine_alarm_row ret_rows[ENGINE_ALARMS_MAX])
{
    (void)shard;
    (void)ret_rows;
    return 0;
}

void cluster_defragment(struct engine_shard *shard, struct engine_defragment *defragment)
{
    (void)shard;
    refuse(&defragment->op);
}

void cluster_defragment_give_up(struct engine_defragment *defragment)
{
    (void)defragment; /* it is done */
}

void cluster_downgrade(struct engine_shard *shard, struct engine_op *op, const char *target)
{
    (void)shard;
    (void)target;
    refuse(op);
}

void cluster_snapshot_start(struct engine_shard *shard, struct engine_snapshot *snapshot)
{
    (void)shard;
    refuse(&snapshot->op);
}

void cluster_snapshot_read(struct engine_snapshot *snapshot)
{
    refuse(&snapshot->op);
}

void cluster_snapshot_close(struct engine_snapshot *snapshot)
{
    (void)snapshot; /* none was started */
}

void cluster_members(struct engine_shard *shard, struct engine_members *members)
{
    (void)shard;
    refuse(&members->op);
}

void cluster_auth(struct engine_shard *shard, struct engine_auth *auth)
{
    (void)shard;
    refuse(&auth->op);
}
