/* Files of our writer and files made by hand, complete, truncated and changed. Files of real etcds
 * are read in tests/migration. */
#include "bolt/reader.h"

#include "base/random.h"
#include "bolt/writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { PAGE = 1024, PAGES = 64 };

/* -- A source in memory -- */

struct bytes {
    uint8_t *ptr;
    size_t len,
        shrunk_to; /* reads behind it fail, like those of a file that was truncated meanwhile */
};

static enum status read_bytes(void *ctx, void *to, size_t len, uint64_t offset)
{
    const struct bytes *bytes = ctx;
    assert_true(offset <= bytes->len);
    assert_true(len <= bytes->len - offset);
    if (offset + len > bytes->shrunk_to)
        return ST_IO;
    memcpy(to, bytes->ptr + offset, len);
    return ST_OK;
}

static enum status open_reader(struct bolt_reader *reader, struct bytes *bytes)
{
    bytes->shrunk_to = bytes->len;
    return bolt_reader_init(
        reader, (struct bolt_source){.read = read_bytes, .ctx = bytes, .bytes = bytes->len});
}

/* Reads everything, including nested buckets. Returns the number of keys. */
static enum status walk(struct bolt_reader *reader, struct bolt_cursor *cursor, unsigned depth,
                        size_t *count)
{
    struct bolt_entry entry;
    enum status status;
    while ((status = bolt_cursor_next(cursor, &entry)) == ST_OK) {
        *count += !entry.is_bucket;
        if (!entry.is_bucket || depth == 8)
            continue;
        struct bolt_cursor inner;
        status = bolt_cursor_init_in(&inner, reader, entry.value);
        if (status == ST_OK)
            status = walk(reader, &inner, depth + 1, count);
        bolt_cursor_fini(&inner);
        if (status != ST_OK)
            return status;
    }
    return status == ST_END ? ST_OK : status;
}

static enum status walk_all(struct bolt_reader *reader, size_t *ret_count)
{
    struct bolt_cursor cursor;
    bolt_cursor_init(&cursor, reader);
    *ret_count = 0;
    enum status status = walk(reader, &cursor, 0, ret_count);
    bolt_cursor_fini(&cursor);
    return status;
}

/* -- Files of the writer -- */

static void feed(struct bolt_writer *writer, struct bytes *file, unsigned keys)
{
    static const uint8_t long_value[20000] = {1};
    bolt_writer_bucket(writer, SLICE_LITERAL("empty"));
    bolt_writer_bucket(writer, SLICE_LITERAL("few"));
    bolt_writer_add(writer, SLICE_LITERAL("a"), SLICE_LITERAL("1"));
    bolt_writer_bucket(writer, SLICE_LITERAL("many"));
    for (unsigned i = 0; i < keys; i++) {
        char key[16];
        snprintf(key, sizeof(key), "%08u", i);
        struct slice value = slice_of(long_value, i % 50 ? i % 300 : sizeof(long_value));
        bolt_writer_add(writer, slice_from_text(key), value);
        if (file)
            file->len += bolt_writer_take(writer, file->ptr + file->len, SIZE_MAX / 2);
    }
}

static struct bytes written(unsigned keys)
{
    AUTO(bolt_writer_freep) struct bolt_writer *counter = bolt_writer_new(0);
    feed(counter, NULL, keys);
    uint64_t pages = bolt_writer_end(counter);
    struct bytes file = {.ptr = malloc(pages * BOLT_PAGE_BYTES)};
    AUTO(bolt_writer_freep) struct bolt_writer *writer = bolt_writer_new(pages);
    feed(writer, &file, keys);
    assert_int_equal(bolt_writer_end(writer), pages);
    file.len += bolt_writer_take(writer, file.ptr + file.len, SIZE_MAX / 2);
    assert_int_equal(file.len, pages * BOLT_PAGE_BYTES);
    return file;
}

