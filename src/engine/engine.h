/*
 * The interface between the APIs (etcd/, kube/) and the engine that stores the data. The local
 * engine (engine/local/local.h) is a store in this process; the fake (tests/doubles/fake/fake.h)
 * delays and reorders completions, for tests of the APIs; the cluster engine (mirror/cluster.h) is
 * in front of etcd servers.
 *
 * Every call is an operation (engine/operation.h):
 *
 *   caller fills in op.done, op.arena, op.principal and the input ──► engine_x() ──► op.done()
 *
 * An operation completes exactly once, possibly before the call that starts it returns. Its memory
 * belongs to the caller and must stay valid until done. A started write cannot be taken back: a
 * caller that has lost interest waits for done and drops the answer.
 *
 * Threads: each I/O thread has one engine_shard; operations are started and completed on it.
 *
 * Permissions: the API determines the user (token, certificate) and fills in op.principal. It calls
 * auth_method_check first, which is the only check for methods without an operation, and
 * auth_check_watch for each watch that is created, and again for all watches when permissions
 * change. The engine checks every operation: reads with the permissions of the state they read,
 * writes with the permissions after everything applied before them (engine/permission.h). So a
 * permission that was revoked is gone for everything that follows; an operation whose principal is
 * older than the change fails with ST_AUTH_OLD_REVISION.
 */
#ifndef VIGIL_ENGINE_ENGINE_H
#define VIGIL_ENGINE_ENGINE_H

#include "engine/operation.h"
#include "io/loop.h"

struct metric_page;
struct pb_alarm_request;
struct pb_compaction_request;
struct pb_delete_range_request;
struct pb_put_request;
struct pb_range_request;
struct pb_txn_request;
struct watch_hub;
struct watch_stats;
struct watch_stream_stats;

/*
 * Whether the engine has the data. One in front of a cluster has to read it first; until then
 * ranges fail with ST_AGAIN, and a cursor on the hub would miss events. Any thread.
 */
bool engine_is_synced(const struct engine *engine);

/* -- Shards -- */

/* On the thread that owns the loop. Operations of this shard complete in turns of that loop. */
MUST_CHECK
enum status engine_shard_new(struct engine *engine, struct loop *loop,
                             struct engine_shard **ret_shard);
void engine_shard_free(struct engine_shard *shard);
/* The server stops: operations that wait for another server fail soon, with ST_STOPPED. */
void engine_shard_stop(struct engine_shard *shard);

/*
 * Called by the owner of the loop in each turn, after the ready sockets were read, and at the end.
 * The first loads the newest published state for the watches of the turn and continues long reads;
 * the second passes the writes of the turn on together.
 */
void engine_shard_turn_begin(struct engine_shard *shard);
void engine_shard_turn_end(struct engine_shard *shard);
/*
 * Called after output was sent, before the loop waits; every turn that began ends with it. Stored
 * bytes that watches sent without copying are released, and writes that were started while sending
 * are passed on.
 */
void engine_shard_flushed(struct engine_shard *shard);

/* -- Reading -- */

/*
 * After success the caller must call engine_range_close. A request without keys_only, filters and
 * sort is answered from the index; its result is not collected in memory.
 */
void engine_range_start(struct engine_shard *shard, struct engine_range *range,
                        const struct pb_range_request *request);

/*
 * Limits what fill and next return to the following keys_max key-values, and returns how many there
 * are and the length of their fields. Without this call there is no limit.
 */
void engine_range_window(struct engine_range *range, int64_t keys_max, int64_t *ret_keys,
                         uint64_t *ret_bytes);

/*
 * Copies the next bytes of the window's fields. Returns less than room only at the end of the
 * window or when the range cannot continue; op.status is the reason then, for example that the
 * reader was so slow that its revision was compacted.
 */
size_t engine_range_fill(struct engine_range *range, uint8_t *dst, size_t room);

/*
 * Returns the next field of the window, `12 len KeyValue`, without copying it; valid until the next
 * call. Not for keys_only, and not mixed with fill. False at the end of the window or when the
 * range cannot continue, as above.
 */
MUST_CHECK
bool engine_range_next(struct engine_range *range, struct slice *ret_field);

/* The caller no longer needs a range that is not done: it may complete early. Done still comes. */
void engine_range_give_up(struct engine_range *range);
/* Unpins the state. Does nothing for a range that failed or was closed. */
void engine_range_close(struct engine_range *range);

