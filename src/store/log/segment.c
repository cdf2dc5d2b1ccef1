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

static struct segment *segment_alloc(struct file *file, const struct segment_head *head,
                                     bool has_twin)
{
    struct segment *segment = calloc(1, sizeof(*segment));
    if (!segment)
        return NULL;
    segment->file = file;
    segment->head = *head;
    segment->file_bytes = head->capacity;
    segment->has_twin = has_twin;
    if (has_twin)
        segment->head.capacity -= SEGMENT_TWIN_BYTES;
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
    /* The blocks are allocated now, so that a sync of records need not write metadata of the file
     * system. */
    TRY(file_write_zeros(draft->file, draft->filled, to));
    if (to == draft->head.capacity && to >= SEGMENT_TWIN_FROM)
        TRY(file_pwrite(draft->file, slice_of(&draft->head, sizeof(draft->head)),
                        to - SEGMENT_TWIN_BYTES));
    if (draft->synced)
        TRY(file_sync(draft->file));
    draft->filled = to;
    return ST_OK;
}

enum status segment_draft_finish(struct segment_draft *draft, struct segment **ret_segment)
{
    assert(draft->filled == draft->head.capacity);
    AUTO(segment_freep)
    struct segment *segment =
        segment_alloc(draft->file, &draft->head, draft->head.capacity >= SEGMENT_TWIN_FROM);
    if (!segment)
        return ST_NOMEM;
    enum status status = file_map(segment->file, segment->file_bytes, &segment->base);
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
    /* After a success the draft is empty, and this does nothing. */
    segment_draft_drop(fs, dir, &draft);
    return status;
}

