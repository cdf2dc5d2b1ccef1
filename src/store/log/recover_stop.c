/*
 * Where the records of a log end: the stop. If anything beyond it, the mark or the checkpoint
 * claims that the missing record was durable, it is damage, and the start is refused. Otherwise a
 * write was not finished: the rest is cut off, and the log continues there.
 */
#include "store/log/recover_private.h"

/*
 * The greatest index that any record in [from, capacity) claims to be durable. Sets `blank` if all
 * bytes are zero.
 */
static uint64_t greatest_claim(struct segment *segment, uint64_t from)
{
    uint64_t claim = 0, capacity = segment->head.capacity;
    segment->blank = true;
    for (uint64_t offset = from; offset < capacity; offset += RECORD_ALIGN) {
        struct slice rest = slice_of(segment->base + offset, capacity - offset);
        size_t zeros = bytes_first_nonzero(rest);
        if (zeros == rest.len)
            break;
        segment->blank = false;
        zeros &= ~(size_t)(RECORD_ALIGN - 1);
        offset += zeros;
        rest = slice_sub(rest, zeros, rest.len - zeros);
        struct record_head head;
        if (record_head_check(rest, segment->head.salt, &head) &&
            record_durable_index(&head) > claim &&
            record_check(rest, segment->head.salt, &head) == RECORD_GOOD)
            claim = record_durable_index(&head);
    }
    return claim;
}

static const char *proof_of_damage(const struct recovery *r, uint64_t claim)
{
    if (claim >= r->expected)
        return "the record is damaged, and a later one says that it was durable";
    if (r->mark.index >= r->expected)
        return "the record is damaged, and the mark of the log says that it was durable";
    if (r->after_index >= r->expected)
        return "the record is damaged, and the checkpoint says that it was durable";
    if (r->repaired.mark && r->log->cut.bytes)
        return "the record is damaged, and so is the mark, which may have said that it was durable";
    if (r->ends_before_missing)
        return "the next segment is missing";
    return NULL;
}

static const char *stop_reason(const struct recovery *r)
{
    const struct segment *stop = r->stop;
    struct record_head head;
    switch (
        record_check(slice_of(stop->base + r->stop_offset, stop->head.capacity - r->stop_offset),
                     stop->head.salt, &head)) {
    case RECORD_GOOD:
        return "the record there has another index";
    case RECORD_NONE:
        return "there are zeros where a record should begin";
    default:
        return "its checksum is wrong";
    }
}

/* Bytes from there to the last one that is not zero. */
static uint64_t bytes_beyond(const struct segment *segment, uint64_t from)
{
    if (segment->blank)
        return 0;
    uint64_t end = segment->head.capacity;
    while (end > from && segment->base[end - 1] == 0)
        end--;
    return end - from;
}

static void note_cut(struct recovery *r)
{
    uint64_t bytes = bytes_beyond(r->stop, r->stop_offset);
    for (size_t i = 0; i < r->found.count; i++)
        bytes += bytes_beyond(r->found.items[i], SEGMENT_RECORDS_OFFSET);
    if (!bytes)
        return;
    r->log->cut = (struct log_cut){
        .index = r->expected,
        .bytes = bytes,
        .segment_id = r->stop->head.id,
        .offset = r->stop_offset,
        .reason = stop_reason(r),
    };
}

enum status recovery_judge(struct recovery *r)
{
    uint64_t claim = greatest_claim(r->stop, r->stop_offset);
    for (size_t i = 0; i < r->found.count; i++) {
        uint64_t other = greatest_claim(r->found.items[i], SEGMENT_RECORDS_OFFSET);
        claim = other > claim ? other : claim;
    }
    note_cut(r);
    if (r->repair)
        recovery_report_passed(r);
    const char *damage = proof_of_damage(r, claim);
    if (damage && !r->repair)
        return recovery_fail_damaged(r, r->stop->head.id, r->stop_offset, damage);
    if (damage)
        recovery_report_lost(r, claim > r->mark.index ? claim : r->mark.index, damage);
    return ST_OK;
}

static bool all_zeros(const struct segment *segment, uint64_t from, uint64_t to)
{
    return bytes_first_nonzero(slice_of(segment->base + from, to - from)) == to - from;
}

/* Writes zeros from the stop to the end, and over the seal. */
static enum status cut_tail(struct segment *segment, uint64_t from)
{
    enum { STEP = 64 * 1024 };
    uint64_t seal_end = SEGMENT_SEAL_OFFSET + sizeof(struct segment_seal);
    if (!all_zeros(segment, SEGMENT_SEAL_OFFSET, seal_end))
        TRY(file_write_zeros(segment->file, SEGMENT_SEAL_OFFSET, seal_end));
    for (uint64_t at = from; at < segment->head.capacity && !segment->blank;) {
        uint64_t end = at + STEP < segment->head.capacity ? at + STEP : segment->head.capacity;
        if (!all_zeros(segment, at, end))
            TRY(file_write_zeros(segment->file, at, end));
        at = end;
    }
    return ST_OK;
}

