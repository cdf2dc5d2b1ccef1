/* The parts of the local engine, to each other. */
#ifndef VIGIL_ENGINE_LOCAL_LOCAL_PRIVATE_H
#define VIGIL_ENGINE_LOCAL_LOCAL_PRIVATE_H

#include "engine/engine_private.h"
#include "engine/local/alarms.h"
#include "engine/local/auth.h"
#include "engine/local/damage.h"
#include "engine/local/job.h"
#include "engine/local/keeper.h"
#include "engine/local/lease.h"
#include "engine/local/local.h"
#include "engine/local/members.h"
#include "engine/local/metrics.h"
#include "engine/local/read_progress.h"
#include "engine/local/revision_notice.h"
#include "engine/local/snapshot.h"
#include "engine/local/writer.h"
#include "store/store.h"
#include "watch/stats.h"

#include <pthread.h>

struct engine_local;
struct local_shard;

enum local_op_kind {
    LOCAL_PUT,
    LOCAL_DELETE_RANGE,
    LOCAL_TXN,
    LOCAL_COMPACT,
    LOCAL_ALARM,
    LOCAL_DOWNGRADE,
    LOCAL_MEMBERS,
    LOCAL_AUTH,
    LOCAL_HASH_KV,
    LOCAL_SNAPSHOT,
    LOCAL_DEFRAGMENT,
    LOCAL_LEASE, /* and enum engine_lease_call: the writer's */
};

/* What a store shows that has nothing in it, as etcd's file does: its pages, and those in use. */
enum { LOCAL_DB_BYTES_EMPTY = 20480, LOCAL_DB_BYTES_IN_USE_EMPTY = 16384 };

struct engine_local {
    struct engine engine; /* first */
    struct engine_local_options options;
    struct store *store;
    struct metric_set *metrics; /* owned */
    struct local_writer writer;
    struct local_keeper keeper;
    struct local_snapshotter snapshotter;
    struct local_notices notices;
    struct local_damage damage;
    struct member_book members; /* the writer's */
    struct local_auth auth;
    struct local_shard **shards;                  /* shards_max */
    struct local_news *news;                      /* shards_max */
    struct local_hearing *hearing;                /* shards_max */
    struct watch_stats_snapshot *watch_snapshots; /* shards_max: what each one's watches show */
    _Atomic uint64_t watchers;                    /* of all shards */
    _Atomic unsigned shard_count;
};

/* Says why the engine cannot go on; does not return. */
_Noreturn void local_fatal(struct engine_local *engine, const char *what, enum status status);
void local_warn(struct engine_local *engine, const char *what, enum status status,
                const char *detail);

/* For the checkpoint. Address space, not memory: enough for a thousand million versions. Where that
 * is limited (ulimit -v) a quarter, so that there is some for the log and for threads. */
size_t local_map_bytes(uint64_t address_space);

/* For one of the engine's threads; NULL when nothing is measured. Aborts without memory. */
struct turn *local_turn(struct engine_local *engine, const char *kind);

/* Any thread: completes operations on their shard. */
void local_answer(struct engine_op *op);
void local_answer_chain(struct local_shard *shard, const struct op_chain *chain);

#endif
