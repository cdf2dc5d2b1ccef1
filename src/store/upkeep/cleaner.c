#include "store/upkeep/cleaner.h"

#include "base/buf.h"
#include "base/xalloc.h"
#include "store/log/format.h"
#include "store/log/rewrite.h"
#include "store/upkeep/yield.h"

#include <stdlib.h>

struct copying {
    struct backend *backend;
    struct log_rewrite *rewrite;
    struct buf alive;    /* one bit for each change of the current record */
    uint64_t live_bytes; /* size of the changes copied so far */
};

/* The live changes of a record. */
struct survivors {
    uint32_t count;
    size_t body_bytes;
};

/* -- Relocations -- */

struct relocation *relocation_new(uint64_t old_segment, uint64_t new_segment)
{
    struct relocation *relocation = xcalloc(1, sizeof(*relocation));
    relocation->old_segment = old_segment;
    relocation->new_segment = new_segment;
    relocation->moves_max = RELOCATION_MOVES_MAX;
    return relocation;
}

void relocation_free(struct relocation *relocation)
{
    free(relocation);
}

static void walk_init(struct segment_walk *walk, const struct log *log, uint64_t segment,
                      bool passes)
{
    *walk = (struct segment_walk){
        .reader = {.log = log, .segment_id = segment, .offset = SEGMENT_RECORDS_OFFSET},
        .segment = segment,
        .passes = passes,
    };
}

/* The next record of the segment that changed keys, or ST_END. */
static enum status walk_record(struct segment_walk *walk)
{
    struct log_record *record = &walk->record;
    for (;;) {
        enum status status = log_reader_next(&walk->reader, UINT64_MAX, record);
        if (status == ST_END || walk->reader.segment_id != walk->segment)
            return ST_END;
        if (status == ST_DAMAGED && !walk->passes)
            return status;
        if (status == ST_DAMAGED)
            log_reader_pass_damage(&walk->reader);
        else if (record->type == LOG_RECORD_KV)
            return change_walk_init(&walk->changes, record->body);
    }
}

/* ST_END after the last change. */
static enum status walk_next(struct segment_walk *walk, const struct change_head **ret_change,
                             log_loc *ret_loc)
{
    for (;;) {
        if (!walk->inside)
            TRY(walk_record(walk));
        walk->inside = true;
        size_t offset;
        TRY(change_walk_next(&walk->changes, ret_change, &offset));
        if (*ret_change) {
            *ret_loc = walk->record.body_loc + offset;
            return ST_OK;
        }
        walk->inside = false;
    }
}

/* -- Copying -- */

static enum status is_alive(struct backend *backend, const struct change_head *change, log_loc loc,
                            bool *ret_alive)
{
    struct backend_version version;
    struct backend_version_id id = {change->revision, change->sub};
    enum status status = backend_version_get(backend, id, &version);
    if (status == ST_NOT_FOUND) {
        *ret_alive = false;
        return ST_OK;
    }
    *ret_alive = status == ST_OK && version.loc == loc;
    return status;
}

/* Finds the live changes of a record. */
static enum status find_survivors(struct copying *copying, const struct log_record *record,
                                  struct survivors *ret_survivors)
{
    struct survivors survivors = {.body_bytes = CHANGE_BODY_HEAD_BYTES};
    struct change_walk walk;
    TRY(change_walk_init(&walk, record->body));
    copying->alive.len = 0;
    for (size_t i = 0;; i++) {
        const struct change_head *change;
        size_t offset;
        TRY(change_walk_next(&walk, &change, &offset));
        if (!change)
            break;
        if (i % 8 == 0)
            TRY(buf_append(&copying->alive, slice_of("", 1)));
        bool alive;
        TRY(is_alive(copying->backend, change, record->body_loc + offset, &alive));
        if (!alive)
            continue;
        copying->alive.ptr[i / 8] |= (uint8_t)(1u << i % 8);
        survivors.count++;
        survivors.body_bytes += change_bytes(change->field_bytes);
    }
    *ret_survivors = survivors;
    return ST_OK;
}

