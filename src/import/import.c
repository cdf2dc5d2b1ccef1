#include "import/import.h"

#include "base/clock.h"
#include "import/db.h"
#include "import/replay.h"
#include "import/target.h"
#include "import/v2.h"
#include "import/wal.h"

#include <inttypes.h>
#include <stdio.h>

/*
 * The steps of an import:
 *
 *     NEW ─► OPENED ─► BUILDING ─► REPLAYING ─► COMPLETED ─► COMMITTED: a usable data directory
 *                         ╰── a file has no log ───►╯
 *
 *     every state before COMMITTED ─► FAILED: what was made is removed
 */
enum import_state {
    IMPORT_NEW,
    IMPORT_OPENED,    /* the source is open and its meta data was read */
    IMPORT_BUILDING,  /* keys and rows of the bbolt file are added to a new store */
    IMPORT_REPLAYING, /* the entries of the write-ahead log are applied; a directory only */
    IMPORT_COMPLETED, /* the store is complete; it is closed and moved to its place */
    IMPORT_COMMITTED,
    IMPORT_FAILED,
};

#define TO(state) (1u << IMPORT_##state)

static const unsigned import_moves[] = {
    [IMPORT_NEW] = TO(OPENED) | TO(FAILED),
    [IMPORT_OPENED] = TO(BUILDING) | TO(FAILED),
    [IMPORT_BUILDING] = TO(REPLAYING) | TO(COMPLETED) | TO(FAILED),
    [IMPORT_REPLAYING] = TO(COMPLETED) | TO(FAILED),
    [IMPORT_COMPLETED] = TO(COMMITTED) | TO(FAILED),
    [IMPORT_COMMITTED] = 0,
    [IMPORT_FAILED] = 0,
};

struct import_job {
    enum import_state state;
    const struct import_options *options;
    struct import_progress progress;
    struct import_source source;
    struct import_meta meta;
    struct import_target target;
    struct import_wal wal;
    struct store_builder *builder;
    struct import_replay *replay; /* replays a directory's write-ahead log */
    struct import_counts counts;
    struct import_summary *summary;
    struct error *error;
};

static void import_move(struct import_job *job, enum import_state next)
{
    assert(import_moves[job->state] & (1u << next));
    job->state = next;
    assert(job->state != IMPORT_REPLAYING || job->source.is_directory);
    assert(job->state != IMPORT_COMMITTED || (!job->builder && !job->target.lock));
}

static enum status cannot_write(const struct import_job *job, enum status status)
{
    return store_builder_failed(job->builder, status, job->error);
}

static enum status open_source(struct import_job *job)
{
    TRY(import_source_open(&job->source,
                           &(struct import_source_options){
                               .fs = job->options->fs,
                               .path = job->options->source,
                               .is_file = job->options->is_file,
                               .wal_dir = job->options->wal_dir,
                               .digest = job->options->digest,
                               .progress = &job->progress,
                           },
                           job->error));
    TRY(import_meta_read(&job->source, &job->meta, job->error));
    if (job->source.is_directory)
        TRY(import_wal_open(&job->wal, job->options->fs, job->source.wal_path,
                            job->meta.consistent_index, job->error));
    import_move(job, IMPORT_OPENED);
    return ST_OK;
}

static enum status open_builder(struct import_job *job)
{
    TRY(import_target_begin(&job->target, job->options->fs, job->options->data_dir, job->error));
    TRY(store_builder_open(
        &(struct store_builder_options){
            .fs = job->options->fs,
            .dir = job->target.build_dir,
            .checkpoint_map_bytes = job->options->checkpoint_map_bytes,
            .salt = job->options->salt,
        },
        &job->builder, job->error));
    import_move(job, IMPORT_BUILDING);
    return ST_OK;
}

/* Like a starting etcd: continues a compaction that had begun; the newest revision is at least the
 * compacted one, even if none of its changes is left. */
