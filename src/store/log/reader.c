/*
 * Sequential reading. The mapping is not trusted: a disk may return other bytes than were written.
 */
#include "store/log/reader.h"

#include "store/log/damage.h"
#include "store/log/log_private.h"

/* Reads the head of the written record at offset. ST_END after the last record. */
static enum status head_at(const struct segment *segment, uint64_t offset,
                           struct record_head *ret_head)
{
    uint64_t written = atomic_load_explicit(&segment->written, memory_order_acquire);
    if (offset >= written)
        return ST_END;
    struct slice rest = slice_of(segment->base + offset, written - offset);
    return record_head_check(rest, segment->head.salt, ret_head) ? ST_OK : ST_DAMAGED;
}

static uint64_t after(uint64_t offset, const struct record_head *head)
{
    return offset + align_up(head->len, RECORD_ALIGN);
}

/* The segment that contains index, or else the first one after it; NULL past the end. */
static struct segment *segment_for_index(const struct log *log, uint64_t index)
{
    LOCK_SCOPE((struct lock *)&log->lock);
    const struct segment_order *order = &log->order;
    size_t at = segment_order_at_index(order, index);
    if (at == order->count)
        return order->count ? order->items[0] : NULL;
    /* A gap: the cleaner found nothing to keep there. */
    if (atomic_load(&order->items[at]->last_index) < index && at + 1 < order->count)
        at++;
    return order->items[at];
}

/* -- Finding a record within a segment -- */

enum seek_by { BY_INDEX, BY_REVISION };

/* Longer ranges are bisected, shorter ones are walked. */
enum { WALK_BYTES = 64 * 1024 };

/*
 * True if a record begins here: its checksums are right, which are salted so that no stored value
 * can forge them, and so is the head of the next record.
 */
static bool begins_here(const struct segment *segment, uint64_t offset, uint64_t written,
                        struct record_head *ret_head)
{
    struct slice rest = slice_of(segment->base + offset, written - offset);
    if (rest.len < RECORD_HEAD_BYTES)
        return false;
    uint64_t index;
    memcpy(&index, rest.ptr + offsetof(struct record_head, index), sizeof(index));
    if (LIKELY(index < segment->first_index || index > atomic_load(&segment->last_index)))
        return false;
    if (record_check(rest, segment->head.salt, ret_head) != RECORD_GOOD)
        return false;
    uint64_t end = after(offset, ret_head);
    struct record_head next;
    return end == written || head_at(segment, end, &next) == ST_OK;
}

/* The first complete record from offset on. False if there is none. */
static bool next_good(const struct segment *segment, uint64_t offset, uint64_t *ret_offset,
                      struct record_head *ret_head)
{
    uint64_t written = atomic_load_explicit(&segment->written, memory_order_acquire);
    for (; offset + RECORD_HEAD_BYTES <= written; offset += RECORD_ALIGN) {
        uint64_t index;
        memcpy(&index, segment->base + offset + offsetof(struct record_head, index), sizeof(index));
        if (LIKELY(index < segment->first_index || index > atomic_load(&segment->last_index)))
            continue;
        struct slice rest = slice_of(segment->base + offset, written - offset);
        if (record_check(rest, segment->head.salt, ret_head) != RECORD_GOOD)
            continue;
        *ret_offset = offset;
        return true;
    }
    return false;
}

/* True if a record begins in [from, to) and it and those before it precede `want`. */
static bool is_before(const struct segment *segment, uint64_t from, uint64_t to, enum seek_by by,
                      uint64_t want, uint64_t *ret_offset)
{
    uint64_t written = atomic_load_explicit(&segment->written, memory_order_acquire);
    struct record_head head;
    for (uint64_t offset = from; offset < to; offset += RECORD_ALIGN) {
        if (!begins_here(segment, offset, written, &head))
            continue;
        *ret_offset = offset;
        /* A record without a revision says nothing; staying before it is always correct. */
        return by == BY_INDEX ? head.index < want : head.revision && (uint64_t)head.revision < want;
    }
    return false;
}

