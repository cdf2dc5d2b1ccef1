/*
 * Rewriting a segment: a new file with the records worth keeping. Belongs to the keeper. The file
 * has a temporary name until it is committed, so a crash leaves nothing to decide.
 */
#include "store/log/rewrite.h"

#include "base/buf.h"
#include "base/crc32c.h"
#include "store/log/log_private.h"

#include <stdlib.h>

enum { REWRITE_CHUNK_BYTES = 256 * 1024 };

struct log_rewrite {
    struct log *log;
    struct segment *old; /* in the log's order until the commit */
    struct segment_head head;
    struct file *file; /* owned; NULL before the first record */
    struct buf chunk;  /* records not yet written; begins at chunk_offset */
    uint64_t chunk_offset;
    uint64_t last_index; /* index of the last record added */
    /* The current record: the offset of its head, and how much of its body is still to come. */
    uint64_t record_offset;
    size_t record_left;
    uint32_t record_crc;
    int64_t first_revision, last_revision;
};

static struct segment *find_full(struct log *log, uint64_t id)
{
    LOCK_SCOPE(&log->lock);
    size_t at = segment_order_find(&log->order, id);
    if (at == log->order.count || !atomic_load(&log->order.items[at]->full))
        return NULL;
    return log->order.items[at];
}

enum status log_rewrite_begin(struct log *log, uint64_t old_id, struct log_rewrite **ret_rewrite)
{
    struct segment *old = find_full(log, old_id);
    if (!old)
        return ST_NOT_FOUND;
    /*
     * The seal is as durable as the next record. Until that is durable, the writer's sync may still
     * use the old segment.
     */
    if (atomic_load(&old->last_index) >= log_durable_index(log))
        return ST_AGAIN;
    AUTO(log_rewrite_abortp) struct log_rewrite *rewrite = calloc(1, sizeof(*rewrite));
    if (!rewrite)
        return ST_NOMEM;
    uint64_t id = atomic_fetch_add(&log->next_id, 1);
    if (id > SEGMENT_ID_MAX)
        return ST_LIMIT;
    rewrite->log = log;
    rewrite->old = old;
    rewrite->head = (struct segment_head){
        .id = id,
        .flags = SEGMENT_REWRITTEN,
        .first_index = old->first_index,
        .salt = log_salt_for(log, id),
    };
    rewrite->chunk_offset = SEGMENT_RECORDS_OFFSET;
    *ret_rewrite = TAKE(rewrite);
    return ST_OK;
}

static enum status flush(struct log_rewrite *rewrite)
{
    TRY(file_pwrite(rewrite->file, buf_slice(&rewrite->chunk), rewrite->chunk_offset));
    rewrite->chunk_offset += rewrite->chunk.len;
    buf_reset(&rewrite->chunk, REWRITE_CHUNK_BYTES * 2);
    return ST_OK;
}

static enum status check_room(const struct log_rewrite *rewrite, size_t body_bytes)
{
    if (body_bytes > RECORD_BODY_BYTES_MAX)
        return ST_LIMIT;
    uint64_t offset = rewrite->chunk_offset + rewrite->chunk.len;
    return record_bytes(body_bytes) > ((uint64_t)1 << LOG_OFFSET_BITS) - offset ? ST_LIMIT : ST_OK;
}

static void note_record(struct log_rewrite *rewrite, const struct log_record *like)
{
    rewrite->last_index = like->index;
    if (!like->revision)
        return;
    rewrite->first_revision = rewrite->first_revision ? rewrite->first_revision : like->revision;
    rewrite->last_revision = like->revision;
}

enum status log_rewrite_record(struct log_rewrite *rewrite, const struct log_record *like,
                               size_t body_bytes, log_loc *ret_body_loc)
{
    assert(like->index >= rewrite->old->first_index && like->index > rewrite->last_index);
    assert(like->index <= atomic_load(&rewrite->old->last_index));
    assert(rewrite->record_left == 0);
    TRY(check_room(rewrite, body_bytes));
    if (!rewrite->file) { /* the first record */
        struct segment_path path = segment_path(rewrite->log->dir, rewrite->head.id, ".tmp");
        TRY(fs_open(rewrite->log->fs, path.text, FILE_CREATE, &rewrite->file));
    }
    struct record_head head = {
        .len = (uint32_t)(RECORD_HEAD_BYTES + body_bytes),
        .index = like->index,
        .revision = like->revision,
        .type = like->type,
    };
    rewrite->record_crc = record_start((uint8_t *)&head, rewrite->head.salt);
    rewrite->record_offset = rewrite->chunk_offset + rewrite->chunk.len;
    rewrite->record_left = body_bytes;
    TRY(buf_append(&rewrite->chunk, slice_of(&head, sizeof(head))));
    note_record(rewrite, like);
    *ret_body_loc = log_loc_of(rewrite->head.id, rewrite->record_offset + RECORD_HEAD_BYTES);
    return ST_OK;
}

/* Writes the checksum into the head, which may be in the file already, and appends the padding. */
static enum status finish_record(struct log_rewrite *rewrite)
{
    static const uint8_t zeros[RECORD_ALIGN];
    struct slice crc = slice_of(&rewrite->record_crc, sizeof(rewrite->record_crc));
    if (rewrite->record_offset >= rewrite->chunk_offset)
        slice_copy(rewrite->chunk.ptr + (rewrite->record_offset - rewrite->chunk_offset), crc);
    else
        TRY(file_pwrite(rewrite->file, crc, rewrite->record_offset));
    uint64_t end = rewrite->chunk_offset + rewrite->chunk.len;
    return buf_append(&rewrite->chunk, slice_of(zeros, align_up(end, RECORD_ALIGN) - end));
}

