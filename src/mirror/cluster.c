#include "mirror/cluster.h"

#include "base/xalloc.h"
#include "engine/local/mirror/mirror_store.h"
#include "engine/local/state/revision_notice.h"
#include "mirror/directory/directory.h"
#include "mirror/follow/follower.h"
#include "mirror/link/phase.h"
#include "mirror/metrics.h"
#include "mirror/shard.h"

#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>

#define LAG_MAX_DEFAULT 10000
#define READ_WAIT_NS_DEFAULT (1000 * 1000)
#define GRANT_NS_DEFAULT (INT64_C(1000) * 1000 * 1000)

static struct mirror_shared *shared_of(const struct engine *engine)
{
    return CONTAINER_OF((struct engine *)(uintptr_t)engine, struct mirror_shared, engine);
}

static struct engine_identity mirror_identity(const struct engine *engine)
{
    struct mirror_state *state = &shared_of(engine)->state;
    return (struct engine_identity){
        .cluster_id = atomic_load(&state->cluster_id),
        .member_id = atomic_load(&state->member_id),
        .raft_term = atomic_load(&state->raft_term),
    };
}

static bool mirror_is_synced(const struct engine *engine)
{
    return atomic_load(&shared_of(engine)->state.synced);
}

static bool mirror_versions(const struct engine *engine, struct engine_versions *ret_versions)
{
    struct mirror_state *state = &shared_of(engine)->state;
    return member_table_versions(&state->member_table, atomic_load(&state->member_id),
                                 ret_versions);
}

static bool mirror_membership(const struct engine *engine, struct engine_membership *ret_membership)
{
    struct mirror_state *state = &shared_of(engine)->state;
    return member_table_membership(&state->member_table, atomic_load(&state->member_id),
                                   ret_membership);
}

static bool mirror_watch_report(const struct engine *engine, unsigned i,
                                struct watch_report *ret_report)
{
    const struct engine *mirror = shared_of(engine)->mirror->engine;
    return mirror->ops->watch_report(mirror, i, ret_report);
}

static bool mirror_ready(const struct engine *engine, char *ret_reason)
{
    static_assert((int)ENGINE_REASON_BYTES == (int)MIRROR_PHASE_BYTES,
                  "the reason is copied whole");
    struct mirror_shared *shared = shared_of(engine);
    return mirror_phase_explain(&shared->state, &shared->options, ret_reason) == MIRROR_FOLLOWING;
}

/* No client logs in here: tokens are the cluster's. */
static uint64_t mirror_auth_revision(const struct engine *engine)
{
    (void)engine;
    return 1;
}

/* Without the operations that only etcd's API uses, whose calls are forwarded as bytes. */
static const struct engine_ops mirror_ops = {
    .start =
        {
            [ENGINE_RANGE] = mirror_range_start,
            [ENGINE_PUT] = mirror_call_start,
            [ENGINE_DELETE_RANGE] = mirror_call_start,
            [ENGINE_TXN] = mirror_call_start,
            [ENGINE_COMPACT] = mirror_call_start,
            [ENGINE_LEASE_GRANT] = mirror_call_start,
            [ENGINE_LEASE_REVOKE] = mirror_call_start,
            [ENGINE_LEASE_TIME_TO_LIVE] = mirror_call_start,
            [ENGINE_LEASE_LIST] = mirror_call_start,
            [ENGINE_LEASE_RENEW] = mirror_lease_renew,
            [ENGINE_WATCH_ADMIT] = mirror_watch_admit,
        },
    .give_up = mirror_give_up,
    .range_window = mirror_range_window,
    .range_next = mirror_range_next,
    .range_fill = mirror_range_fill,
    .range_close = mirror_range_close,
    .write_close = mirror_write_close,
    .identity = mirror_identity,
    .ready = mirror_ready,
    .is_synced = mirror_is_synced,
    .auth_revision = mirror_auth_revision,
    .watch_report = mirror_watch_report,
    .versions = mirror_versions,
    .membership = mirror_membership,
    .shard_new = mirror_shard_new,
    .shard_free = mirror_shard_free,
    .shard_stop = mirror_shard_stop,
    .turn_begin = mirror_turn_begin,
    .turn_end = mirror_turn_end,
    .flushed = mirror_flushed,
    .watch_hub = mirror_watch_hub,
    .auth_rights = mirror_auth_rights,
    .watch_recheck = mirror_watch_recheck,
    .status_get = mirror_status_get,
    .metrics_write = mirror_metrics_write,
    .await_revision = mirror_await_revision,
    .forward_start = mirror_forward_start,
    .forward_send = mirror_forward_send,
    .forward_half_close = mirror_forward_half_close,
    .forward_pause = mirror_forward_pause,
    .forward_cancel = mirror_forward_cancel,
};

