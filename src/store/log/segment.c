#include "store/log/segment.h"

#include "base/yield_point.h"
#include "store/log/mend.h"

#include <stdio.h>
#include <stdlib.h>

/* -- Names -- */

struct segment_path segment_path(const char *dir, uint64_t id, const char *suffix)
{
    struct segment_path path;
    int len =
        snprintf(path.text, sizeof(path.text), "%s/%016llx%s", dir, (unsigned long long)id, suffix);
    assert(len > 0 && (size_t)len < sizeof(path.text));
    return path;
}

bool segment_name_parse(const char *name, const char *suffix, uint64_t *ret_id)
{
    enum { DIGITS = 16 };
    uint64_t id = 0;
    for (int i = 0; i < DIGITS; i++) {
        const char *hex = "0123456789abcdef";
        const char *digit = name[i] ? strchr(hex, name[i]) : NULL;
        if (!digit)
            return false;
        id = id << 4 | (uint64_t)(digit - hex);
    }
    if (strcmp(name + DIGITS, suffix) != 0)
        return false;
    *ret_id = id;
    return true;
}

/* -- Files -- */

/*
 * A segment that the writer makes itself, for a very long record, is synced in pieces, and other
 * requests are served in between. One sync at the end would take as long as writing it.
 */
static enum status yield_synced(struct file *file, size_t written)
{
    if (LIKELY(!yield_point_here))
        return ST_OK;
    size_t work = yield_point_here->work + written * YIELD_POINT_WORK / SEGMENT_PIECE_BYTES;
    if (work >= YIELD_POINT_WORK)
        TRY(file_sync(file));
    yield_point_pass(written * YIELD_POINT_WORK / SEGMENT_PIECE_BYTES);
    return ST_OK;
}

enum status file_write_zeros(struct file *file, uint64_t from, uint64_t to)
{
    static const uint8_t zeros[256 * 1024];
    while (from < to) {
        size_t len = (size_t)(to - from < sizeof(zeros) ? to - from : sizeof(zeros));
        TRY(file_pwrite(file, slice_of(zeros, len), from));
        from += len;
        TRY(yield_synced(file, len));
    }
    return ST_OK;
}

static struct segment *segment_alloc(struct file *file, const struct segment_head *head)
{
    struct segment *segment = calloc(1, sizeof(*segment));
    if (!segment)
        return NULL;
    segment->file = file;
    segment->head = *head;
    segment->first_index = head->first_index;
    atomic_init(&segment->written, SEGMENT_RECORDS_OFFSET);
    return segment;
}

enum status segment_draft_begin(struct fs *fs, const char *dir, const struct segment_head *head,
                                bool synced, struct segment_draft *ret_draft)
{
    struct segment_path temporary = segment_path(dir, head->id, ".tmp");
    struct segment_draft draft = {.head = *head, .filled = sizeof(*head), .synced = synced};
    segment_head_finish(&draft.head);
    TRY(fs_open(fs, temporary.text, FILE_CREATE, &draft.file));
    enum status status = file_pwrite(draft.file, slice_of(&draft.head, sizeof(draft.head)), 0);
    if (status != ST_OK) {
        segment_draft_drop(fs, dir, &draft);
        return status;
    }
    *ret_draft = draft;
    return ST_OK;
}

enum status segment_draft_fill(struct segment_draft *draft, uint64_t bytes)
{
    uint64_t left = draft->head.capacity - draft->filled;
    uint64_t to = draft->filled + (bytes < left ? bytes : left);
    TRY(file_write_zeros(draft->file, draft->filled, to));
    if (draft->synced)
        TRY(file_sync(draft->file));
    draft->filled = to;
    return ST_OK;
}

enum status segment_draft_finish(struct segment_draft *draft, struct segment **ret_segment)
{
    assert(draft->filled == draft->head.capacity);
    AUTO(segment_freep) struct segment *segment = segment_alloc(draft->file, &draft->head);
    if (!segment)
        return ST_NOMEM;
    enum status status = file_map(segment->file, segment->head.capacity, &segment->base);
    if (status != ST_OK) {
        segment->file = NULL; /* it stays the draft's */
        return status;
    }
    *draft = (struct segment_draft){0};
    *ret_segment = TAKE(segment);
    return ST_OK;
}

void segment_draft_drop(struct fs *fs, const char *dir, struct segment_draft *draft)
{
    if (!draft->file)
        return;
    struct segment_path temporary = segment_path(dir, draft->head.id, ".tmp");
    file_close(draft->file);
    enum status ignored = fs_unlink(fs, temporary.text);
    (void)ignored;
    *draft = (struct segment_draft){0};
}

enum status segment_create(struct fs *fs, const char *dir, const struct segment_head *head,
                           bool synced, struct segment **ret_segment)
{
    struct segment_draft draft;
    TRY(segment_draft_begin(fs, dir, head, synced, &draft));
    enum status status = segment_draft_fill(&draft, head->capacity);
    if (status == ST_OK)
        status = segment_draft_finish(&draft, ret_segment);
    segment_draft_drop(fs, dir, &draft);
    return status;
}

