/*
 * Maintenance of one server: the one that the client is connected to.
 *
 * To reach every member of a cluster, create a client for each, with one endpoint.
 *
 * Errors: VIGIL_ERROR_PERMISSION_DENIED without the role root, VIGIL_ERROR_COMPACTED and
 * VIGIL_ERROR_FUTURE_REVISION for a hash at a revision that the server does not have, and those of
 * every call.
 */
#ifndef VIGIL_MAINTENANCE_H
#define VIGIL_MAINTENANCE_H

#include <vigil/call.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The state of a server. Fields that an older server does not know are 0 or empty. */
typedef struct vigil_status_response {
    const vigil_header *header;
    vigil_bytes version; /* version of the server, "3.7.0" */
    int64_t db_size;     /* size of the file, in bytes */
    uint64_t leader;     /* a member's id; 0: none */
    uint64_t raft_index;
    uint64_t raft_term;
    uint64_t raft_applied_index;
    const vigil_bytes *errors;
    size_t error_count;
    int64_t db_size_in_use; /* part of the file that is in use, in bytes; the rest is free */
    uint8_t is_learner;
    vigil_bytes storage_version;
    int64_t db_size_quota; /* in bytes; beyond it writes fail with VIGIL_ERROR_NO_SPACE */
    const void *reserved;
} vigil_status_response;

/* The kinds of alarms. */
enum vigil_alarm_type { VIGIL_ALARM_NONE, VIGIL_ALARM_NO_SPACE, VIGIL_ALARM_CORRUPT };

/* An alarm of a member. */
typedef struct vigil_alarm {
    uint64_t member_id;
    int32_t type; /* enum vigil_alarm_type */
} vigil_alarm;

/* The alarms that are raised, or that were lowered. */
typedef struct vigil_alarms_response {
    const vigil_header *header;
    const vigil_alarm *alarms;
    size_t alarm_count;
} vigil_alarms_response;

/* A hash over keys and values. */
typedef struct vigil_hash_kv_response {
    const vigil_header *header;
    uint32_t hash;
    int64_t compact_revision; /* the hash begins after it */
    int64_t hash_revision;    /* and includes this one */
} vigil_hash_kv_response;

/* Reads the state of the server. */
VIGIL_API vigil_call *vigil_status(vigil_client *client);
/* The answer to vigil_status. */
VIGIL_API const vigil_status_response *vigil_status_result(const vigil_call *call);

/* Lists the alarms that are raised. */
VIGIL_API vigil_call *vigil_alarm_list(vigil_client *client);
/* Lowers an alarm. member_id and type (enum vigil_alarm_type) are those of one that
 * vigil_alarm_list has returned; for any other the answer is empty. */
VIGIL_API vigil_call *vigil_alarm_disarm(vigil_client *client, uint64_t member_id, int type);
/* The answer to vigil_alarm_list and vigil_alarm_disarm. */
VIGIL_API const vigil_alarms_response *vigil_alarms_result(const vigil_call *call);

/* Gives space back to the file system. A server may take longer than the usual timeout: see
 * vigil_call_set_timeout. */
VIGIL_API vigil_call *vigil_defragment(vigil_client *client);

/* Computes a hash of all keys up to a revision, or up to the newest if it is 0. Members with the
 * same content have the same hash. */
VIGIL_API vigil_call *vigil_hash_kv(vigil_client *client, int64_t revision);
/* The answer to vigil_hash_kv. */
VIGIL_API const vigil_hash_kv_response *vigil_hash_kv_result(const vigil_call *call);

/* A part of a snapshot. */
typedef struct vigil_snapshot_part {
    const vigil_header *header; /* NULL if the server sends none */
    uint64_t remaining_bytes;   /* bytes of the snapshot after this part */
    vigil_bytes blob;
    vigil_bytes version; /* version of the storage; empty before etcd 3.6 */
} vigil_snapshot_part;

/* Receives a part of a snapshot; returns enum vigil_part_answer. */
typedef int (*vigil_snapshot_fn)(vigil_call *call, const vigil_snapshot_part *part, void *user);

/*
 * Copies the whole store of the server, in parts of about 32 KiB: see "Streamed calls" in
 * vigil/call.h. The blobs one after the other, unchanged, are the file that "etcdctl snapshot save"
 * writes and "etcdutl snapshot restore" reads: the database, and at its end 32 bytes, which are the
 * SHA-256 of the database. The library checks that digest: a snapshot is complete and correct only
 * if the call completes with VIGIL_OK, so write to a temporary name and rename the file then.
 * There is no timeout unless one is set, except that a server must be reached within
 * vigil_options.call_timeout_ms.
 */
VIGIL_API vigil_call *vigil_snapshot(vigil_client *client, vigil_snapshot_fn fn, void *user);

/* Lets the server hand the leadership of the cluster over to this member. */
VIGIL_API vigil_call *vigil_move_leader(vigil_client *client, uint64_t member_id);

#ifdef __cplusplus
}
#endif

#endif
