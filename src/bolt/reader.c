#include "bolt/reader.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void must_have_memory(enum status status)
{
    if (status != ST_OK) {
        fputs("vigil: out of memory while reading a bbolt file\n", stderr);
        abort();
    }
}

/* -- The meta pages -- */

static enum status read_at(struct bolt_reader *reader, void *to, size_t len, uint64_t offset)
{
    enum status status = reader->source.read(reader->source.ctx, to, len, offset);
    if (status != ST_OK)
        return error_set(&reader->error, status, "cannot read %zu bytes at offset %" PRIu64 ": %s",
                         len, offset, status_text(status));
    return ST_OK;
}

/* Reads the meta page at the offset, if it is one. */
static enum status meta_read(struct bolt_reader *reader, uint64_t offset,
                             struct bolt_meta *ret_meta, bool *ret_found)
{
    *ret_found = false;
    uint64_t bytes = BOLT_PAGE_HEAD_BYTES + sizeof(*ret_meta);
    if (reader->source.bytes < bytes || offset > reader->source.bytes - bytes)
        return ST_OK;
    TRY(read_at(reader, ret_meta, sizeof(*ret_meta), offset + BOLT_PAGE_HEAD_BYTES));
    *ret_found = bolt_meta_check(ret_meta) == ST_OK;
    return ST_OK;
}

/* The second one follows the first page, whose length may be unknown. */
static enum status second_meta_read(struct bolt_reader *reader, const struct bolt_meta *first,
                                    bool first_found, struct bolt_meta *ret_meta, bool *ret_found)
{
    if (first_found)
        return meta_read(reader, first->page_bytes, ret_meta, ret_found);
    for (uint32_t bytes = BOLT_PAGE_BYTES_MIN; bytes <= BOLT_PAGE_BYTES_MAX; bytes *= 2) {
        TRY(meta_read(reader, bytes, ret_meta, ret_found));
        *ret_found = *ret_found && ret_meta->page_bytes == bytes;
        if (*ret_found)
            return ST_OK;
    }
    return ST_OK;
}

static enum status refuse_without_meta(struct bolt_reader *reader)
{
    struct bolt_meta meta = {0};
    if (reader->source.bytes >= BOLT_PAGE_HEAD_BYTES + sizeof(meta))
        TRY(read_at(reader, &meta, sizeof(meta), BOLT_PAGE_HEAD_BYTES));
    if (meta.magic == BOLT_MAGIC && meta.version != BOLT_VERSION)
        return error_set(&reader->error, ST_WRONG_FORMAT,
                         "it is a bbolt file of version %" PRIu32 ", and only version %d is known",
                         meta.version, BOLT_VERSION);
    if (meta.magic == BOLT_MAGIC)
        return error_set(&reader->error, ST_DAMAGED,
                         "it is damaged: both meta pages, at its beginning, have a wrong checksum");
    return error_set(&reader->error, ST_WRONG_FORMAT,
                     "it is not a bbolt file: neither of its first two pages is a meta page");
}

static enum status meta_check_bounds(struct bolt_reader *reader)
{
    const struct bolt_meta *meta = &reader->meta;
    if (meta->pages > UINT64_MAX / meta->page_bytes ||
        meta->pages * meta->page_bytes > reader->source.bytes)
        return error_set(&reader->error, ST_DAMAGED,
                         "it was truncated: its meta page says %" PRIu64 " pages of %" PRIu32
                         " bytes, and it has %" PRIu64 " bytes",
                         meta->pages, meta->page_bytes, reader->source.bytes);
    if (meta->root.root < 2 || meta->root.root >= meta->pages)
        return error_set(&reader->error, ST_DAMAGED,
                         "it is damaged: its meta page names page %" PRIu64 " of %" PRIu64
                         " as the root",
                         meta->root.root, meta->pages);
    return ST_OK;
}

enum status bolt_reader_init(struct bolt_reader *reader, struct bolt_source source)
{
    *reader = (struct bolt_reader){.source = source};
    struct bolt_meta metas[2];
    bool found[2];
    TRY(meta_read(reader, 0, &metas[0], &found[0]));
    TRY(second_meta_read(reader, &metas[0], found[0], &metas[1], &found[1]));
    found[1] = found[1] && (!found[0] || metas[1].page_bytes == metas[0].page_bytes);
    if (!found[0] && !found[1])
        return refuse_without_meta(reader);
    bool second = found[1] && (!found[0] || metas[1].txid > metas[0].txid);
    reader->meta = metas[second];
    return meta_check_bounds(reader);
}

