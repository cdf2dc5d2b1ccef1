/* What recovery does differently when a log is repaired: see log/repair.h. */
#include "store/log/damage.h"
#include "store/log/recover_private.h"

#include <stdio.h>
#include <stdlib.h>

/* -- Skipping damage to records that the checkpoint has -- */

static const struct log_listed *listed_as(const struct recovery *r, uint64_t id)
{
    const struct log_repair_options *options = r->repair;
    for (size_t i = 0; i < options->listed_count; i++) {
        if (options->listed[i].id == id)
            return &options->listed[i];
    }
    return NULL;
}

bool recovery_knows_first_index(const struct recovery *r, uint64_t id, uint64_t *ret_index)
{
    if (r->mark.passed.segment_id == id) {
        *ret_index = r->mark.passed.first_index;
        return true;
    }
    const struct log_listed *listed = r->repair ? listed_as(r, id) : NULL;
    if (listed)
        *ret_index = listed->first_index;
    return listed;
}

/* Where the first record after the checkpoint begins, or the log ends. */
static uint64_t find_after_checkpoint(const struct recovery *r, const struct segment *segment,
                                      uint64_t from)
{
    uint64_t capacity = segment->head.capacity, end = from;
    for (uint64_t offset = from; offset < capacity; offset += RECORD_ALIGN) {
        struct slice rest = slice_of(segment->base + offset, capacity - offset);
        size_t zeros = bytes_first_nonzero(rest) & ~(size_t)(RECORD_ALIGN - 1);
        if (zeros >= rest.len)
            break;
        offset += zeros;
        struct record_head head;
        rest = slice_sub(rest, zeros, rest.len - zeros);
        if (record_check(rest, segment->head.salt, &head) == RECORD_GOOD &&
            head.index == r->after_index + 1)
            return offset;
        end = offset + RECORD_ALIGN;
    }
    /* These zeros may have been versions of the checkpoint and must not be overwritten. */
    const struct log_listed *listed = listed_as(r, segment->head.id);
    if (listed && listed->used_bytes > end)
        end = align_up(listed->used_bytes, RECORD_ALIGN);
    return end < capacity ? end : capacity;
}

bool recovery_pass(struct recovery *r, struct segment *segment, uint64_t *offset)
{
    struct mark_passed *passed = &r->mark.passed;
    bool known = passed->segment_id == segment->head.id && r->expected <= passed->index &&
                 passed->index <= r->after_index && *offset < passed->offset &&
                 passed->offset <= segment->head.capacity;
    if (!known && (!r->repair || r->expected > r->after_index))
        return false;
    if (!known) {
        *passed = (struct mark_passed){
            .segment_id = segment->head.id,
            .first_index = segment->first_index,
            .index = r->after_index,
            .offset = find_after_checkpoint(r, segment, *offset),
            .revision = r->repair->after_revision,
        };
        r->repaired.damaged = true;
        r->repaired.passed_from_index = r->expected;
        r->repaired.passed_to_index = r->after_index;
        r->repaired.passed_segment_id = segment->head.id;
        r->repaired.passed_offset = *offset;
    }
    log_note_damage(r->log, log_loc_of(segment->head.id, *offset));
    *offset = passed->offset;
    r->expected = passed->index + 1;
    return true;
}

/* -- Seals -- */

bool segment_walk_records(struct segment *segment)
{
    uint64_t offset = SEGMENT_RECORDS_OFFSET, capacity = segment->head.capacity, index = 0;
    int64_t first_revision = 0, last_revision = 0;
    struct record_head head;
    while (record_check(slice_of(segment->base + offset, capacity - offset), segment->head.salt,
                        &head) == RECORD_GOOD &&
           (!index || head.index == index + 1)) {
        index = head.index;
        first_revision = first_revision ? first_revision : head.revision;
        last_revision = head.revision ? head.revision : last_revision;
        offset += align_up(head.len, RECORD_ALIGN);
    }
    atomic_store(&segment->last_index, index);
    atomic_store(&segment->first_revision, first_revision);
    atomic_store(&segment->last_revision, last_revision);
    atomic_store(&segment->written, offset);
    return index > 0;
}

