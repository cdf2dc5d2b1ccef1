/*
 * Recovering a log from its files.
 *
 *   old segments   entirely before the checkpoint's index: known from their seals, not read
 *   chain          from the segment with the checkpoint's index on, each naming the next in its
 *                  seal: every record is checked and replayed
 *   stop           the first place in the chain without a good record that has the next index
 *   beyond         everything after the stop, in the same file and in others
 *
 *   read_mark ─► find_files ─► open_files ─► place_old ─► read_chain ─► recovery_judge
 *                    │                                                    │         │
 *                    │ no files: a new log                     unfinished │         │ damage
 *                    ▼                                              write ▼         ▼
 *               begin_first                                 recovery_settle       refused
 *                    │                                              │        (or vigil repair)
 *                    └────────────────► ready ◄─────────────────────┘
 *
 * recover_stop.c has recovery_judge, which decides what the stop means, and recovery_settle, which
 * cuts off the tail. Until recovery_settle nothing but temporary files and files that the cleaner
 * has left over is changed.
 */
#include "store/log/recover_private.h"

#include <stdlib.h>

void recovery_fini(struct recovery *r)
{
    for (size_t i = 0; i < r->found.count; i++)
        segment_free(r->found.items[i]);
    segment_order_fini(&r->found);
    free(r->ids);
    free(r->temporary_ids);
    free(r->unreadable_ids);
    free(r->spare_ids);
}

/* -- Reporting what is wrong -- */

enum status recovery_fail_file(struct recovery *r, enum status status, uint64_t id,
                               const char *what)
{
    return error_set(r->error, status, SEGMENT_NAME ": %s", r->log->dir, id, what);
}

enum status recovery_fail_damaged(struct recovery *r, uint64_t id, uint64_t offset,
                                  const char *what)
{
    return error_set(r->error, ST_DAMAGED,
                     SEGMENT_NAME ", offset %" PRIu64 ": %s; nothing was changed", r->log->dir, id,
                     offset, what);
}

static enum status fail_whole(struct recovery *r, uint64_t id, const char *what)
{
    return error_set(r->error, ST_DAMAGED, SEGMENT_NAME " %s", r->log->dir, id, what);
}

/* The rest of its records can be read once the file has its old length. */
static enum status fail_length(struct recovery *r, uint64_t id, uint64_t bytes)
{
    return error_set(r->error, ST_DAMAGED,
                     SEGMENT_NAME
                     ", offset 0: its length is wrong; nothing was changed. Set its length first: "
                     "truncate -s %" PRIu64 " " SEGMENT_NAME,
                     r->log->dir, id, bytes, r->log->dir, id);
}

/* -- The mark -- */

static enum status read_mark(struct recovery *r)
{
    struct log *log = r->log;
    enum status status = mark_read(log->fs, log->dir, &r->mark);
    if (status == ST_NOT_FOUND)
        return ST_OK; /* a new log, or one written by an older version */
    if (status == ST_WRONG_FORMAT)
        return error_set(r->error, status,
                         "%s/" MARK_FILE_NAME ": was written by another version of this program",
                         log->dir);
    if (status == ST_DAMAGED && r->repair) {
        r->repaired.mark = r->repaired.damaged = true;
        return ST_OK;
    }
    if (status != ST_OK)
        return error_set(r->error, status,
                         "%s/" MARK_FILE_NAME ": %s, so it is not known how far the log was "
                         "durable; nothing was changed",
                         log->dir, status_reason(status));
    r->claimed = r->mark.index;
    return ST_OK;
}

/* -- Finding the files -- */

static void push_id(struct recovery *r, uint64_t **ids, size_t *count, size_t *capacity,
                    uint64_t id)
{
    if (*count == *capacity) {
        size_t more = *capacity ? *capacity * 2 : 64;
        uint64_t *grown = realloc(*ids, more * sizeof(*grown));
        if (!grown) {
            r->nomem = true;
            return;
        }
        *ids = grown;
        *capacity = more;
    }
    (*ids)[(*count)++] = id;
}

static void see_name(void *ctx, const char *name)
{
    struct recovery *r = ctx;
    uint64_t id;
    if (segment_name_parse(name, ".seg", &id))
        push_id(r, &r->ids, &r->id_count, &r->id_capacity, id);
    else if (segment_name_parse(name, ".tmp", &id))
        push_id(r, &r->temporary_ids, &r->temporary_count, &r->temporary_capacity, id);
}

