/*
 * Locks and elections, by the services of the server. Both depend on a lease: when it expires, the
 * lock is free and the leader is deposed. Keep the lease alive with vigil_lease_keep.
 *
 * vigil_lock and vigil_campaign wait until it is the caller's turn, so their answer has no timeout
 * unless one is set. They fail with VIGIL_ERROR_UNAVAILABLE if no server can be reached for
 * vigil_options.call_timeout_ms; after vigil_call_set_timeout with 0 they wait for a server, too. A
 * call that is cancelled may still have been granted: revoke the lease to be sure.
 *
 * Errors: VIGIL_ERROR_LEASE_NOT_FOUND, VIGIL_ERROR_SERVER with the text of the service, for
 * instance when there is no leader or the leadership is over, and those of every call.
 *
 * Example: examples/elect.c
 */
#ifndef VIGIL_CONCURRENCY_H
#define VIGIL_CONCURRENCY_H

#include <vigil/call.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A lock that is held. */
typedef struct vigil_lock_response {
    const vigil_header *header;
    vigil_bytes key; /* exists as long as the lock is held; for vigil_unlock */
} vigil_lock_response;

/* Waits for the lock of this name and takes it. Keys that begin with the name belong to the lock.
 */
VIGIL_API vigil_call *vigil_lock(vigil_client *client, vigil_bytes name, int64_t lease);
/* The answer to vigil_lock. */
VIGIL_API const vigil_lock_response *vigil_lock_result(const vigil_call *call);
/* Releases the lock whose key vigil_lock_result has returned. */
VIGIL_API vigil_call *vigil_unlock(vigil_client *client, vigil_bytes key);

/* Identifies a leadership; copy its bytes to use it after the call is freed. */
typedef struct vigil_leader_key {
    vigil_bytes name;
    vigil_bytes key;
    int64_t revision;
    int64_t lease;
} vigil_leader_key;

/* An election that was won. */
typedef struct vigil_campaign_response {
    const vigil_header *header;
    const vigil_leader_key *leader;
} vigil_campaign_response;

/* The leader of an election. */
typedef struct vigil_leader_response {
    const vigil_header *header;
    const vigil_kv *kv; /* the value is what the leader has proclaimed */
} vigil_leader_response;

/* Waits until the caller is the leader of the election of this name, with a value that others can
 * read. */
VIGIL_API vigil_call *vigil_campaign(vigil_client *client, vigil_bytes name, int64_t lease,
                                     vigil_bytes value);
/* The answer to vigil_campaign. */
VIGIL_API const vigil_campaign_response *vigil_campaign_result(const vigil_call *call);
/* Changes the value without giving up the leadership. */
VIGIL_API vigil_call *vigil_proclaim(vigil_client *client, const vigil_leader_key *leader,
                                     vigil_bytes value);
/* Gives up the leadership, so that the next candidate becomes the leader. */
VIGIL_API vigil_call *vigil_resign(vigil_client *client, const vigil_leader_key *leader);
/* Reads who leads the election now. */
VIGIL_API vigil_call *vigil_leader(vigil_client *client, vigil_bytes name);
/* The answer to vigil_leader. */
VIGIL_API const vigil_leader_response *vigil_leader_result(const vigil_call *call);

/* Receives a leader; returns enum vigil_part_answer. */
typedef int (*vigil_leader_fn)(vigil_call *call, const vigil_leader_response *leader, void *user);

/*
 * Calls fn with the current leader, or the first one when there is none yet, and again after every
 * change of the leader or of its value: see "Streamed calls" in vigil/call.h. Not every value in
 * between is observed, but the newest always is. After a break the call is repeated, if necessary
 * at another endpoint, and the leader that fn knows already is left out. It lasts until it is
 * cancelled or freed, or the server refuses it; there is no timeout unless one is set.
 */
VIGIL_API vigil_call *vigil_observe(vigil_client *client, vigil_bytes name, vigil_leader_fn fn,
                                    void *user);

#ifdef __cplusplus
}
#endif

#endif
