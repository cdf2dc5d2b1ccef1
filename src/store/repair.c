#include "store/repair.h"

#include "base/buf.h"
#include "store/change.h"
#include "store/datadir.h"

#include <stdio.h>

/* No segment is made: recovery wants to know, and does not use it. */
enum { SEGMENT_BYTES = 1 << 20 };

struct repairing {
    const struct store_repair_options *options;
    struct datadir dir;
    struct backend *backend;
    struct buf listed; /* struct log_listed */
    struct store_repair repair;
    const struct log *log; /* while versions are looked at */
    log_loc from, to;
};

static void repairing_fini(struct repairing *repairing)
{
    buf_fini(&repairing->listed);
    backend_close(repairing->backend);
    datadir_close(&repairing->dir);
}

/* -- Naming what is lost -- */

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

/* The checkpoint knows which versions lie there. */
static void records_passed(void *ctx, const struct log *log, log_loc from, log_loc to)
{
    struct repairing *repairing = ctx;
    repairing->log = log;
    repairing->from = from;
    repairing->to = to;
    enum status ignored = backend_versions_scan(repairing->backend, (struct backend_version_id){0},
                                                look_at_version, repairing);
    (void)ignored; /* a checkpoint that can not be read is refused when it is loaded */
}

/* -- The parts -- */

/* Opening would make what is not there. */
static enum status check_is_ours(const struct store_repair_options *options,
                                 struct error *ret_error)
{
    char path[4200];
    snprintf(path, sizeof(path), "%s/FORMAT", options->dir);
    AUTO(file_closep) struct file *file = NULL;
    enum status status = fs_open(options->fs, path, FILE_READ_ONLY, &file);
    if (status != ST_OK)
        return error_set(ret_error, status, "%s is not a data directory of Vigil: %s: %s",
                         options->dir, path, status_reason(status));
    return ST_OK;
}

static enum status list_segment(void *ctx, const struct backend_segment *segment)
{
    struct log_listed listed = {segment->id, segment->first_index, segment->used_bytes};
    return buf_append(ctx, slice_of(&listed, sizeof(listed)));
}

static enum status open_checkpoint(struct repairing *repairing, struct error *ret_error)
{
    const struct store_repair_options *options = repairing->options;
    if (!repairing->backend)
        TRY(backend_lmdb_open(repairing->dir.meta_path, options->checkpoint_map_bytes,
                              &repairing->backend, ret_error));
    /* What is lost of a checkpoint nobody can say: there is nothing to be accepted. */
    enum status status = backend_verify(repairing->backend);
    if (status == ST_OK)
        status = backend_segments_scan(repairing->backend, list_segment, &repairing->listed);
    if (status != ST_OK)
        return error_set(ret_error, status, "%s: %s", repairing->dir.meta_path,
                         backend_error_text(repairing->backend));
    return ST_OK;
}

static enum status repair_log(struct repairing *repairing, struct error *ret_error)
{
    struct backend *backend = repairing->backend;
    return log_repair(
        &(struct log_repair_options){
            .log =
                {
                    .fs = repairing->options->fs,
                    .dir = repairing->dir.log_path,
                    .segment_bytes_first = SEGMENT_BYTES,
                    .segment_bytes_max = SEGMENT_BYTES,
                },
            .after_index = (uint64_t)backend_meta_get(backend, BACKEND_INDEX, 0),
            .after_revision = backend_meta_get(backend, BACKEND_REVISION, 1),
            .listed = (const struct log_listed *)(const void *)repairing->listed.ptr,
            .listed_count = repairing->listed.len / sizeof(struct log_listed),
            .accept = repairing->options->accept,
            .lost = record_lost,
            .passed = records_passed,
            .ctx = repairing,
        },
        &repairing->repair.log, ret_error);
}

enum status store_repair(const struct store_repair_options *options,
                         struct store_repair *ret_repair, struct error *ret_error)
{
    struct repairing repairing = {.options = options, .backend = options->backend};
    enum status status = check_is_ours(options, ret_error);
    if (status == ST_OK)
        status = datadir_open(&repairing.dir, options->fs, options->dir, ret_error);
    if (status == ST_OK)
        status = open_checkpoint(&repairing, ret_error);
    if (status == ST_OK)
        status = repair_log(&repairing, ret_error);
    if (status == ST_OK)
        *ret_repair = repairing.repair;
    repairing_fini(&repairing);
    return status;
}
