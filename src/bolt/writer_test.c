/* The files are read by a separate reader in this test, which checks every page against bbolt's
 * rules. */
#include "bolt/writer.h"

#include "base/buf.h"
#include "base/random.h"
#include "base/xalloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* -- Contents -- */

struct pair {
    struct slice key, value;
};

struct content {
    const char *name;
    struct pair *pairs;
    size_t count;
};

static size_t feed_pairs(struct bolt_writer *writer, const struct content *content,
                         struct buf *file, size_t step)
{
    size_t held_max = 0;
    bolt_writer_bucket(writer, slice_from_text(content->name));
    for (size_t i = 0; i < content->count; i++) {
        bolt_writer_add(writer, content->pairs[i].key, content->pairs[i].value);
        size_t held = 0, n;
        do {
            assert_int_equal(buf_reserve(file, step), ST_OK);
            n = bolt_writer_take(writer, file->ptr + file->len, step);
            file->len += n;
            held += n;
        } while (n == step);
        held_max = size_max(held_max, held - size_min(held, content->pairs[i].value.len));
    }
    return held_max;
}

static uint64_t feed(struct bolt_writer *writer, const struct content *contents, size_t count,
                     struct buf *file, size_t step)
{
    for (size_t i = 0; i < count; i++)
        assert_true(feed_pairs(writer, &contents[i], file, step) < 64 * 1024);
    uint64_t pages = bolt_writer_end(writer);
    for (size_t n = step; n == step;) {
        assert_int_equal(buf_reserve(file, step), ST_OK);
        n = bolt_writer_take(writer, file->ptr + file->len, step);
        file->len += n;
    }
    return pages;
}

/* Counts, then writes; the output is taken in pieces of `step`. */
static struct buf write_file(const struct content *contents, size_t count, size_t step)
{
    AUTO(bolt_writer_freep) struct bolt_writer *counter = bolt_writer_new(0);
    struct buf file = {0};
    uint64_t pages = feed(counter, contents, count, &file, step);
    assert_int_equal(file.len, 0);
    AUTO(bolt_writer_freep) struct bolt_writer *writer = bolt_writer_new(pages);
    assert_int_equal(feed(writer, contents, count, &file, step), pages);
    assert_int_equal(file.len, pages * BOLT_PAGE_BYTES);
    return file;
}

/* -- Reading back -- */

struct reading {
    struct slice file;
    uint64_t pages;
    uint8_t *seen;             /* a flag for each page */
    const struct pair *expect; /* the next one expected */
    size_t left;
};

static const struct bolt_page *page_at(struct reading *reading, uint64_t id)
{
    assert_true(id < reading->pages);
    const struct bolt_page *page = (const void *)(reading->file.ptr + id * BOLT_PAGE_BYTES);
    assert_int_equal(page->id, id);
    assert_true(page->overflow < reading->pages - id);
    for (uint64_t i = id; i <= id + page->overflow; i++) {
        assert_int_equal(reading->seen[i], 0);
        reading->seen[i] = 1;
    }
    return page;
}

static struct slice in_page(const struct bolt_page *page, const void *element, size_t pos,
                            size_t len)
{
    const uint8_t *at = (const uint8_t *)element + pos;
    const uint8_t *end = (const uint8_t *)page + ((size_t)page->overflow + 1) * BOLT_PAGE_BYTES;
    assert_true(at <= end && len <= (size_t)(end - at));
    return slice_of(at, len);
}

static void read_leaf(struct reading *reading, const struct bolt_page *page)
{
    const struct bolt_leaf_element *elements = (const void *)(page + 1);
    for (unsigned i = 0; i < page->count; i++) {
        const struct bolt_leaf_element *e = &elements[i];
        assert_int_equal(e->flags, 0);
        assert_true(reading->left > 0);
        assert_true(slice_equal(in_page(page, e, e->pos, e->ksize), reading->expect->key));
        assert_true(
            slice_equal(in_page(page, e, e->pos + e->ksize, e->vsize), reading->expect->value));
        reading->expect++;
        reading->left--;
    }
}

static void read_tree(struct reading *reading, uint64_t id, struct slice first_key)
{
    const struct bolt_page *page = page_at(reading, id);
    assert_true(page->count > 0);
    if (first_key.ptr)
        assert_true(slice_equal(first_key, reading->expect->key));
    if (page->flags == BOLT_LEAF) {
        read_leaf(reading, page);
        return;
    }
    assert_int_equal(page->flags, BOLT_BRANCH);
    assert_true(page->count > 1);
    const struct bolt_branch_element *elements = (const void *)(page + 1);
    for (unsigned i = 0; i < page->count; i++)
        read_tree(reading, elements[i].pgid,
                  in_page(page, &elements[i], elements[i].pos, elements[i].ksize));
}