/* -- Writing -- */

void engine_put(struct engine_shard *shard, struct engine_write *write,
                const struct pb_put_request *request);
void engine_delete_range(struct engine_shard *shard, struct engine_write *write,
                         const struct pb_delete_range_request *request);
/* The caller has validated the request. It may also contain only reads. */
void engine_txn(struct engine_shard *shard, struct engine_write *write,
                const struct pb_txn_request *request);
/* The caller no longer needs the answer: a transaction that only reads may complete early. Done
 * still comes. */
void engine_write_give_up(struct engine_write *write);
void engine_write_close(struct engine_write *write);

void engine_compact(struct engine_shard *shard, struct engine_op *op,
                    const struct pb_compaction_request *request);

/* -- Watching -- */

/* The shard's only hub, which holds its watch streams (watch/stream/stream.h). Owned by the shard.
 */
struct watch_hub *engine_watch_hub(struct engine_shard *shard);

/*
 * Whether the caller may watch a range. For a new watch it is an operation, because an engine in
 * front of a cluster asks the cluster, and is done when a watch without a start revision sees
 * everything that was written before. The server itself may watch everything. For a running one the
 * answer is the last known one; when it may have changed, the listeners of engine_auth_listen are
 * called. ST_AGAIN: the permission was not confirmed lately; a watch for which this does not change
 * must be ended.
 */
void engine_watch_admit(struct engine_shard *shard, struct engine_admission *admission);
MUST_CHECK
enum status engine_watch_recheck(struct engine_shard *shard, const struct auth_principal *principal,
                                 struct slice key, struct slice range_end);

/* The counts of all shards (watch/hub/stats.h) up to their last turns. Any thread, without a lock.
 */
void engine_watch_stats(const struct engine *engine, struct watch_stats *ret_stats);
/* The streams farthest behind, the slowest first; about a second old. Returns their number. */
size_t engine_watch_slowest(const struct engine *engine, struct watch_stream_stats *ret_streams,
                            size_t max);

/* -- Leases. Errors are etcd's. A lease that does not exist is not an error for renewals and
 *    time-to-live. -- */

/* Durable when done. */
void engine_lease_grant(struct engine_shard *shard, struct engine_lease *lease);
/* Also deletes the attached keys, all at one revision. */
void engine_lease_revoke(struct engine_shard *shard, struct engine_lease *lease);
void engine_lease_time_to_live(struct engine_shard *shard, struct engine_lease *lease);
void engine_lease_list(struct engine_shard *shard, struct engine_lease *lease);
void engine_lease_renew(struct engine_shard *shard, struct engine_renewals *renewals);

/* -- Users, roles and permissions -- */

void engine_auth_start(struct engine_shard *shard, struct engine_auth *auth);

/* The newest published permissions; valid until the next call or the shard's next turn. No lock. */
const struct auth_rights *engine_auth_rights(struct engine_shard *shard);

/* By those permissions: whether authentication is enabled. */
bool engine_auth_enabled(struct engine_shard *shard);
/* The user may read and write the whole range, or authentication is disabled. */
bool engine_auth_holds(struct engine_shard *shard, struct slice user, struct slice key,
                       struct slice range_end);

/*
 * The revision of users and roles that is published, or about to be. Any thread, without a lock.
 *
 * A login compares it, after the password was found correct and while it holds the lock of the
 * tokens, with auth_revision of ENGINE_AUTH_PASSWORD; if they differ, it begins again. A change is
 * published before its done ends tokens, so no token can be issued afterwards for an old password.
 */
uint64_t engine_auth_revision(const struct engine *engine);

void engine_auth_listen(struct engine_shard *shard, struct engine_auth_listener *listener);
/* Does nothing for a listener that is not registered. */
void engine_auth_unlisten(struct engine_shard *shard, struct engine_auth_listener *listener);

/* -- Members -- */

/*
 * Changes and lists the members of the cluster. The local engine is a single node: members that are
 * added are stored and listed, and never start. ST_MEMBER_EXIST, ST_PEER_URL_EXIST,
 * ST_MEMBER_NOT_FOUND, ST_MEMBER_NOT_ENOUGH_STARTED, ST_TOO_MANY_LEARNERS, ST_LEARNER_NOT_READY,
 * ST_MEMBER_NOT_LEARNER; ST_LIMIT beyond the limits in engine/operation.h.
 */
