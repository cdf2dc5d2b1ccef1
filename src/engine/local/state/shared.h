/*
 * What the threads of the local engine share. The state of a single thread is with that thread:
 * shard.h, writer.h, keeper.h, snapshot.h.
 */
#ifndef VIGIL_ENGINE_LOCAL_STATE_SHARED_H
#define VIGIL_ENGINE_LOCAL_STATE_SHARED_H

#include "base/metric/turn.h"
#include "engine/engine_ops.h"
#include "engine/local/state/alarms.h"
#include "engine/local/state/auth.h"
#include "engine/local/state/check.h"
#include "engine/local/state/lease.h"
#include "engine/local/state/members.h"
#include "engine/local/state/messages.h"
#include "engine/local/state/metrics.h"
#include "engine/local/state/options.h"
#include "engine/local/state/read_progress.h"
#include "engine/local/state/report.h"
#include "engine/local/state/revision_notice.h"
#include "store/store.h"
#include "watch/hub/stats.h"

#include <stdlib.h>

/* Size and bytes in use that an empty store reports, as etcd's file does. */
enum { LOCAL_DB_BYTES_EMPTY = 20480, LOCAL_DB_BYTES_IN_USE_EMPTY = 16384 };

/* Only of a mirror (engine/local/mirror/mirror_store.h). */
struct local_mirror {
    _Atomic int64_t revision, compact_revision; /* as published; any thread may read them */
    struct epoch_slot *slot;                    /* slot of the walk */
    _Atomic bool walking;
    _Atomic int
        failed; /* enum status: of the first batch that has failed; see local_mirror_retry */
};

/* What the shards with one number have after each other: neither can be returned. */
struct local_place {
    _Atomic bool taken;
    struct epoch_slot *slot; /* NULL: no shard had this number yet */
    struct metric_block *counts;
};

struct local_shared {
    struct engine engine;                /* first: what callers see */
    struct engine_local_options options; /* constant once the engine is open */
    struct store *store;                 /* owned */
    struct metric_set *metrics;          /* owned */
    struct local_report report;
    struct local_writer_inbox writer;
    struct local_keeper_inbox keeper;
    struct local_snapshot_inbox snapshots;

    /* Changed by the writer; other threads use only the parts that say so. */
    struct local_lease lease;
    struct local_alarms alarms;
    struct local_auth auth;
    struct member_list members;

    /* The part of engine/local/shard/direct.h; its number is shards_max. */
    struct local_shard_base direct;
    struct local_reader *readers; /* owned; NULL without has_readers */

    struct local_mirror mirror;
    struct local_check_result check; /* set by the keeper, read by any thread */

    /* Arrays with options.shards_max items, shards with one more, owned. They belong to the engine
     * and not to a shard, so that the writer never uses one that was freed, and the next shard with
     * the number has them.
     */
    struct local_place *places;
    _Atomic unsigned shards_used;     /* all numbers that a shard has had are less */
    struct local_shard_base **shards; /* NULL: none with this number */
    struct revision_notice *notices;
    struct read_progress *progress;
    struct watch_stats_snapshot *watch_snapshots; /* counts of each shard's watches */

    _Atomic uint64_t watchers; /* in all shards */
};

/*
 * For the writer, which does not look at numbers that no shard has had: most programs with a store
 * have one client. A read-modify-write, as in local_shard_new: of the two threads, the later one
 * sees what the earlier did before.
 */
static inline unsigned local_shards_used(struct local_shared *shared)
{
    return atomic_fetch_add_explicit(&shared->shards_used, 0, memory_order_acq_rel);
}

/*
 * Sends what the writer has answered in a group, once the group is durable: a chain for each shard,
 * at its number, and one for threads without a shard. Empties the chains.
 */
static inline void local_answers_send(struct local_shared *shared, struct mailbox_chain *chains)
{
    unsigned used = local_shards_used(shared);
    for (unsigned i = 0; i <= used; i++) {
        unsigned number = i < used ? i : shared->direct.number;
        if (!chains[number].first)
            continue;
        local_answer_chain(shared->shards[number], &chains[number]);
        chains[number] = (struct mailbox_chain){0};
    }
}

/* For one of the engine's threads; NULL when turns are not measured. Aborts without memory. */
static inline struct turn *local_turn(const struct local_shared *shared, const char *kind)
{
    struct turn *turn;
    if (turns_join(shared->options.turns, kind, &turn) != ST_OK)
        abort();
    return turn;
}

#endif
