#include "store/log/log.h"

#include "base/yield_point.h"
#include "store/log/log_private.h"

#include <stdlib.h>

enum status log_failed(const struct log *log)
{
    return (enum status)atomic_load_explicit(&log->failed, memory_order_relaxed);
}

/* Keeps the first failure, and the file that is concerned. */
static enum status log_fail(struct log *log, enum status status, const char *doing,
                            const struct segment *segment)
{
    LOCK_SCOPE(&log->lock);
    int none = ST_OK;
    /* After a failed sync it is unknown what is on the disk, so the first failure is final: neither
     * a retry nor a later success may hide it. */
    if (atomic_compare_exchange_strong(&log->failed, &none, (int)status)) {
        log->failed_doing = doing;
        log->failed_id = segment->head.id;
    }
    return status;
}

/* -- Making and removing segments -- */

uint32_t log_salt_for(const struct log *log, uint64_t id)
{
    uint64_t mixed = log->salt ^ (id * 0x9e3779b97f4a7c15u);
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    return (uint32_t)(mixed ^ (mixed >> 31));
}

void log_note_capacity(struct log *log, uint64_t capacity)
{
    uint64_t next = capacity < log->segment_bytes_max / 2 ? capacity * 2 : log->segment_bytes_max;
    if (next > atomic_load(&log->next_capacity))
        atomic_store(&log->next_capacity, next);
}

bool log_has_space(const struct log *log, uint64_t capacity)
{
    uint64_t bytes;
    enum status status = fs_space(log->fs, log->dir, &bytes);
    /* A quarter is spared for the checkpoint and the cleaner's copies. */
    return status != ST_OK || bytes >= capacity + capacity / 4;
}

enum status log_new_head(struct log *log, uint64_t capacity, uint64_t capacity_min,
                         struct segment_head *ret_head)
{
    while (!log_has_space(log, capacity)) {
        if (capacity <= capacity_min)
            return ST_DISK_FULL;
        /* On a disk that is nearly full a smaller segment still lets the server continue for a
         * while. */
        capacity = align_up(capacity / 2, RECORD_ALIGN);
        capacity = capacity < capacity_min ? capacity_min : capacity;
    }
    uint64_t id = atomic_fetch_add(&log->next_id, 1);
    if (id > SEGMENT_ID_MAX || capacity > (uint64_t)1 << LOG_OFFSET_BITS)
        return ST_LIMIT;
    *ret_head = (struct segment_head){
        .id = id,
        .capacity = capacity,
        .salt = log_salt_for(log, id),
    };
    return ST_OK;
}

enum status log_add_segment(struct log *log, struct segment *segment)
{
    uint64_t id = segment->head.id;
    enum status status = segment_publish(log->fs, log->dir, id, !log->unsynced);
    if (status == ST_OK) {
        LOCK_SCOPE(&log->lock);
        status = segment_table_put(&log->table, id, segment);
    }
    /* The file may have its name already, and would be found at the next start. */
    if (status != ST_OK) {
        segment_discard(log->fs, log->dir, id);
        return status;
    }
    log_note_capacity(log, segment->file_bytes);
    return ST_OK;
}

enum status log_new_segment(struct log *log, uint64_t capacity, uint64_t capacity_min,
                            struct segment **ret_segment)
{
    struct segment_head head;
    TRY(log_new_head(log, capacity, capacity_min, &head));
    AUTO(segment_freep) struct segment *segment = NULL;
    TRY(segment_create(log->fs, log->dir, &head, !log->unsynced, &segment));
    TRY(log_add_segment(log, segment));
    *ret_segment = TAKE(segment);
    return ST_OK;
}

enum status log_remove_segment(struct log *log, struct segment *segment)
{
    uint64_t id = segment->head.id;
    {
        LOCK_SCOPE(&log->lock);
        TRY(segment_table_put(&log->table, id, NULL));
    }
    segment_free(segment);
    struct segment_path path = segment_path(log->dir, id, ".seg");
    return fs_unlink(log->fs, path.text);
}

