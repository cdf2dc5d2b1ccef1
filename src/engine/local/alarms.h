/*
 * What an operator, or the server itself, has set and what must last: alarms that are raised, and
 * the version to which the cluster is going back. Kept as rows of the store.
 *
 * The writer changes it, as part of its group, and shows it to the shards once the group is on
 * disk. They take a lock for it, but only if there is something to see.
 */
#ifndef VIGIL_ENGINE_LOCAL_ALARMS_H
#define VIGIL_ENGINE_LOCAL_ALARMS_H

#include "base/lock.h"
#include "engine/operation.h"
#include "store/applier.h"

struct pb_alarm_request;

/* Embedded in the engine. */
struct local_notices {
    /* The writer's, as applied. By type and member. */
    struct engine_alarm_row alarms[ENGINE_ALARMS_MAX];
    size_t alarm_count;
    char downgrade_target[ENGINE_VERSION_BYTES_MAX];
    bool changed; /* since they were shown */

    struct lock lock; /* of what follows */
    struct engine_alarm_row shown[ENGINE_ALARMS_MAX];
    size_t shown_count;
    char shown_target[ENGINE_VERSION_BYTES_MAX];
    _Atomic unsigned shown_bits; /* without the lock, as the next */
    _Atomic bool shows_target;
};

void local_notices_init(struct local_notices *notices);
void local_notices_fini(struct local_notices *notices);

/* While the store opens: a row of ROW_ALARM or ROW_CLUSTER. */
MUST_CHECK
enum status local_notices_take_row(struct local_notices *notices, const struct row *row);

/* -- The writer -- */

/* The bit 1 << type of each that is raised. */
unsigned local_notices_bits(const struct local_notices *notices);
MUST_CHECK
enum status local_notices_alarm(struct local_notices *notices, struct applier *applier,
                                struct engine_alarm *alarm);
/* If it is not. A disk so full that it cannot be noted does not keep it from being raised. */
void local_notices_raise(struct local_notices *notices, struct applier *applier, uint64_t member_id,
                         int32_t type);
MUST_CHECK
enum status local_notices_downgrade(struct local_notices *notices, struct applier *applier,
                                    const char *target);
/* After the group is on disk. */
void local_notices_show(struct local_notices *notices);

/* -- Any thread -- */

unsigned local_notices_shown_bits(const struct local_notices *notices);
size_t local_notices_shown(struct local_notices *notices,
                           struct engine_alarm_row ret_rows[ENGINE_ALARMS_MAX]);
void local_notices_shown_target(struct local_notices *notices,
                                char ret_target[ENGINE_VERSION_BYTES_MAX]);

#endif
