#include "store/repair.h"

#include "base/buf.h"
#include "base/memory/epoch.h"
#include "store/backend/backend_memory.h"
#include "store/backend/replace.h"
#include "store/index/index.h"
#include "store/repaired.h"
#include "store/salvage.h"

#include <stdio.h>
#include <unistd.h>

/* No segment is created: the options require the sizes, and a repair does not use them. */
enum { SEGMENT_BYTES = 1 << 20 };

struct repairing {
    const struct store_repair_options *options;
    struct datadir dir;
    struct backend *backend;
    struct backend_disk *plan; /* for the new checkpoint; NULL: it is not damaged */
    struct buf listed;         /* array of struct log_listed */
    struct store_repair repair;
    struct log_survey survey; /* while versions are examined */
    struct index *index;      /* then: the newest version of each key */
    uint64_t unreadable;
};

static void repairing_fini(struct repairing *repairing)
{
    buf_fini(&repairing->listed);
    backend_close(repairing->backend);
    backend_disk_free(repairing->plan);
    datadir_close(&repairing->dir);
}

/* -- Reporting what is lost -- */

static void name_lost(struct repairing *repairing, const struct store_lost *lost)
{
    repairing->repair.lost_versions++;
    if (repairing->options->lost)
        repairing->options->lost(repairing->options->ctx, lost);
}

static void note_revision(struct store_repair *repair, int64_t revision)
{
    if (!repair->first_revision || revision < repair->first_revision)
        repair->first_revision = revision;
    if (revision > repair->last_revision)
        repair->last_revision = revision;
}

static void record_lost(void *ctx, const struct log_lost *lost)
{
    struct repairing *repairing = ctx;
    uint64_t before = repairing->repair.lost_versions;
    if (lost->record.type != LOG_RECORD_KV) {
        repairing->repair.records_read += lost->whole;
        return;
    }
    note_revision(&repairing->repair, lost->record.revision);
    struct change_walk walk;
    const struct change_head *change;
    size_t offset;
    if (change_walk_init(&walk, lost->record.body) != ST_OK)
        return;
    while (change_walk_next(&walk, &change, &offset) == ST_OK && change) {
        struct change_kv kv;
        if (!change_is_sound(change))
            continue;
        change_read_kv(change, &kv);
        name_lost(repairing, &(struct store_lost){
                                 .key = kv.key,
                                 .revision = lost->record.revision,
                                 .deleted = change_is_tombstone(change),
                                 .unsure = !lost->whole,
                             });
    }
    repairing->repair.records_read += repairing->repair.lost_versions > before;
}

static void ignore_passed(void *ctx, const struct log *log, log_loc from, log_loc to)
{
    (void)ctx, (void)log, (void)from, (void)to; /* find_damage reads all versions */
}

/* -- The parts -- */

static enum status list_segment(void *ctx, const struct backend_segment *segment)
{
    struct log_listed listed = {segment->id, segment->first_index, segment->used_bytes};
    return buf_append(ctx, slice_of(&listed, sizeof(listed)));
}

static struct log_options log_options(const struct repairing *repairing)
{
    return (struct log_options){
        .fs = repairing->options->fs,
        .dir = repairing->dir.log_path,
        .segment_bytes_first = SEGMENT_BYTES,
        .segment_bytes_max = SEGMENT_BYTES,
    };
}

static void checkpoint_lost(void *ctx, const struct store_lost *lost)
{
    name_lost(ctx, lost);
}

/* From here on the plan is the checkpoint by which the log is examined. */
static enum status plan_checkpoint(struct repairing *repairing, const struct error *why,
                                   struct error *ret_error)
{
    repairing->repair.checkpoint_error = *why;
    backend_close(TAKE(repairing->backend));
    repairing->plan = backend_disk_new();
    repairing->backend = backend_memory_open(repairing->plan);
    TRY(backend_begin(repairing->backend));
    TRY(store_rebuild(
        &(struct store_rebuild_options){
            .meta_dir = repairing->dir.meta_path,
            .log = log_options(repairing),
            .lost = checkpoint_lost,
            .ctx = repairing,
        },
        repairing->backend, &repairing->repair.checkpoint, ret_error));
    return backend_commit(repairing->backend);
}