enum status log_offer(struct log *log, struct segment *segment)
{
    struct segment *none = NULL;
    if (atomic_compare_exchange_strong(&log->waiting, &none, segment))
        return ST_OK;
    /* One segment in reserve is enough. */
    return log_remove_segment(log, segment);
}

bool log_is_marked(const struct log *log)
{
    return log->unsynced || log->mark.index == log_durable_index(log);
}

enum status log_mark(struct log *log)
{
    TRY(log_failed(log));
    struct mark mark = log->mark;
    mark.index = log_durable_index(log);
    if (log_is_marked(log))
        return ST_OK;
    TRY(mark_write(log->fs, log->dir, &mark));
    log->mark = mark;
    return ST_OK;
}

/* -- Opening and closing -- */

static enum status log_make(const struct log_options *options, struct log **ret_log)
{
    AUTO(log_closep) struct log *log = calloc(1, sizeof(*log));
    if (!log)
        return ST_NOMEM;
    if (strlen(options->dir) > SEGMENT_DIR_MAX)
        return ST_LIMIT;
    log->fs = options->fs;
    log->unsynced = options->unsynced;
    log->salt = options->salt;
    log->segment_bytes_first = align_up(options->segment_bytes_first, RECORD_ALIGN);
    log->segment_bytes_max = align_up(options->segment_bytes_max, RECORD_ALIGN);
    lock_init(&log->lock);
    atomic_init(&log->next_id, 1);
    atomic_init(&log->next_capacity, align_up(options->segment_bytes_first, RECORD_ALIGN));
    TRY(segment_table_init(&log->table));
    log->dir = strdup(options->dir);
    if (!log->dir)
        return ST_NOMEM;
    *ret_log = TAKE(log);
    return ST_OK;
}

enum status log_new(const struct log_options *options, struct log **ret_log,
                    struct error *ret_error)
{
    assert(options->segment_bytes_first > SEGMENT_RECORDS_OFFSET);
    assert(options->segment_bytes_first <= options->segment_bytes_max);

    enum status status = log_make(options, ret_log);
    if (status != ST_OK)
        return error_set(ret_error, status, "%s: %s", options->dir, status_reason(status));
    return ST_OK;
}

enum status log_open(const struct log_options *options, uint64_t after_index,
                     const uint64_t *listed, size_t listed_count, log_replay_fn replay, void *ctx,
                     struct log **ret_log, struct error *ret_error)
{
    AUTO(log_closep) struct log *log = NULL;
    TRY(log_new(options, &log, ret_error));
    TRY(log_recover(log, after_index, listed, listed_count, replay, ctx, ret_error));
    *ret_log = TAKE(log);
    return ST_OK;
}

struct log_cut log_cut(const struct log *log)
{
    return log->cut;
}

static void free_all(struct segment_order *order)
{
    for (size_t i = 0; i < order->count; i++)
        segment_free(order->items[i]);
    segment_order_fini(order);
}

void log_close(struct log *log)
{
    if (!log)
        return;
    group_fini(&log->group);
    log_sweep(log);
    assert(!atomic_load(&log->forgotten)); /* no hold is left */
    segment_draft_drop(log->fs, log->dir, &log->draft);
    segment_free(log->upcoming);
    while (log->replaced) {
        struct segment *next = log->replaced->next_left;
        segment_free(log->replaced);
        log->replaced = next;
    }
    segment_free(atomic_load(&log->waiting));
    free_all(&log->order);
    free_all(&log->retired);
    segment_table_fini(&log->table);
    lock_fini(&log->lock);
    free(log->dir);
    free(log);
}

/* -- Appending -- */

#define TO(state) (1u << LOG_##state)

/* Drawn in log_private.h. */
static const unsigned append_moves[] = {
    [LOG_IDLE] = TO(RESERVED) | TO(IDLE),
    [LOG_RESERVED] = TO(RESERVED) | TO(BUILDING) | TO(IDLE),
    [LOG_BUILDING] = TO(IDLE),
};