static enum status write_again(struct segment *segment, uint64_t offset, uint64_t end)
{
    uint8_t copy[16 * 1024];
    while (offset < end) {
        size_t len = size_min(sizeof(copy), end - offset);
        memcpy(copy, segment->base + offset, len);
        TRY(file_pwrite(segment->file, slice_of(copy, len), offset));
        offset += len;
    }
    return ST_OK;
}

/*
 * Rewrites what nothing claims to be durable, and syncs. After a failed sync the system may have
 * pages that seem written and are not on the disk; only another write brings them there.
 */
static enum status make_durable(struct recovery *r, struct segment *segment)
{
    uint64_t end = atomic_load(&segment->written), offset = SEGMENT_RECORDS_OFFSET;
    struct record_head head;
    /* Records up to the claim may not have been read, so their heads cannot be trusted. */
    if (atomic_load(&segment->last_index) <= r->claimed)
        offset = end;
    for (; offset < end; offset += align_up(head.len, RECORD_ALIGN)) {
        memcpy(&head, segment->base + offset, sizeof(head));
        /*
         * An impossible length is in a head that was not read: everything from there on is written.
         */
        if (head.index > r->claimed || head.len < sizeof(head) || head.len > end - offset)
            break;
    }
    offset = offset < end ? offset : end;
    TRY(write_again(segment, offset, end));
    uint64_t seal_end = SEGMENT_SEAL_OFFSET + sizeof(struct segment_seal);
    if (atomic_load(&segment->full))
        TRY(write_again(segment, SEGMENT_SEAL_OFFSET, seal_end));
    return file_sync(segment->file);
}

static enum status settle_chain(struct recovery *r)
{
    struct segment_order *order = &r->log->order;
    r->claimed = r->claimed > r->after_index ? r->claimed : r->after_index;
    enum status status = cut_tail(r->stop, r->stop_offset);
    for (size_t i = 0; i < order->count && status == ST_OK; i++) {
        struct segment *segment = order->items[i];
        /* A seal is as durable as the record that follows it. */
        if (segment == r->stop || atomic_load(&segment->last_index) + 1 > r->claimed)
            status = make_durable(r, segment);
    }
    if (status != ST_OK)
        return recovery_fail_file(r, status, r->stop->head.id, status_reason(status));
    return ST_OK;
}

/* Also adds a twin to a segment of an earlier version. */
static enum status write_heads_of(struct recovery *r, struct segment *segment)
{
    enum status status = segment_write_heads(segment, !r->log->unsynced);
    if (status != ST_OK)
        return recovery_fail_file(r, status, segment->head.id, status_reason(status));
    return ST_OK;
}

/* After the tail is cut on disk: until then its seal may still name the files removed here. */
static enum status drop_beyond(struct recovery *r)
{
    struct log *log = r->log;
    while (r->found.count) {
        struct segment *segment = r->found.items[r->found.count - 1];
        bool unused = segment->blank && !atomic_load(&segment->full) && !segment->seal_lost;
        if (!unused && r->repair) {
            TRY(recovery_set_aside_found(r, r->found.count - 1));
            continue;
        }
        if (!unused || atomic_load(&log->waiting)) {
            TRY(recovery_remove_found(r, r->found.count - 1));
            continue;
        }
        TRY(write_heads_of(r, segment));
        LOCK_SCOPE(&log->lock);
        enum status status = segment_table_put(&log->table, segment->head.id, segment);
        if (status != ST_OK)
            return recovery_fail_file(r, status, segment->head.id, status_reason(status));
        atomic_store(&log->waiting, segment_order_remove(&r->found, r->found.count - 1));
    }
    for (size_t i = 0; i < r->spare_count; i++) {
        segment_discard(log->fs, log->dir, r->spare_ids[i]);
        log->removed_spare = r->spare_ids[i];
    }
    enum status status = fs_sync_dir(log->fs, log->dir);
    if (status != ST_OK)
        return error_set(r->error, status, "%s: %s", log->dir, status_reason(status));
    return ST_OK;
}

enum status recovery_settle(struct recovery *r)
{
    TRY(settle_chain(r));
    for (size_t i = 0; i < r->log->order.count; i++)
        TRY(write_heads_of(r, r->log->order.items[i]));
    return drop_beyond(r);
}
