/*
 * The raised alarms, and the target version of a downgrade. Both are stored as rows of the store.
 *
 * While the disk is full, NOSPACE is shown as if this member had raised it. That alarm is not
 * stored and cannot be disarmed: it ends by itself when there is space.
 *
 * The writer changes them as part of a group, and publishes them to the shards once the group is on
 * disk. Shards take the lock only if there is something to read.
 */
#ifndef VIGIL_ENGINE_LOCAL_STATE_ALARMS_H
#define VIGIL_ENGINE_LOCAL_STATE_ALARMS_H

#include "base/lock.h"
#include "engine/local/state/report.h"
#include "engine/maintenance.h"
#include "engine/shard.h"
#include "io/waker.h"
#include "store/mvcc/applier.h"

struct pb_alarm_request;

/* Embedded in the engine. */
struct local_alarms {
    /* Used by the writer: the applied state, sorted by type and member. */
    struct engine_alarm_row rows[ENGINE_ALARMS_MAX];
    size_t count;
    char downgrade_target[ENGINE_VERSION_BYTES_MAX];
    bool changed; /* since they were published */

    uint64_t member_id; /* this member */
    _Atomic bool
        disk_full;   /* puts are refused; set by the writer and the keeper, which clears it */
    bool space_seen; /* in the keeper's last look at a disk that was full */

    struct lock lock; /* protects what follows */
    struct engine_alarm_row published[ENGINE_ALARMS_MAX];
    size_t published_count;
    char published_target[ENGINE_VERSION_BYTES_MAX];
    _Atomic unsigned published_bits; /* read without the lock, as is the next */
    _Atomic bool has_published_target;
};

void local_alarms_init(struct local_alarms *alarms, uint64_t member_id);
void local_alarms_fini(struct local_alarms *alarms);

/* While the store opens: a row of ROW_ALARM or ROW_CLUSTER. */
MUST_CHECK
enum status local_alarms_load_row(struct local_alarms *alarms, const struct row *row);

/* -- The writer -- */

/* Bit 1 << type is set for each raised alarm. */
unsigned local_alarms_bits(const struct local_alarms *alarms);
MUST_CHECK
enum status local_alarms_execute(struct local_alarms *alarms, struct applier *applier,
                                 struct engine_alarm *alarm);
/* Raises an alarm unless it is raised already; also if the row cannot be written because the disk
 * is full. */
void local_alarms_raise(struct local_alarms *alarms, struct applier *applier, uint64_t member_id,
                        int32_t type);
MUST_CHECK
enum status local_alarms_downgrade(struct local_alarms *alarms, struct applier *applier,
                                   const char *target);
/* After the group is on disk, if they have changed. */
void local_alarms_publish(struct local_alarms *alarms);
/* A request has failed with ST_DISK_FULL: the keeper is to find out when there is space again. */
void local_disk_note(struct local_alarms *alarms, struct waker *keeper);

/* -- The keeper -- */

/*
 * After the next segment of the log was made, or could not be made: whether the disk is full, and
 * whether the keeper must look again soon.
 */
MUST_CHECK
bool local_disk_look(struct local_alarms *alarms, enum status made,
                     const struct local_report *report);

/* -- Any thread -- */

static inline bool local_disk_is_full(const struct local_alarms *alarms)
{
    return atomic_load_explicit(&alarms->disk_full, memory_order_relaxed);
}

static inline unsigned local_alarms_published_bits(const struct local_alarms *alarms)
{
    unsigned full = local_disk_is_full(alarms) ? 1u << ENGINE_ALARM_NOSPACE : 0;
    return atomic_load_explicit(&alarms->published_bits, memory_order_relaxed) | full;
}

size_t local_alarms_published(struct local_alarms *alarms,
                              struct engine_alarm_row ret_rows[ENGINE_ALARMS_MAX]);
/* If has_published_target. */
void local_alarms_published_target(struct local_alarms *alarms,
                                   char ret_target[ENGINE_VERSION_BYTES_MAX]);

/* Asserts that they are consistent; for tests, on the writer's thread or after it has stopped. */
void local_alarms_check(const struct local_alarms *alarms);

#endif