static enum status compact(struct import_job *job)
{
    int64_t revision = job->meta.finished_compact > job->meta.scheduled_compact
                           ? job->meta.finished_compact
                           : job->meta.scheduled_compact;
    if (revision < 0)
        return ST_OK;
    if (revision > IMPORT_REVISION_MAX)
        return error_set(job->error, ST_DAMAGED,
                         "%s cannot be read: it is damaged: it says that it is compacted at "
                         "revision %" PRId64 ", which no etcd reaches; use another snapshot",
                         job->source.path, revision);
    store_builder_reach(job->builder, revision);
    enum status status = store_builder_compact(job->builder, revision);
    return status == ST_OK ? ST_OK : cannot_write(job, status);
}

static enum status bump(struct import_job *job)
{
    int64_t by = job->options->bump_revision;
    int64_t newest = store_applier(store_builder_store(job->builder))->revision;
    if (by == 0)
        return ST_OK;
    if (by > IMPORT_REVISION_MAX - newest)
        return error_set(job->error, ST_INVALID,
                         "the newest revision is %" PRId64 " and cannot be raised by %" PRId64
                         ": the largest is %" PRId64,
                         newest, by, IMPORT_REVISION_MAX);
    store_builder_reach(job->builder, newest + by);
    enum status status = store_builder_compact(job->builder, newest + by);
    return status == ST_OK ? ST_OK : cannot_write(job, status);
}

/* -- The write-ahead log -- */

/* How many of the entries are applied. The only member of a cluster commits everything in its log
 * when it starts; one of several only knows what was committed according to its log. */
static size_t entries_to_apply(const struct import_job *job, bool membership_changes)
{
    const struct import_wal *wal = &job->wal;
    if (job->meta.members <= 1 && !membership_changes)
        return wal->place_count;
    if (wal->state.commit <= wal->after)
        return 0;
    return size_min(wal->place_count, wal->state.commit - wal->after);
}

/* The first entry of a new log, by which the member itself joins, is not a change. */
static bool changes_membership(const struct import_job *job, const struct pb_log_entry *entry)
{
    enum { NORMAL = 0, CHANGE = 1 };
    struct pb_log_conf_change change;
    struct arena none = {0};
    if (entry->type == NORMAL)
        return false;
    return entry->type != CHANGE ||
           pb_decode(&pb_log_conf_change_table, entry->data, &none, &change) != ST_OK ||
           change.node_id != job->wal.metadata.node_id;
}

static enum status find_membership_changes(struct import_job *job, bool *ret_found)
{
    *ret_found = false;
    for (size_t i = 0; i < job->wal.place_count && !*ret_found; i++) {
        struct pb_log_entry entry;
        TRY(import_wal_entry(&job->wal, i, &entry, job->error));
        *ret_found = changes_membership(job, &entry);
    }
    return ST_OK;
}

static enum status replay_one(struct import_job *job, size_t i)
{
    struct pb_log_entry entry;
    TRY(import_wal_entry(&job->wal, i, &entry, job->error));
    enum status status = import_replay_entry(job->replay, &entry);
    if (status == ST_DAMAGED)
        return error_set(job->error, ST_DAMAGED,
                         "the write-ahead log %s has an entry, index %" PRIu64
                         ", that no etcd up to 3.%d writes; use a snapshot",
                         job->source.wal_path, entry.index, IMPORT_MINOR_MAX);
    if (status == ST_LIMIT)
        return error_set(job->error, ST_LIMIT,
                         "%s cannot be imported: the entry of its write-ahead log with index "
                         "%" PRIu64 " is larger than Vigil takes; see its limits of importing",
                         job->options->source, entry.index);
    return status == ST_OK ? ST_OK : cannot_write(job, status);
}

static enum status replay(struct import_job *job)
{
    import_move(job, IMPORT_REPLAYING);
    bool membership_changes;
    TRY(find_membership_changes(job, &membership_changes));
    size_t count = entries_to_apply(job, membership_changes);
    enum status status = import_replay_start(job->replay);
    if (status != ST_OK)
        return cannot_write(job, status);
    for (size_t i = 0; i < count; i++) {
        TRY(replay_one(job, i));
        import_progress_report(&job->progress, IMPORT_ENTRIES, i + 1, count);
    }
    const struct import_replay_counts *counts = import_replay_counts(job->replay);
    job->summary->entries = counts->applied;
    job->summary->entries_refused = counts->refused;
    job->summary->entries_v2 = counts->v2;
    job->summary->wal_is_torn = job->wal.is_torn;
    import_replay_tally(job->replay, &job->counts);
    return ST_OK;
}

