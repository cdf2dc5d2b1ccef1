#include "store/repair.h"

#include "base/buf.h"
#include "store/backend/backend_memory.h"
#include "store/backend/replace.h"
#include "store/change.h"

#include <stdio.h>

/* No segment is created: the options require the sizes, and a repair does not use them. */
enum { SEGMENT_BYTES = 1 << 20 };

struct repairing {
    const struct store_repair_options *options;
    struct datadir dir;
    struct backend *backend;
    struct backend_disk *plan; /* for the new checkpoint; NULL: it is not damaged */
    struct buf listed;         /* array of struct log_listed */
    struct store_repair repair;
    const struct log *log; /* while versions are examined */
    log_loc from, to;
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
    if (lost->record.type != LOG_RECORD_KV)
        return;
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
}

static enum status look_at_version(void *ctx, const struct backend_version *version)
{
    struct repairing *repairing = ctx;
    const struct change_head *change;
    if (version->loc < repairing->from || version->loc >= repairing->to ||
        change_get(repairing->log, version->loc, &change) == ST_OK)
        return ST_OK;
    name_lost(repairing, &(struct store_lost){
                             .key = version->key,
                             .revision = version->id.revision,
                             .deleted = version->create_revision == 0,
                             .stays = true,
                         });
    return ST_OK;
}

/* The checkpoint has the versions at these locations. */
static void records_passed(void *ctx, const struct log *log, log_loc from, log_loc to)
{
    struct repairing *repairing = ctx;
    repairing->log = log;
    repairing->from = from;
    repairing->to = to;
    enum status ignored = backend_versions_scan(repairing->backend, (struct backend_version_id){0},
                                                look_at_version, repairing);
    (void)ignored; /* a checkpoint that cannot be read is refused when it is loaded */
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
    snprintf(repairing->repair.checkpoint_error, sizeof(repairing->repair.checkpoint_error), "%s",
             why->text);
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

static void ignore_passed(void *ctx, const struct log *log, log_loc from, log_loc to)
{
    (void)ctx, (void)log, (void)from, (void)to;
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
            .passed = tell ? records_passed : ignore_passed,
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

enum status store_repair(const struct store_repair_options *options,
                         struct store_repair *ret_repair, struct error *ret_error)
{
    struct repairing repairing = {.options = options, .backend = options->backend};
    enum datadir_format format;
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
        *ret_repair = repairing.repair;
    repairing_fini(&repairing);
    return status;
}