static void append_move(struct log *log, enum log_append next)
{
    assert(append_moves[log->append] & (1u << next));
    log->append = next;
}

static bool segment_has_room(const struct segment *segment, uint64_t offset, size_t bytes)
{
    return bytes <= segment->head.capacity - offset;
}

static uint64_t segment_bytes_for(size_t record_bytes)
{
    enum { GRAIN = 4096 };
    return align_up(SEGMENT_RECORDS_OFFSET + record_bytes + SEGMENT_TWIN_BYTES, GRAIN);
}

/* Finds the segment after the current one: the one that the keeper has prepared, or a new one. */
static enum status find_upcoming(struct log *log, size_t bytes)
{
    if (log->upcoming && segment_has_room(log->upcoming, SEGMENT_RECORDS_OFFSET, bytes))
        return ST_OK;
    {
        /* Adding it to the order later must not fail. */
        LOCK_SCOPE(&log->lock);
        TRY(segment_order_reserve(&log->order));
    }
    /* The prepared segment is too small for this record, and is kept for later ones. */
    if (log->upcoming)
        TRY(log_offer(log, TAKE(log->upcoming)));
    struct segment *waiting = atomic_exchange(&log->waiting, NULL);
    if (waiting && segment_has_room(waiting, SEGMENT_RECORDS_OFFSET, bytes)) {
        log->upcoming = waiting;
        return ST_OK;
    }
    if (waiting)
        TRY(log_offer(log, waiting));
    uint64_t needed = segment_bytes_for(bytes);
    uint64_t capacity = atomic_load(&log->next_capacity);
    uint64_t least = needed > log->segment_bytes_first ? needed : log->segment_bytes_first;
    return log_new_segment(log, needed > capacity ? needed : capacity, least, &log->upcoming);
}

/*
 * The current segment has no record yet and is too small for the first one: a larger segment takes
 * its id and name. A sealed segment always has a record, and the previous one may already name this
 * one.
 */
static enum status enlarge_current(struct log *log, size_t bytes)
{
    struct segment *old = log->current;
    assert(log->append_offset == SEGMENT_RECORDS_OFFSET);
    struct segment_head head = old->head;
    head.capacity = segment_bytes_for(bytes);
    if (!log_has_space(log, head.capacity))
        return ST_DISK_FULL;
    AUTO(segment_freep) struct segment *segment = NULL;
    TRY(segment_create(log->fs, log->dir, &head, !log->unsynced, &segment));
    /* After a failure it is unknown which of the two files has the name. */
    enum status status = segment_publish(log->fs, log->dir, head.id, !log->unsynced);
    if (status != ST_OK)
        return log_fail(log, status, "renaming", segment);
    segment->first_index = old->first_index;
    atomic_store(&segment->last_index, atomic_load(&old->last_index));
    /* Readers may have found it in the table, so it is freed only when the log is closed. */
    old->next_left = log->replaced;
    log->replaced = old;
    log->current = TAKE(segment);
    LOCK_SCOPE(&log->lock);
    log->order.items[segment_order_find(&log->order, head.id)] = log->current;
    return segment_table_put(&log->table, head.id, log->current);
}

bool log_is_kept(uint64_t capacity, uint64_t used)
{
    enum { KEPT_BYTES_MAX = 256 << 10 };
    return capacity - used < (capacity / 8 < KEPT_BYTES_MAX ? capacity / 8 : KEPT_BYTES_MAX);
}

bool log_is_short(const struct log *log)
{
    if (log->upcoming || atomic_load_explicit(&log->waiting, memory_order_relaxed))
        return false;
    return log_is_kept(log->current->head.capacity, log->append_offset) &&
           !log_has_space(log, log->segment_bytes_first);
}

bool log_lacks_next(const struct log *log)
{
    return !atomic_load_explicit(&log->waiting, memory_order_relaxed) && log_failed(log) == ST_OK;
}

