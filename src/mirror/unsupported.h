/*
 * Operations that the cluster engine does not have: etcd's API forwards these calls as bytes
 * (engine/forward.h), and nothing else uses them. They fail with ST_UNIMPLEMENTED.
 */
#ifndef VIGIL_MIRROR_UNSUPPORTED_H
#define VIGIL_MIRROR_UNSUPPORTED_H

#include "engine/engine_private.h"

void cluster_hash_kv(struct engine_shard *shard, struct engine_hash *hash);
void cluster_hash_give_up(struct engine_hash *hash);
void cluster_alarm(struct engine_shard *shard, struct engine_alarm *alarm,
                   const struct pb_alarm_request *request);
/* None: alarms are the members' own. */
size_t cluster_alarms_get(struct engine_shard *shard,
                          struct engine_alarm_row ret_rows[ENGINE_ALARMS_MAX]);
void cluster_defragment(struct engine_shard *shard, struct engine_defragment *defragment);
void cluster_defragment_give_up(struct engine_defragment *defragment);
void cluster_downgrade(struct engine_shard *shard, struct engine_op *op, const char *target);
void cluster_snapshot_start(struct engine_shard *shard, struct engine_snapshot *snapshot);
void cluster_snapshot_read(struct engine_snapshot *snapshot);
void cluster_snapshot_close(struct engine_snapshot *snapshot);
void cluster_members(struct engine_shard *shard, struct engine_members *members);
void cluster_auth(struct engine_shard *shard, struct engine_auth *auth);

#endif
