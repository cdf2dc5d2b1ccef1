#include "cmd/ctl/offline/kv_frames.h"

#include "base/xalloc.h"

#include <endian.h>
#include <inttypes.h>

enum { HEAD_BYTES = 8 };

void kv_frames_init(struct kv_frames *frames, uint64_t bytes_max)
{
    *frames = (struct kv_frames){.bytes_max = bytes_max};
}

void kv_frames_fini(struct kv_frames *frames)
{
    for (size_t i = 0; i < frames->count; i++)
        free((void *)(uintptr_t)frames->all[i].value.ptr);
    free(frames->all);
    buf_fini(&frames->partial);
    *frames = (struct kv_frames){0};
}

enum status kv_frames_add(struct kv_frames *frames, const struct pb_key_value *kv,
                          struct error *ret_error)
{
    struct buf value = {0};
    if (kv->mod_revision <= 0)
        return error_set(ret_error, ST_DAMAGED, "a key has the revision %" PRId64,
                         kv->mod_revision);
    if (pb_append(&pb_key_value_table, kv, &value) != ST_OK)
        xalloc_check(NULL, kv->value.len);
    frames->bytes += sizeof(struct kv_frame) + value.len;
    /* What a transformer sends must not fill the memory. */
    if (frames->bytes > frames->bytes_max) {
        buf_fini(&value);
        return error_set(ret_error, ST_LIMIT, "the keys have more than %" PRIu64 " bytes together",
                         frames->bytes_max);
    }
    if (frames->count == frames->capacity) {
        frames->capacity = frames->capacity ? frames->capacity * 2 : 256;
        frames->all = xrealloc(frames->all, frames->capacity * sizeof(*frames->all));
    }
    struct kv_frame *frame = &frames->all[frames->count];
    *frame = (struct kv_frame){
        .revision = kv->mod_revision,
        .order = frames->count,
        .value = buf_slice(&value),
    };
    bolt_revision_write((struct bolt_revision){.main = kv->mod_revision}, frame->key);
    frames->count++;
    return ST_OK;
}

static enum status take_frame(struct kv_frames *frames, struct slice bytes, struct error *ret_error)
{
    struct arena none = {0};
    struct pb_key_value kv;
    if (pb_decode(&pb_key_value_table, bytes, &none, &kv) != ST_OK)
        return error_set(ret_error, ST_DAMAGED, "the answer has something that is not a key");
    return kv_frames_add(frames, &kv, ret_error);
}

/* Bytes of the next frame with its head; 0: the head is not complete. */
static enum status frame_bytes(struct slice rest, uint64_t *ret_bytes, struct error *ret_error)
{
    uint64_t len;
    *ret_bytes = 0;
    if (rest.len < HEAD_BYTES)
        return ST_OK;
    memcpy(&len, rest.ptr, sizeof(len));
    len = le64toh(len);
    if (len > KV_FRAME_BYTES_MAX)
        return error_set(ret_error, ST_LIMIT,
                         "the answer has a key of %" PRIu64 " bytes, and the limit is %" PRIu64,
                         len, KV_FRAME_BYTES_MAX);
    *ret_bytes = HEAD_BYTES + len;
    return ST_OK;
}

enum status kv_frames_feed(struct kv_frames *frames, struct slice bytes, struct error *ret_error)
{
    if (buf_append(&frames->partial, bytes) != ST_OK)
        xalloc_check(NULL, bytes.len);
    struct slice rest = buf_slice(&frames->partial);
    for (;;) {
        uint64_t len;
        TRY(frame_bytes(rest, &len, ret_error));
        /* The next frame, or its head, has not arrived completely. */
        if (len == 0 || rest.len < len)
            break;
        TRY(take_frame(frames, slice_sub(rest, HEAD_BYTES, (size_t)len - HEAD_BYTES), ret_error));
        rest = slice_sub(rest, (size_t)len, rest.len - (size_t)len);
    }
    buf_consume(&frames->partial, frames->partial.len - rest.len);
    return ST_OK;
}

static int compare(const void *left, const void *right)
{
    const struct kv_frame *a = left, *b = right;
    if (a->revision != b->revision)
        return a->revision < b->revision ? -1 : 1;
    return (a->order > b->order) - (a->order < b->order);
}

enum status kv_frames_end(struct kv_frames *frames, struct error *ret_error)
{
    size_t kept = 0;
    if (frames->partial.len)
        return error_set(ret_error, ST_DAMAGED, "the answer ends within a key");
    if (frames->count)
        qsort(frames->all, frames->count, sizeof(*frames->all), compare);
    for (size_t i = 0; i < frames->count; i++) {
        bool is_last =
            i + 1 == frames->count || frames->all[i + 1].revision != frames->all[i].revision;
        if (is_last)
            frames->all[kept++] = frames->all[i];
        else
            free((void *)(uintptr_t)frames->all[i].value.ptr);
    }
    frames->count = kept;
    return ST_OK;
}
