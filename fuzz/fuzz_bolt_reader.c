/*
 * Any bytes as a bbolt file: everything is read, or it is refused with a reason.
 *
 *   input   how | bytes
 *
 * `how` makes the checksums of the meta pages right, so that the fuzzer gets behind them.
 */
#include "cost.h"

#include "bolt/reader.h"

#include <stdlib.h>

enum { HOW_FINISH_METAS = 1, PAGE_BYTES = 1024, DEPTH_MAX = 8 };

static void must(bool is_true)
{
    if (!is_true)
        abort();
}

static enum status read_bytes(void *ctx, void *to, size_t len, uint64_t offset)
{
    const struct slice *bytes = ctx;
    must(offset <= bytes->len && len <= bytes->len - offset);
    memcpy(to, bytes->ptr + offset, len);
    return ST_OK;
}

static void finish_metas(uint8_t *bytes, size_t len)
{
    for (size_t i = 0; i < 2; i++) {
        size_t at = i * PAGE_BYTES + BOLT_PAGE_HEAD_BYTES;
        struct bolt_meta meta;
        if (len < at + sizeof(meta))
            return;
        memcpy(&meta, bytes + at, sizeof(meta));
        meta.page_bytes = PAGE_BYTES;
        meta.pages = len / PAGE_BYTES;
        meta.root.root = len / PAGE_BYTES > 2 ? 2 + meta.root.root % (len / PAGE_BYTES - 2) : 2;
        bolt_meta_finish(&meta);
        memcpy(bytes + at, &meta, sizeof(meta));
    }
}

static enum status walk(struct bolt_reader *reader, struct bolt_cursor *cursor, unsigned depth,
                        unsigned *left)
{
    struct bolt_entry entry;
    enum status status;
    uint64_t sum = 0;
    while ((status = bolt_cursor_next(cursor, &entry)) == ST_OK) {
        for (size_t i = 0; i < entry.value.len; i++)
            sum += entry.value.ptr[i];
        if (!entry.is_bucket || depth == DEPTH_MAX || *left == 0)
            continue;
        (*left)--;
        struct bolt_cursor inner;
        status = bolt_cursor_init_in(&inner, reader, entry.value);
        if (status == ST_OK)
            status = walk(reader, &inner, depth + 1, left);
        bolt_cursor_fini(&inner);
        if (status != ST_END)
            return status;
    }
    return status + (sum == UINT64_MAX);
}

FUZZ_INPUT()
{
    if (size == 0)
        return 0;
    struct slice input = slice_of(data + 1, size - 1);
    uint8_t *bytes = malloc(size);
    must(bytes);
    slice_copy(bytes, input);
    if (data[0] & HOW_FINISH_METAS)
        finish_metas(bytes, input.len);
    struct slice file = slice_of(bytes, input.len);
    struct bolt_reader reader;
    enum status status = bolt_reader_init(
        &reader, (struct bolt_source){.read = read_bytes, .ctx = &file, .bytes = file.len});
    if (status == ST_OK) {
        struct bolt_cursor cursor;
        unsigned left = 64;
        bolt_cursor_init(&cursor, &reader);
        status = walk(&reader, &cursor, 0, &left);
        bolt_cursor_fini(&cursor);
    }
    must(status == ST_END || (status == reader.error.status && reader.error.text[0] != 0));
    free(bytes);
    return 0;
}
