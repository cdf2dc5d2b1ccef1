#include "engine/local/local.h"

#include "base/clock.h"
#include "base/metric/turn.h"
#include "base/random.h"
#include "base/xalloc.h"
#include "engine/local/keeper/keeper.h"
#include "engine/local/mirror/mirror_writer.h"
#include "engine/local/page_fault.h"
#include "engine/local/shard/direct.h"
#include "engine/local/shard/shard.h"
#include "engine/local/snapshot/snapshot.h"
#include "engine/local/writer/writer.h"
#include "store/datadir.h"
#include "store/log/damage.h"
#include "store/log/prepare.h"
#include "store/upkeep/cleaner.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

struct engine_local {
    struct local_shared shared; /* first */
    struct local_writer writer;
    struct local_keeper keeper;
    struct local_snapshotter snapshotter;
};

static struct local_shared *shared_of(const struct engine *engine)
{
    return CONTAINER_OF((struct engine *)(uintptr_t)engine, struct local_shared, engine);
}

size_t local_map_bytes(uint64_t address_space)
{
    enum { SHARE = 4 };
    return size_min((size_t)256 << 30, address_space / SHARE);
}

static uint64_t address_space(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_AS, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

size_t engine_local_map_bytes(void)
{
    return local_map_bytes(address_space());
}

static struct engine_identity local_identity(const struct engine *base)
{
    const struct local_shared *shared = shared_of(base);
    return (struct engine_identity){
        .cluster_id = shared->options.cluster_id,
        .member_id = shared->options.member_id,
        .raft_term = store_term(shared->store),
    };
}

static bool local_watch_report(const struct engine *base, unsigned i,
                               struct watch_report *ret_report)
{
    const struct local_shared *shared = shared_of(base);
    if (i >= shared->options.shards_max)
        return false;
    watch_stats_snapshot_read(&shared->watch_snapshots[i], ret_report);
    return true;
}

static uint64_t local_auth_revision(const struct engine *base)
{
    const struct local_shared *shared = shared_of(base);
    return atomic_load(&shared->auth.newest_revision);
}

static bool local_ready(const struct engine *base, char *ret_reason)
{
    const struct local_shared *shared = shared_of(base);
    uint64_t bytes;
    if (!local_disk_is_full(&shared->alarms))
        return true;
    char left[64] = "its free space is unknown";
    if (log_free_bytes(store_log(shared->store), &bytes) == ST_OK)
        snprintf(left, sizeof(left), "%llu bytes are free", (unsigned long long)bytes);
    snprintf(
        ret_reason, ENGINE_REASON_BYTES,
        "no space left on the disk of the data directory (%s), so puts are refused until there "
        "is: free some, enlarge the disk, or delete keys and compact; if much is free, see its "
        "inodes and quotas",
        left);
    return false;
}

static const struct engine_ops local_ops = {
    .start =
        {
            [ENGINE_RANGE] = local_range_start,
            [ENGINE_PUT] = local_put_start,
            [ENGINE_DELETE_RANGE] = local_delete_range_start,
            [ENGINE_TXN] = local_txn_start,
            [ENGINE_COMPACT] = local_send_to_writer,
            [ENGINE_LEASE_GRANT] = local_send_to_writer,
            [ENGINE_LEASE_REVOKE] = local_send_to_writer,
            [ENGINE_LEASE_TIME_TO_LIVE] = local_lease_read_start,
            [ENGINE_LEASE_LIST] = local_lease_read_start,
            [ENGINE_LEASE_RENEW] = local_lease_renew_start,
            [ENGINE_AUTH] = local_send_to_writer,
            [ENGINE_WATCH_ADMIT] = engine_watch_admit_by_rights,
            [ENGINE_MEMBERS] = local_send_to_writer,
            [ENGINE_HASH_KV] = local_send_to_keeper,
            [ENGINE_ALARM] = local_send_to_writer,
            [ENGINE_DEFRAGMENT] = local_send_to_keeper,
            [ENGINE_DOWNGRADE] = local_send_to_writer,
            [ENGINE_SNAPSHOT_START] = local_send_to_keeper,
            [ENGINE_SNAPSHOT_READ] = local_snapshot_read,
        },
    .give_up = local_give_up,
    .range_window = local_range_window,
    .range_next = local_range_next,
    .range_fill = local_range_fill,
    .range_close = local_range_close,
    .write_close = local_write_close,
    .snapshot_close = local_snapshot_close,
    .identity = local_identity,
    .ready = local_ready,
    .auth_revision = local_auth_revision,
    .watch_report = local_watch_report,
    .shard_new = local_shard_new,
    .shard_free = local_shard_free,
    .turn_begin = local_shard_turn_begin,
    .turn_end = local_shard_turn_end,
    .flushed = local_shard_flushed,
    .watch_hub = local_shard_watch_hub,
    .auth_rights = local_auth_rights,
    .status_get = local_status_get,
    .alarms_get = local_shard_alarms_get,
    .metrics_write = local_shard_metrics_write,
};

/* Each row is kept by the owner of its table. */
static enum status load_row(void *ctx, const struct row *row)
{
    struct local_shared *shared = ctx;
    switch (row->table) {
    case ROW_LEASE:
        return local_lease_load_row(&shared->lease, row);
    case ROW_ALARM:
    case ROW_CLUSTER:
        return local_alarms_load_row(&shared->alarms, row);
    case ROW_MEMBER:
        return local_members_load_row(&shared->members, row);
    case ROW_USER:
    case ROW_ROLE:
    case ROW_AUTH:
        return local_auth_load_row(&shared->auth, row);
    default:
        return ST_OK;
    }
}

static void report_cut(const struct local_shared *shared)
{
    uint64_t spare = log_removed_spare(store_log(shared->store));
    char text[128];
    snprintf(text, sizeof(text), "an unused segment of the log, %016llx.seg, was removed",
             (unsigned long long)spare);
    if (spare)
        local_warn(&shared->report, text, ST_DAMAGED,
                   "nothing is lost; see in the kernel's log whether the disk fails");
    struct log_cut cut = log_cut(store_log(shared->store));
    if (log_heads_mended(store_log(shared->store)))
        local_warn(&shared->report, "the head of a segment of the log was damaged", ST_DAMAGED,
                   "it was restored from its second copy, and nothing is lost: check the disk");
    if (cut.bytes && shared->options.on_cut)
        shared->options.on_cut(shared->options.ctx, &(struct engine_local_cut){
                                                        .index = cut.index,
                                                        .bytes = cut.bytes,
                                                        .segment_id = cut.segment_id,
                                                        .offset = cut.offset,
                                                        .reason = cut.reason,
                                                    });
}

/* Before the keeper's thread starts, which then does the work. */
static void defragment_first(struct engine_local *local)
{
    const struct engine_local_options *options = &local->shared.options;
    if (!options->defragment_from_bytes)
        return;
    const struct store_view *view = store_view(local->shared.store);
    int64_t leases = local_lease_db_bytes(&local->shared.lease);
    struct engine_local_defragment defragment = {
        .db_bytes = LOCAL_DB_BYTES_EMPTY + view->db_bytes + leases,
        .db_bytes_in_use = LOCAL_DB_BYTES_IN_USE_EMPTY + view->db_bytes_in_use + leases,
    };
    defragment.begun =
        defragment.db_bytes - defragment.db_bytes_in_use >= options->defragment_from_bytes;
    local->keeper.defragmenter.wanted = defragment.begun;
    if (options->on_defragment)
        options->on_defragment(options->ctx, &defragment);
}

static MUST_CHECK
enum status open_store(struct local_shared *shared, struct error *ret_error)
{
    const struct engine_local_options *options = &shared->options;
    if (!options->leaves_signals) {
        page_fault_report(NULL, options->data_dir, options->is_mirror);
        page_fault_guard();
    }
    enum status status = store_open(
        &(struct store_options){
            .fs = options->fs,
            .dir = options->data_dir,
            .segment_bytes_first = options->segment_bytes_first,
            .segment_bytes_max = options->segment_bytes_max,
            .checkpoint_map_bytes = engine_local_map_bytes(),
            /* and keeper, snapshotter, a mirror's walk */
            .readers_max = options->shards_max + 3 + (options->has_readers ? LOCAL_READERS_MAX : 0),
            .is_mirror = options->is_mirror,
            .salt = random_seed_system(),
            .cluster_id = options->cluster_id,
            .member_id = options->member_id,
            .row_seen = load_row,
            .row_ctx = shared,
        },
        &shared->store, ret_error);
    if (!options->leaves_signals)
        page_fault_unguard();
    TRY(status);
    shared->report.log = store_log(shared->store);
    report_cut(shared);
    if (options->is_mirror)
        TRY(local_mirror_writer_check_complete(shared, ret_error));
    if (!options->check_first)
        return ST_OK;
    status = local_check_first(store_view(shared->store), store_log(shared->store), ret_error);
    return status == ST_OK ? ST_OK : datadir_advise(options->data_dir, false, ret_error);
}

static void shared_init(struct local_shared *shared, const struct engine_local_options *options)
{
    shared->engine.ops = &local_ops;
    shared->options = *options;
    engine_local_options_set_defaults(&shared->options);
    shared->report.on_fatal = options->on_fatal;
    shared->report.on_failure = options->on_failure;
    shared->report.on_warning = options->on_warning;
    shared->report.ctx = options->ctx;
    local_alarms_init(&shared->alarms, shared->options.member_id);
    local_auth_init(&shared->auth);
    local_lease_init(&shared->lease, &shared->auth.state, shared->options.lease_ttl_min_s,
                     random_seed_system());
}

/* The store is open and its rows are loaded. */
static void shared_start(struct local_shared *shared)
{
    struct engine_local_options *options = &shared->options;
    local_alarms_publish(&shared->alarms);
    local_auth_open(&shared->auth, shared->store);
    local_lease_start(&shared->lease, shared->store, clock_mono_ns(clock_system()));
    if (options->is_mirror)
        local_mirror_writer_open(shared);
    options->cluster_id = store_cluster_id(shared->store);
    options->member_id = store_member_id(shared->store);
    shared->members.lax = options->members_lax;
    shared->members.learners_max = options->learners_max;
    local_members_open(&shared->members, options->member_id, options->peer_urls,
                       options->peer_url_count);
    shared->metrics = local_metrics_new();
    shared->shards = xcalloc(options->shards_max + 1, sizeof(*shared->shards));
    shared->shards[options->shards_max] = &shared->direct;
    shared->direct.shard.engine = &shared->engine;
    shared->direct.number = options->shards_max;
    shared->direct.is_direct = true;
    if (options->has_readers)
        shared->readers = local_readers_new(shared);
    shared->places = xcalloc(options->shards_max, sizeof(*shared->places));
    shared->notices = xcalloc(options->shards_max, sizeof(*shared->notices));
    shared->progress = xcalloc(options->shards_max, sizeof(*shared->progress));
    shared->watch_snapshots = xcalloc(options->shards_max, sizeof(*shared->watch_snapshots));
}

/* Also after a failed open. */
static void shared_fini(struct local_shared *shared)
{
    store_close(shared->store);
    local_lease_fini(&shared->lease);
    local_alarms_fini(&shared->alarms);
    local_auth_fini(&shared->auth);
    member_list_fini(&shared->members);
    metric_set_free(shared->metrics);
    free(shared->shards);
    free(shared->readers);
    free(shared->places);
    free(shared->notices);
    free(shared->progress);
    free(shared->watch_snapshots);
}

enum status engine_local_open(const struct engine_local_options *options,
                              struct engine **ret_engine, struct error *ret_error)
{
    struct engine_local *local = xcalloc_aligned(_Alignof(struct engine_local), sizeof(*local));
    struct local_shared *shared = &local->shared;
    shared_init(shared, options);
    enum status status = open_store(shared, ret_error);
    if (status != ST_OK) {
        shared_fini(shared);
        free(local);
        return status;
    }
    shared_start(shared);
    local_keeper_init(&local->keeper, shared);
    local_writer_init(&local->writer, shared);
    local_snapshotter_init(&local->snapshotter, shared);
    defragment_first(local);
    local_keeper_start(&local->keeper);
    local_snapshotter_start(&local->snapshotter);
    local_writer_start(&local->writer);
    *ret_engine = &shared->engine;
    return ST_OK;
}

/* All threads have stopped, and all shards were freed. */
static void shared_check(const struct local_shared *shared)
{
    store_check_writer(shared->store);
    local_alarms_check(&shared->alarms);
    local_lease_check(&shared->lease);
    auth_store_check(shared->auth.state.store);
    member_list_check(&shared->members);
    for (unsigned i = 0; i < shared->options.shards_max; i++) {
        assert(!shared->shards[i]);
        read_progress_check(&shared->progress[i]);
        revision_notice_check(&shared->notices[i]);
    }
    assert(shared->watchers == 0);
}

static void stop_threads(struct engine_local *local)
{
    local_snapshotter_stop(&local->snapshotter);
    local_writer_stop(&local->writer);
    local_keeper_stop(&local->keeper);
}

static void free_stopped(struct engine_local *local)
{
    if (local->shared.options.checks_at_close)
        shared_check(&local->shared);
    local_writer_fini(&local->writer);
    local_keeper_fini(&local->keeper);
    local_snapshotter_fini(&local->snapshotter);
    shared_fini(&local->shared);
    free(local);
}

void engine_local_close(struct engine *engine)
{
    if (!engine)
        return;
    struct engine_local *local = CONTAINER_OF(engine, struct engine_local, shared.engine);
    stop_threads(local);
    free_stopped(local);
}

void local_mirror_abandon(struct engine *engine)
{
    struct engine_local *local = CONTAINER_OF(engine, struct engine_local, shared.engine);
    /* The threads end as after a failure, without a last checkpoint. */
    atomic_store(&local->shared.report.failed, true);
    stop_threads(local);
    free_stopped(local);
}

enum status local_mirror_close(struct engine *engine)
{
    struct engine_local *local = CONTAINER_OF(engine, struct engine_local, shared.engine);
    stop_threads(local);
    enum status status = log_sync_all(store_log_of_keeper(local->shared.store));
    free_stopped(local);
    return status;
}
