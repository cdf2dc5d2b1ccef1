#include "engine/local/local.h"

#include "base/clock.h"
#include "base/random.h"
#include "base/turn.h"
#include "base/xalloc.h"
#include "engine/local/page_fault.h"
#include "engine/local/shard.h"
#include "store/upkeep/cleaner.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

enum {
    SEGMENT_BYTES_FIRST = 1 << 20,
    SEGMENT_BYTES_MAX = 64 << 20,
    CHECKPOINT_BYTES = 64 << 20,
    WATCH_FRAGMENT_BYTES = 2 << 20,
    WATCHERS_PER_STREAM_MAX = 1000 * 1000,
    LEASE_TTL_MIN_S = 2,
    WATCHERS_MAX = 10 * 1000 * 1000,
};

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

_Noreturn void local_fatal(struct engine_local *engine, const char *what, enum status status)
{
    char text[256];
    snprintf(text, sizeof(text), "%s: %s", what, status_reason(status));
    if (engine->options.on_fatal)
        engine->options.on_fatal(engine->options.ctx, text);
    fprintf(stderr, "vigil: %s\n", text);
    abort();
}

void local_warn(struct engine_local *engine, const char *what, enum status status,
                const char *detail)
{
    if (!engine->options.on_warning)
        return;
    char text[512];
    snprintf(text, sizeof(text), "%s: %s%s%s", what, status_reason(status), *detail ? "; " : "",
             detail);
    engine->options.on_warning(engine->options.ctx, text);
}

void local_job_free(struct local_job *job)
{
    relocation_free(job->relocation);
    free(job);
}

struct turn *local_turn(struct engine_local *engine, const char *kind)
{
    struct turn *turn;
    if (turns_join(engine->options.turns, kind, &turn) != ST_OK)
        abort();
    return turn;
}

struct slice local_op_name(const struct engine_op *op)
{
    static const char *const names[] = {
        [LOCAL_DELETE_RANGE] = "a delete",
        [LOCAL_TXN] = "a transaction",
        [LOCAL_COMPACT] = "a compaction",
        [LOCAL_ALARM] = "an alarm",
        [LOCAL_DOWNGRADE] = "a downgrade",
        [LOCAL_MEMBERS] = "a request about members",
        [LOCAL_AUTH] = "a request about users or roles",
        [LOCAL_HASH_KV] = "a hash of all keys",
        [LOCAL_SNAPSHOT] = "a snapshot",
        [LOCAL_DEFRAGMENT] = "a defragmentation",
        [LOCAL_LEASE + ENGINE_LEASE_GRANT] = "the grant of a lease",
        [LOCAL_LEASE + ENGINE_LEASE_REVOKE] = "the revocation of a lease",
        [LOCAL_LEASE + ENGINE_LEASE_TIME_TO_LIVE] = "a lease's time to live",
        [LOCAL_LEASE + ENGINE_LEASE_LIST] = "the list of leases",
    };
    const char *name = op->kind < COUNT_OF(names) ? names[op->kind] : NULL;
    return name ? slice_from_text(name) : SLICE_EMPTY;
}

void local_answer_chain(struct local_shard *shard, const struct op_chain *chain)
{
    atomic_fetch_add(&shard->posting, 1);
    mailbox_post_chain(&shard->answers, chain->first, chain->last);
    atomic_fetch_sub(&shard->posting, 1);
}

void local_answer(struct engine_op *op)
{
    struct local_shard *shard = CONTAINER_OF(op->shard, struct local_shard, shard);
    local_answer_chain(shard, &(struct op_chain){&op->in_mailbox, &op->in_mailbox});
}

static struct engine_identity local_identity(const struct engine *base)
{
    const struct engine_local *engine =
        CONTAINER_OF((struct engine *)(uintptr_t)base, struct engine_local, engine);
    return (struct engine_identity){
        .cluster_id = engine->options.cluster_id,
        .member_id = engine->options.member_id,
        .raft_term = store_term(engine->store),
    };
}

static bool local_watch_report(const struct engine *base, unsigned i,
                               struct watch_report *ret_report)
{
    const struct engine_local *engine =
        CONTAINER_OF((struct engine *)(uintptr_t)base, struct engine_local, engine);
    if (i >= engine->options.shards_max)
        return false;
    watch_stats_snapshot_read(&engine->watch_snapshots[i], ret_report);
    return true;
}