/* -- Pages -- */

static enum status damaged(struct bolt_reader *reader, uint64_t page, const char *what)
{
    return error_set(&reader->error, ST_DAMAGED, "it is damaged: page %" PRIu64 " %s", page, what);
}

/* Begins with a page that was read completely: checks that its elements fit. */
static enum status level_begin(struct bolt_cursor *cursor, struct bolt_level *level)
{
    struct bolt_page head;
    memcpy(&head, level->page.ptr, sizeof(head));
    bool is_branch = head.flags == BOLT_BRANCH;
    if (!is_branch && head.flags != BOLT_LEAF)
        return damaged(cursor->reader, level->id, "is neither a branch nor a leaf");
    if ((size_t)head.count * BOLT_ELEMENT_BYTES > level->page.len - BOLT_PAGE_HEAD_BYTES)
        return damaged(cursor->reader, level->id, "has more elements than room");
    if (is_branch && head.count == 0)
        return damaged(cursor->reader, level->id, "is a branch with nothing below it");
    level->at = 0;
    level->count = head.count;
    level->is_leaf = !is_branch;
    return ST_OK;
}

/* Appends bytes of the file to the level's page. */
static enum status level_read(struct bolt_reader *reader, struct bolt_level *level, uint64_t bytes,
                              uint64_t offset)
{
    if (bytes == 0)
        return ST_OK;
    must_have_memory(buf_reserve(&level->page, (size_t)bytes));
    TRY(read_at(reader, level->page.ptr + level->page.len, (size_t)bytes, offset));
    level->page.len += (size_t)bytes;
    return ST_OK;
}

/* Reads the page and its overflow pages into a new lowest level. */
static enum status push_page(struct bolt_cursor *cursor, uint64_t id)
{
    struct bolt_reader *reader = cursor->reader;
    if (id < 2 || id >= reader->meta.pages)
        return damaged(reader, id, "is referred to, and the file has no such page");
    if (cursor->depth == BOLT_DEPTH_MAX)
        return damaged(reader, id, "lies deeper than any tree is");
    struct bolt_level *level = &cursor->levels[cursor->depth];
    uint64_t offset = id * reader->meta.page_bytes;
    level->id = id;
    level->page.len = 0;
    TRY(level_read(reader, level, reader->meta.page_bytes, offset));
    struct bolt_page head;
    memcpy(&head, level->page.ptr, sizeof(head));
    if (head.id != id)
        return damaged(reader, id, "says that it is another one");
    uint64_t pages = (uint64_t)head.overflow + 1, bytes = pages * reader->meta.page_bytes;
    if (pages > reader->meta.pages - id || bytes > BOLT_PAGE_RUN_BYTES_MAX)
        return damaged(reader, id, "reaches past the end of the file");
    if (pages > cursor->pages_left)
        return damaged(reader, id, "is met again: the tree has a circle");
    cursor->pages_left -= pages;
    TRY(level_read(reader, level, bytes - level->page.len, offset + level->page.len));
    TRY(level_begin(cursor, level));
    cursor->depth++;
    return ST_OK;
}

/* -- Cursors -- */

static void cursor_begin(struct bolt_cursor *cursor, struct bolt_reader *reader, uint64_t root)
{
    *cursor = (struct bolt_cursor){
        .reader = reader,
        .root = root,
        .pages_left = reader->meta.pages,
    };
}

void bolt_cursor_init(struct bolt_cursor *cursor, struct bolt_reader *reader)
{
    cursor_begin(cursor, reader, reader->meta.root.root);
}

enum status bolt_cursor_init_in(struct bolt_cursor *cursor, struct bolt_reader *reader,
                                struct slice bucket_value)
{
    struct bolt_bucket bucket = {0};
    bool is_cut = bucket_value.len < sizeof(bucket);
    if (!is_cut)
        memcpy(&bucket, bucket_value.ptr, sizeof(bucket));
    cursor_begin(cursor, reader, bucket.root);
    if (!is_cut && bucket.root)
        return ST_OK;
    if (is_cut || bucket_value.len < sizeof(bucket) + BOLT_PAGE_HEAD_BYTES)
        return error_set(&reader->error, ST_DAMAGED, "it is damaged: the head of a bucket is cut");
    struct bolt_level *level = &cursor->levels[0];
    struct slice page = slice_sub(bucket_value, sizeof(bucket), bucket_value.len - sizeof(bucket));
    must_have_memory(buf_append(&level->page, page));
    TRY(level_begin(cursor, level));
    if (!level->is_leaf)
        return error_set(&reader->error, ST_DAMAGED,
                         "it is damaged: a bucket within a page is not a leaf");
    cursor->is_inline = true;
    return ST_OK;
}