static enum status find_files(struct recovery *r)
{
    struct log *log = r->log;
    enum status status = fs_list(log->fs, log->dir, see_name, r);
    if (status == ST_OK && r->nomem)
        status = ST_NOMEM;
    if (status != ST_OK)
        return error_set(r->error, status, "%s: the directory cannot be read: %s", log->dir,
                         status_reason(status));
    for (size_t i = 0; i < r->temporary_count && !recovery_is_dry_run(r); i++) {
        struct segment_path path = segment_path(log->dir, r->temporary_ids[i], ".tmp");
        status = fs_unlink(log->fs, path.text);
        if (status != ST_OK)
            return error_set(r->error, status, "%s: cannot be removed: %s", path.text,
                             status_reason(status));
    }
    return ST_OK;
}

/* -- Opening them -- */

static bool is_listed(const struct recovery *r, uint64_t id)
{
    for (size_t i = 0; i < r->listed_count; i++) {
        if (r->listed[i] == id)
            return true;
    }
    return false;
}

/* Sets the fields from the seal or the first record. first_index stays 0 if there is neither. */
static enum status learn_contents(struct recovery *r, struct segment *segment)
{
    struct segment_seal seal = segment_seal_read(segment);
    enum status status = segment_seal_check(&seal, &segment->head);
    bool rewritten = segment->head.flags & SEGMENT_REWRITTEN;
    if (status == ST_OK) {
        segment_apply_seal(segment, &seal);
        return ST_OK;
    }
    segment->seal_lost = status == ST_DAMAGED;
    if ((status == ST_DAMAGED && !r->repair) || rewritten)
        return recovery_fail_damaged(r, segment->head.id, SEGMENT_SEAL_OFFSET,
                                     "the seal is damaged");
    struct slice records = slice_of(segment->base + SEGMENT_RECORDS_OFFSET,
                                    segment->head.capacity - SEGMENT_RECORDS_OFFSET);
    struct record_head first;
    if (record_check(records, segment->head.salt, &first) == RECORD_GOOD)
        segment->first_index = first.index;
    else if (is_listed(r, segment->head.id) &&
             !recovery_knows_first_index(r, segment->head.id, &segment->first_index))
        return recovery_fail_damaged(
            r, segment->head.id, SEGMENT_RECORDS_OFFSET,
            "the record is damaged, and the checkpoint says that it was durable");
    return ST_OK;
}

/*
 * Whether the file has neither a seal nor a record, whatever its head says. Records are written
 * from the beginning, so that what a file has lost at its end had none either: it was made ahead of
 * use.
 */
static bool has_only_zeros(const struct log *log, uint64_t id)
{
    enum { PIECE_BYTES = 64 << 10 };
    static const uint8_t zeros[PIECE_BYTES];
    struct segment_path path = segment_path(log->dir, id, ".seg");
    AUTO(file_closep) struct file *file = NULL;
    uint64_t bytes;
    if (fs_open(log->fs, path.text, FILE_READ_ONLY, &file) != ST_OK ||
        file_size(file, &bytes) != ST_OK || bytes < SEGMENT_RECORDS_OFFSET + RECORD_HEAD_BYTES)
        return false;
    if (bytes >= SEGMENT_TWIN_FROM)
        bytes -= SEGMENT_TWIN_BYTES; /* the second copy of the head may be damaged, too */
    uint8_t *piece = malloc(PIECE_BYTES);
    bool only_zeros = piece;
    for (uint64_t at = SEGMENT_SEAL_OFFSET; only_zeros && at < bytes; at += PIECE_BYTES) {
        size_t len = size_min(PIECE_BYTES, bytes - at);
        only_zeros = file_pread(file, piece, len, at) == ST_OK && memcmp(piece, zeros, len) == 0;
    }
    free(piece);
    return only_zeros;
}

static void reserve_id(struct log *log, uint64_t id)
{
    if (atomic_load(&log->next_id) <= id)
        atomic_store(&log->next_id, id + 1);
}