static uint64_t local_auth_revision(const struct engine *base)
{
    const struct engine_local *engine =
        CONTAINER_OF((struct engine *)(uintptr_t)base, struct engine_local, engine);
    return atomic_load(&engine->auth.shown_revision);
}

static const struct engine_ops local_ops = {
    .identity = local_identity,
    .shard_new = local_shard_new,
    .shard_free = local_shard_free,
    .turn_begin = local_shard_turn_begin,
    .turn_end = local_shard_turn_end,
    .flushed = local_shard_flushed,
    .watch_hub = local_shard_watch_hub,
    .watch_report = local_watch_report,
    .range_start = local_range_start,
    .range_window = local_range_window,
    .range_next = local_range_next,
    .range_fill = local_range_fill,
    .range_close = local_range_close,
    .put = local_put,
    .delete_range = local_delete_range,
    .txn = local_txn,
    .write_close = local_write_close,
    .compact = local_compact,
    .lease = local_lease_start_op,
    .hash_kv = local_hash_kv,
    .alarm = local_alarm,
    .alarms_get = local_alarms_get,
    .defragment = local_defragment,
    .hash_give_up = local_hash_give_up,
    .defragment_give_up = local_defragment_give_up,
    .downgrade = local_downgrade,
    .snapshot_start = local_snapshot_start,
    .snapshot_read = local_snapshot_read,
    .snapshot_close = local_snapshot_close,
    .members = local_members_start_op,
    .auth = local_auth_start_op,
    .auth_rights = local_auth_rights,
    .auth_revision = local_auth_revision,
    .status_get = local_status_get,
    .metrics_write = local_shard_metrics_write,
};

static size_t or_default(size_t value, size_t fallback)
{
    return value ? value : fallback;
}

static void set_defaults(struct engine_local_options *options)
{
    options->fs = options->fs ? options->fs : fs_posix();
    options->segment_bytes_first = or_default(options->segment_bytes_first, SEGMENT_BYTES_FIRST);
    options->segment_bytes_max = or_default(options->segment_bytes_max, SEGMENT_BYTES_MAX);
    options->checkpoint_bytes = or_default(options->checkpoint_bytes, CHECKPOINT_BYTES);
    options->shards_max = (unsigned)or_default(options->shards_max, 1);
    options->watch_fragment_bytes = or_default(options->watch_fragment_bytes, WATCH_FRAGMENT_BYTES);
    options->watchers_per_stream_max =
        (unsigned)or_default(options->watchers_per_stream_max, WATCHERS_PER_STREAM_MAX);
    options->watchers_max = or_default(options->watchers_max, WATCHERS_MAX);
    if (!options->watch_progress_interval_ns)
        options->watch_progress_interval_ns = 600 * NS_PER_S;
    if (!options->check_interval_ns)
        options->check_interval_ns = 3600 * NS_PER_S;
    if (!options->compaction_wait_ns)
        options->compaction_wait_ns = NS_PER_S;
    if (!options->lease_ttl_min_s)
        options->lease_ttl_min_s = LEASE_TTL_MIN_S;
}

/* A row that must last: each table has who keeps it. */
static enum status row_seen(void *ctx, const struct row *row)
{
    struct engine_local *engine = ctx;
    switch (row->table) {
    case ROW_LEASE:
        return local_lease_row(&engine->writer.lease, row);
    case ROW_ALARM:
    case ROW_CLUSTER:
        return local_notices_take_row(&engine->notices, row);
    case ROW_MEMBER:
        return local_members_take_row(&engine->members, row);
    case ROW_USER:
    case ROW_ROLE:
    case ROW_AUTH:
        return local_auth_row(&engine->auth, row);
    default:
        return ST_OK;
    }
}

static void tell_cut(const struct engine_local *engine)
{
    struct log_cut cut = log_cut(store_log(engine->store));
    if (cut.bytes && engine->options.on_cut)
        engine->options.on_cut(engine->options.ctx, &(struct engine_local_cut){
                                                        .index = cut.index,
                                                        .bytes = cut.bytes,
                                                        .segment_id = cut.segment_id,
                                                        .offset = cut.offset,
                                                        .reason = cut.reason,
                                                    });
}