/* Whether another segment continues where this one ends: then the writer had left it. */
static void mend_seal(struct recovery *r, struct segment *segment)
{
    r->repaired.seals++;
    r->repaired.damaged = true;
    if (!segment_walk_records(segment))
        return;
    for (size_t i = 0; i < r->found.count; i++) {
        const struct segment *next = r->found.items[i];
        if (next->first_index != atomic_load(&segment->last_index) + 1)
            continue;
        segment->next_id = next->head.id;
        atomic_store(&segment->full, true);
        segment->seal_mended = true;
        return;
    }
}

void recovery_mend_seals(struct recovery *r)
{
    for (size_t i = 0; i < r->found.count; i++) {
        if (r->found.items[i]->seal_lost)
            mend_seal(r, r->found.items[i]);
    }
}

/* -- Segments -- */

bool recovery_ends_before_missing(struct recovery *r, struct segment *before)
{
    if (!r->repair || !before || (before->head.flags & SEGMENT_REWRITTEN) ||
        r->expected <= r->after_index)
        return false;
    r->ends_before_missing = true;
    atomic_store(&before->full, false);
    before->next_id = 0;
    r->stop = before;
    r->stop_offset = atomic_load(&before->written);
    return true;
}

static enum status set_aside(struct recovery *r, uint64_t id)
{
    struct log *log = r->log;
    struct segment_path from = segment_path(log->dir, id, ".seg");
    struct segment_path to = segment_path(log->dir, id, ".seg.lost");
    enum status status = fs_rename(log->fs, from.text, to.text);
    if (status != ST_OK)
        return recovery_fail_file(r, status, id, "cannot be set aside");
    return ST_OK;
}

enum status recovery_set_aside_found(struct recovery *r, size_t at)
{
    AUTO(segment_freep) struct segment *segment = segment_order_remove(&r->found, at);
    return set_aside(r, segment->head.id);
}

/* -- Reporting what is lost -- */

static void report_lost_in(struct recovery *r, const struct segment *segment, uint64_t from)
{
    uint64_t capacity = segment->head.capacity;
    for (uint64_t offset = from; offset + RECORD_HEAD_BYTES <= capacity;) {
        struct slice rest = slice_of(segment->base + offset, capacity - offset);
        size_t zeros = bytes_first_nonzero(rest) & ~(size_t)(RECORD_ALIGN - 1);
        struct record_head head;
        if (zeros >= rest.len)
            return;
        offset += zeros;
        rest = slice_sub(rest, zeros, rest.len - zeros);
        if (!record_head_check(rest, segment->head.salt, &head) || head.index < r->expected) {
            offset += RECORD_ALIGN;
            continue;
        }
        struct log_lost lost = {.whole =
                                    record_check(rest, segment->head.salt, &head) == RECORD_GOOD};
        log_record_from(segment, offset, &head, &lost.record);
        if (head.index > r->repaired.last_index && lost.whole)
            r->repaired.last_index = head.index;
        r->repair->lost(r->repair->ctx, &lost);
        offset += align_up(head.len, RECORD_ALIGN);
    }
}

void recovery_report_lost(struct recovery *r, uint64_t claim, const char *why)
{
    struct log_repair *repaired = &r->repaired;
    repaired->damaged = true;
    repaired->last_index = claim;
    repaired->cut = r->log->cut;
    repaired->cut.index = r->expected;
    repaired->cut.segment_id = r->stop->head.id;
    repaired->cut.offset = r->stop_offset;
    repaired->cut.reason = why;
    report_lost_in(r, r->stop, r->stop_offset);
    for (size_t i = 0; i < r->found.count; i++)
        report_lost_in(r, r->found.items[i], SEGMENT_RECORDS_OFFSET);
}

