/*
 * Maintenance of one server: the one that the client is connected to.
 */
#ifndef VIGIL_MAINTENANCE_H
#define VIGIL_MAINTENANCE_H

#include <vigil/call.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vigil_status_response {
    const vigil_header *header;
    vigil_bytes version;
    int64_t db_size;
    uint64_t leader;
    uint64_t raft_index;
    uint64_t raft_term;
    uint64_t raft_applied_index;
    const vigil_bytes *errors;
    size_t error_count;
    int64_t db_size_in_use;
    uint8_t is_learner;
    vigil_bytes storage_version;
    int64_t db_size_quota;
    const void *reserved;
} vigil_status_response;

enum vigil_alarm_type { VIGIL_ALARM_NONE, VIGIL_ALARM_NO_SPACE, VIGIL_ALARM_CORRUPT };

typedef struct vigil_alarm {
    uint64_t member_id;
    int32_t type; /* enum vigil_alarm_type */
} vigil_alarm;

typedef struct vigil_alarms_response {
    const vigil_header *header;
    const vigil_alarm *alarms;
    size_t alarm_count;
} vigil_alarms_response;

typedef struct vigil_hash_kv_response {
    const vigil_header *header;
    uint32_t hash;
    int64_t compact_revision;
    int64_t hash_revision;
} vigil_hash_kv_response;

VIGIL_API vigil_call *vigil_status(vigil_client *client);
VIGIL_API const vigil_status_response *vigil_status_result(const vigil_call *call);

/* The alarms that are raised; or lowers one of them (member 0 and VIGIL_ALARM_NONE: all). */
VIGIL_API vigil_call *vigil_alarm_list(vigil_client *client);
VIGIL_API vigil_call *vigil_alarm_disarm(vigil_client *client, uint64_t member_id, int type);
VIGIL_API const vigil_alarms_response *vigil_alarms_result(const vigil_call *call);

/* Gives space back to the file system. A server may take long: see vigil_call_set_timeout. */
VIGIL_API vigil_call *vigil_defragment(vigil_client *client);

/* A hash of all keys up to a revision; 0: the newest. */
VIGIL_API vigil_call *vigil_hash_kv(vigil_client *client, int64_t revision);
VIGIL_API const vigil_hash_kv_response *vigil_hash_kv_result(const vigil_call *call);

/* The server hands the leadership over to this member. */
VIGIL_API vigil_call *vigil_move_leader(vigil_client *client, uint64_t member_id);

#ifdef __cplusplus
}
#endif

#endif