/* Before the keeper's thread begins, which then does it. */
static void defragment_first(struct engine_local *engine)
{
    const struct engine_local_options *options = &engine->options;
    if (!options->defragment_from_bytes)
        return;
    const struct store_view *view = store_view(engine->store);
    int64_t leases = local_lease_db_bytes(&engine->writer.lease);
    struct engine_local_defragment defragment = {
        .db_bytes = LOCAL_DB_BYTES_EMPTY + view->db_bytes + leases,
        .db_bytes_in_use = LOCAL_DB_BYTES_IN_USE_EMPTY + view->db_bytes_in_use + leases,
    };
    defragment.begun =
        defragment.db_bytes - defragment.db_bytes_in_use >= options->defragment_from_bytes;
    engine->keeper.defragmenter.wanted = defragment.begun;
    if (options->on_defragment)
        options->on_defragment(options->ctx, &defragment);
}

enum status engine_local_open(const struct engine_local_options *options,
                              struct engine **ret_engine, struct error *ret_error)
{
    struct engine_local *engine = xcalloc(1, sizeof(*engine));
    engine->engine.ops = &local_ops;
    engine->options = *options;
    set_defaults(&engine->options);
    local_notices_init(&engine->notices);
    local_auth_init(&engine->auth);
    local_lease_init(&engine->writer.lease, &engine->auth.book, engine->options.lease_ttl_min_s,
                     random_seed_system());
    local_fault_guard(options->data_dir);
    enum status status = store_open(
        &(struct store_options){
            .fs = engine->options.fs,
            .dir = options->data_dir,
            .segment_bytes_first = engine->options.segment_bytes_first,
            .segment_bytes_max = engine->options.segment_bytes_max,
            .checkpoint_map_bytes = engine_local_map_bytes(),
            .readers_max = engine->options.shards_max + 2, /* and keeper and snapshotter */
            .salt = random_seed_system(),
            .cluster_id = options->cluster_id,
            .member_id = options->member_id,
            .row_seen = row_seen,
            .row_ctx = engine,
        },
        &engine->store, ret_error);
    local_fault_unguard();
    if (status == ST_OK)
        tell_cut(engine);
    if (status == ST_OK && options->check_first)
        status = local_check_first(store_view(engine->store), store_log(engine->store), ret_error);
    if (status != ST_OK) {
        store_close(engine->store);
        local_lease_fini(&engine->writer.lease);
        local_notices_fini(&engine->notices);
        local_auth_fini(&engine->auth);
        member_book_fini(&engine->members);
        free(engine);
        return status;
    }
    local_notices_show(&engine->notices);
    local_auth_open(&engine->auth, engine->store);
    local_lease_start(&engine->writer.lease, engine->store, clock_mono_ns(clock_system()));
    engine->options.cluster_id = store_cluster_id(engine->store);
    engine->options.member_id = store_member_id(engine->store);
    engine->members.lax = options->members_lax;
    engine->members.learners_max = options->learners_max;
    local_members_open(&engine->members, engine->options.member_id, options->peer_urls,
                       options->peer_url_count);
    engine->metrics = local_metrics_new();
    engine->shards = xcalloc(engine->options.shards_max, sizeof(struct local_shard *));
    engine->news = xcalloc(engine->options.shards_max, sizeof(*engine->news));
    engine->hearing = xcalloc(engine->options.shards_max, sizeof(*engine->hearing));
    engine->watch_snapshots = xcalloc(engine->options.shards_max, sizeof(*engine->watch_snapshots));
    local_keeper_init(&engine->keeper, engine);
    local_writer_init(&engine->writer, engine);
    local_snapshotter_init(&engine->snapshotter, engine);
    defragment_first(engine);
    local_keeper_start(&engine->keeper);
    local_snapshotter_start(&engine->snapshotter);
    local_writer_start(&engine->writer);
    local_fault_watch(store_log(engine->store));
    *ret_engine = &engine->engine;
    return ST_OK;
}

void engine_local_close(struct engine *base)
{
    if (!base)
        return;
    struct engine_local *engine = CONTAINER_OF(base, struct engine_local, engine);
    local_snapshotter_stop(&engine->snapshotter);
    local_writer_stop(&engine->writer);
    local_keeper_stop(&engine->keeper);
    local_writer_fini(&engine->writer);
    local_keeper_fini(&engine->keeper);
    local_snapshotter_fini(&engine->snapshotter);
    local_fault_unwatch();
    store_close(engine->store);
    local_notices_fini(&engine->notices);
    local_auth_fini(&engine->auth);
    member_book_fini(&engine->members);
    metric_set_free(engine->metrics);
    free(engine->shards);
    free(engine->news);
    free(engine->hearing);
    free(engine->watch_snapshots);
    free(engine);
}