static void read_bucket(struct reading *reading, struct slice value, const struct content *content)
{
    const struct bolt_bucket *bucket = (const void *)value.ptr;
    reading->expect = content->pairs;
    reading->left = content->count;
    if (content->count == 0) {
        const struct bolt_page *inline_page = (const void *)(bucket + 1);
        assert_int_equal(value.len, BOLT_BUCKET_BYTES + BOLT_PAGE_HEAD_BYTES);
        assert_int_equal(bucket->root, 0);
        assert_int_equal(inline_page->flags, BOLT_LEAF);
        assert_int_equal(inline_page->count, 0);
        return;
    }
    assert_int_equal(value.len, BOLT_BUCKET_BYTES);
    read_tree(reading, bucket->root, SLICE_EMPTY);
    assert_int_equal(reading->left, 0);
}

static const struct bolt_meta *read_meta(struct reading *reading, uint64_t number)
{
    const struct bolt_page *page = page_at(reading, number);
    assert_int_equal(page->flags, BOLT_META);
    const struct bolt_meta *meta = (const void *)(page + 1);
    assert_int_equal(bolt_meta_check(meta), ST_OK);
    assert_int_equal(meta->txid, number);
    assert_int_equal(meta->pages, reading->pages);
    assert_int_equal(meta->page_bytes, BOLT_PAGE_BYTES);
    return meta;
}

static void read_file(struct slice file, const struct content *contents, size_t count)
{
    struct reading reading = {.file = file, .pages = file.len / BOLT_PAGE_BYTES};
    reading.seen = xcalloc(reading.pages, 1);
    const struct bolt_meta *meta = read_meta(&reading, 0);
    assert_int_equal(read_meta(&reading, 1)->root.root, meta->root.root);
    const struct bolt_page *freelist = page_at(&reading, meta->freelist);
    assert_int_equal(freelist->flags, BOLT_FREELIST);
    assert_int_equal(freelist->count, 0);
    const struct bolt_page *root = page_at(&reading, meta->root.root);
    assert_int_equal(root->flags, BOLT_LEAF);
    assert_int_equal(root->count, count);
    const struct bolt_leaf_element *elements = (const void *)(root + 1);
    for (size_t i = 0; i < count; i++) {
        const struct bolt_leaf_element *e = &elements[i];
        assert_int_equal(e->flags, BOLT_LEAF_BUCKET);
        struct slice name = in_page(root, e, e->pos, e->ksize);
        assert_true(slice_equal(name, slice_from_text(contents[i].name)));
        struct slice value = in_page(root, e, e->pos + e->ksize, e->vsize);
        uint8_t *aligned = xmalloc(value.len);
        slice_copy(aligned, value);
        read_bucket(&reading, slice_of(aligned, value.len), &contents[i]);
        free(aligned);
    }
    for (uint64_t i = 0; i < reading.pages; i++)
        assert_int_equal(reading.seen[i], 1);
    free(reading.seen);
}

static void round_trip(const struct content *contents, size_t count, size_t step)
{
    struct buf file = write_file(contents, count, step);
    read_file(buf_slice(&file), contents, count);
    buf_fini(&file);
}

/* -- Contents -- */

static uint8_t some_bytes[1 << 20];

/* Keys of 17 bytes in order, with values of the lengths that `length` returns. */
static struct content make(const char *name, size_t count, size_t (*length)(struct random *random),
                           uint64_t seed)
{
    struct random random;
    random_init(&random, seed);
    struct content content = {name, xcalloc(count + 1, sizeof(struct pair)), count};
    uint8_t *keys = xmalloc(18 * (count + 1)); /* freed with the first pair's key */
    for (size_t i = 0; i < count; i++) {
        snprintf((char *)keys + 18 * i, 18, "%017u", (unsigned)i);
        size_t len = length(&random);
        size_t from = (size_t)random_below(&random, sizeof(some_bytes) - len + 1);
        content.pairs[i] =
            (struct pair){slice_of(keys + 18 * i, 17), slice_of(some_bytes + from, len)};
    }
    if (count == 0)
        free(keys);
    return content;
}

static void unmake(struct content *content)
{
    if (content->count)
        free((void *)(uintptr_t)content->pairs[0].key.ptr);
    free(content->pairs);
}