static enum status open_one(struct recovery *r, uint64_t id)
{
    struct log *log = r->log;
    if (id == 0 || id > SEGMENT_ID_MAX)
        return recovery_fail_file(r, ST_DAMAGED, id, "is not the name of a segment");
    AUTO(segment_freep) struct segment *segment = NULL;
    enum status status = segment_open(log->fs, log->dir, id, &segment);
    /* The log does without it, and refuses the start if it turns out that it cannot. */
    if (status == ST_DAMAGED && id > 1 && !is_listed(r, id) && has_only_zeros(log, id)) {
        reserve_id(log, id);
        push_id(r, &r->spare_ids, &r->spare_count, &r->spare_capacity, id);
        return r->nomem ? recovery_fail_file(r, ST_NOMEM, id, status_reason(ST_NOMEM)) : ST_OK;
    }
    uint64_t length = status == ST_DAMAGED ? segment_lost_length(log->fs, log->dir, id) : 0;
    if (length)
        return fail_length(r, id, length);
    if (status == ST_DAMAGED && r->repair) {
        status = segment_open_mended(log->fs, log->dir, id, r->repair->accept, &segment);
        r->repaired.heads += status == ST_OK;
        r->repaired.damaged |= status == ST_OK;
    }
    if (status == ST_DAMAGED && r->repair && !is_listed(r, id)) {
        r->repaired.segments++;
        r->repaired.damaged = true;
        push_id(r, &r->unreadable_ids, &r->unreadable_count, &r->unreadable_capacity, id);
        return r->nomem ? recovery_fail_file(r, ST_NOMEM, id, status_reason(ST_NOMEM)) : ST_OK;
    }
    if (status == ST_DAMAGED)
        return recovery_fail_damaged(r, id, 0, "the head of the segment is damaged or cut off");
    if (status == ST_WRONG_FORMAT)
        return recovery_fail_file(r, status, id, "was written by another version of this program");
    if (status != ST_OK)
        return recovery_fail_file(r, status, id, status_reason(status));
    log->heads_mended += segment->head_mended;
    TRY(learn_contents(r, segment));
    reserve_id(log, id);
    status = segment_order_reserve(&r->found);
    if (status != ST_OK)
        return recovery_fail_file(r, status, id, status_reason(status));
    segment_order_add(&r->found, TAKE(segment));
    return ST_OK;
}

enum status recovery_remove_found(struct recovery *r, size_t at)
{
    struct segment *segment = segment_order_remove(&r->found, at);
    uint64_t id = segment->head.id;
    if (recovery_is_dry_run(r)) {
        segment_free(segment);
        return ST_OK;
    }
    enum status status = log_remove_segment(r->log, segment);
    if (status != ST_OK)
        return recovery_fail_file(r, status, id, "cannot be removed");
    return ST_OK;
}

static bool is_left_over(const struct recovery *r, const struct segment *segment)
{
    if (is_listed(r, segment->head.id))
        return false;
    return (segment->head.flags & SEGMENT_REWRITTEN) ||
           (segment->first_index && segment->first_index <= r->after_index);
}

static enum status open_files(struct recovery *r)
{
    for (size_t i = 0; i < r->id_count; i++)
        TRY(open_one(r, r->ids[i]));
    for (size_t i = 0; i < r->listed_count; i++) {
        if (segment_order_find(&r->found, r->listed[i]) == r->found.count)
            return fail_whole(r, r->listed[i], "is missing, and the checkpoint needs it");
        reserve_id(r->log, r->listed[i]);
    }
    for (size_t i = r->found.count; i-- > 0;) {
        const struct segment *segment = r->found.items[i];
        if (!r->after_index && (segment->head.flags & SEGMENT_REWRITTEN))
            return fail_whole(r, segment->head.id,
                              "was cleaned, so there was a checkpoint, which is missing now");
        if (is_left_over(r, segment))
            TRY(recovery_remove_found(r, i));
    }
    if (r->repair)
        recovery_mend_seals(r);
    return ST_OK;
}

/* -- Placing the segments, and reading the chain -- */

/* Moves a found segment to the log's order. Its first index is known. */
static enum status place(struct recovery *r, size_t at)
{
    struct log *log = r->log;
    struct segment *segment = r->found.items[at];
    LOCK_SCOPE(&log->lock);
    enum status status = segment_order_reserve(&log->order);
    if (status == ST_OK)
        status = segment_table_put(&log->table, segment->head.id, segment);
    if (status != ST_OK)
        return recovery_fail_file(r, status, segment->head.id, status_reason(status));
    segment_order_add(&log->order, segment_order_remove(&r->found, at));
    log_note_capacity(log, segment->file_bytes);
    return ST_OK;
}

