#include "store/upkeep/segments.h"

#include "base/xalloc.h"
#include "store/log/damage.h"
#include "store/log/format.h"
#include "store/record/change.h"

#include <stdlib.h>

static struct backend_segment *row_of(struct segments *segments, uint64_t id)
{
    /* From the end, because most changes concern the newest segments. */
    size_t at = segments->count;
    while (at > 0 && segments->rows[at - 1].id > id)
        at--;
    if (at > 0 && segments->rows[at - 1].id == id)
        return &segments->rows[at - 1];
    if (segments->count == segments->capacity) {
        segments->capacity = segments->capacity ? segments->capacity * 2 : 16;
        segments->rows = xrealloc(segments->rows, segments->capacity * sizeof(*segments->rows));
    }
    memmove(&segments->rows[at + 1], &segments->rows[at],
            (segments->count - at) * sizeof(*segments->rows));
    segments->count++;
    segments->rows[at] = (struct backend_segment){.id = id};
    return &segments->rows[at];
}

static enum status take_row(void *ctx, const struct backend_segment *row)
{
    *row_of(ctx, row->id) = *row;
    return ST_OK;
}

enum status segments_init(struct segments *segments, struct backend *backend)
{
    *segments = (struct segments){
        .backend = backend,
        .moved_from = (uint64_t)backend_meta_get(backend, BACKEND_MOVED_FROM, 0),
        .moved_to = (uint64_t)backend_meta_get(backend, BACKEND_MOVED_TO, 0),
    };
    return backend_segments_scan(backend, take_row, segments);
}

void segments_fini(struct segments *segments)
{
    free(segments->rows);
    free(segments->damaged);
    *segments = (struct segments){0};
}

size_t segments_live_bytes(size_t field_bytes)
{
    return record_bytes(CHANGE_BODY_HEAD_BYTES + change_bytes(field_bytes));
}

static struct backend_segment *row_of_loc(struct segments *segments, log_loc loc)
{
    uint64_t id = loc >> LOG_OFFSET_BITS;
    return row_of(segments, id == segments->moved_from ? segments->moved_to : id);
}

void segments_add_live(struct segments *segments, log_loc loc, uint64_t live_bytes)
{
    row_of_loc(segments, loc)->live_bytes += live_bytes;
}

void segments_drop_live(struct segments *segments, log_loc loc, size_t field_bytes)
{
    struct backend_segment *row = row_of_loc(segments, loc);
    /* It is less only if the checkpoint is damaged. */
    row->live_bytes -= size_min(row->live_bytes, segments_live_bytes(field_bytes));
}

size_t segments_of_log(const struct log *log, struct log_segment_info **ret_infos)
{
    /* The writer may add segments between the two calls. What does not fit is too new to matter
     * here. */
    size_t max = log_segments(log, NULL, 0) + 8;
    struct log_segment_info *infos = xmalloc(max * sizeof(*infos));
    size_t count = log_segments(log, infos, max);
    *ret_infos = infos;
    return size_min(count, max);
}

/* Takes the numbers of a segment from the log. */
static void rows_update(struct segments *segments, const struct log *log, uint64_t index,
                        uint64_t except)
{
    struct log_segment_info *infos;
    size_t count = segments_of_log(log, &infos);
    for (size_t i = 0; i < count; i++) {
        if (infos[i].first_index > index || infos[i].id == except)
            continue;
        struct backend_segment *row = row_of(segments, infos[i].id);
        row->first_index = infos[i].first_index;
        row->last_index = infos[i].full ? infos[i].last_index : 0;
        row->used_bytes = infos[i].used_bytes;
    }
    free(infos);
}

enum status segments_write(struct segments *segments, const struct log *log, uint64_t index,
                           uint64_t except)
{
    rows_update(segments, log, index, except);
    /* Also the row of a segment that is being cleaned and not part of the log any more. */
    for (size_t i = 0; i < segments->count; i++)
        TRY(backend_segment_put(segments->backend, &segments->rows[i]));
    return ST_OK;
}

enum status segments_replace(struct segments *segments, uint64_t old_id, uint64_t new_id)
{
    struct backend_segment *old = row_of(segments, old_id);
    struct backend_segment copy = *old;
    size_t at = (size_t)(old - segments->rows);
    segments->count--;
    memmove(old, old + 1, (segments->count - at) * sizeof(*old));
    TRY(backend_segment_delete(segments->backend, old_id));
    if (new_id == 0)
        return ST_OK;
    struct backend_segment *row = row_of(segments, new_id);
    row->first_index = copy.first_index;
    row->last_index = copy.last_index;
    row->live_bytes = copy.live_bytes;
    segments->moved_from = old_id;
    segments->moved_to = new_id;
    return backend_segment_put(segments->backend, row);
}