enum status log_rewrite_piece(struct log_rewrite *rewrite, struct slice bytes)
{
    assert(bytes.len <= rewrite->record_left);
    TRY(buf_append(&rewrite->chunk, bytes));
    rewrite->record_crc = crc32c(rewrite->record_crc, bytes);
    rewrite->record_left -= bytes.len;
    if (rewrite->record_left == 0)
        TRY(finish_record(rewrite));
    return rewrite->chunk.len >= REWRITE_CHUNK_BYTES ? flush(rewrite) : ST_OK;
}

/* Writes head and seal, then sets the final name: from then on a start finds it complete. */
static enum status finish_file(struct log_rewrite *rewrite)
{
    struct log *log = rewrite->log;
    assert(rewrite->record_left == 0);
    TRY(flush(rewrite));
    rewrite->head.capacity = rewrite->chunk_offset + SEGMENT_TWIN_BYTES;
    segment_head_finish(&rewrite->head);
    struct segment_seal seal = {
        .id = rewrite->head.id,
        .first_index = rewrite->old->first_index,
        .last_index = atomic_load(&rewrite->old->last_index),
        .first_revision = rewrite->first_revision,
        .last_revision = rewrite->last_revision,
        .used_bytes = rewrite->chunk_offset,
        .next_id = rewrite->old->next_id,
    };
    segment_seal_finish(&seal);
    struct slice head = slice_of(&rewrite->head, sizeof(rewrite->head));
    TRY(file_pwrite(rewrite->file, head, 0));
    TRY(file_pwrite(rewrite->file, head, rewrite->chunk_offset));
    TRY(file_write_zeros(rewrite->file, rewrite->chunk_offset + head.len, rewrite->head.capacity));
    TRY(file_pwrite(rewrite->file, slice_of(&seal, sizeof(seal)), SEGMENT_SEAL_OFFSET));
    TRY(file_sync(rewrite->file));
    return segment_publish(log->fs, log->dir, rewrite->head.id, true);
}

/* The new segment, if any, replaces the old one, which stays readable. */
static enum status swap(struct log *log, struct segment *old, struct segment *new)
{
    LOCK_SCOPE(&log->lock);
    TRY(segment_order_reserve(&log->retired));
    if (new)
        TRY(segment_table_put(&log->table, new->head.id, new));
    segment_order_remove(&log->order, segment_order_find(&log->order, old->head.id));
    segment_order_add(&log->retired, old);
    if (new)
        segment_order_add(&log->order, new);
    return ST_OK;
}

static enum status commit(struct log_rewrite *rewrite, uint64_t *ret_new_id)
{
    struct log *log = rewrite->log;
    AUTO(segment_freep) struct segment *segment = NULL;
    if (rewrite->file) {
        TRY(finish_file(rewrite));
        TRY(segment_open(log->fs, log->dir, rewrite->head.id, &segment));
        struct segment_seal seal = segment_seal_read(segment);
        TRY(segment_seal_check(&seal, &segment->head));
        segment_apply_seal(segment, &seal);
    }
    TRY(swap(log, rewrite->old, segment));
    *ret_new_id = segment ? segment->head.id : 0;
    (void)TAKE(segment);
    return ST_OK;
}

static void rewrite_free(struct log_rewrite *rewrite)
{
    file_close(rewrite->file);
    buf_fini(&rewrite->chunk);
    free(rewrite);
}

enum status log_rewrite_commit(struct log_rewrite *rewrite, uint64_t *ret_new_id)
{
    enum status status = commit(rewrite, ret_new_id);
    if (status == ST_OK)
        rewrite_free(rewrite);
    else
        log_rewrite_abort(rewrite);
    return status;
}

void log_rewrite_abort(struct log_rewrite *rewrite)
{
    if (!rewrite)
        return;
    if (rewrite->file)
        segment_discard(rewrite->log->fs, rewrite->log->dir, rewrite->head.id);
    rewrite_free(rewrite);
}

static void push_forgotten(struct log *log, struct segment *segment)
{
    struct segment *head = atomic_load(&log->forgotten);
    do
        segment->next_left = head;
    while (!atomic_compare_exchange_weak(&log->forgotten, &head, segment));
}

enum status log_forget(struct log *log, uint64_t old_id)
{
    struct segment *old = NULL;
    {
        LOCK_SCOPE(&log->lock);
        size_t at = segment_order_find(&log->retired, old_id);
        if (at == log->retired.count)
            return ST_NOT_FOUND;
        TRY(segment_table_put(&log->table, old_id, NULL));
        old = segment_order_remove(&log->retired, at);
    }
    push_forgotten(log, old);
    return ST_OK;
}

void log_sweep(struct log *log)
{
    struct segment *segment = atomic_exchange(&log->forgotten, NULL);
    while (segment) {
        struct segment *next = segment->next_left;
        if (atomic_load(&segment->holds)) {
            /* Again later: no new holds are possible, and the existing ones end. */
            push_forgotten(log, segment);
        } else {
            /* If the file cannot be removed, the next start finds it unlisted and removes it. */
            uint64_t id = segment->head.id;
            segment_free(segment);
            segment_discard(log->fs, log->dir, id);
        }
        segment = next;
    }
}
