/*
 * Operations for operators (engine/engine.h): members, hashes, alarms, defragmentation and
 * downgrades.
 */
#ifndef VIGIL_ENGINE_MAINTENANCE_H
#define VIGIL_ENGINE_MAINTENANCE_H

#include "engine/engine_ops.h"

struct pb_alarm_request;

/* -- Members -- */

enum {
    ENGINE_MEMBERS_MAX = 32,
    ENGINE_PEER_URLS_MAX = 32,             /* limit on the URLs of one member */
    ENGINE_PEER_URL_BYTES_MAX = 16 * 1024, /* limit on the length of all its URLs together */
};

struct engine_member {
    uint64_t id;
    bool learner;
    const struct slice *peer_urls;
    size_t peer_url_count;
};

enum engine_member_call {
    ENGINE_MEMBER_LIST,
    ENGINE_MEMBER_ADD,
    ENGINE_MEMBER_REMOVE,
    ENGINE_MEMBER_UPDATE,
    ENGINE_MEMBER_PROMOTE,
};

struct engine_members {
    struct engine_op op; /* first */
    enum engine_member_call call;
    struct engine_member member; /* in: a new member, or the id of a member and its new URLs */
    struct engine_member *list;  /* out: all members, by id; in the operation's arena */
    size_t count;
};

/*
 * Changes and lists the members of the cluster. The local engine is a single node: members that are
 * added are stored and listed, and never start. ST_MEMBER_EXIST, ST_PEER_URL_EXIST,
 * ST_MEMBER_NOT_FOUND, ST_MEMBER_NOT_ENOUGH_STARTED, ST_TOO_MANY_LEARNERS, ST_LEARNER_NOT_READY,
 * ST_MEMBER_NOT_LEARNER; ST_LIMIT beyond the limits above.
 */
static inline void engine_members(struct engine_shard *shard, struct engine_members *members)
{
    engine_start(shard, &members->op, ENGINE_MEMBERS, NULL);
}

/* -- Hashes -- */

struct engine_hash {
    struct engine_op op; /* first */
    int64_t at_revision; /* in: 0 for the newest */
    uint32_t hash;
    int64_t compact_revision;
    int64_t hash_revision;
};

/* ST_REQUEST_TOO_MANY_REQUESTS if too many are waiting. */
static inline void engine_hash_kv(struct engine_shard *shard, struct engine_hash *hash)
{
    engine_start(shard, &hash->op, ENGINE_HASH_KV, NULL);
}

/* -- Alarms -- */

/* As etcd numbers them. While NOSPACE is raised, puts are refused; while CORRUPT is, all changes.
 */
enum { ENGINE_ALARM_NONE = 0, ENGINE_ALARM_NOSPACE = 1, ENGINE_ALARM_CORRUPT = 2 };
enum { ENGINE_ALARMS_MAX = 64 };

struct engine_alarm_row {
    uint64_t member_id;
    int32_t type; /* one of the above, or any other number that a client has sent */
};

struct engine_alarm {
    struct engine_op op;           /* first */
    struct engine_alarm_row *rows; /* raised or changed alarms; in the operation's arena */
    size_t row_count;
};

/*
 * Lists, raises or disarms alarms. After a change, rows has the alarm that is raised now or was
 * disarmed, if it existed. ST_LIMIT if ENGINE_ALARMS_MAX are raised.
 */
static inline void engine_alarm(struct engine_shard *shard, struct engine_alarm *alarm,
                                const struct pb_alarm_request *request)
{
    engine_start(shard, &alarm->op, ENGINE_ALARM, request);
}

/* The raised alarms, by type and member; returns their number. None in front of a cluster, whose
 * alarms are its members'. */
static inline size_t engine_alarms_get(struct engine_shard *shard,
                                       struct engine_alarm_row ret_rows[ENGINE_ALARMS_MAX])
{
    const struct engine_ops *ops = shard->engine->ops;
    return ops->alarms_get ? ops->alarms_get(shard, ret_rows) : 0;
}

/* -- Defragmentation and downgrades -- */

/* Returns the space that compaction has freed to the file system; done when it is returned. Reads
 * and writes continue meanwhile. ST_REQUEST_TOO_MANY_REQUESTS as above. */
static inline void engine_defragment(struct engine_shard *shard, struct engine_op *op)
{
    engine_start(shard, op, ENGINE_DEFRAGMENT, NULL);
}

/*
 * Stores that the cluster is to be downgraded to a version, or with an empty target that it is not.
 * ST_DOWNGRADE_IN_PROCESS, ST_NO_INFLIGHT_DOWNGRADE. The target is borrowed until done.
 */
static inline void engine_downgrade(struct engine_shard *shard, struct engine_op *op,
                                    const char *target)
{
    engine_start(shard, op, ENGINE_DOWNGRADE, target);
}

#endif