static enum status verify_checkpoint(struct repairing *repairing, struct error *ret_error)
{
    const struct store_repair_options *options = repairing->options;
    if (!repairing->backend)
        TRY(backend_lmdb_open(repairing->dir.meta_path, options->checkpoint_map_bytes,
                              &repairing->backend, ret_error));
    enum status status = backend_verify(repairing->backend);
    if (status != ST_OK)
        return error_set(ret_error, status, "%s: %s", repairing->dir.meta_path,
                         backend_error_text(repairing->backend));
    return ST_OK;
}

static void ignore_lost(void *ctx, const struct log_lost *lost)
{
    (void)ctx, (void)lost;
}

static enum status repair_log(struct repairing *repairing, bool accept, bool tell,
                              struct error *ret_error)
{
    struct backend *backend = repairing->backend;
    return log_repair(
        &(struct log_repair_options){
            .log = log_options(repairing),
            .after_index = (uint64_t)backend_meta_get(backend, BACKEND_INDEX, 0),
            .after_revision = backend_meta_get(backend, BACKEND_REVISION, 1),
            .listed = (const struct log_listed *)(const void *)repairing->listed.ptr,
            .listed_count = repairing->listed.len / sizeof(struct log_listed),
            .accept = accept,
            .lost = tell ? record_lost : ignore_lost,
            .passed = ignore_passed,
            .ctx = repairing,
        },
        &repairing->repair.log, ret_error);
}

/* A log that was cleaned cannot be read without the checkpoint that the cleaner had. */
static enum status check_is_needed(struct repairing *repairing, struct error *ret_why)
{
    struct error ignored;
    if (backend_meta_get(repairing->backend, BACKEND_INDEX, 0) ||
        repair_log(repairing, false, false, &ignored) != ST_DAMAGED)
        return ST_OK;
    return error_set(ret_why, ST_DAMAGED, "%s/data.mdb is missing, and the log needs it",
                     repairing->dir.meta_path);
}

static enum status open_checkpoint(struct repairing *repairing, struct error *ret_error)
{
    struct error why = {0};
    bool in_dir = !repairing->options->backend;
    enum status status = verify_checkpoint(repairing, &why);
    if (in_dir && status == ST_OK)
        status = check_is_needed(repairing, &why);
    if (in_dir && (status == ST_DAMAGED || status == ST_WRONG_FORMAT))
        TRY(plan_checkpoint(repairing, &why, ret_error));
    else if (status != ST_OK)
        return error_set(ret_error, status, "%s", why.text);
    return backend_segments_scan(repairing->backend, list_segment, &repairing->listed);
}

/* The new checkpoint is installed once it is known that the log can be used with it. */
static enum status replace_checkpoint(struct repairing *repairing, struct error *ret_error)
{
    if (!repairing->plan || !repairing->options->accept)
        return ST_OK;
    TRY(repair_log(repairing, false, false, ret_error));
    return backend_lmdb_replace(repairing->dir.meta_path, repairing->options->checkpoint_map_bytes,
                                repairing->backend, repairing->repair.checkpoint_saved,
                                sizeof(repairing->repair.checkpoint_saved), ret_error);
}

/* -- What the checkpoint has and the log does not -- */

static bool is_readable(const struct repairing *repairing, const struct backend_version *version)
{
    const struct change_head *change;
    return change_get(repairing->survey.log, version->loc, &change) == ST_OK &&
           change->revision == version->id.revision && change->sub == version->id.sub;
}

