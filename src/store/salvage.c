#include "store/salvage.h"

#include "base/buf.h"
#include "base/memory/epoch.h"
#include "store/backend/backend_memory.h"
#include "store/builder.h"
#include "store/index/index.h"

#include <stdio.h>

enum { SEGMENT_BYTES = 1 << 20 }; /* required by the options of a log; none is created */

struct salvaging {
    const struct store_salvage_options *options;
    struct file *lock;
    char log_dir[4200], meta_dir[4200];
    struct log_survey survey;
    struct backend_disk *plan_disk;
    struct backend *plan; /* the versions, rows and numbers of the new store */
    int64_t compact_revision, revision;
    uint64_t moved_from; /* the segment that was being cleaned; 0: none */
    struct epoch *epoch;
    struct index *index; /* every key with its newest version; NULL while nothing is lost */
    struct store_builder *builder;
    struct buf changes; /* array of struct imported_change: of one revision */
    int64_t changes_revision;
    uint64_t versions;
    struct error *error;
    struct store_salvage result;
};

static void salvaging_fini(struct salvaging *s)
{
    store_builder_close(s->builder);
    buf_fini(&s->changes);
    index_free(s->index);
    epoch_free(s->epoch);
    backend_close(s->plan);
    backend_disk_free(s->plan_disk);
    log_survey_close(&s->survey);
    file_close(s->lock);
}

static void tell_lost(void *ctx, const struct store_lost *lost)
{
    struct salvaging *s = ctx;
    s->result.lost_versions++;
    s->result.lost_current += !lost->older;
    if (s->options->lost)
        s->options->lost(s->options->ctx, lost);
}

static void tell_gap(void *ctx, const struct store_gap *gap)
{
    struct salvaging *s = ctx;
    s->result.gaps++;
    if (s->options->gap)
        s->options->gap(s->options->ctx, gap);
}

/* -- The damaged directory -- */

/* Nothing is created there. Without a lock file no server is running; one that cannot be opened, as
 * on a disk that is mounted for reading, protects nothing. */
static enum status lock_source(struct salvaging *s)
{
    char path[4200];
    snprintf(path, sizeof(path), "%s/LOCK", s->options->dir);
    if (!s->options->is_locked &&
        fs_open(s->options->fs, path, FILE_READ_ONLY | FILE_SHARE, &s->lock) == ST_IN_USE)
        return error_set(s->error, ST_IN_USE,
                         "the data directory %s is in use by another process; stop that one first",
                         s->options->dir);
    return ST_OK;
}

static enum status open_source(struct salvaging *s)
{
    const struct store_salvage_options *options = s->options;
    snprintf(s->log_dir, sizeof(s->log_dir), "%s/log", options->dir);
    snprintf(s->meta_dir, sizeof(s->meta_dir), "%s/meta", options->dir);
    TRY(datadir_examine_format(options->fs, options->dir, &s->result.format, s->error));
    TRY(lock_source(s));
    struct log_options log = {
        .fs = options->fs,
        .dir = s->log_dir,
        .segment_bytes_first = SEGMENT_BYTES,
        .segment_bytes_max = SEGMENT_BYTES,
    };
    TRY(log_survey_open(&s->survey, &log, true, s->error));
    s->result.heads_mended = s->survey.heads_mended;
    s->result.unreadable = s->survey.unreadable;
    if (s->survey.id_count == 0 && s->result.format != DATADIR_FORMAT_INTACT)
        return error_set(s->error, ST_NOT_FOUND,
                         "%s is not a data directory of Vigil: it has no FORMAT file, and log/ has "
                         "no segment",
                         options->dir);
    return ST_OK;
}

/* -- The plan -- */

static enum status plan_change(void *ctx, const struct log_record *record,
                               const struct change_head *change, log_loc loc)
{
    struct salvaging *s = ctx;
    (void)record;
    struct backend_version version = backend_version_of(change, loc);
    if (change->revision > s->revision)
        s->revision = change->revision;
    return backend_version_put(s->plan, &version);
}

static enum status plan_record(void *ctx, const struct log_record *record)
{
    struct salvaging *s = ctx;
    struct row_walk walk;
    struct row row;
    struct change_compaction compaction;
    if (record->type == LOG_RECORD_COMPACT) {
        TRY(change_compaction_read(record->body, &compaction));
        if (compaction.compact_revision > s->compact_revision)
            s->compact_revision = compaction.compact_revision;
        return ST_OK;
    }
    TRY(row_walk_init(&walk, record->body));
    enum status status;
    while ((status = row_walk_next(&walk, &row)) == ST_OK)
        TRY(backend_row_put(s->plan, &row));
    return status == ST_END ? ST_OK : status;
}