static void written_files_are_read(void **state)
{
    (void)state;
    static const unsigned counts[] = {0, 1, 10, 5000};
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        struct bytes file = written(counts[i]);
        struct bolt_reader reader;
        assert_int_equal(open_reader(&reader, &file), ST_OK);
        size_t found;
        assert_int_equal(walk_all(&reader, &found), ST_OK);
        assert_int_equal(found, counts[i] + 1);

        struct bolt_cursor cursor;
        struct bolt_entry entry;
        assert_int_equal(bolt_cursor_init_named(&cursor, &reader, SLICE_LITERAL("few")), ST_OK);
        assert_int_equal(bolt_cursor_next(&cursor, &entry), ST_OK);
        assert_true(slice_equal(entry.key, SLICE_LITERAL("a")));
        assert_true(slice_equal(entry.value, SLICE_LITERAL("1")));
        assert_int_equal(bolt_cursor_next(&cursor, &entry), ST_END);
        assert_int_equal(bolt_cursor_next(&cursor, &entry), ST_END);
        bolt_cursor_fini(&cursor);
        assert_int_equal(bolt_cursor_init_named(&cursor, &reader, SLICE_LITERAL("none")),
                         ST_NOT_FOUND);
        bolt_cursor_fini(&cursor);
        free(file.ptr);
    }
}

static void truncated_files_are_refused(void **state)
{
    (void)state;
    struct bytes file = written(200);
    size_t whole = file.len;
    for (file.len = 0; file.len < whole; file.len += file.len < 9000 ? 1 : 512) {
        struct bolt_reader reader;
        enum status status = open_reader(&reader, &file);
        assert_true(status == ST_DAMAGED || status == ST_WRONG_FORMAT);
        assert_int_equal(reader.error.status, status);
    }
    free(file.ptr);
}

static void file_that_shrinks_is_an_error(void **state)
{
    (void)state;
    struct bytes file = written(2000);
    struct bolt_reader reader;
    assert_int_equal(open_reader(&reader, &file), ST_OK);
    size_t found;
    for (file.shrunk_to = 0; file.shrunk_to < file.len; file.shrunk_to += file.len / 37)
        assert_int_equal(walk_all(&reader, &found), ST_IO);
    free(file.ptr);
}

/* Whatever bit changes: everything is read, or damage is found; never more data or a longer run. */
static void changed_bytes_are_errors_or_harmless(void **state)
{
    (void)state;
    struct bytes file = written(300);
    struct random random;
    random_init(&random, 7);
    unsigned refused = 0;
    for (unsigned i = 0; i < 20000; i++) {
        size_t page = random_below(&random, file.len / BOLT_PAGE_BYTES);
        size_t at = page * BOLT_PAGE_BYTES +
                    random_below(&random, random_chance(&random, 1, 4) ? BOLT_PAGE_BYTES : 64);
        uint8_t before = file.ptr[at];
        file.ptr[at] ^= (uint8_t)(1 << random_below(&random, 8));
        struct bolt_reader reader;
        enum status status = open_reader(&reader, &file);
        size_t found = 0;
        if (status == ST_OK)
            status = walk_all(&reader, &found);
        assert_true(status == ST_OK || status == ST_DAMAGED || status == ST_WRONG_FORMAT);
        refused += status != ST_OK;
        file.ptr[at] = before;
    }
    assert_true(refused > 1000);
    free(file.ptr);
}

/* -- Files made by hand, with small pages -- */

static struct bytes empty_file(void)
{
    struct bytes file = {.ptr = calloc(PAGES, PAGE), .len = (size_t)PAGES * PAGE};
    for (uint64_t i = 0; i < 2; i++) {
        struct bolt_page head = {.id = i, .flags = BOLT_META};
        struct bolt_meta meta = {
            .page_bytes = PAGE, .root = {.root = 2}, .pages = PAGES, .txid = i + 1};
        meta.freelist = BOLT_NO_FREELIST;
        bolt_meta_finish(&meta);
        memcpy(file.ptr + i * PAGE, &head, sizeof(head));
        memcpy(file.ptr + i * PAGE + sizeof(head), &meta, sizeof(meta));
    }
    return file;
}