void engine_members(struct engine_shard *shard, struct engine_members *members);

/* -- Maintenance -- */

/* The caller waits until engine_status_get returns this revision. An engine in front of a cluster
 * then requests it, since revisions without keys that it mirrors do not reach it by themselves. */
void engine_await_revision(struct engine_shard *shard, int64_t revision);
/* From the shard's own data, immediately. */
void engine_status_get(struct engine_shard *shard, struct engine_status *ret_status);
struct engine_identity engine_identity_get(const struct engine *engine);
/*
 * Whether the engine can answer as well as ever, for /readyz; otherwise the reason says why not, in
 * a line. The local engine can unless its disk is full, and then only puts are refused: if its
 * store fails, the process ends. Any thread.
 */
enum { ENGINE_REASON_BYTES = 1024 };
MUST_CHECK
bool engine_ready(const struct engine *engine, char ret_reason[ENGINE_REASON_BYTES]);
/* The versions of the cluster, for an engine in front of one. False: they are not known (yet). Any
 * thread. */
MUST_CHECK
bool engine_versions_get(const struct engine *engine, struct engine_versions *ret_versions);
/* What the members of the cluster say, for an engine in front of one. False: none has answered yet.
 * Any thread. */
MUST_CHECK
bool engine_membership_get(const struct engine *engine, struct engine_membership *ret_membership);
/* The raised alarms, by type and member; returns their number. */
size_t engine_alarms_get(struct engine_shard *shard,
                         struct engine_alarm_row ret_rows[ENGINE_ALARMS_MAX]);
void engine_metrics_write(struct engine_shard *shard, struct metric_page *page);

/* ST_REQUEST_TOO_MANY_REQUESTS if too many are waiting. */
void engine_hash_kv(struct engine_shard *shard, struct engine_hash *hash);
/* The caller no longer needs the hash: done comes soon (ST_CANCELED), and work on it stops. */
void engine_hash_give_up(struct engine_hash *hash);

/*
 * Lists, raises or disarms alarms. After a change, rows has the alarm that is raised now or was
 * disarmed, if it existed. ST_LIMIT if ENGINE_ALARMS_MAX are raised.
 */
void engine_alarm(struct engine_shard *shard, struct engine_alarm *alarm,
                  const struct pb_alarm_request *request);

/* Returns the space that compaction has freed to the file system; done when it is returned. Reads
 * and writes continue meanwhile. ST_REQUEST_TOO_MANY_REQUESTS as above. */
void engine_defragment(struct engine_shard *shard, struct engine_defragment *defragment);
/* Done comes soon (ST_CANCELED); work that has begun continues to its end. */
void engine_defragment_give_up(struct engine_defragment *defragment);

/*
 * Stores that the cluster is to be downgraded to a version, or with an empty target that it is not.
 * ST_DOWNGRADE_IN_PROCESS, ST_NO_INFLIGHT_DOWNGRADE. The target is borrowed until done.
 */
void engine_downgrade(struct engine_shard *shard, struct engine_op *op, const char *target);

/*
 * A snapshot is the whole content of the engine at one revision as one file in the format of etcd's
 * snapshots (bolt/schema.h). It is one operation with several completions:
 *
 *   start ──► done: the length is known ──► read ──► done: a piece ──► read … ──► close
 *
 * It needs memory for two pieces and one bit for each compacted version. While it exists, segments
 * of the log that were cleaned stay on disk; if the disk becomes full, it fails with ST_DISK_FULL.
 */

/* ST_REQUEST_TOO_MANY_REQUESTS if ENGINE_SNAPSHOTS_MAX exist. */
void engine_snapshot_start(struct engine_shard *shard, struct engine_snapshot *snapshot);
/*
 * Reads the next piece: ENGINE_SNAPSHOT_PIECE_BYTES, or the rest of `bytes`, which must not be
 * empty. ST_DISK_FULL, ST_DAMAGED; after a failure it can only be closed.
 */
void engine_snapshot_read(struct engine_snapshot *snapshot);
/* The caller no longer needs the operation in progress: done comes soon. */
void engine_snapshot_give_up(struct engine_snapshot *snapshot);
/* Not while an operation is in progress. Does nothing after a failed start or a close. */
void engine_snapshot_close(struct engine_snapshot *snapshot);

#endif