/* The records that the checkpoint does not have. */
static enum status plan_tail(struct salvaging *s)
{
    uint64_t from = (uint64_t)backend_meta_get(s->plan, BACKEND_INDEX, 0) + 1;
    struct change_scan scan = {
        .log = s->survey.log,
        .from_index = from,
        .to_index = s->survey.last_index,
        .salvages = true,
        .complete_from = from,
        .change_seen = plan_change,
        .record_seen = plan_record,
        .lost = tell_lost,
        .gap = tell_gap,
        .ctx = s,
    };
    return from > s->survey.last_index ? ST_OK : change_scan_run(&scan);
}

static enum status plan(struct salvaging *s)
{
    s->plan_disk = backend_disk_new();
    s->plan = backend_memory_open(s->plan_disk);
    TRY(backend_begin(s->plan));
    TRY(store_rebuild(
        &(struct store_rebuild_options){
            .meta_dir = s->meta_dir,
            .lost = tell_lost,
            .gap = tell_gap,
            .ctx = s,
            .salvages = &s->survey,
        },
        s->plan, &s->result.checkpoint, s->error));
    s->revision = backend_meta_get(s->plan, BACKEND_REVISION, 1);
    s->compact_revision = backend_meta_get(s->plan, BACKEND_COMPACT_REVISION, -1);
    s->moved_from = (uint64_t)backend_meta_get(s->plan, BACKEND_MOVED_FROM, 0);
    enum status status = plan_tail(s);
    if (status == ST_OK)
        status = backend_commit(s->plan);
    if (status != ST_OK)
        return error_set(s->error, status, "%s: the log cannot be read: %s", s->log_dir,
                         status_reason(status));
    return ST_OK;
}

/* -- Which versions can be read -- */

static bool is_change_of(const struct change_head *change, const struct backend_version *version)
{
    struct change_kv kv;
    if (change->revision != version->id.revision || change->sub != version->id.sub)
        return false;
    change_read_kv(change, &kv);
    return slice_equal(kv.key, version->key);
}

/* NULL: it is lost. While a segment was being cleaned, a version may have moved to the copy. */
static const struct change_head *read_version(const struct salvaging *s,
                                              const struct backend_version *version)
{
    const struct log *log = s->survey.log;
    const struct change_head *change;
    if (version->loc % CHANGE_ALIGN == 0 && change_get(log, version->loc, &change) == ST_OK &&
        is_change_of(change, version))
        return change;
    if (!s->moved_from || version->loc >> LOG_OFFSET_BITS != s->moved_from)
        return NULL;
    struct log_reader reader;
    struct log_record record;
    log_reader_seek_revision(&reader, log, version->id.revision);
    if (change_record_next(&reader, UINT64_MAX, &record) != ST_OK ||
        record.revision != version->id.revision)
        return NULL;
    struct change_walk walk;
    size_t offset;
    if (change_walk_init(&walk, record.body) != ST_OK)
        return NULL;
    while (change_walk_next(&walk, &change, &offset) == ST_OK && change) {
        if (change_is_sound(change) && is_change_of(change, version))
            return change;
    }
    return NULL;
}

static enum status count_version(void *ctx, const struct backend_version *version)
{
    struct salvaging *s = ctx;
    s->versions++;
    s->result.has_history &= read_version(s, version) != NULL;
    return ST_OK;
}

static enum status index_version(void *ctx, const struct backend_version *version)
{
    struct salvaging *s = ctx;
    index_put(s->index, version->key,
              &(struct index_version){
                  .mod_revision = version->id.revision,
                  .create_revision = version->create_revision,
                  .version = version->version,
                  .lease = version->lease,
                  .loc = version->loc,
                  .field_bytes = version->create_revision ? version->field_bytes : 0,
                  .sub_revision = version->id.sub,
              });
    return ST_OK;
}

static bool is_newest(const struct salvaging *s, const struct backend_version *version)
{
    const struct index_item *item = index_find(s->index, version->key);
    return item && item->newest.mod_revision == version->id.revision &&
           item->newest.sub_revision == version->id.sub;
}

static enum status name_if_lost(void *ctx, const struct backend_version *version)
{
    struct salvaging *s = ctx;
    /* A tombstone says only that the key does not exist, which the checkpoint says, too. */
    if (!version->create_revision || read_version(s, version))
        return ST_OK;
    tell_lost(s, &(struct store_lost){.key = version->key,
                                      .revision = version->id.revision,
                                      .older = !is_newest(s, version)});
    return ST_OK;
}