static enum status copy_survivors(struct copying *copying, const struct log_record *record)
{
    struct change_walk walk;
    TRY(change_walk_init(&walk, record->body));
    for (size_t i = 0;; i++) {
        const struct change_head *change;
        size_t offset;
        TRY(change_walk_next(&walk, &change, &offset));
        if (!change)
            return ST_OK;
        if (!(copying->alive.ptr[i / 8] & 1u << i % 8))
            continue;
        TRY(log_rewrite_piece(copying->rewrite,
                              slice_of(change, change_bytes(change->field_bytes))));
        copying->live_bytes += segments_live_bytes(change->field_bytes);
    }
}

static enum status record_copy(struct copying *copying, const struct log_record *record)
{
    if (record->type != LOG_RECORD_KV)
        return ST_OK; /* the checkpoint has its contents, including rows */
    struct survivors survivors;
    TRY(find_survivors(copying, record, &survivors));
    if (survivors.count == 0)
        return ST_OK;
    log_loc body_loc;
    TRY(log_rewrite_record(copying->rewrite, record, survivors.body_bytes, &body_loc));
    uint8_t head[CHANGE_BODY_HEAD_BYTES] = {0};
    memcpy(head, &survivors.count, sizeof(survivors.count));
    TRY(log_rewrite_piece(copying->rewrite, slice_of(head, sizeof(head))));
    return copy_survivors(copying, record);
}

static enum status find_info(const struct log *log, uint64_t id, struct log_segment_info *ret_info)
{
    struct log_segment_info *infos;
    size_t count = segments_of_log(log, &infos);
    enum status status = ST_NOT_FOUND;
    for (size_t i = 0; i < count; i++) {
        if (infos[i].id == id) {
            *ret_info = infos[i];
            status = ST_OK;
        }
    }
    free(infos);
    return status;
}

/* Records that cannot be read are skipped. */
static enum status records_copy(struct copying *copying, const struct log *log,
                                const struct log_segment_info *info)
{
    struct log_reader reader;
    log_reader_init(&reader, log, info->first_index);
    for (;;) {
        struct log_record record;
        enum status status = log_reader_next(&reader, info->last_index, &record);
        if (status == ST_END || reader.segment_id != info->id)
            return ST_OK;
        if (status == ST_DAMAGED) {
            log_reader_pass_damage(&reader);
            continue;
        }
        TRY(status);
        TRY(record_copy(copying, &record));
    }
}

static enum status copy_segment(struct copying *copying, struct log *log,
                                const struct log_segment_info *info, uint64_t live_bytes,
                                uint64_t *ret_new_segment)
{
    TRY(log_rewrite_begin(log, info->id, &copying->rewrite));
    TRY(records_copy(copying, log, info));
    if (copying->live_bytes < live_bytes)
        return ST_DAMAGED;
    return log_rewrite_commit(TAKE(copying->rewrite), ret_new_segment);
}

enum status cleaner_copy(struct log *log, struct backend *backend, uint64_t segment,
                         uint64_t live_bytes, struct relocation **ret_relocation)
{
    struct log_segment_info info;
    TRY(find_info(log, segment, &info));
    struct copying copying = {.backend = backend};
    uint64_t new_segment;
    enum status status = copy_segment(&copying, log, &info, live_bytes, &new_segment);
    log_rewrite_abort(copying.rewrite);
    buf_fini(&copying.alive);
    if (status != ST_OK)
        return status;
    struct relocation *relocation = relocation_new(segment, new_segment);
    walk_init(&relocation->old_walk, log, segment, true);
    walk_init(&relocation->new_walk, log, new_segment, false);
    relocation->found = new_segment ? ST_AGAIN : ST_OK;
    *ret_relocation = relocation;
    return ST_OK;
}

/* -- Finding the moves -- */

static bool is_before(const struct change_head *a, const struct change_head *b)
{
    return a->revision != b->revision ? a->revision < b->revision : a->sub < b->sub;
}