bool log_wants_prepare(const struct log *log)
{
    return (log_lacks_next(log) && !atomic_load_explicit(&log->drafting, memory_order_relaxed)) ||
           atomic_load_explicit(&log->forgotten, memory_order_relaxed);
}

enum status log_reserve(struct log *log, size_t body_bytes)
{
    assert(log->append != LOG_BUILDING);
    TRY(log_failed(log));
    if (body_bytes > RECORD_BODY_BYTES_MAX)
        return ST_LIMIT;
    size_t bytes = record_bytes(body_bytes);
    if (log->append_offset == SEGMENT_RECORDS_OFFSET &&
        !segment_has_room(log->current, log->append_offset, bytes))
        TRY(enlarge_current(log, bytes));
    struct segment *segment = log->current;
    uint64_t offset = log->append_offset;
    if (!segment_has_room(segment, offset, bytes)) {
        TRY(find_upcoming(log, bytes));
        segment = log->upcoming;
        offset = SEGMENT_RECORDS_OFFSET;
    }
    /* Everything that can fail happens here. From now on the record can be built and appended
     * without an error. */
    TRY(group_reserve(&log->group, segment, offset, bytes));
    log->reserved_bytes = body_bytes;
    append_move(log, LOG_RESERVED);
    return ST_OK;
}

uint8_t *log_append_begin(struct log *log, log_loc *ret_body_loc)
{
    append_move(log, LOG_BUILDING);
    struct group_block *block = log->group.last;
    assert(block);
    assert(block->segment == log->current || block->segment == log->upcoming);
    *ret_body_loc =
        log_loc_of(block->segment->head.id, block->offset + block->len + RECORD_HEAD_BYTES);
    return block->bytes + block->len + RECORD_HEAD_BYTES;
}

/* The record is in the upcoming segment, which becomes the current one. */
static void enter_upcoming(struct log *log)
{
    struct segment *old = log->current, *next = TAKE(log->upcoming);
    old->next_id = next->head.id;
    /* The segment is sealed when its last records are written (write_all). */
    old->next_left = log->left;
    log->left = old;
    next->first_index = log->last_index + 1;
    atomic_store(&next->last_index, log->last_index);
    LOCK_SCOPE(&log->lock);
    segment_order_add(&log->order, next);
    log->current = next;
}

static void note_revision(int64_t *first, int64_t *last, int64_t revision)
{
    if (!revision)
        return;
    if (!*first)
        *first = revision;
    *last = revision;
}

uint64_t log_append_end(struct log *log, uint8_t type, int64_t revision, size_t body_bytes)
{
    assert(log->append == LOG_BUILDING);
    assert(body_bytes <= log->reserved_bytes);
    struct group_block *block = log->group.last;
    if (block->segment != log->current) {
        assert(block->segment == log->upcoming);
        enter_upcoming(log);
    }

    uint64_t index = ++log->last_index;
    uint64_t durable = atomic_load_explicit(&log->durable_index, memory_order_relaxed);
    struct record_head head = {
        .len = (uint32_t)(RECORD_HEAD_BYTES + body_bytes),
        .index = index,
        .revision = revision,
        .behind = record_behind(index, durable),
        .type = type,
    };
    uint8_t *at = block->bytes + block->len;
    size_t bytes = record_bytes(body_bytes);
    assert(bytes <= block->capacity - block->len);
    memcpy(at, &head, sizeof(head));
    /* The padding is defined, so that the file does not contain bytes of other memory. */
    memset(at + head.len, 0, bytes - head.len);
    record_finish(at, block->segment->head.salt);

    block->len += bytes;
    block->last_index = index;
    note_revision(&block->first_revision, &block->last_revision, revision);
    log->group.pending_bytes += bytes;
    log->append_offset = block->offset + block->len;
    assert(log->append_offset <= log->current->head.capacity);
    append_move(log, LOG_IDLE);
    return index;
}

