#include "store/record/change_scan.h"

/* While a scan runs. */
struct scanning {
    struct change_scan *scan;
    struct log_reader reader;
    uint64_t expected; /* the next index */
    int64_t revision;  /* revision of the last change */
    struct store_gap gap;
    bool in_gap;
};

static enum status see_record(struct scanning *s, const struct log_record *record)
{
    struct change_scan *scan = s->scan;
    struct change_walk walk;
    const struct change_head *change = NULL;
    size_t offset;
    if (record->type == LOG_RECORD_KV) {
        TRY(change_walk_init(&walk, record->body));
        for (;;) {
            TRY(change_walk_next(&walk, &change, &offset));
            if (!change)
                break;
            if (!change_is_sound(change))
                return ST_DAMAGED;
            s->revision = change->revision;
            TRY(scan->change_seen(scan->ctx, record, change, record->body_loc + offset));
        }
    }
    return scan->record_seen ? scan->record_seen(scan->ctx, record) : ST_OK;
}

/* -- Damage -- */

/* The gap ends before the record with this index. */
static void end_gap(struct scanning *s, uint64_t index)
{
    if (s->in_gap && index > s->gap.from_index) {
        s->gap.to_index = index - 1;
        s->scan->gap(s->scan->ctx, &s->gap);
    }
    s->in_gap = false;
}

static void begin_gap(struct scanning *s, uint64_t segment_id, uint64_t offset)
{
    if (s->in_gap)
        return;
    s->in_gap = true;
    s->gap =
        (struct store_gap){.from_index = s->expected, .segment_id = segment_id, .offset = offset};
}

/*
 * A body begins at a known distance from the record before it, so its changes are found although
 * its head is damaged, and each has its own checksum.
 */
static enum status see_damaged(struct scanning *s)
{
    struct change_scan *scan = s->scan;
    struct log_record record;
    struct change_walk walk;
    bool head = log_reader_damaged(&s->reader, &record);
    begin_gap(s, s->reader.segment_id, s->reader.offset);
    if (!head)
        record.index = s->expected;
    if ((head && record.type != LOG_RECORD_KV) || change_walk_init(&walk, record.body) != ST_OK)
        return ST_OK;
    const struct change_head *change, *verified;
    size_t offset;
    while (change_walk_next(&walk, &change, &offset) == ST_OK && change) {
        log_loc loc = record.body_loc + offset;
        bool summed = change->flags & CHANGE_SUMMED;
        if (summed && change->revision >= s->revision &&
            change_get(scan->log, loc, &verified) == ST_OK) {
            s->revision = change->revision;
            s->gap.kept_changes++;
            record.revision = change->revision;
            TRY(scan->change_seen(scan->ctx, &record, change, loc));
            continue;
        }
        struct change_kv kv;
        if (!scan->lost || !change_is_sound(change))
            continue;
        change_read_kv(change, &kv);
        scan->lost(scan->ctx, &(struct store_lost){.key = kv.key,
                                                   .revision = change->revision,
                                                   .deleted = change_is_tombstone(change),
                                                   .unsure = true});
    }
    return ST_OK;
}

/* -- Together -- */

static enum status see_good(struct scanning *s, const struct log_record *record)
{
    if (record->index > s->expected && s->expected >= s->scan->complete_from)
        begin_gap(s, 0, 0);
    end_gap(s, record->index);
    s->expected = record->index;
    enum status status = see_record(s, record);
    /* Its checksum is right, and yet it is not what this program writes. */
    if (status == ST_DAMAGED && s->scan->salvages) {
        begin_gap(s, s->reader.segment_id,
                  record->body_loc & ((UINT64_C(1) << LOG_OFFSET_BITS) - 1));
        status = ST_OK;
    }
    s->expected++;
    return status;
}

enum status change_scan_run(struct change_scan *scan)
{
    struct scanning s = {.scan = scan, .expected = scan->from_index};
    struct log_record record;
    assert(scan->log && scan->change_seen);
    log_reader_init(&s.reader, scan->log, scan->from_index);
    for (;;) {
        enum status status = log_reader_next(&s.reader, scan->to_index, &record);
        if (status == ST_END)
            break;
        if (status == ST_OK) {
            status = see_good(&s, &record);
        } else if (status == ST_DAMAGED && scan->salvages) {
            status = see_damaged(&s);
            log_reader_pass_damage(&s.reader);
        }
        if (status == ST_DAMAGED) {
            scan->damaged_segment = s.reader.segment_id;
            scan->damaged_offset = s.reader.offset;
        }
        TRY(status);
    }
    if (s.expected <= scan->to_index && s.expected >= scan->complete_from)
        begin_gap(&s, 0, 0);
    /* Behind the last record that is known, damaged bytes may be one more. */
    bool beyond = s.in_gap && s.gap.from_index > scan->to_index;
    end_gap(&s, (beyond ? s.gap.from_index : scan->to_index) + 1);
    return ST_OK;
}