void bolt_cursor_fini(struct bolt_cursor *cursor)
{
    for (unsigned i = 0; i < BOLT_DEPTH_MAX; i++)
        buf_fini(&cursor->levels[i].page);
    buf_fini(&cursor->last);
}

/* The bytes of an element, from its first byte on; false: not within the page. */
static bool element_bytes(const struct bolt_level *level, size_t element, uint32_t pos,
                          uint64_t bytes, struct slice *ret_bytes)
{
    size_t room = level->page.len - element;
    if (pos > room || bytes > room - pos)
        return false;
    *ret_bytes = slice_of(level->page.ptr + element + pos, (size_t)bytes);
    return true;
}

/* Descends by the branch's next element. */
static enum status descend(struct bolt_cursor *cursor, struct bolt_level *level)
{
    size_t offset = BOLT_PAGE_HEAD_BYTES + (size_t)level->at * BOLT_ELEMENT_BYTES;
    struct bolt_branch_element element;
    memcpy(&element, level->page.ptr + offset, sizeof(element));
    level->at++;
    struct slice key;
    if (!element_bytes(level, offset, element.pos, element.ksize, &key))
        return damaged(cursor->reader, level->id, "has an element that reaches past its end");
    return push_page(cursor, element.pgid);
}

/* Keys ascend over the whole bucket, so that a circle is found. */
static enum status check_order(struct bolt_cursor *cursor, const struct bolt_level *level,
                               struct slice key)
{
    if (cursor->has_last && slice_compare(buf_slice(&cursor->last), key) >= 0)
        return damaged(cursor->reader, level->id, "has a key that is out of order");
    cursor->has_last = true;
    cursor->last.len = 0;
    must_have_memory(buf_append(&cursor->last, key));
    return ST_OK;
}

static enum status leaf_next(struct bolt_cursor *cursor, struct bolt_level *level,
                             struct bolt_entry *ret_entry)
{
    size_t offset = BOLT_PAGE_HEAD_BYTES + (size_t)level->at * BOLT_ELEMENT_BYTES;
    struct bolt_leaf_element element;
    memcpy(&element, level->page.ptr + offset, sizeof(element));
    struct slice both;
    if (!element_bytes(level, offset, element.pos, (uint64_t)element.ksize + element.vsize, &both))
        return damaged(cursor->reader, level->id, "has an element that reaches past its end");
    struct slice key = slice_sub(both, 0, element.ksize);
    TRY(check_order(cursor, level, key));
    level->at++;
    *ret_entry = (struct bolt_entry){
        .key = key,
        .value = slice_sub(both, element.ksize, element.vsize),
        .is_bucket = element.flags & BOLT_LEAF_BUCKET,
    };
    return ST_OK;
}

enum status bolt_cursor_next(struct bolt_cursor *cursor, struct bolt_entry *ret_entry)
{
    if (!cursor->begun) {
        cursor->begun = true;
        if (cursor->is_inline)
            cursor->depth = 1;
        else
            TRY(push_page(cursor, cursor->root));
    }
    while (cursor->depth > 0) {
        struct bolt_level *level = &cursor->levels[cursor->depth - 1];
        if (level->at == level->count)
            cursor->depth--;
        else if (level->is_leaf)
            return leaf_next(cursor, level, ret_entry);
        else
            TRY(descend(cursor, level));
    }
    return ST_END;
}

enum status bolt_cursor_init_named(struct bolt_cursor *cursor, struct bolt_reader *reader,
                                   struct slice name)
{
    *cursor = (struct bolt_cursor){0};
    struct bolt_cursor buckets;
    bolt_cursor_init(&buckets, reader);
    struct bolt_entry entry;
    enum status status;
    while ((status = bolt_cursor_next(&buckets, &entry)) == ST_OK) {
        if (!slice_equal(entry.key, name))
            continue;
        if (entry.is_bucket)
            status = bolt_cursor_init_in(cursor, reader, entry.value);
        else
            status = error_set(&reader->error, ST_DAMAGED, "it is damaged: '%.*s' is not a bucket",
                               SLICE_ARGS(name));
        break;
    }
    bolt_cursor_fini(&buckets);
    return status == ST_END ? ST_NOT_FOUND : status;
}
