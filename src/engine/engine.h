/*
 * The interface between the APIs (etcd/, kube/) and the engine that stores the data: here the
 * engine and its shards, and in the headers that it includes the operations. The local
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

#include "engine/auth.h"
#include "engine/engine_ops.h"
#include "engine/keys.h"
#include "engine/leases.h"
#include "engine/maintenance.h"
#include "engine/shard.h"
#include "engine/snapshot.h"

struct watch_stats;
struct watch_stream_stats;

/* All functions below may be called on any thread. */

/* In every response header besides the revision. Constant while the engine runs, except in front of
 * a cluster, which may be known later, and whose term changes. */
struct engine_identity {
    uint64_t cluster_id;
    uint64_t member_id;
    uint64_t raft_term;
};

static inline struct engine_identity engine_identity_get(const struct engine *engine)
{
    return engine->ops->identity(engine);
}

/*
 * Whether the engine has the data. One in front of a cluster has to read it first; until then
 * ranges fail with ST_AGAIN, and a cursor on the hub would miss events.
 */
static inline bool engine_is_synced(const struct engine *engine)
{
    return !engine->ops->is_synced || engine->ops->is_synced(engine);
}

/*
 * Whether the engine can answer as well as ever, for /readyz; otherwise the reason says why not, in
 * a line. The local engine can unless its disk is full, and then only puts are refused: if its
 * store fails, the process ends.
 */
enum { ENGINE_REASON_BYTES = 1024 };
MUST_CHECK
static inline bool engine_ready(const struct engine *engine, char ret_reason[ENGINE_REASON_BYTES])
{
    return !engine->ops->ready || engine->ops->ready(engine, ret_reason);
}

/* As a member of the cluster names them: "3.7.3", "3.7.0". */
enum { ENGINE_VERSION_BYTES = 32 };
struct engine_versions {
    char server[ENGINE_VERSION_BYTES];
    char cluster[ENGINE_VERSION_BYTES];
    char storage[ENGINE_VERSION_BYTES]; /* "": the member does not know it (before etcd 3.6) */
};

/* The versions of the cluster, for an engine in front of one. False: they are not known (yet). */
MUST_CHECK
static inline bool engine_versions_get(const struct engine *engine,
                                       struct engine_versions *ret_versions)
{
    return engine->ops->versions && engine->ops->versions(engine, ret_versions);
}

/* What the members of a cluster say of themselves to the engine in front of it. */
struct engine_membership {
    bool has_leader;            /* a member that answers knows of one */
    bool is_leader, is_learner; /* the member that is followed; false while it does not answer */
    uint64_t leader_changes;    /* that were seen, the first leader included */
    uint64_t raft_index,
        applied_index; /* indexes of the member that is followed, the last that are known */
};

/* False: the engine is not in front of a cluster, or no member has answered yet. */
MUST_CHECK
static inline bool engine_membership_get(const struct engine *engine,
                                         struct engine_membership *ret_membership)
{
    return engine->ops->membership && engine->ops->membership(engine, ret_membership);
}

/* The counts of all shards (watch/hub/stats.h) up to their last turns. Without a lock. */
void engine_watch_stats(const struct engine *engine, struct watch_stats *ret_stats);
/* The streams farthest behind, the slowest first; about a second old. Returns their number. */
size_t engine_watch_slowest(const struct engine *engine, struct watch_stream_stats *ret_streams,
                            size_t max);

#endif