static void change_meta(struct bytes *file, unsigned which, struct bolt_meta change)
{
    change.page_bytes = PAGE;
    bolt_meta_finish(&change);
    memcpy(file->ptr + (size_t)which * PAGE + sizeof(struct bolt_page), &change, sizeof(change));
}

/* A leaf with one key, which is the page's number, or with none. */
static void leaf_at(struct bytes *file, uint64_t id, unsigned count)
{
    struct bolt_page head = {.id = id, .flags = BOLT_LEAF, .count = (uint16_t)count};
    struct bolt_leaf_element element = {.pos = sizeof(element), .ksize = 1, .vsize = 1};
    uint8_t *page = file->ptr + id * PAGE;
    memcpy(page, &head, sizeof(head));
    memcpy(page + sizeof(head), &element, sizeof(element));
    page[sizeof(head) + sizeof(element)] = (uint8_t)id;
}

static void branch_at(struct bytes *file, uint64_t id, const uint64_t *below, unsigned count)
{
    struct bolt_page head = {.id = id, .flags = BOLT_BRANCH, .count = (uint16_t)count};
    uint8_t *page = file->ptr + id * PAGE;
    memcpy(page, &head, sizeof(head));
    for (unsigned i = 0; i < count; i++) {
        struct bolt_branch_element element = {.pos = 500, .ksize = 1, .pgid = below[i]};
        memcpy(page + sizeof(head) + i * sizeof(element), &element, sizeof(element));
    }
}

static void assert_refused(struct bytes *file, const char *what)
{
    struct bolt_reader reader;
    size_t found;
    enum status status = open_reader(&reader, file);
    if (status == ST_OK)
        status = walk_all(&reader, &found);
    assert_int_equal(status, ST_DAMAGED);
    if (!strstr(reader.error.text, what))
        fail_msg("it says: %s", reader.error.text);
}

static void newer_valid_meta_is_used(void **state)
{
    (void)state;
    struct bytes file = empty_file();
    leaf_at(&file, 2, 0);
    leaf_at(&file, 3, 1);
    struct bolt_meta newer = {.root = {.root = 3}, .pages = PAGES, .txid = 9};
    struct bolt_reader reader;
    size_t found;
    for (unsigned which = 0; which < 2; which++) {
        change_meta(&file, which, newer);
        change_meta(&file, !which, (struct bolt_meta){.root = {2, 0}, .pages = PAGES, .txid = 8});
        assert_int_equal(open_reader(&reader, &file), ST_OK);
        assert_int_equal(walk_all(&reader, &found), ST_OK);
        assert_int_equal(found, 1);
        file.ptr[(size_t)which * PAGE + sizeof(struct bolt_page) + 20] ^= 1;
        assert_int_equal(open_reader(&reader, &file), ST_OK);
        assert_int_equal(walk_all(&reader, &found), ST_OK);
        assert_int_equal(found, 0);
    }
    free(file.ptr);
}

static void invalid_trees_are_refused(void **state)
{
    (void)state;
    struct bytes file = empty_file();
    branch_at(&file, 2, (uint64_t[]){2}, 1);
    assert_refused(&file, "deeper than any tree");
    branch_at(&file, 2, (uint64_t[]){3, 3, 3}, 3);
    leaf_at(&file, 3, 0);
    struct bolt_reader reader;
    size_t found;
    assert_int_equal(open_reader(&reader, &file), ST_OK);
    assert_int_equal(walk_all(&reader, &found), ST_OK); /* empty leaves are harmless … */
    leaf_at(&file, 3, 1);
    assert_refused(&file, "out of order");
    uint64_t many[20];
    for (size_t i = 0; i < COUNT_OF(many); i++)
        many[i] = 3;
    leaf_at(&file, 3, 0);
    branch_at(&file, 2, (uint64_t[]){4, 4, 4, 4, 4, 4}, 6);
    branch_at(&file, 4, many, COUNT_OF(many));
    assert_refused(&file, "circle"); /* … but there cannot be more of them than pages */
    branch_at(&file, 2, (uint64_t[]){PAGES}, 1);
    assert_refused(&file, "no such page");
    branch_at(&file, 2, (uint64_t[]){1}, 1);
    assert_refused(&file, "no such page");
    branch_at(&file, 2, NULL, 0);
    assert_refused(&file, "nothing below it");
    free(file.ptr);
}