void segments_settle(struct segments *segments)
{
    segments->moved_from = segments->moved_to = 0;
}

static const struct backend_segment *row_find(const struct segments *segments, uint64_t id)
{
    for (size_t i = 0; i < segments->count; i++) {
        if (segments->rows[i].id == id)
            return &segments->rows[i];
    }
    return NULL;
}

/*
 * The length of a copy as a part of the segment. 0 if nothing is live, because then there is no
 * copy.
 */
static double copied_part(const struct backend_segment *row, const struct log_segment_info *info)
{
    if (row->live_bytes == 0)
        return 0;
    return (double)(SEGMENT_RECORDS_OFFSET + row->live_bytes) / (double)info->used_bytes;
}

uint64_t segments_live(const struct segments *segments, uint64_t id)
{
    const struct backend_segment *row = row_find(segments, id);
    return row ? row->live_bytes : 0;
}

void segments_set_damaged(struct segments *segments, uint64_t id)
{
    segments->damaged =
        xrealloc(segments->damaged, (segments->damaged_count + 1) * sizeof(*segments->damaged));
    segments->damaged[segments->damaged_count++] =
        (struct segments_damaged){id, segments_live(segments, id)};
}

void segments_clear_damaged(struct segments *segments)
{
    segments->damaged_count = 0;
}

/* A damaged segment may be chosen when nothing in it is live any more. */
static bool is_damaged(const struct segments *segments, uint64_t id)
{
    for (size_t i = 0; i < segments->damaged_count; i++) {
        const struct segments_damaged *damaged = &segments->damaged[i];
        if (damaged->id == id && (segments_live(segments, id) > 0 || damaged->live_bytes == 0))
            return true;
    }
    return false;
}

uint64_t segments_most_dead(const struct segments *segments, const struct log *log,
                            const struct segments_choice *choice)
{
    struct log_segment_info *infos;
    size_t count = segments_of_log(log, &infos);
    uint64_t best_id = 0;
    double best_part = choice->part_max;
    for (size_t i = 0; i < count; i++) {
        const struct backend_segment *row = row_find(segments, infos[i].id);
        /* The writer still appends to a segment that is not full, and checkpoints do not have those
         * after index_max. */
        if (!row || !infos[i].full || infos[i].last_index > choice->index_max ||
            infos[i].id >= choice->id_end || is_damaged(segments, infos[i].id))
            continue;
        bool heals = choice->heals && infos[i].damaged;
        double part = heals ? 0 : copied_part(row, &infos[i]);
        if (part < best_part) {
            best_part = part;
            best_id = infos[i].id;
        }
    }
    free(infos);
    return best_id;
}

uint64_t segments_id_end(const struct log *log)
{
    struct log_segment_info *infos;
    size_t count = segments_of_log(log, &infos);
    uint64_t end = 0;
    for (size_t i = 0; i < count; i++)
        end = infos[i].id >= end ? infos[i].id + 1 : end;
    free(infos);
    return end;
}

/* How much of a segment is in the checkpoint. */
static uint64_t bytes_added(const struct segments *segments, const struct log_segment_info *info,
                            uint64_t index, log_loc end)
{
    uint64_t id, offset;
    log_loc_split(end, &id, &offset);
    if (info->first_index > index)
        return 0;
    if (id == info->id)
        return offset;
    /* It has all of it, or nothing was added since the start: then the row says how much. */
    const struct backend_segment *row = row_find(segments, info->id);
    return row ? row->used_bytes : 0;
}

uint64_t segments_bytes_after(const struct segments *segments, const struct log *log,
                              uint64_t index, log_loc end, uint64_t except)
{
    struct log_segment_info *infos;
    size_t count = segments_of_log(log, &infos);
    uint64_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t added = bytes_added(segments, &infos[i], index, end);
        if (infos[i].id != except && infos[i].used_bytes > added)
            bytes += infos[i].used_bytes - added;
    }
    free(infos);
    return bytes;
}

void segments_check(const struct segments *segments)
{
    assert(segments->count <= segments->capacity);
    for (size_t i = 0; i < segments->count; i++) {
        assert(segments->rows[i].id > 0);
        assert(i == 0 || segments->rows[i - 1].id < segments->rows[i].id);
        assert(segments->rows[i].id != segments->moved_from);
    }
    assert(segments->moved_from || !segments->moved_to);
}