void log_append_abort(struct log *log)
{
    assert(log->append != LOG_IDLE);
    append_move(log, LOG_IDLE);
}

size_t log_pending_bytes(const struct log *log)
{
    return log->group.pending_bytes;
}

uint64_t log_last_index(const struct log *log)
{
    return log->last_index;
}

/* -- Writing and syncing -- */

static void mark_dirty(struct log *log, struct segment *segment)
{
    if (log->unsynced || atomic_exchange(&segment->dirty, true))
        return;
    struct segment *head = atomic_load(&log->dirty);
    do
        segment->next_dirty = head;
    while (!atomic_compare_exchange_weak(&log->dirty, &head, segment));
}

/*
 * A block that is much longer than usual, such as a delete of a million keys, is written in pieces
 * that are synced one by one. One sync of the whole would take long, and the writer would serve no
 * requests meanwhile.
 */
static enum status write_pieces(const struct log *log, struct segment *segment,
                                const struct group_block *block)
{
    for (size_t at = 0; at < block->len;) {
        size_t bytes = size_min(block->len - at, SEGMENT_PIECE_BYTES);
        TRY(file_pwrite(segment->file, slice_of(block->bytes + at, bytes), block->offset + at));
        at += bytes;
        if (at == block->len)
            break;
        if (!log->unsynced)
            TRY(file_sync(segment->file));
        yield_point_pass(YIELD_POINT_WORK);
    }
    return ST_OK;
}

static enum status write_block(struct log *log, const struct group_block *block)
{
    if (!block->len)
        return ST_OK;
    struct segment *segment = block->segment;
    TRY(write_pieces(log, segment, block));
    int64_t first = atomic_load(&segment->first_revision);
    int64_t last = atomic_load(&segment->last_revision);
    note_revision(&first, &last, block->first_revision);
    note_revision(&first, &last, block->last_revision);
    atomic_store(&segment->first_revision, first);
    atomic_store(&segment->last_revision, last);
    atomic_store(&segment->last_index, block->last_index);
    /* Readers on other threads look only at what is below this offset, which is published after the
     * bytes. */
    atomic_store_explicit(&segment->written, block->offset + block->len, memory_order_release);
    mark_dirty(log, segment);
    return ST_OK;
}

static enum status write_seal(struct log *log, struct segment *segment)
{
    assert(segment->next_id);
    struct segment_seal seal = segment_seal_of(segment);
    TRY(file_pwrite(segment->file, slice_of(&seal, sizeof(seal)), SEGMENT_SEAL_OFFSET));
    mark_dirty(log, segment);
    atomic_store(&segment->full, true);
    return ST_OK;
}

static enum status write_all(struct log *log)
{
    while (log->group.first) {
        TRY(write_block(log, log->group.first));
        group_pop(&log->group);
    }
    /* A seal promises all records of its segment, so it follows them. */
    while (log->left) {
        TRY(write_seal(log, log->left));
        log->left = log->left->next_left;
    }
    return ST_OK;
}

enum status log_write(struct log *log)
{
    assert(log->append != LOG_BUILDING);
    TRY(log_failed(log));
    append_move(log, LOG_IDLE);
    enum status status = write_all(log);
    if (status != ST_OK)
        return log_fail(log, status, "writing",
                        log->group.first ? log->group.first->segment : log->left);
    assert(log->group.pending_bytes == 0);
    assert(!log->left);
    atomic_store_explicit(&log->written_index, log->last_index, memory_order_release);
    return ST_OK;
}

enum status log_sync(struct log *log)
{
    TRY(log_failed(log));
    /*
     * The order matters: a segment written up to this index is in the list, or is synced already.
     */
    uint64_t index = atomic_load_explicit(&log->written_index, memory_order_acquire);
    struct segment *segment = atomic_exchange(&log->dirty, NULL);
    while (segment) {
        struct segment *next = segment->next_dirty;
        /* Cleared before the sync: what the writer adds meanwhile puts the segment back into the
         * list. */
        atomic_store(&segment->dirty, false);
        enum status status = file_sync(segment->file);
        if (status != ST_OK)
            return log_fail(log, status, "syncing", segment);
        segment = next;
    }
    atomic_store_explicit(&log->durable_index, index, memory_order_release);
    return ST_OK;
}

