#include "store/log/hold.h"

#include "base/xalloc.h"
#include "store/log/log_private.h"

struct log_hold {
    uint64_t last_index;
    size_t count;
    struct segment *segments[]; /* in order; each has its `holds` increased */
};

struct log_hold *log_hold_new(struct log *log, uint64_t last_index)
{
    LOCK_SCOPE(&log->lock);
    const struct segment_order *order = &log->order;
    struct log_hold *hold = xmalloc(sizeof(*hold) + order->count * sizeof(struct segment *));
    *hold = (struct log_hold){.last_index = last_index, .count = order->count};
    for (size_t i = 0; i < order->count; i++) {
        hold->segments[i] = order->items[i];
        atomic_fetch_add(&order->items[i]->holds, 1);
    }
    return hold;
}

void log_hold_free(struct log_hold *hold)
{
    if (!hold)
        return;
    for (size_t i = 0; i < hold->count; i++)
        atomic_fetch_sub(&hold->segments[i]->holds, 1);
    free(hold);
}

bool log_is_held_back(const struct log *log)
{
    return atomic_load(&log->forgotten) != NULL;
}

void log_hold_read(const struct log_hold *hold, bool verifies, struct log_hold_reader *ret_reader)
{
    *ret_reader = (struct log_hold_reader){
        .hold = hold, .offset = SEGMENT_RECORDS_OFFSET, .verifies = verifies};
}

static bool is_good(const struct log_hold_reader *reader, struct slice rest, uint32_t salt,
                    struct record_head *ret_head)
{
    return reader->verifies ? record_check(rest, salt, ret_head) == RECORD_GOOD
                            : record_head_check(rest, salt, ret_head);
}

enum status log_hold_next(struct log_hold_reader *reader, struct log_record *ret_record)
{
    const struct log_hold *hold = reader->hold;
    for (; reader->segment < hold->count; reader->segment++) {
        const struct segment *segment = hold->segments[reader->segment];
        uint64_t written = atomic_load_explicit(&segment->written, memory_order_acquire);
        uint64_t offset = reader->offset;
        if (offset >= written) {
            reader->offset = SEGMENT_RECORDS_OFFSET;
            continue;
        }
        struct record_head head;
        struct slice rest = slice_of(segment->base + offset, written - offset);
        reader->at = log_loc_of(segment->head.id, offset);
        if (!is_good(reader, rest, segment->head.salt, &head))
            return ST_DAMAGED;
        if (head.index > hold->last_index)
            return ST_END;
        reader->offset = offset + align_up(head.len, RECORD_ALIGN);
        log_record_from(segment, offset, &head, ret_record);
        return ST_OK;
    }
    return ST_END;
}