enum status segment_publish(struct fs *fs, const char *dir, uint64_t id, bool synced)
{
    struct segment_path temporary = segment_path(dir, id, ".tmp");
    struct segment_path name = segment_path(dir, id, ".seg");
    /* A file with its final name is complete: a crash leaves a .tmp file, which the next start
     * removes. */
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

/* The segment's head, the length of the file and the twin, which may contradict each other. */
struct opened {
    struct file *file; /* owned */
    struct segment_head head, twin;
    uint64_t bytes;
};

static enum status open_file(struct fs *fs, const char *dir, uint64_t id, struct opened *ret_opened)
{
    struct segment_path name = segment_path(dir, id, ".seg");
    AUTO(file_closep) struct file *file = NULL;
    struct opened opened = {0};
    TRY(fs_open(fs, name.text, FILE_READ_WRITE, &file));
    TRY(file_size(file, &opened.bytes));
    /* The file was cut off within its head. */
    if (opened.bytes < SEGMENT_RECORDS_OFFSET)
        return ST_DAMAGED;
    TRY(file_pread(file, &opened.head, sizeof(opened.head), 0));
    if (opened.bytes >= SEGMENT_TWIN_BYTES + SEGMENT_RECORDS_OFFSET)
        TRY(file_pread(file, &opened.twin, sizeof(opened.twin), opened.bytes - SEGMENT_TWIN_BYTES));
    opened.file = TAKE(file);
    *ret_opened = opened;
    return ST_OK;
}

static bool is_head_of(const struct segment_head *head, uint64_t id, uint64_t bytes)
{
    return segment_head_check(head) == ST_OK && head->id == id && head->capacity == bytes;
}

enum status segment_open(struct fs *fs, const char *dir, uint64_t id, struct segment **ret_segment)
{
    struct opened opened;
    TRY(open_file(fs, dir, id, &opened));
    AUTO(file_closep) struct file *file = opened.file;
    bool has_head = is_head_of(&opened.head, id, opened.bytes);
    bool has_twin = is_head_of(&opened.twin, id, opened.bytes);
    if (!has_head && !has_twin) {
        /* A head of another version must not be reported as damage, since a repair would destroy
         * it. */
        enum status status = segment_head_check(&opened.head);
        return status == ST_WRONG_FORMAT ? status : ST_DAMAGED;
    }
    /* A damaged twin is not a record either. */
    has_twin |= segment_heads_resemble(&opened.head, &opened.twin);
    AUTO(segment_freep)
    struct segment *segment = segment_alloc(file, has_head ? &opened.head : &opened.twin, has_twin);
    if (!segment)
        return ST_NOMEM;
    (void)TAKE(file);
    segment->head_mended = !has_head;
    TRY(file_map(segment->file, segment->file_bytes, &segment->base));
    *ret_segment = TAKE(segment);
    return ST_OK;
}

static enum status write_if_other(struct segment *segment, const struct segment_head *head,
                                  uint64_t offset, bool *written)
{
    if (memcmp(segment->base + offset, head, sizeof(*head)) == 0)
        return ST_OK;
    *written = true;
    return file_pwrite(segment->file, slice_of(head, sizeof(*head)), offset);
}

enum status segment_write_heads(struct segment *segment, bool synced)
{
    struct segment_head head = segment->head;
    uint64_t twin = segment->file_bytes - SEGMENT_TWIN_BYTES;
    bool written = false;
    head.capacity = segment->file_bytes;
    segment_head_finish(&head);
    TRY(write_if_other(segment, &head, 0, &written));
    /* A segment of an older version gets a twin only if no record can be where it goes. */
    if (!segment->has_twin && segment->file_bytes >= SEGMENT_TWIN_FROM &&
        atomic_load(&segment->written) <= twin &&
        bytes_first_nonzero(slice_of(segment->base + twin, SEGMENT_TWIN_BYTES)) ==
            SEGMENT_TWIN_BYTES) {
        segment->has_twin = true;
        segment->head.capacity = twin;
    }
    if (segment->has_twin)
        TRY(write_if_other(segment, &head, twin, &written));
    segment->head_mended = false;
    return written && synced ? file_sync(segment->file) : ST_OK;
}

enum status segment_open_damaged(struct fs *fs, const char *dir, uint64_t id,
                                 struct segment **ret_segment)
{
    struct segment_path name = segment_path(dir, id, ".seg");
    AUTO(file_closep) struct file *file = NULL;
    uint64_t bytes;
    TRY(fs_open(fs, name.text, FILE_READ_ONLY | FILE_PATCHED, &file));
    TRY(file_size(file, &bytes));
    bytes &= ~(uint64_t)(RECORD_ALIGN - 1);
    if (bytes < SEGMENT_RECORDS_OFFSET + RECORD_HEAD_BYTES ||
        bytes > (uint64_t)1 << 34) /* offsets have 34 bits */
        return ST_DAMAGED;
    AUTO(segment_freep)
    struct segment *segment = segment_alloc(file, &(struct segment_head){.capacity = bytes}, false);
    if (!segment)
        return ST_NOMEM;
    (void)TAKE(file);
    TRY(file_map(segment->file, bytes, &segment->base));
    segment->head_mended = segment_head_mend(slice_of(segment->base, bytes), id, &segment->head,
                                             &segment->has_twin) != SEGMENT_HEAD_INTACT;
    segment->head.capacity = bytes - (segment->has_twin ? SEGMENT_TWIN_BYTES : 0);
    segment->first_index = segment->head.first_index;
    *ret_segment = TAKE(segment);
    return ST_OK;
}

enum status segment_open_mended(struct fs *fs, const char *dir, uint64_t id, bool writes,
                                struct segment **ret_segment)
{
    AUTO(segment_freep) struct segment *segment = NULL;
    AUTO(file_closep) struct file *file = NULL;
    struct segment_head head;
    bool has_twin;
    TRY(segment_open_damaged(fs, dir, id, &segment));
    if (segment_head_mend(slice_of(segment->base, segment->file_bytes), id, &head, &has_twin) !=
        SEGMENT_HEAD_MENDED)
        return ST_DAMAGED;
    if (!writes) {
        *ret_segment = TAKE(segment);
        return ST_OK;
    }
    struct segment_path name = segment_path(dir, id, ".seg");
    TRY(fs_open(fs, name.text, FILE_READ_WRITE, &file));
    TRY(file_pwrite(file, slice_of(&head, sizeof(head)), 0));
    TRY(file_sync(file));
    return segment_open(fs, dir, id, ret_segment);
}

uint64_t segment_lost_length(struct fs *fs, const char *dir, uint64_t id)
{
    struct opened opened;
    if (open_file(fs, dir, id, &opened) != ST_OK)
        return 0;
    file_close(opened.file);
    bool is_head = segment_head_check(&opened.head) == ST_OK && opened.head.id == id;
    return is_head && opened.head.capacity != opened.bytes ? opened.head.capacity : 0;
}

void segment_free(struct segment *segment)
{
    if (!segment)
        return;
    if (segment->base)
        file_unmap(segment->file, segment->base, segment->file_bytes);
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
