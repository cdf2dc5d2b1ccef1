#include "import/import.h"

#include "base/clock.h"
#include "import/db.h"
#include "import/place.h"
#include "import/replay.h"
#include "import/v2.h"
#include "import/wal.h"

#include <inttypes.h>
#include <stdio.h>

/* One import under way. */
struct run {
    const struct import_options *options;
    struct import_progress progress;
    struct import_source source;
    struct import_meta meta;
    struct import_place place;
    struct import_wal wal;
    struct store_builder *builder;
    struct import_replay *replay; /* for a directory */
    struct import_counts counts;
    struct import_summary *summary;
    struct error *error;
};

static enum status cannot_write(const struct run *run, enum status status)
{
    return store_builder_failed(run->builder, status, run->error);
}

static enum status open_source(struct run *run)
{
    TRY(import_source_open(&run->source,
                           &(struct import_source_options){
                               .fs = run->options->fs,
                               .path = run->options->source,
                               .is_file = run->options->is_file,
                               .wal_dir = run->options->wal_dir,
                               .digest = run->options->digest,
                               .progress = &run->progress,
                           },
                           run->error));
    TRY(import_meta_read(&run->source, &run->meta, run->error));
    if (run->source.is_directory)
        TRY(import_wal_open(&run->wal, run->options->fs, run->source.wal_path,
                            run->meta.consistent_index, run->error));
    return ST_OK;
}

static enum status open_builder(struct run *run)
{
    TRY(import_place_begin(&run->place, run->options->fs, run->options->data_dir, run->error));
    return store_builder_open(
        &(struct store_builder_options){
            .fs = run->options->fs,
            .dir = run->place.build_dir,
            .checkpoint_map_bytes = run->options->checkpoint_map_bytes,
            .salt = run->options->salt,
        },
        &run->builder, run->error);
}

/* As a starting etcd: a compaction that had begun goes on, and the newest revision is at least the
 * one that was compacted, though nothing of it may be left. */
static enum status compact(struct run *run)
{
    int64_t revision = run->meta.finished_compact > run->meta.scheduled_compact
                           ? run->meta.finished_compact
                           : run->meta.scheduled_compact;
    if (revision < 0)
        return ST_OK;
    if (revision > IMPORT_REVISION_MAX)
        return error_set(run->error, ST_DAMAGED,
                         "%s cannot be read: it is damaged: it says that it is compacted at "
                         "revision %" PRId64 ", which no etcd reaches; use another snapshot",
                         run->source.path, revision);
    store_builder_reach(run->builder, revision);
    enum status status = store_builder_compact(run->builder, revision);
    return status == ST_OK ? ST_OK : cannot_write(run, status);
}

static enum status bump(struct run *run)
{
    int64_t by = run->options->bump_revision;
    int64_t newest = store_applier(store_builder_store(run->builder))->revision;
    if (by == 0)
        return ST_OK;
    if (by > IMPORT_REVISION_MAX - newest)
        return error_set(run->error, ST_INVALID,
                         "the newest revision is %" PRId64 " and cannot be raised by %" PRId64
                         ": the largest is %" PRId64,
                         newest, by, IMPORT_REVISION_MAX);
    store_builder_reach(run->builder, newest + by);
    enum status status = store_builder_compact(run->builder, newest + by);
    return status == ST_OK ? ST_OK : cannot_write(run, status);
}

/* -- The write-ahead log -- */

/*
 * How many of the entries count. The only member of its cluster commits whatever stands in its log
 * when it starts; one of several cannot know of more than it was told.
 */
static size_t entries_to_apply(const struct run *run, bool membership_changes)
{
    const struct import_wal *wal = &run->wal;
    if (run->meta.members <= 1 && !membership_changes)
        return wal->place_count;
    if (wal->state.commit <= wal->after)
        return 0;
    return size_min(wal->place_count, wal->state.commit - wal->after);
}

/* That the member itself joins, as the first entry of a new log says, is none. */
static bool changes_membership(const struct run *run, const struct pb_log_entry *entry)
{
    enum { NORMAL = 0, CHANGE = 1 };
    struct pb_log_conf_change change;
    struct arena none = {0};
    if (entry->type == NORMAL)
        return false;
    return entry->type != CHANGE ||
           pb_decode(&pb_log_conf_change_table, entry->data, &none, &change) != ST_OK ||
           change.node_id != run->wal.metadata.node_id;
}

static enum status find_membership_changes(struct run *run, bool *ret_found)
{
    *ret_found = false;
    for (size_t i = 0; i < run->wal.place_count && !*ret_found; i++) {
        struct pb_log_entry entry;
        TRY(import_wal_entry(&run->wal, i, &entry, run->error));
        *ret_found = changes_membership(run, &entry);
    }
    return ST_OK;
}