/* -- The steps -- */

static enum status fill(struct import_job *job)
{
    TRY(import_keys(&job->source, job->builder, &job->progress, &job->counts, job->error));
    row_fn seen = NULL;
    if (job->source.is_directory) {
        job->replay = import_replay_new(job->builder, job->meta.storage_minor);
        seen = import_replay_row;
    }
    TRY(import_rows(&job->source, job->builder, seen, job->replay, &job->counts, job->error));
    TRY(compact(job));
    if (job->replay)
        TRY(replay(job));
    return bump(job);
}

static enum status finish(struct import_job *job)
{
    import_progress_report(&job->progress, IMPORT_FINISHING, 0, 1);
    struct store_builder_identity identity = {
        .cluster_id = job->wal.metadata.cluster_id,
        .member_id = job->wal.metadata.node_id,
        .term = job->wal.state.term ? job->wal.state.term : 1,
    };
    bool known = identity.cluster_id && identity.member_id;
    enum status status = store_builder_finish(job->builder, known ? &identity : NULL);
    if (status != ST_OK)
        return cannot_write(job, status);
    import_move(job, IMPORT_COMPLETED);
    const struct store_view *view = store_view(store_builder_store(job->builder));
    struct import_summary *summary = job->summary;
    summary->is_directory = job->source.is_directory;
    summary->file_bytes = job->source.file_bytes;
    summary->revision = view->revision;
    summary->compact_revision = view->compact_revision;
    summary->keys = view->root.live_keys;
    summary->changes = job->counts.changes;
    summary->leases = job->counts.leases;
    summary->users = job->counts.users;
    summary->roles = job->counts.roles;
    summary->alarms = job->counts.alarms;
    summary->auth_enabled = job->counts.auth_enabled;
    summary->cluster_id = known ? identity.cluster_id : 0;
    summary->member_id = known ? identity.member_id : 0;
    const char *version =
        *job->meta.storage_version ? job->meta.storage_version : job->meta.cluster_version;
    snprintf(summary->etcd_version, sizeof(summary->etcd_version), "%s", version);
    return ST_OK;
}

/* Closes the store and makes the directory a data directory. */
static enum status commit(struct import_job *job)
{
    if (job->source.is_directory)
        job->summary->has_v2_keys = import_v2_has_keys(job->options->fs, job->source.snap_path);
    import_replay_free(TAKE(job->replay));
    store_builder_close(TAKE(job->builder));
    TRY(import_target_commit(&job->target, job->options->fs, job->error));
    import_move(job, IMPORT_COMMITTED);
    import_progress_report(&job->progress, IMPORT_FINISHING, 1, 1);
    return ST_OK;
}

static enum status run_steps(struct import_job *job)
{
    TRY(open_source(job));
    TRY(open_builder(job));
    TRY(fill(job));
    TRY(finish(job));
    return commit(job);
}

static void close_all(struct import_job *job)
{
    import_replay_free(job->replay);
    store_builder_close(job->builder);
    import_target_end(&job->target);
    import_wal_close(&job->wal);
    import_source_close(&job->source);
}

enum status import_run(const struct import_options *options, struct import_summary *ret_summary,
                       struct error *ret_error)
{
    struct import_summary summary = {0};
    struct import_job job = {
        .options = options,
        .progress = options->progress,
        .summary = &summary,
        .error = ret_error,
    };
    int64_t begun_ns = clock_mono_ns(clock_system());
    enum status status = run_steps(&job);
    if (status != ST_OK)
        import_move(&job, IMPORT_FAILED);
    close_all(&job);
    summary.elapsed_ns = clock_mono_ns(clock_system()) - begun_ns;
    if (status == ST_OK)
        *ret_summary = summary;
    return status;
}