static enum status count_unreadable(void *ctx, const struct backend_version *version)
{
    struct repairing *repairing = ctx;
    repairing->unreadable += !is_readable(repairing, version);
    return ST_OK;
}

static enum status index_version(void *ctx, const struct backend_version *version)
{
    struct repairing *repairing = ctx;
    index_put(repairing->index, version->key,
              &(struct index_version){.mod_revision = version->id.revision,
                                      .create_revision = version->create_revision,
                                      .version = version->version,
                                      .loc = version->loc,
                                      .field_bytes = version->create_revision ? 1 : 0,
                                      .sub_revision = version->id.sub});
    return ST_OK;
}

static enum status index_change(void *ctx, const struct log_record *record,
                                const struct change_head *change, log_loc loc)
{
    (void)record;
    struct backend_version version = backend_version_of(change, loc);
    return index_version(ctx, &version);
}

static enum status name_unreadable(void *ctx, const struct backend_version *version)
{
    struct repairing *repairing = ctx;
    /* A tombstone says only that the key does not exist, which the checkpoint says, too. */
    if (!version->create_revision || is_readable(repairing, version))
        return ST_OK;
    const struct index_item *item = index_find(repairing->index, version->key);
    bool newest = item && item->newest.mod_revision == version->id.revision;
    name_lost(repairing, &(struct store_lost){.key = version->key,
                                              .revision = version->id.revision,
                                              .older = !newest});
    return ST_OK;
}

static void ignore_gap(void *ctx, const struct store_gap *gap)
{
    (void)ctx, (void)gap;
}

/* Also with the records after the checkpoint, in which a key may have a newer version. */
static enum status name_all_unreadable(struct repairing *repairing, uint64_t after_index)
{
    static const struct backend_version_id first;
    struct epoch *epoch = epoch_new(1);
    repairing->index = index_new(epoch);
    index_load_begin(repairing->index);
    enum status status = backend_versions_scan(repairing->backend, first, index_version, repairing);
    struct change_scan scan = {
        .log = repairing->survey.log,
        .from_index = after_index + 1,
        .to_index = repairing->survey.last_index,
        .salvages = true,
        .complete_from = UINT64_MAX,
        .change_seen = index_change,
        .gap = ignore_gap,
        .ctx = repairing,
    };
    if (status == ST_OK && scan.from_index <= scan.to_index)
        status = change_scan_run(&scan);
    index_load_end(repairing->index);
    if (status == ST_OK)
        status = backend_versions_scan(repairing->backend, first, name_unreadable, repairing);
    index_free(TAKE(repairing->index));
    epoch_free(epoch);
    return status;
}

static uint64_t count_damaged_records(const struct log *log, uint64_t last_index)
{
    struct log_reader reader;
    struct log_record record;
    uint64_t damaged = 0;
    enum status status;
    log_reader_init(&reader, log, 1);
    while ((status = log_reader_next(&reader, last_index, &record)) != ST_END) {
        if (status != ST_DAMAGED)
            continue;
        damaged += reader.next_index <= last_index;
        log_reader_pass_damage(&reader);
    }
    return damaged;
}

/* Damage with which the server would start. Reads the whole log. */
static enum status find_damage(struct repairing *repairing, struct error *ret_error)
{
    struct store_repair *repair = &repairing->repair;
    uint64_t after_index = (uint64_t)backend_meta_get(repairing->backend, BACKEND_INDEX, 0);
    struct log_options options = log_options(repairing);
    TRY(log_survey_open(&repairing->survey, &options, true, ret_error));
    repair->damaged_records = count_damaged_records(repairing->survey.log, after_index);
    enum status status = backend_versions_scan(repairing->backend, (struct backend_version_id){0},
                                               count_unreadable, repairing);
    /* A cleaning that was interrupted has moved versions; a start finds them. */
    bool moves = backend_meta_get(repairing->backend, BACKEND_MOVED_FROM, 0);
    if (status == ST_OK && repairing->unreadable && !moves)
        status = name_all_unreadable(repairing, after_index);
    repair->rewrites = repair->damaged_records || (repairing->unreadable && !moves);
    log_survey_close(&repairing->survey);
    if (status != ST_OK)
        return error_set(ret_error, status, "%s: the checkpoint cannot be read: %s",
                         repairing->dir.meta_path, status_reason(status));
    return ST_OK;
}

