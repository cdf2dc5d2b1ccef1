/* What operators ask of an engine. Operations as in engine/engine.h. */
#ifndef VIGIL_ENGINE_MAINTENANCE_H
#define VIGIL_ENGINE_MAINTENANCE_H

#include "engine/operation.h"

struct pb_alarm_request;

/* ST_REQUEST_TOO_MANY_REQUESTS when as many wait as may. */
void engine_hash_kv(struct engine_shard *shard, struct engine_hash *hash);
/* Nobody waits for it: done comes soon (ST_CANCELED), and it costs nothing more. */
void engine_hash_give_up(struct engine_hash *hash);

/*
 * Lists, raises or disarms. rows are those listed; of a change, the one that is raised now or was
 * disarmed, or none if there was none. ST_LIMIT when ENGINE_ALARMS_MAX are raised.
 */
void engine_alarm(struct engine_shard *shard, struct engine_alarm *alarm,
                  const struct pb_alarm_request *request);

/* Gives back what compaction has freed; done when it is. Reads and writes go on.
 * ST_REQUEST_TOO_MANY_REQUESTS as above. */
void engine_defragment(struct engine_shard *shard, struct engine_defragment *defragment);
/* Nobody waits for it: done comes soon (ST_CANCELED), what was begun goes on to its end. */
void engine_defragment_give_up(struct engine_defragment *defragment);

/*
 * Notes that the cluster is to go back to a version, or with an empty target that it is not.
 * ST_DOWNGRADE_IN_PROCESS, ST_NO_INFLIGHT_DOWNGRADE. The target lives until done.
 */
void engine_downgrade(struct engine_shard *shard, struct engine_op *op, const char *target);

/* The alarms raised, by type and member; returns how many. From the shard's own knowledge. */
size_t engine_alarms_get(struct engine_shard *shard,
                         struct engine_alarm_row ret_rows[ENGINE_ALARMS_MAX]);

#endif