/* The offset of a record that is at or shortly before the wanted one. */
static uint64_t approach(const struct segment *segment, enum seek_by by, uint64_t want)
{
    uint64_t low = SEGMENT_RECORDS_OFFSET;
    uint64_t high = atomic_load_explicit(&segment->written, memory_order_acquire);
    while (high - low > WALK_BYTES) {
        uint64_t middle = align_up(low + (high - low) / 2, RECORD_ALIGN), found;
        if (is_before(segment, middle, high, by, want, &found))
            low = found;
        else
            high = middle;
    }
    return low;
}

static void seek_before(struct log_reader *reader, const struct segment *segment, enum seek_by by,
                        uint64_t want)
{
    reader->segment_id = segment ? segment->head.id : 0;
    reader->offset = segment ? approach(segment, by, want) : SEGMENT_RECORDS_OFFSET;
}

void log_reader_init(struct log_reader *reader, const struct log *log, uint64_t index)
{
    *reader = (struct log_reader){.log = log, .next_index = index};
    seek_before(reader, segment_for_index(log, index), BY_INDEX, index);
}

void log_reader_init_before(struct log_reader *reader, const struct log *log,
                            const struct log_record *record)
{
    *reader = (struct log_reader){
        .log = log,
        .segment_id = record->body_loc >> LOG_OFFSET_BITS,
        .offset = (record->body_loc & ((UINT64_C(1) << LOG_OFFSET_BITS) - 1)) - RECORD_HEAD_BYTES,
        .next_index = record->index,
    };
}

static const struct segment *segment_for_revision(const struct log *log, int64_t revision)
{
    LOCK_SCOPE((struct lock *)&log->lock);
    const struct segment_order *order = &log->order;
    /* The last segment may be receiving records right now, so it is never skipped. */
    for (size_t i = 0; i < order->count; i++) {
        if (i + 1 == order->count || atomic_load(&order->items[i]->last_revision) >= revision)
            return order->items[i];
    }
    return NULL;
}

/*
 * The record at offset cannot be read. Finds the first readable record after it, if that proves
 * that nothing of the revision or later is in between: its own revision is not later (if it created
 * that revision), earlier (if it only carries the revision before it), or it has none.
 */
static bool pass_earlier(const struct segment *segment, uint64_t offset, int64_t revision,
                         uint64_t *ret_offset, struct record_head *ret_head)
{
    while (next_good(segment, offset, &offset, ret_head)) {
        bool makes = ret_head->type == LOG_TYPE_OF_REVISIONS;
        if (ret_head->revision > revision || (ret_head->revision == revision && !makes))
            return false;
        if (ret_head->revision) {
            *ret_offset = offset;
            return true;
        }
        offset = after(offset, ret_head);
    }
    return false;
}

void log_reader_seek_revision(struct log_reader *reader, const struct log *log, int64_t revision)
{
    *reader = (struct log_reader){.log = log};
    revision = revision > 0 ? revision : 0;
    const struct segment *segment = segment_for_revision(log, revision);
    seek_before(reader, segment, BY_REVISION, (uint64_t)revision);
    struct record_head head;
    for (;;) {
        enum status status = segment ? head_at(segment, reader->offset, &head) : ST_END;
        /* Stops before damage that may be the wanted record, and skips other damage. */
        if (status == ST_DAMAGED &&
            pass_earlier(segment, reader->offset, revision, &reader->offset, &head))
            status = ST_OK;
        if (status != ST_OK)
            return;
        reader->next_index = head.index;
        if (head.revision >= revision)
            return;
        reader->offset = after(reader->offset, &head);
        reader->next_index = head.index + 1;
    }
}

bool log_reader_is_current(const struct log_reader *reader)
{
    LOCK_SCOPE((struct lock *)&reader->log->lock);
    const struct segment_order *order = &reader->log->order;
    /* Usually it has caught up, and reads the last segment, which is being written. */
    return order->items[order->count - 1]->head.id == reader->segment_id ||
           segment_order_find(order, reader->segment_id) < order->count;
}

/* -- Walking -- */