static void set_defaults(struct mirror_options *options)
{
    if (!options->lag_max_revisions)
        options->lag_max_revisions = LAG_MAX_DEFAULT;
    if (!options->read_wait_ns)
        options->read_wait_ns = READ_WAIT_NS_DEFAULT;
    if (!options->grant_ns)
        options->grant_ns = GRANT_NS_DEFAULT;
    if (!options->mirror.shards_max)
        options->mirror.shards_max = 1;
    options->mirror.is_mirror = true;
}

static void on_mirrored(void *ctx)
{
    mirror_reads_notify(ctx);
}

static enum status start(struct mirror_shared *shared, struct error *error)
{
    struct mirror_directory *mirror = xcalloc(1, sizeof(*mirror));
    enum status status = mirror_directory_open(&shared->options, mirror, error);
    if (status != ST_OK) {
        free(mirror);
        return status;
    }
    shared->mirror = mirror;
    shared->notices = xcalloc(shared->options.mirror.shards_max, sizeof(*shared->notices));
    shared->state.on_mirrored = on_mirrored;
    shared->state.ctx = shared;
    atomic_store(&shared->state.void_until, mirror->void_until);
    atomic_store(&shared->state.cluster_id, mirror->cluster_id);
    return follower_start(&(struct follower_options){.cluster = &shared->options,
                                                     .mirror = mirror,
                                                     .state = &shared->state},
                          &shared->follower, error);
}

enum status engine_cluster_open(const struct mirror_options *options, struct engine **ret_engine,
                                struct error *error)
{
    struct mirror_shared *shared = xcalloc(1, sizeof(*shared));
    shared->engine.ops = &mirror_ops;
    follow_failure_init(&shared->state.follow_failure);
    member_table_init(&shared->state.member_table, options->upstream.endpoints);
    loop_guard_make(shared->via);
    shared->options = *options;
    shared->options.upstream.via = shared->via;
    set_defaults(&shared->options);
    enum status status = start(shared, error);
    if (status != ST_OK) {
        engine_cluster_close(&shared->engine);
        return status;
    }
    *ret_engine = &shared->engine;
    return ST_OK;
}

void engine_cluster_close(struct engine *engine)
{
    if (!engine)
        return;
    struct mirror_shared *shared = shared_of(engine);
    follower_stop(shared->follower);
    if (shared->mirror)
        mirror_directory_close(shared->mirror, &shared->options);
    free(shared->mirror);
    follow_failure_fini(&shared->state.follow_failure);
    member_table_fini(&shared->state.member_table);
    free(shared->notices);
    free(shared);
}

/* The newest revision of which clients may have learnt. */
static int64_t newest_seen(struct mirror_shared *shared)
{
    struct mirror_state *state = &shared->state;
    const int64_t seen[] = {
        atomic_load(&state->mirrored),
        atomic_load(&state->heard),
        atomic_load(&state->void_until),
        local_mirror_revision(shared->mirror->engine),
    };
    int64_t newest = 0;
    for (size_t i = 0; i < COUNT_OF(seen); i++)
        newest = seen[i] > newest ? seen[i] : newest;
    return newest;
}

static void ended(struct mirror_batch *batch, enum status status)
{
    (void)status; /* without it, watches end with their connections */
    sem_post(batch->user);
}

static void drop_history(struct mirror_shared *shared, int64_t revision)
{
    sem_t done;
    sem_init(&done, 0, 0);
    struct mirror_batch batch = {.compact = revision, .done = ended, .user = &done};
    local_mirror_apply(shared->mirror->engine, &batch);
    while (sem_wait(&done) != 0)
        assert(errno == EINTR);
    sem_destroy(&done);
}

/*
 * The mirror's history is dropped together with the revision after the one that any watch can have
 * seen, so that every watch lacks something. Another drop waits for the shards to have read, and so
 * answered, the first: streams that end before that would be resumed by their clients.
 */
int64_t engine_cluster_end_watches(struct engine *engine)
{
    struct mirror_shared *shared = shared_of(engine);
    int64_t behind = newest_seen(shared) + 2;
    /* Nothing older is fetched from the cluster, which has another history. */
    mirror_state_raise(&shared->state.compacted, behind);
    drop_history(shared, behind);
    drop_history(shared, behind + 1);
    return behind;
}

enum status engine_cluster_discard(const struct mirror_options *options, int64_t void_until,
                                   struct error *error)
{
    return mirror_directory_discard(options, void_until, error);
}