static enum status sync_order(const struct segment_order *order)
{
    for (size_t i = 0; i < order->count; i++)
        TRY(file_sync(order->items[i]->file));
    return ST_OK;
}

enum status log_sync_all(struct log *log)
{
    TRY(log_failed(log));
    struct segment *const unused[] = {atomic_load(&log->waiting), log->upcoming};
    for (size_t i = 0; i < COUNT_OF(unused); i++)
        if (unused[i])
            TRY(file_sync(unused[i]->file));
    TRY(sync_order(&log->retired));
    TRY(sync_order(&log->order));
    return fs_sync_dir(log->fs, log->dir);
}

uint64_t log_durable_index(const struct log *log)
{
    return atomic_load_explicit(&log->durable_index, memory_order_acquire);
}

/* -- Reading -- */

struct slice log_rest_at(const struct log *log, log_loc loc)
{
    const struct segment *segment = segment_table_get(&log->table, log_loc_segment(loc));
    uint64_t offset = log_loc_offset(loc);
    if (UNLIKELY(!segment))
        return SLICE_EMPTY;
    uint64_t written = atomic_load_explicit(&segment->written, memory_order_relaxed);
    if (LIKELY(offset < written))
        return slice_of(segment->base + offset, written - offset);
    /* The record was appended but not written yet. */
    return group_rest_at(&log->group, segment, offset);
}

const uint8_t *log_mapped_at(const struct log *log, log_loc loc)
{
    const struct segment *segment = segment_table_get(&log->table, log_loc_segment(loc));
    assert(segment);
    return segment->base + log_loc_offset(loc);
}

static struct log_segment_info info_of(const struct segment *segment)
{
    return (struct log_segment_info){
        .id = segment->head.id,
        .first_index = segment->first_index,
        .last_index = atomic_load(&segment->last_index),
        .first_revision = atomic_load(&segment->first_revision),
        .last_revision = atomic_load(&segment->last_revision),
        .used_bytes = atomic_load(&segment->written),
        .full = atomic_load(&segment->full),
        .damaged = atomic_load(&segment->damaged),
    };
}

size_t log_segments(const struct log *log, struct log_segment_info *ret_infos, size_t max)
{
    LOCK_SCOPE((struct lock *)&log->lock);
    for (size_t i = 0; i < log->order.count && i < max; i++)
        ret_infos[i] = info_of(log->order.items[i]);
    return log->order.count;
}

/* -- Checking -- */

static void check_segment(const struct log *log, const struct segment *segment)
{
    assert(segment_table_get(&log->table, segment->head.id) == segment);
    assert(atomic_load(&segment->last_index) + 1 >= segment->first_index);
    assert(atomic_load(&segment->written) <= segment->head.capacity);
}

void log_check(const struct log *log)
{
    LOCK_SCOPE((struct lock *)&log->lock);
    const struct segment_order *order = &log->order;
    assert(order->count > 0);
    assert(order->items[order->count - 1] == log->current);
    for (size_t i = 0; i < order->count; i++) {
        check_segment(log, order->items[i]);
        assert(i == 0 || order->items[i - 1]->first_index <= order->items[i]->first_index);
    }
    for (size_t i = 0; i < log->retired.count; i++)
        check_segment(log, log->retired.items[i]);
    assert(log->append_offset >= SEGMENT_RECORDS_OFFSET);
    assert(log->append_offset <= log->current->head.capacity);
    assert(atomic_load(&log->durable_index) <= atomic_load(&log->written_index));
    assert(atomic_load(&log->written_index) <= log->last_index);
    assert(log->mark.index <= log->last_index);
}