/* Advances in the old segment to the change that was copied to `to`. */
static enum status find_move(struct relocation *relocation, const struct change_head *copied,
                             log_loc to)
{
    const struct change_head *change;
    log_loc from;
    enum status status;
    do
        status = walk_next(&relocation->old_walk, &change, &from);
    while (status == ST_OK && is_before(change, copied));
    if (status == ST_END || (status == ST_OK && is_before(copied, change)))
        return ST_DAMAGED; /* damaged since it was copied */
    TRY(status);
    relocation->moves[relocation->count++] = (struct relocated){from, to};
    return ST_OK;
}

enum status cleaner_find_moves(struct relocation *relocation)
{
    assert(relocation->done == relocation->count);
    relocation->done = relocation->count = 0;
    while (relocation->found == ST_AGAIN && relocation->count < relocation->moves_max) {
        const struct change_head *copied;
        log_loc to;
        enum status status = walk_next(&relocation->new_walk, &copied, &to);
        if (status == ST_OK)
            status = find_move(relocation, copied, to);
        if (status != ST_OK)
            relocation->found = status == ST_END ? ST_OK : status;
    }
    bool failed = relocation->found != ST_OK && relocation->found != ST_AGAIN;
    return failed && relocation->count == 0 ? relocation->found : ST_OK;
}

/* -- Recording the moves in the checkpoint -- */

/* ST_NOT_FOUND unless the checkpoint has the copied change at a location in the old segment. */
static enum status find_version(struct backend *backend, const struct change_head *copied,
                                uint64_t old_segment, struct backend_version *ret_version)
{
    struct backend_version_id id = {copied->revision, copied->sub};
    TRY(backend_version_get(backend, id, ret_version));
    return ret_version->loc >> LOG_OFFSET_BITS == old_segment ? ST_OK : ST_NOT_FOUND;
}

/* Versions that are not found were compacted since they were copied, or were recorded before. */
static enum status record_one(struct backend *backend, struct relocation *relocation,
                              const struct change_head *copied, log_loc to, size_t *bytes)
{
    struct backend_version version;
    enum status status = find_version(backend, copied, relocation->old_segment, &version);
    if (status != ST_OK)
        return status == ST_NOT_FOUND ? ST_OK : status;
    struct change_kv kv;
    if (!change_is_sound(copied))
        return ST_DAMAGED;
    change_read_kv(copied, &kv);
    version.loc = to;
    version.key = kv.key; /* the backend's own copy is invalid after the change below */
    *bytes += backend_page_bytes(kv.key.len, copied->revision - relocation->recorded_revision);
    relocation->recorded_revision = copied->revision;
    return backend_version_put(backend, &version);
}

enum status cleaner_record(const struct log *log, struct backend *backend,
                           struct relocation *relocation, size_t bytes_max, bool *ret_all)
{
    if (!relocation->recording)
        walk_init(&relocation->record_walk, log, relocation->new_segment, false);
    relocation->recording = true;
    for (size_t bytes = 0; bytes < bytes_max;) {
        const struct change_head *copied;
        log_loc to;
        enum status status = walk_next(&relocation->record_walk, &copied, &to);
        if (status == ST_END) {
            *ret_all = true;
            return ST_OK;
        }
        TRY(status);
        size_t before = bytes;
        TRY(record_one(backend, relocation, copied, to, &bytes));
        yield_core(before, bytes);
    }
    *ret_all = false;
    return ST_OK;
}

enum status cleaner_resume(const struct log *log, struct backend *backend, struct index *index,
                           uint64_t old_segment, uint64_t new_segment)
{
    struct segment_walk walk;
    walk_init(&walk, log, new_segment, true);
    for (;;) {
        const struct change_head *copied;
        log_loc to;
        enum status status = walk_next(&walk, &copied, &to);
        if (status == ST_END)
            return ST_OK;
        TRY(status);
        struct backend_version version;
        status = find_version(backend, copied, old_segment, &version);
        if (status == ST_OK)
            (void)index_relocate(index, version.key, version.loc, to);
        else if (status != ST_NOT_FOUND)
            return status;
    }
}
