/* Sequential reading. The mapping is trusted for its checksums, not for staying within bounds. */
#include "store/log/internal.h"

/* The head at offset, if a record that was written begins there: ST_END where they end. */
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

/* The segment that holds index, or else the first one after it; NULL past the end. */
static struct segment *segment_for_index(const struct log *log, uint64_t index)
{
    LOCK_SCOPE((struct lock *)&log->lock);
    const struct segment_order *order = &log->order;
    size_t at = segment_order_at_index(order, index);
    if (at == order->count)
        return order->count ? order->items[0] : NULL;
    /* A hole: the cleaner found nothing to keep there. */
    if (atomic_load(&order->items[at]->last_index) < index && at + 1 < order->count)
        at++;
    return order->items[at];
}

static void stand_at(struct log_reader *reader, const struct segment *segment)
{
    reader->segment_id = segment ? segment->head.id : 0;
    reader->offset = SEGMENT_RECORDS_OFFSET;
}

void log_reader_init(struct log_reader *reader, const struct log *log, uint64_t index)
{
    *reader = (struct log_reader){.log = log, .next_index = index};
    stand_at(reader, segment_for_index(log, index));
}

void log_reader_seek_revision(struct log_reader *reader, const struct log *log, int64_t revision)
{
    *reader = (struct log_reader){.log = log};
    struct segment *found = NULL;
    {
        LOCK_SCOPE((struct lock *)&log->lock);
        const struct segment_order *order = &log->order;
        /* The last one may be taking records right now, so it is never passed over. */
        for (size_t i = 0; i < order->count && !found; i++) {
            if (i + 1 == order->count || atomic_load(&order->items[i]->last_revision) >= revision)
                found = order->items[i];
        }
    }
    stand_at(reader, found);
    struct record_head head;
    while (found && head_at(found, reader->offset, &head) == ST_OK) {
        reader->next_index = head.index;
        if (head.revision >= revision)
            return;
        reader->offset = after(reader->offset, &head);
        reader->next_index = head.index + 1;
    }
}

/* On to the next segment, if the writer or the cleaner has put one after this. */
static bool next_segment(struct log_reader *reader, const struct segment *segment)
{
    if (!atomic_load_explicit(&segment->full, memory_order_acquire))
        return false;
    if (reader->offset < atomic_load(&segment->written))
        return true; /* more came before the writer left */
    uint64_t index = atomic_load(&segment->last_index) + 1;
    if (reader->next_index < index)
        reader->next_index = index;
    const struct segment *next = segment_for_index(reader->log, reader->next_index);
    if (!next || next->first_index <= segment->first_index)
        return false;
    stand_at(reader, next);
    return true;
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
        TRY(status);
        if (head.index > last_index)
            return ST_END;
        uint64_t offset = reader->offset;
        reader->offset = after(offset, &head);
        if (head.index < reader->next_index)
            continue;
        reader->next_index = head.index + 1;
        log_record_from(segment, offset, &head, ret_record);
        return ST_OK;
    }
}