/* The result of scanning a segment. */
struct scanned {
    uint64_t offset; /* where the scan ended */
    int64_t first_revision, last_revision;
};

static enum status replay_one(struct recovery *r, const struct segment *segment, uint64_t offset,
                              const struct record_head *head)
{
    if (head->index <= r->after_index || !r->replay)
        return ST_OK;
    struct log_record record;
    log_record_from(segment, offset, head, &record);
    enum status status = r->replay(r->ctx, &record);
    if (status != ST_OK)
        return error_set(r->error, status,
                         SEGMENT_NAME ", offset %" PRIu64 ": the record cannot be applied: %s",
                         r->log->dir, segment->head.id, offset, status_reason(status));
    return ST_OK;
}

/* Reads records as long as they have the next index. */
static enum status scan_good(struct recovery *r, const struct segment *segment,
                             struct scanned *scanned)
{
    const uint64_t capacity = segment->head.capacity;
    struct record_head head;
    while (record_check(slice_of(segment->base + scanned->offset, capacity - scanned->offset),
                        segment->head.salt, &head) == RECORD_GOOD &&
           head.index == r->expected) {
        TRY(replay_one(r, segment, scanned->offset, &head));
        if (record_durable_index(&head) > r->claimed)
            r->claimed = record_durable_index(&head);
        if (head.revision) {
            scanned->first_revision =
                scanned->first_revision ? scanned->first_revision : head.revision;
            scanned->last_revision = head.revision;
        }
        r->expected++;
        scanned->offset += align_up(head.len, RECORD_ALIGN);
    }
    return ST_OK;
}

/* Checks and replays one segment's records from `expected` on; *ret_offset is where that ended. */
static enum status scan(struct recovery *r, struct segment *segment, uint64_t *ret_offset)
{
    struct scanned scanned = {.offset = SEGMENT_RECORDS_OFFSET};
    TRY(scan_good(r, segment, &scanned));
    if (recovery_pass(r, segment, &scanned.offset)) {
        int64_t passed = r->mark.passed.revision;
        if (passed > scanned.last_revision)
            scanned.last_revision = passed;
        TRY(scan_good(r, segment, &scanned));
    }
    atomic_store(&segment->last_index, r->expected - 1);
    atomic_store(&segment->first_revision, scanned.first_revision);
    atomic_store(&segment->last_revision, scanned.last_revision);
    *ret_offset = scanned.offset;
    return ST_OK;
}

/* Position of the next segment of the chain, or found.count. */
static size_t find_next(const struct recovery *r, const struct segment *before)
{
    size_t at = r->found.count;
    if (before && before->next_id)
        at = segment_order_find(&r->found, before->next_id);
    if (at < r->found.count || (before && atomic_load(&before->last_index) >= r->after_index))
        return at;
    /* The cleaner has removed what was in between: the segment being written has no record yet. */
    for (size_t i = 0; i < r->found.count; i++) {
        const struct segment *segment = r->found.items[i];
        if (!segment->first_index &&
            (at == r->found.count || segment->head.id < r->found.items[at]->head.id))
            at = i;
    }
    return at;
}

static enum status fail_missing(struct recovery *r, const struct segment *before)
{
    if (before && before->next_id && atomic_load(&before->last_index) >= r->after_index)
        return fail_whole(r, before->next_id, "is missing, and the segment before it names it");
    return error_set(r->error, ST_DAMAGED, "%s: the segment with record %" PRIu64 " is missing",
                     r->log->dir, r->expected);
}

/* Places the old segments; *ret_start is the last of them, where the chain begins. */
static enum status place_old(struct recovery *r, struct segment **ret_start)
{
    struct segment *start = NULL;
    for (;;) {
        size_t at = 0;
        while (at < r->found.count && !r->found.items[at]->first_index)
            at++;
        if (at == r->found.count || r->found.items[at]->first_index > r->after_index + 1)
            break;
        struct segment *segment = r->found.items[at];
        bool after_all = segment->first_index > r->after_index;
        if (start && !atomic_load(&start->full) && after_all)
            break; /* the writer's next segment; the seal of the previous one was not durable */
        if (start && start->first_index == segment->first_index)
            return recovery_fail_file(r, ST_DAMAGED, segment->head.id,
                                      "has the same records as another segment");
        if (start && !atomic_load(&start->full))
            return recovery_fail_damaged(r, start->head.id, SEGMENT_SEAL_OFFSET,
                                         "the seal is missing");
        TRY(place(r, at));
        start = segment;
    }
    *ret_start = start;
    return ST_OK;
}

