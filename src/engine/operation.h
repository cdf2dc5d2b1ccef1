/*
 * The kinds of operations that an engine executes, and what all of them have in common. What a
 * caller fills in for each of them, what it gets back, and the functions that start them are in
 * engine/keys.h, leases.h, auth.h, maintenance.h and snapshot.h; the life of an operation is
 * described in engine/engine.h.
 */
#ifndef VIGIL_ENGINE_OPERATION_H
#define VIGIL_ENGINE_OPERATION_H

#include "auth/rights.h"
#include "base/memory/arena.h"
#include "base/slice.h"
#include "base/status.h"
#include "io/mailbox.h"

#include <stdatomic.h>

struct engine;
struct engine_shard;

/*
 * To add an operation:
 *
 *   1. Add its kind here, and next to similar ones its struct, which begins with a struct
 *      engine_op, and the function that starts it.
 *   2. Say in permission.c which permission it needs. Without that the build fails.
 *   3. Name the function that executes it in local_ops (local/local.c), which for a change is
 *      usually local_send_to_writer; the writer then executes it (local/writer/writer.c).
 *   4. Execute it in the fake (tests/doubles/fake/fake.c). Without that the build fails.
 *
 * An engine that does not name a function for a kind answers it with ST_UNIMPLEMENTED. The engine
 * in front of a cluster (mirror/cluster.c) has functions only for what the server itself and the
 * Kubernetes API use, because calls of etcd's API are forwarded to the cluster as bytes.
 */
enum engine_kind {
    ENGINE_NOT_STARTED,
    /* keys.h */
    ENGINE_RANGE,
    ENGINE_PUT,
    ENGINE_DELETE_RANGE,
    ENGINE_TXN,
    ENGINE_COMPACT,
    /* leases.h */
    ENGINE_LEASE_GRANT,
    ENGINE_LEASE_REVOKE,
    ENGINE_LEASE_TIME_TO_LIVE,
    ENGINE_LEASE_LIST,
    ENGINE_LEASE_RENEW,
    /* auth.h */
    ENGINE_AUTH,
    ENGINE_WATCH_ADMIT,
    /* maintenance.h */
    ENGINE_MEMBERS,
    ENGINE_HASH_KV,
    ENGINE_ALARM,
    ENGINE_DEFRAGMENT,
    ENGINE_DOWNGRADE,
    /* snapshot.h */
    ENGINE_SNAPSHOT_START,
    ENGINE_SNAPSHOT_READ,
};
enum { ENGINE_KINDS = ENGINE_SNAPSHOT_READ + 1 };

/*
 * The principal of operations that the server starts on its own behalf, without permission checks:
 * auto compaction, health checks, and the Kubernetes API, which has its own clients. Never used for
 * a call of etcd's API.
 */
#define ENGINE_SERVER ((struct auth_principal){.is_server = true})

struct engine_op {
    /* Set by the caller before starting. */
    void (*done)(struct engine_op *op);
    struct arena *arena; /* answers are allocated here; used by the engine until done */
    /* The user on whose behalf it runs; the name is borrowed until done. All zero: no user; refused
     * while authentication is enabled. */
    struct auth_principal principal;

    /* Set by the engine before done. */
    enum status status;
    struct slice text; /* the error text, of an upstream server or with details; empty: that of the
                          status table */
    int64_t revision;  /* for the response header */

    /* Private to the engine. */
    struct engine_shard *shard;
    union {
        struct mailbox_node in_mailbox;
        struct mailbox_link in_chain;
    };
    uint64_t pinned;
    const void *request;   /* borrowed until done; NULL: the input is in the operation's struct */
    uint8_t kind;          /* enum engine_kind, or LOCAL_MIRROR (local/state/messages.h) */
    _Atomic bool given_up; /* the caller no longer needs the answer */
};

/* For the typed functions in the headers named above, which callers use. */
void engine_start(struct engine_shard *shard, struct engine_op *op, enum engine_kind kind,
                  const void *request);

/*
 * The caller no longer needs the answer of an operation in progress. Done still comes, and soon
 * (ST_CANCELED) for ranges, transactions that only read, hashes, defragmentations (although the
 * work continues to its end once it has begun) and the start of a snapshot; other operations
 * continue as if nothing had happened. Does nothing before the start.
 */
void engine_give_up(struct engine_op *op);

#endif