void recovery_report_passed(struct recovery *r)
{
    const struct log_repair *repaired = &r->repaired;
    if (!repaired->passed_to_index)
        return;
    r->repair->passed(r->repair->ctx, r->log,
                      log_loc_of(repaired->passed_segment_id, repaired->passed_offset),
                      log_loc_of(repaired->passed_segment_id, r->mark.passed.offset));
}

/* -- Accepting it -- */

static enum status save_bytes(struct fs *fs, const char *path, struct slice bytes)
{
    AUTO(file_closep) struct file *file = NULL;
    TRY(fs_open(fs, path, FILE_CREATE, &file));
    TRY(file_pwrite(file, bytes, 0));
    return file_sync(file);
}

/* An interrupted repair may have saved them already: its file is left as it is. */
static enum status save_cut(struct recovery *r)
{
    enum { NAMES_MAX = 100 };
    struct log *log = r->log;
    uint64_t end = r->stop->head.capacity;
    while (end > r->stop_offset && r->stop->base[end - 1] == 0)
        end--;
    if (end == r->stop_offset)
        return ST_OK;
    enum status status = ST_EXISTS;
    for (int i = 0; i < NAMES_MAX && status == ST_EXISTS; i++) {
        char suffix[64];
        snprintf(suffix, sizeof(suffix), i ? ".seg.lost-%" PRIu64 "-%d" : ".seg.lost-%" PRIu64,
                 r->stop_offset, i);
        struct segment_path path = segment_path(log->dir, r->stop->head.id, suffix);
        snprintf(r->repaired.saved_path, sizeof(r->repaired.saved_path), "%s", path.text);
        status = save_bytes(log->fs, path.text,
                            slice_of(r->stop->base + r->stop_offset, end - r->stop_offset));
    }
    return status;
}

static enum status write_mended_seals(struct recovery *r)
{
    const struct segment_order *order = &r->log->order;
    for (size_t i = 0; i < order->count; i++) {
        struct segment *segment = order->items[i];
        if (!segment->seal_mended || !atomic_load(&segment->full))
            continue;
        struct segment_seal seal = segment_seal_of(segment);
        TRY(file_pwrite(segment->file, slice_of(&seal, sizeof(seal)), SEGMENT_SEAL_OFFSET));
        TRY(file_sync(segment->file));
    }
    return ST_OK;
}

/*
 * First the bytes are saved, then the mark is lowered. Wherever this is interrupted, the log is
 * refused as before or starts without the lost records.
 */
static enum status accept_loss(struct recovery *r)
{
    struct log *log = r->log;
    enum status status = save_cut(r);
    if (status == ST_OK)
        status = write_mended_seals(r);
    r->mark.index = r->expected - 1;
    if (status == ST_OK)
        status = mark_write(log->fs, log->dir, &r->mark);
    if (status != ST_OK)
        return error_set(r->error, status, "%s: the lost records could not be saved: %s", log->dir,
                         status_reason(status));
    for (size_t i = 0; i < r->unreadable_count; i++)
        TRY(set_aside(r, r->unreadable_ids[i]));
    return recovery_settle(r);
}

enum status log_repair(const struct log_repair_options *options, struct log_repair *ret_repair,
                       struct error *ret_error)
{
    AUTO(log_closep) struct log *log = NULL;
    TRY(log_new(&options->log, &log, ret_error));
    uint64_t *ids = calloc(options->listed_count + 1, sizeof(*ids));
    if (!ids)
        return error_set(ret_error, ST_NOMEM, "%s", status_reason(ST_NOMEM));
    for (size_t i = 0; i < options->listed_count; i++)
        ids[i] = options->listed[i].id;
    struct recovery r = {
        .log = log,
        .after_index = options->after_index,
        .listed = ids,
        .listed_count = options->after_index ? options->listed_count : 0,
        .error = ret_error,
        .repair = options,
    };
    enum status status = recovery_read(&r);
    if (status == ST_OK && r.repaired.damaged && options->accept)
        status = accept_loss(&r);
    if (status == ST_OK)
        *ret_repair = r.repaired;
    recovery_fini(&r);
    free(ids);
    return status;
}