static enum status replay_one(struct run *run, size_t i)
{
    struct pb_log_entry entry;
    TRY(import_wal_entry(&run->wal, i, &entry, run->error));
    enum status status = import_replay_entry(run->replay, &entry);
    if (status == ST_DAMAGED)
        return error_set(run->error, ST_DAMAGED,
                         "the write-ahead log %s has an entry, index %" PRIu64
                         ", that no etcd up to 3.%d writes; use a snapshot",
                         run->source.wal_path, entry.index, IMPORT_MINOR_MAX);
    if (status == ST_LIMIT)
        return error_set(run->error, ST_LIMIT,
                         "%s cannot be imported: the entry of its write-ahead log with index "
                         "%" PRIu64 " is larger than Vigil takes; see its limits of importing",
                         run->options->source, entry.index);
    return status == ST_OK ? ST_OK : cannot_write(run, status);
}

static enum status replay(struct run *run)
{
    bool membership_changes;
    TRY(find_membership_changes(run, &membership_changes));
    size_t count = entries_to_apply(run, membership_changes);
    enum status status = import_replay_start(run->replay);
    if (status != ST_OK)
        return cannot_write(run, status);
    for (size_t i = 0; i < count; i++) {
        TRY(replay_one(run, i));
        import_progress_tell(&run->progress, IMPORT_ENTRIES, i + 1, count);
    }
    const struct import_replay_counts *counts = import_replay_counts(run->replay);
    run->summary->entries = counts->applied;
    run->summary->entries_refused = counts->refused;
    run->summary->entries_v2 = counts->v2;
    run->summary->wal_is_torn = run->wal.is_torn;
    import_replay_tally(run->replay, &run->counts);
    return ST_OK;
}

/* -- All of it -- */

static enum status fill(struct run *run)
{
    TRY(import_keys(&run->source, run->builder, &run->progress, &run->counts, run->error));
    row_fn seen = NULL;
    if (run->source.is_directory) {
        run->replay = import_replay_new(run->builder, run->meta.storage_minor);
        seen = import_replay_row;
    }
    TRY(import_rows(&run->source, run->builder, seen, run->replay, &run->counts, run->error));
    TRY(compact(run));
    if (run->replay)
        TRY(replay(run));
    return bump(run);
}

static enum status finish(struct run *run)
{
    import_progress_tell(&run->progress, IMPORT_FINISHING, 0, 1);
    struct store_builder_identity identity = {
        .cluster_id = run->wal.metadata.cluster_id,
        .member_id = run->wal.metadata.node_id,
        .term = run->wal.state.term ? run->wal.state.term : 1,
    };
    bool known = identity.cluster_id && identity.member_id;
    enum status status = store_builder_finish(run->builder, known ? &identity : NULL);
    if (status != ST_OK)
        return cannot_write(run, status);
    const struct store_view *view = store_view(store_builder_store(run->builder));
    struct import_summary *summary = run->summary;
    summary->is_directory = run->source.is_directory;
    summary->file_bytes = run->source.file_bytes;
    summary->revision = view->revision;
    summary->compact_revision = view->compact_revision;
    summary->keys = view->root.live_keys;
    summary->changes = run->counts.changes;
    summary->leases = run->counts.leases;
    summary->users = run->counts.users;
    summary->roles = run->counts.roles;
    summary->alarms = run->counts.alarms;
    summary->auth_enabled = run->counts.auth_enabled;
    summary->cluster_id = known ? identity.cluster_id : 0;
    summary->member_id = known ? identity.member_id : 0;
    const char *version =
        *run->meta.storage_version ? run->meta.storage_version : run->meta.cluster_version;
    snprintf(summary->etcd_version, sizeof(summary->etcd_version), "%s", version);
    return ST_OK;
}

static enum status go(struct run *run)
{
    TRY(open_source(run));
    TRY(open_builder(run));
    TRY(fill(run));
    TRY(finish(run));
    if (run->source.is_directory)
        run->summary->has_v2_keys = import_v2_keys_are_in(run->options->fs, run->source.snap_path);
    import_replay_free(TAKE(run->replay));
    store_builder_close(TAKE(run->builder));
    TRY(import_place_commit(&run->place, run->options->fs, run->error));
    import_progress_tell(&run->progress, IMPORT_FINISHING, 1, 1);
    return ST_OK;
}

enum status import_run(const struct import_options *options, struct import_summary *ret_summary,
                       struct error *ret_error)
{
    struct import_summary summary = {0};
    struct run run = {
        .options = options,
        .progress = options->progress,
        .summary = &summary,
        .error = ret_error,
    };
    int64_t begun_ns = clock_mono_ns(clock_system());
    enum status status = go(&run);
    import_replay_free(run.replay);
    store_builder_close(run.builder);
    import_place_end(&run.place);
    import_wal_close(&run.wal);
    import_source_close(&run.source);
    summary.elapsed_ns = clock_mono_ns(clock_system()) - begun_ns;
    if (status == ST_OK)
        *ret_summary = summary;
    return status;
}