static size_t none(struct random *random)
{
    (void)random;
    return 0;
}

static size_t small(struct random *random)
{
    return (size_t)random_below(random, 300);
}

static size_t long_one(struct random *random)
{
    return 5000 + (size_t)random_below(random, 100000);
}

/* Lengths around what just fits a page. */
static size_t about_a_page(struct random *random)
{
    return 4096 - 16 - 16 - 17 - 3 + (size_t)random_below(random, 6);
}

static size_t any(struct random *random)
{
    switch (random_below(random, 12)) {
    case 0:
        return long_one(random);
    case 1:
        return about_a_page(random);
    default:
        return small(random);
    }
}

static void one_bucket(size_t count, size_t (*length)(struct random *random), size_t step)
{
    struct content content = make("key", count, length, count);
    round_trip(&content, 1, step);
    unmake(&content);
}

static void empty_bucket_is_inline(void **state)
{
    (void)state;
    one_bucket(0, none, 4096);
}

static void few_keys_are_one_leaf(void **state)
{
    (void)state;
    one_bucket(1, small, 4096);
    one_bucket(3, small, 4096);
}

static void many_leaves_have_branches(void **state)
{
    (void)state;
    /* A leaf holds 123 of these, and a branch as many leaves. */
    one_bucket(123, none, 4096);
    one_bucket(124, none, 4096);
    for (size_t i = 0; i < 3; i++)
        one_bucket(123 * (122 + i) + 1, none, 4096);
    one_bucket(40000, none, 4096);
}

static void long_values_have_overflow_pages(void **state)
{
    (void)state;
    one_bucket(1, long_one, 4096);
    one_bucket(2, long_one, 4096);
    one_bucket(500, long_one, 4096);
}

static void values_that_just_fit_are_not_moved(void **state)
{
    (void)state;
    one_bucket(1000, about_a_page, 4096);
}

static void values_of_all_lengths_are_mixed(void **state)
{
    (void)state;
    for (size_t count = 1; count < 3000; count += 1 + count / 3)
        one_bucket(count, any, 4096);
}

static void file_is_the_same_however_it_is_read(void **state)
{
    (void)state;
    struct content content = make("key", 400, any, 7);
    struct buf whole = write_file(&content, 1, 1 << 20);
    static const size_t steps[] = {1, 7, 4095, 4096, 32768};
    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        struct buf again = write_file(&content, 1, steps[i]);
        assert_true(slice_equal(buf_slice(&whole), buf_slice(&again)));
        buf_fini(&again);
    }
    buf_fini(&whole);
    unmake(&content);
}

static void several_buckets_are_written(void **state)
{
    (void)state;
    struct content contents[] = {
        make("alarm", 0, none, 1),     make("auth", 2, small, 2),   make("key", 5000, any, 3),
        make("lease", 9000, small, 4), make("members", 0, none, 5), make("meta", 6, small, 6),
    };
    round_trip(contents, COUNT_OF(contents), 4096);
    for (size_t i = 0; i < COUNT_OF(contents); i++)
        unmake(&contents[i]);
}

static void longest_keys_make_a_tree(void **state)
{
    (void)state;
    enum { COUNT = 200 };
    static uint8_t keys[COUNT][BOLT_WRITER_KEY_BYTES_MAX];
    static struct pair pairs[COUNT];
    for (unsigned i = 0; i < COUNT; i++) {
        memset(keys[i], 'k', sizeof(keys[i]));
        keys[i][0] = (uint8_t)i;
        pairs[i] = (struct pair){slice_of(keys[i], sizeof(keys[i])), SLICE_LITERAL("v")};
    }
    round_trip(&(struct content){"authUsers", pairs, COUNT}, 1, 4096);
}

static int fill_some_bytes(void **state)
{
    (void)state;
    struct random random;
    random_init(&random, 1);
    random_fill(&random, some_bytes, sizeof(some_bytes));
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_bucket_is_inline),
        cmocka_unit_test(few_keys_are_one_leaf),
        cmocka_unit_test(many_leaves_have_branches),
        cmocka_unit_test(long_values_have_overflow_pages),
        cmocka_unit_test(values_that_just_fit_are_not_moved),
        cmocka_unit_test(values_of_all_lengths_are_mixed),
        cmocka_unit_test(file_is_the_same_however_it_is_read),
        cmocka_unit_test(several_buckets_are_written),
        cmocka_unit_test(longest_keys_make_a_tree),
    };
    return cmocka_run_group_tests(tests, fill_some_bytes, NULL);
}