/* *ret_whole: the segment was read, or need not be, up to the end that its seal states. */
static enum status read_segment(struct recovery *r, struct segment *segment, bool *ret_whole)
{
    bool sealed = atomic_load(&segment->full);
    uint64_t used = atomic_load(&segment->written);
    uint64_t last = atomic_load(&segment->last_index);
    if (sealed && last <= r->after_index) {
        r->expected = last + 1;
        *ret_whole = true;
        return ST_OK;
    }
    if (segment->head.flags & SEGMENT_REWRITTEN)
        return recovery_fail_damaged(r, segment->head.id, 0,
                                     "was rewritten before a checkpoint covered it");
    uint64_t offset = 0;
    TRY(scan(r, segment, &offset));
    atomic_store(&segment->written, offset);
    *ret_whole = sealed && offset == used && r->expected == last + 1;
    if (!*ret_whole) {
        atomic_store(&segment->full, false);
        segment->next_id = 0;
    }
    r->stop = segment;
    r->stop_offset = offset;
    return ST_OK;
}

static enum status read_chain(struct recovery *r, struct segment *segment)
{
    r->expected = segment ? segment->first_index : r->after_index + 1;
    for (;;) {
        if (segment) {
            bool whole = false;
            TRY(read_segment(r, segment, &whole));
            if (!whole)
                return ST_OK;
        }
        size_t at = find_next(r, segment);
        if (at == r->found.count)
            return recovery_ends_before_missing(r, segment) ? ST_OK : fail_missing(r, segment);
        if (r->expected <= r->after_index)
            r->expected = r->after_index + 1;
        segment = r->found.items[at];
        segment->first_index = r->expected;
        TRY(place(r, at));
    }
}

/* -- The whole recovery -- */

static enum status begin_first(struct recovery *r)
{
    struct log *log = r->log;
    struct segment *first;
    enum status status = segment_order_reserve(&log->order);
    if (status == ST_OK)
        status = log_new_segment(log, atomic_load(&log->next_capacity), log->segment_bytes_first,
                                 &first);
    if (status != ST_OK)
        return error_set(r->error, status, "%s: the first segment cannot be created: %s", log->dir,
                         status_reason(status));
    first->first_index = 1;
    segment_order_add(&log->order, first);
    r->stop = first;
    r->stop_offset = SEGMENT_RECORDS_OFFSET;
    r->expected = 1;
    return ST_OK;
}

/* Without a checkpoint the log must begin with segment 1, which is created before any other, and
 * that with record 1. */
static enum status check_first(struct recovery *r, const struct segment *start)
{
    size_t first = segment_order_find(&r->found, 1);
    if (r->after_index || start || (first < r->found.count && !r->found.items[first]->first_index))
        return ST_OK;
    r->expected = 1;
    return fail_missing(r, NULL);
}

static bool is_new(const struct recovery *r)
{
    return !r->id_count && !r->after_index && !r->mark.index;
}

enum status recovery_read(struct recovery *r)
{
    TRY(read_mark(r));
    TRY(find_files(r));
    if (is_new(r))
        return ST_OK;
    TRY(open_files(r));
    struct segment *start = NULL;
    TRY(place_old(r, &start));
    TRY(check_first(r, start));
    TRY(read_chain(r, start));
    return recovery_judge(r);
}

static enum status recover(struct recovery *r)
{
    TRY(recovery_read(r));
    TRY(is_new(r) ? begin_first(r) : recovery_settle(r));

    struct log *log = r->log;
    log->current = r->stop;
    log->append_offset = r->stop_offset;
    log->last_index = r->expected - 1;
    log->mark = r->mark;
    atomic_store(&log->written_index, log->last_index);
    atomic_store(&log->durable_index, log->last_index);
    return ST_OK;
}

enum status log_recover(struct log *log, uint64_t after_index, const uint64_t *listed,
                        size_t listed_count, log_replay_fn replay, void *ctx,
                        struct error *ret_error)
{
    struct recovery r = {
        .log = log,
        .after_index = after_index,
        .listed = listed,
        .listed_count = listed ? listed_count : 0,
        .replay = replay,
        .ctx = ctx,
        .error = ret_error,
    };
    enum status status = recover(&r);
    recovery_fini(&r);
    return status;
}