static enum status rewrite(struct repairing *repairing, struct error *ret_error)
{
    const struct store_repair_options *options = repairing->options;
    char build[4200];
    struct store_salvage found;
    snprintf(build, sizeof(build), "%s/" REPAIR_BUILD_NAME, options->dir);
    backend_close(TAKE(repairing->backend));
    TRY(repaired_clear(options->dir, ret_error));
    enum status status = store_salvage(
        &(struct store_salvage_options){
            .fs = options->fs,
            .dir = options->dir,
            .is_locked = true,
            .to = build,
            .checkpoint_map_bytes = options->checkpoint_map_bytes,
            .salt = options->salt,
        },
        &found, ret_error);
    if (status != ST_OK) {
        struct error ignored;
        enum status cleared = repaired_clear(options->dir, &ignored);
        (void)cleared;
        return status;
    }
    repairing->repair.has_history = found.has_history;
    return repaired_install(options->fs, options->dir, ret_error);
}

/* A repair was interrupted when its result was complete. */
static enum status finish_before(const struct store_repair_options *options,
                                 struct error *ret_error)
{
    char path[4200];
    AUTO(file_closep) struct file *lock = NULL;
    snprintf(path, sizeof(path), "%s/" REPAIR_DONE_NAME, options->dir);
    if (access(path, F_OK) != 0)
        return ST_OK;
    snprintf(path, sizeof(path), "%s/LOCK", options->dir);
    enum status status = fs_lock(options->fs, path, &lock);
    if (status != ST_OK)
        return error_set(ret_error, status, "cannot lock %s: %s", path, status_reason(status));
    return repaired_finish(options->fs, options->dir, ret_error);
}

static enum status repair_rest(struct repairing *repairing, struct error *ret_error)
{
    const struct store_repair_options *options = repairing->options;
    if (options->backend)
        return ST_OK; /* in a test, whose checkpoint is in no directory */
    TRY(find_damage(repairing, ret_error));
    return repairing->repair.rewrites && options->accept ? rewrite(repairing, ret_error) : ST_OK;
}

enum status store_repair(const struct store_repair_options *options,
                         struct store_repair *ret_repair, struct error *ret_error)
{
    struct repairing repairing = {.options = options, .backend = options->backend};
    enum datadir_format format;
    if (options->accept && !options->backend)
        TRY(finish_before(options, ret_error));
    /* Opening would create what is missing. */
    TRY(datadir_examine_format(options->fs, options->dir, &format, ret_error));
    repairing.repair.format = format;
    if (format != DATADIR_FORMAT_INTACT && !options->accept) {
        *ret_repair = repairing.repair;
        return ST_OK;
    }
    enum status status = ST_OK;
    if (format != DATADIR_FORMAT_INTACT)
        status = datadir_mend_format(options->fs, options->dir, ret_error);
    if (status == ST_OK)
        status = datadir_open(&repairing.dir, options->fs, options->dir, false, ret_error);
    if (status == ST_OK)
        status = open_checkpoint(&repairing, ret_error);
    if (status == ST_OK)
        status = replace_checkpoint(&repairing, ret_error);
    if (status == ST_OK)
        status = repair_log(&repairing, options->accept, true, ret_error);
    if (status == ST_OK)
        status = repair_rest(&repairing, ret_error);
    if (status == ST_OK)
        *ret_repair = repairing.repair;
    repairing_fini(&repairing);
    return status == ST_OK ? ST_OK : datadir_advise(options->dir, true, ret_error);
}