static void pages_with_wrong_fields_are_refused(void **state)
{
    (void)state;
    struct bytes file = empty_file();
    struct bolt_page head = {.id = 2, .flags = BOLT_FREELIST};
    memcpy(file.ptr + 2 * PAGE, &head, sizeof(head));
    assert_refused(&file, "neither a branch nor a leaf");
    head = (struct bolt_page){.id = 3, .flags = BOLT_LEAF};
    memcpy(file.ptr + 2 * PAGE, &head, sizeof(head));
    assert_refused(&file, "another one");
    head = (struct bolt_page){.id = 2, .flags = BOLT_LEAF, .overflow = PAGES};
    memcpy(file.ptr + 2 * PAGE, &head, sizeof(head));
    assert_refused(&file, "past the end of the file");
    head = (struct bolt_page){.id = 2, .flags = BOLT_LEAF, .count = 64};
    memcpy(file.ptr + 2 * PAGE, &head, sizeof(head));
    assert_refused(&file, "more elements than room");
    leaf_at(&file, 2, 1);
    struct bolt_leaf_element element = {.pos = 16, .ksize = UINT32_MAX, .vsize = UINT32_MAX};
    memcpy(file.ptr + 2 * PAGE + sizeof(head), &element, sizeof(element));
    assert_refused(&file, "past its end");
    change_meta(&file, 1, (struct bolt_meta){.root = {PAGES, 0}, .pages = PAGES, .txid = 9});
    assert_refused(&file, "as the root");
    change_meta(&file, 1, (struct bolt_meta){.root = {2, 0}, .pages = UINT64_MAX, .txid = 9});
    assert_refused(&file, "was truncated");
    free(file.ptr);
}

/* A bucket within a page contains another one, which has pages of its own. */
static void buckets_nest(void **state)
{
    (void)state;
    struct bytes file = empty_file();
    struct {
        struct bolt_page head;
        struct bolt_leaf_element outer;
        uint8_t name[8];
        struct bolt_bucket bucket;
        struct bolt_page inline_head;
        struct bolt_leaf_element inner;
        uint8_t inner_name[8];
        struct bolt_bucket inner_bucket;
    } page = {
        .head = {.id = 2, .flags = BOLT_LEAF, .count = 1},
        .outer = {.flags = BOLT_LEAF_BUCKET, .pos = 16, .ksize = 8, .vsize = 72},
        .inline_head = {.flags = BOLT_LEAF, .count = 1},
        .inner = {.flags = BOLT_LEAF_BUCKET, .pos = 16, .ksize = 8, .vsize = 16},
        .inner_bucket = {.root = 5},
    };
    memcpy(file.ptr + 2 * PAGE, &page, sizeof(page));
    leaf_at(&file, 5, 1);
    struct bolt_reader reader;
    size_t found;
    assert_int_equal(open_reader(&reader, &file), ST_OK);
    assert_int_equal(walk_all(&reader, &found), ST_OK);
    assert_int_equal(found, 1);
    page.outer.vsize = 31;
    memcpy(file.ptr + 2 * PAGE, &page, sizeof(page));
    assert_refused(&file, "head of a bucket is cut");
    page.outer.vsize = 72;
    page.inline_head.flags = BOLT_BRANCH;
    memcpy(file.ptr + 2 * PAGE, &page, sizeof(page));
    assert_refused(&file, "not a leaf");
    free(file.ptr);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(written_files_are_read),
        cmocka_unit_test(truncated_files_are_refused),
        cmocka_unit_test(file_that_shrinks_is_an_error),
        cmocka_unit_test(changed_bytes_are_errors_or_harmless),
        cmocka_unit_test(newer_valid_meta_is_used),
        cmocka_unit_test(invalid_trees_are_refused),
        cmocka_unit_test(pages_with_wrong_fields_are_refused),
        cmocka_unit_test(buckets_nest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