static enum status check_versions(struct salvaging *s)
{
    static const struct backend_version_id first;
    s->result.has_history =
        !s->result.gaps && !s->result.lost_versions && s->result.checkpoint.how != REBUILT_IN_PART;
    TRY(backend_versions_scan(s->plan, first, count_version, s));
    if (s->result.has_history)
        return ST_OK;
    s->epoch = epoch_new(1);
    s->index = index_new(s->epoch);
    index_load_begin(s->index);
    enum status status = backend_versions_scan(s->plan, first, index_version, s);
    index_load_end(s->index);
    TRY(status);
    return backend_versions_scan(s->plan, first, name_if_lost, s);
}

/* -- Building -- */

static enum status add_changes(struct salvaging *s)
{
    size_t count = s->changes.len / sizeof(struct imported_change);
    if (!count)
        return ST_OK;
    s->result.versions += count;
    TRY(store_builder_add(s->builder, s->changes_revision,
                          (const struct imported_change *)(const void *)s->changes.ptr, count));
    buf_reset(&s->changes, 1 << 20);
    if (s->options->progress)
        s->options->progress(s->options->ctx, s->result.versions, s->versions);
    return ST_OK;
}

static enum status build_version(void *ctx, const struct backend_version *version)
{
    struct salvaging *s = ctx;
    const struct change_head *change = read_version(s, version);
    bool is_tombstone = !version->create_revision;
    if (version->id.revision <= 1) /* the revision of an empty store */
        return ST_OK;
    if (!s->result.has_history && (!change || is_tombstone || !is_newest(s, version)))
        return ST_OK;
    if (version->id.revision != s->changes_revision)
        TRY(add_changes(s));
    s->changes_revision = version->id.revision;
    struct imported_change imported = {.sub = version->id.sub, .is_tombstone = is_tombstone};
    change_read_kv(change, &imported.kv);
    if (is_tombstone)
        imported.kv = (struct change_kv){.key = imported.kv.key};
    return buf_append(&s->changes, slice_of(&imported, sizeof(imported)));
}

static enum status build_row(void *ctx, const struct row *row)
{
    struct salvaging *s = ctx;
    return store_builder_add_rows(s->builder, row, 1);
}

static enum status build_contents(struct salvaging *s)
{
    TRY(backend_versions_scan(s->plan, (struct backend_version_id){0}, build_version, s));
    TRY(add_changes(s));
    TRY(backend_rows_scan(s->plan, build_row, s));
    store_builder_reach(s->builder, s->revision);
    int64_t compact = s->result.has_history ? s->compact_revision : s->revision;
    if (compact > 0 && compact <= s->revision)
        TRY(store_builder_compact(s->builder, compact));
    struct store_builder_identity identity = {
        .cluster_id = (uint64_t)backend_meta_get(s->plan, BACKEND_CLUSTER_ID, 0),
        .member_id = (uint64_t)backend_meta_get(s->plan, BACKEND_MEMBER_ID, 0),
        .term = (uint64_t)backend_meta_get(s->plan, BACKEND_TERM, 0),
    };
    TRY(store_builder_finish(s->builder, identity.cluster_id ? &identity : NULL));
    const struct store_view *view = store_view(store_builder_store(s->builder));
    s->result.keys = index_root_sum(&view->root, SLICE_EMPTY, SLICE_EMPTY, true).live_keys;
    s->result.revision = view->revision;
    return ST_OK;
}

static enum status build(struct salvaging *s)
{
    const struct store_salvage_options *options = s->options;
    TRY(store_builder_open(
        &(struct store_builder_options){
            .fs = options->fs,
            .dir = options->to,
            .checkpoint_map_bytes = options->checkpoint_map_bytes,
            .salt = options->salt,
        },
        &s->builder, s->error));
    enum status status = build_contents(s);
    if (status != ST_OK)
        return store_builder_failed(s->builder, status, s->error);
    return ST_OK;
}

enum status store_salvage(const struct store_salvage_options *options,
                          struct store_salvage *ret_salvage, struct error *ret_error)
{
    struct salvaging s = {.options = options, .error = ret_error};
    enum status status = open_source(&s);
    if (status == ST_OK)
        status = plan(&s);
    if (status == ST_OK) {
        status = check_versions(&s);
        if (status != ST_OK)
            error_set(ret_error, status, "%s: the checkpoint cannot be read: %s", s.meta_dir,
                      status_reason(status));
    }
    if (status == ST_OK)
        status = build(&s);
    if (status == ST_OK)
        *ret_salvage = s.result;
    salvaging_fini(&s);
    return status;
}