enum status segment_publish(struct fs *fs, const char *dir, uint64_t id, bool synced)
{
    struct segment_path temporary = segment_path(dir, id, ".tmp");
    struct segment_path name = segment_path(dir, id, ".seg");
    TRY(fs_rename(fs, temporary.text, name.text));
    return synced ? fs_sync_dir(fs, dir) : ST_OK;
}

void segment_discard(struct fs *fs, const char *dir, uint64_t id)
{
    const char *const suffixes[] = {".tmp", ".seg"};
    for (size_t i = 0; i < COUNT_OF(suffixes); i++) {
        struct segment_path path = segment_path(dir, id, suffixes[i]);
        enum status ignored = fs_unlink(fs, path.text);
        (void)ignored;
    }
}

/* The segment's head and the length of the file, which may contradict each other. */
static enum status open_file(struct fs *fs, const char *dir, uint64_t id, struct file **ret_file,
                             struct segment_head *ret_head, uint64_t *ret_bytes)
{
    struct segment_path name = segment_path(dir, id, ".seg");
    AUTO(file_closep) struct file *file = NULL;
    TRY(fs_open(fs, name.text, FILE_READ_WRITE, &file));
    TRY(file_size(file, ret_bytes));
    if (*ret_bytes < SEGMENT_RECORDS_OFFSET)
        return ST_DAMAGED;
    TRY(file_pread(file, ret_head, sizeof(*ret_head), 0));
    TRY(segment_head_check(ret_head));
    if (ret_head->id != id)
        return ST_DAMAGED;
    *ret_file = TAKE(file);
    return ST_OK;
}

enum status segment_open(struct fs *fs, const char *dir, uint64_t id, struct segment **ret_segment)
{
    AUTO(file_closep) struct file *file = NULL;
    struct segment_head head;
    uint64_t bytes;
    TRY(open_file(fs, dir, id, &file, &head, &bytes));
    if (head.capacity != bytes)
        return ST_DAMAGED;
    AUTO(segment_freep) struct segment *segment = segment_alloc(file, &head);
    if (!segment)
        return ST_NOMEM;
    (void)TAKE(file);
    TRY(file_map(segment->file, head.capacity, &segment->base));
    *ret_segment = TAKE(segment);
    return ST_OK;
}

enum status segment_open_damaged(struct fs *fs, const char *dir, uint64_t id,
                                 struct segment **ret_segment)
{
    struct segment_path name = segment_path(dir, id, ".seg");
    AUTO(file_closep) struct file *file = NULL;
    uint64_t bytes;
    TRY(fs_open(fs, name.text, FILE_READ_ONLY, &file));
    TRY(file_size(file, &bytes));
    bytes &= ~(uint64_t)(RECORD_ALIGN - 1);
    if (bytes < SEGMENT_RECORDS_OFFSET + RECORD_HEAD_BYTES ||
        bytes > (uint64_t)1 << 34) /* offsets have 34 bits */
        return ST_DAMAGED;
    AUTO(segment_freep)
    struct segment *segment = segment_alloc(file, &(struct segment_head){.capacity = bytes});
    if (!segment)
        return ST_NOMEM;
    (void)TAKE(file);
    TRY(file_map(segment->file, bytes, &segment->base));
    segment->head_mended = segment_head_mend(slice_of(segment->base, bytes), id, &segment->head);
    segment->head.capacity = bytes;
    segment->first_index = segment->head.first_index;
    *ret_segment = TAKE(segment);
    return ST_OK;
}

uint64_t segment_lost_length(struct fs *fs, const char *dir, uint64_t id)
{
    AUTO(file_closep) struct file *file = NULL;
    struct segment_head head;
    uint64_t bytes;
    if (open_file(fs, dir, id, &file, &head, &bytes) != ST_OK || head.capacity == bytes)
        return 0;
    return head.capacity;
}

void segment_free(struct segment *segment)
{
    if (!segment)
        return;
    if (segment->base)
        file_unmap(segment->file, segment->base, segment->head.capacity);
    file_close(segment->file);
    free(segment);
}

struct segment_seal segment_seal_of(const struct segment *segment)
{
    struct segment_seal seal = {
        .id = segment->head.id,
        .first_index = segment->first_index,
        .last_index = atomic_load(&segment->last_index),
        .first_revision = atomic_load(&segment->first_revision),
        .last_revision = atomic_load(&segment->last_revision),
        .used_bytes = atomic_load(&segment->written),
        .next_id = segment->next_id,
    };
    segment_seal_finish(&seal);
    return seal;
}

void segment_apply_seal(struct segment *segment, const struct segment_seal *seal)
{
    segment->first_index = seal->first_index;
    segment->next_id = seal->next_id;
    atomic_store(&segment->last_index, seal->last_index);
    atomic_store(&segment->first_revision, seal->first_revision);
    atomic_store(&segment->last_revision, seal->last_revision);
    atomic_store(&segment->written, seal->used_bytes);
    atomic_store(&segment->full, true);
}

struct segment_seal segment_seal_read(const struct segment *segment)
{
    struct segment_seal seal;
    memcpy(&seal, segment->base + SEGMENT_SEAL_OFFSET, sizeof(seal));
    return seal;
}