/* Moves to the next segment, if the writer or the cleaner has added one. */
static bool next_segment(struct log_reader *reader, const struct segment *segment)
{
    if (!atomic_load_explicit(&segment->full, memory_order_acquire))
        return false;
    if (reader->offset < atomic_load(&segment->written))
        return true; /* more was written before the writer left */
    uint64_t index = atomic_load(&segment->last_index) + 1;
    if (reader->next_index < index)
        reader->next_index = index;
    const struct segment *next = segment_for_index(reader->log, reader->next_index);
    if (!next || next->first_index <= segment->first_index)
        return false;
    reader->segment_id = next->head.id;
    reader->offset = SEGMENT_RECORDS_OFFSET;
    return true;
}

/* Skips damage before the next wanted index. */
static bool pass_before(struct log_reader *reader, const struct segment *segment)
{
    struct record_head head;
    uint64_t good;
    if (!next_good(segment, reader->offset, &good, &head) || head.index > reader->next_index)
        return false;
    reader->offset = good;
    return true;
}

static bool body_is_good(const struct segment *segment, uint64_t offset,
                         const struct record_head *head)
{
    struct record_head again;
    struct slice record = slice_of(segment->base + offset, align_up(head->len, RECORD_ALIGN));
    return record_check(record, segment->head.salt, &again) == RECORD_GOOD;
}

static enum status note_damage(const struct log_reader *reader)
{
    log_note_damage(reader->log, log_loc_of(reader->segment_id, reader->offset));
    return ST_DAMAGED;
}

void log_record_sum(const struct log *log, const struct log_record *record, uint32_t *ret_sum,
                    uint32_t *ret_wanted)
{
    const struct segment *segment =
        segment_table_get(&log->table, record->body_loc >> LOG_OFFSET_BITS);
    assert(segment);
    record_sum_head(record->body.ptr - RECORD_HEAD_BYTES, segment->head.salt, ret_sum, ret_wanted);
}

bool log_reader_damaged(const struct log_reader *reader, struct log_record *ret_record)
{
    const struct segment *segment = segment_table_get(&reader->log->table, reader->segment_id);
    struct record_head head;
    *ret_record = (struct log_record){0};
    if (segment && head_at(segment, reader->offset, &head) == ST_OK) {
        log_record_from(segment, reader->offset, &head, ret_record);
        return true;
    }
    uint64_t body = reader->offset + RECORD_HEAD_BYTES, end;
    if (!segment)
        return false;
    if (!next_good(segment, reader->offset, &end, &head))
        end = atomic_load_explicit(&segment->written, memory_order_acquire);
    if (body < end) {
        ret_record->body = slice_of(segment->base + body, end - body);
        ret_record->body_loc = log_loc_of(reader->segment_id, body);
    }
    return false;
}

void log_reader_pass_damage(struct log_reader *reader)
{
    const struct segment *segment = segment_table_get(&reader->log->table, reader->segment_id);
    if (!segment)
        return;
    struct record_head head;
    uint64_t good;
    if (head_at(segment, reader->offset, &head) == ST_OK) {
        reader->offset = after(reader->offset, &head);
        reader->next_index = head.index + 1;
    } else if (next_good(segment, reader->offset, &good, &head)) {
        reader->offset = good;
        reader->next_index = head.index;
    } else {
        reader->offset = atomic_load_explicit(&segment->written, memory_order_acquire);
    }
}

enum status log_reader_next(struct log_reader *reader, uint64_t last_index,
                            struct log_record *ret_record)
{
    for (;;) {
        const struct segment *segment = segment_table_get(&reader->log->table, reader->segment_id);
        if (!segment)
            return ST_END;
        struct record_head head;
        enum status status = head_at(segment, reader->offset, &head);
        if (status == ST_END) {
            if (!next_segment(reader, segment))
                return ST_END;
            continue;
        }
        if (status == ST_DAMAGED) {
            if (!pass_before(reader, segment))
                return note_damage(reader);
            continue;
        }
        if (head.index > last_index)
            return ST_END;
        uint64_t offset = reader->offset;
        bool wanted = head.index >= reader->next_index;
        bool checked =
            !reader->checked_bytes_max || head.len - RECORD_HEAD_BYTES <= reader->checked_bytes_max;
        if (wanted && checked && !body_is_good(segment, offset, &head))
            return note_damage(reader);
        reader->offset = after(offset, &head);
        if (!wanted)
            continue;
        reader->next_index = head.index + 1;
        log_record_from(segment, offset, &head, ret_record);
        return ST_OK;
    }
}
