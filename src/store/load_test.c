/* The index as loaded from the checkpoint: keys of every shape, in any order of revisions. */
#include "store/load.h"

#include "base/random.h"
#include "store/backend/backend_memory.h"
#include "store/backend/backend_private.h"
#include "store/load_queue.h"
#include "store/log/log.h"
#include "store/mvcc/applier.h"
#include "store/upkeep/segments.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

struct fixture {
    struct backend_disk *disk;
    struct backend *backend;
    struct epoch *epoch;
    struct index *index;
    size_t count; /* number of versions added */
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    f->disk = backend_disk_new();
    f->backend = backend_memory_open(f->disk);
    f->epoch = epoch_new(1);
    f->index = index_new(f->epoch);
    assert_int_equal(backend_begin(f->backend), ST_OK);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    epoch_free(f->epoch);
    index_free(f->index);
    backend_close(f->backend);
    backend_disk_free(f->disk);
    free(f);
    return 0;
}

enum { SEGMENT = 3, LAST_REVISION = 1000 * 1000 };

static uint64_t loc_of(int64_t revision, uint32_t sub)
{
    return ((uint64_t)SEGMENT << LOG_OFFSET_BITS) + (uint64_t)revision * 80 + sub * 8;
}

static void add(struct fixture *f, struct slice key, int64_t revision, uint32_t sub, bool tombstone)
{
    struct backend_version version = {
        .id = {revision, sub},
        .create_revision = tombstone ? 0 : 1,
        .version = tombstone ? 0 : revision,
        .lease = tombstone ? 0 : revision * 3,
        .loc = loc_of(revision, sub),
        .field_bytes = 40,
        .key = key,
    };
    assert_int_equal(backend_version_put(f->backend, &version), ST_OK);
    f->count++;
}

static void load(struct fixture *f)
{
    struct backend_segment segment = {.id = SEGMENT, .used_bytes = 1 << 30};
    assert_int_equal(backend_meta_put(f->backend, BACKEND_DB_BYTES_IN_USE,
                                      (int64_t)f->count * applier_db_bytes(40)),
                     ST_OK);
    assert_int_equal(backend_meta_put(f->backend, BACKEND_REVISION, LAST_REVISION), ST_OK);
    assert_int_equal(backend_segment_put(f->backend, &segment), ST_OK);
    assert_int_equal(backend_commit(f->backend), ST_OK);
    assert_int_equal(store_load_index(f->backend, f->index), ST_OK);
    index_check(f->index);
}

static const struct index_item *find(struct fixture *f, struct slice key)
{
    const struct index_item *item = index_find(f->index, key);
    assert_non_null(item);
    return item;
}

static void empty_checkpoint_makes_an_empty_index(void **state)
{
    struct fixture *f = *state;
    load(f);
    assert_int_equal(index_working_root(f->index).live_keys, 0);
    assert_null(index_find(f->index, SLICE_LITERAL("k")));
}

static void versions_of_a_key_are_collected_in_order(void **state)
{
    struct fixture *f = *state;
    add(f, SLICE_LITERAL("k"), 2, 0, false);
    add(f, SLICE_LITERAL("other"), 3, 0, false);
    add(f, SLICE_LITERAL("k"), 4, 0, false);
    add(f, SLICE_LITERAL("k"), 4, 1, true); /* one revision with two changes */
    add(f, SLICE_LITERAL("k"), 9, 7, false);
    load(f);
    const struct index_item *item = find(f, SLICE_LITERAL("k"));
    assert_int_equal(item->older_count, 3);
    assert_int_equal(index_item_older(item)[0], loc_of(2, 0));
    assert_int_equal(index_item_older(item)[1], loc_of(4, 0));
    assert_int_equal(index_item_older(item)[2], loc_of(4, 1));
    assert_int_equal(item->newest.mod_revision, 9);
    assert_int_equal(item->newest.sub_revision, 7);
    assert_int_equal(item->newest.loc, loc_of(9, 7));
    assert_int_equal(item->newest.lease, 27);
    assert_int_equal(item->newest.field_bytes, 40);
    assert_int_equal(index_working_root(f->index).live_keys, 2);
}

static void tombstone_is_not_counted_as_a_key(void **state)
{
    struct fixture *f = *state;
    add(f, SLICE_LITERAL("k"), 2, 0, false);
    add(f, SLICE_LITERAL("k"), 3, 0, true);
    load(f);
    const struct index_item *item = find(f, SLICE_LITERAL("k"));
    assert_false(index_item_live(item));
    assert_int_equal(item->newest.field_bytes, 0);
    assert_int_equal(index_working_root(f->index).live_keys, 0);
    assert_int_equal(index_working_root(f->index).live_bytes, 0);
}

/* Zeros in keys, keys that are prefixes of others, and a common prefix as long as a whole key. */
static void keys_with_small_differences_are_distinguished(void **state)
{
    static const struct slice keys[] = {
        SLICE_LITERAL("prefix/a"),
        SLICE_LITERAL("prefix/"),
        SLICE_LITERAL("prefix/a\0"),
        SLICE_LITERAL("prefix/a\0\0"),
        SLICE_LITERAL("prefix/a\0b"),
        SLICE_LITERAL("prefix/12345678"),
        SLICE_LITERAL("prefix/1234567"),
        SLICE_LITERAL("prefix/123456789"),
        SLICE_LITERAL("prefix/12345678\0"),
        SLICE_LITERAL("prefix/\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        add(f, keys[i], (int64_t)i + 2, 0, false);
    load(f);
    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        const struct index_item *item = find(f, keys[i]);
        assert_int_equal(item->newest.mod_revision, i + 2);
        assert_int_equal(item->older_count, 0);
    }
    assert_int_equal(index_working_root(f->index).live_keys, COUNT_OF(keys));
}

static void many_keys_in_random_order_are_all_found(void **state)
{
    enum { KEYS = 3000, VERSIONS = 10000 };
    struct fixture *f = *state;
    static int64_t newest[KEYS];
    static uint32_t count[KEYS];
    memset(newest, 0, sizeof(newest));
    memset(count, 0, sizeof(count));
    struct random random;
    random_init(&random, 5);
    for (int i = 0; i < VERSIONS; i++) {
        size_t key = random_below(&random, KEYS);
        char name[32];
        int n = snprintf(name, sizeof(name), "%zu/%zu", key % 13, key);
        newest[key] = i + 2;
        count[key]++;
        add(f, slice_of(name, (size_t)n), newest[key], 0, false);
    }
    load(f);
    for (size_t key = 0; key < KEYS; key++) {
        char name[32];
        int n = snprintf(name, sizeof(name), "%zu/%zu", key % 13, key);
        if (!count[key]) {
            assert_null(index_find(f->index, slice_of(name, (size_t)n)));
            continue;
        }
        const struct index_item *item = find(f, slice_of(name, (size_t)n));
        assert_int_equal(item->newest.mod_revision, newest[key]);
        assert_int_equal(item->older_count, count[key] - 1);
    }
}

/* So few that no thread loads them, and the memory can be measured meanwhile. */
enum { LONG_HISTORY = 48 * 1000, LONG_KEYS = 240 };
_Static_assert((int)LONG_HISTORY < (int)LOAD_ALONE_MAX, "");

/* A checkpoint that is generated while it is read, and measures the memory of its reader. */
struct endless {
    struct backend backend;
    struct index *index;
    size_t bytes_before, bytes_max;
};

static size_t bytes_taken(const struct index *index)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd + index_bytes_held(index);
}

static enum status scan_endless(struct backend *backend, struct backend_version_id from,
                                backend_version_fn fn, void *ctx)
{
    struct endless *endless = CONTAINER_OF(backend, struct endless, backend);
    assert_int_equal(from.revision, 0);
    for (int64_t i = 0; i < LONG_HISTORY; i++) {
        int64_t key = i % LONG_KEYS;
        struct backend_version version = {
            .id = {i + 2, 0},
            .create_revision = 2,
            .version = 1,
            .loc = loc_of(i, 0),
            .field_bytes = 40,
            .key = slice_of(&key, sizeof(key)),
        };
        TRY(fn(ctx, &version));
        if (i % 64 == 0)
            endless->bytes_max = size_max(endless->bytes_max, bytes_taken(endless->index));
    }
    return ST_OK;
}

static enum status scan_no_rows(struct backend *backend, row_fn fn, void *ctx)
{
    (void)backend, (void)fn, (void)ctx;
    return ST_OK;
}

static enum status scan_one_segment(struct backend *backend, backend_segment_fn fn, void *ctx)
{
    (void)backend;
    return fn(ctx, &(struct backend_segment){
                       .id = SEGMENT,
                       .used_bytes = 1 << 30,
                       .live_bytes = LONG_HISTORY * segments_live_bytes(40),
                   });
}

/* They are not counted either: a record whose versions are only partly here will be replayed. */
static void versions_of_an_unfinished_record_are_left_out(void **state)
{
    struct fixture *f = *state;
    add(f, SLICE_LITERAL("k"), 2, 0, false);
    add(f, SLICE_LITERAL("k"), LAST_REVISION + 1, 0, false);
    add(f, SLICE_LITERAL("l"), LAST_REVISION + 1, 1, false);
    f->count -= 2;
    load(f);
    assert_int_equal(find(f, SLICE_LITERAL("k"))->newest.mod_revision, 2);
    assert_null(index_find(f->index, SLICE_LITERAL("l")));
    assert_int_equal(store_load_drop_unfinished(f->backend), ST_OK);
    struct backend_version version;
    assert_int_equal(backend_version_get(f->backend, (struct backend_version_id){2, 0}, &version),
                     ST_OK);
    assert_int_equal(backend_version_get(
                         f->backend, (struct backend_version_id){LAST_REVISION + 1, 1}, &version),
                     ST_NOT_FOUND);
}

/* Impossible values are refused, and nothing is read through them later. */
static void invalid_locations_are_damage(void **state)
{
    struct fixture *f = *state;
    const uint64_t used = 4096;
    static const struct {
        uint64_t segment, offset;
        uint32_t field_bytes;
        const char *key;
        enum status status;
        int64_t missing; /* bytes that the checkpoint counts and does not have */
    } rows[] = {
        {SEGMENT, 512, 40, "k", ST_DAMAGED, 40}, {SEGMENT, 4024, 40, "k", ST_OK, 0},
        {SEGMENT, 4032, 40, "k", ST_DAMAGED, 0}, {SEGMENT, 8192, 40, "k", ST_DAMAGED, 0},
        {SEGMENT, 513, 40, "k", ST_DAMAGED, 0},  {SEGMENT + 1, 512, 40, "k", ST_DAMAGED, 0},
        {SEGMENT, 512, 40, "", ST_DAMAGED, 0},   {SEGMENT, 512, UINT32_MAX, "k", ST_DAMAGED, 0},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct backend_version version = {
            .id = {2, 0},
            .create_revision = 2,
            .version = 1,
            .loc = (rows[i].segment << LOG_OFFSET_BITS) + rows[i].offset,
            .field_bytes = rows[i].field_bytes,
            .key = slice_from_text(rows[i].key),
        };
        struct backend_segment segment = {.id = SEGMENT, .used_bytes = used};
        int64_t db_bytes = applier_db_bytes(rows[i].field_bytes) + rows[i].missing;
        assert_int_equal(backend_meta_put(f->backend, BACKEND_DB_BYTES_IN_USE, db_bytes), ST_OK);
        assert_int_equal(backend_meta_put(f->backend, BACKEND_REVISION, 2), ST_OK);
        assert_int_equal(backend_version_put(f->backend, &version), ST_OK);
        assert_int_equal(backend_segment_put(f->backend, &segment), ST_OK);
        assert_int_equal(backend_commit(f->backend), ST_OK);
        struct index *index = index_new(f->epoch);
        assert_int_equal(store_load_index(f->backend, index), rows[i].status);
        index_free(index);
        assert_int_equal(backend_begin(f->backend), ST_OK);
    }
}

/* If the memory was enough for a long history, it must be enough after a restart too. */
static void loading_a_long_history_needs_no_extra_memory(void **state)
{
    struct fixture *f = *state;
    static const struct backend_ops ops = {.versions_scan = scan_endless,
                                           .segments_scan = scan_one_segment,
                                           .rows_scan = scan_no_rows};
    struct endless endless = {
        .backend = {.ops = &ops},
        .index = f->index,
        .bytes_before = bytes_taken(f->index),
    };
    endless.backend.numbers.present[BACKEND_DB_BYTES_IN_USE] = true;
    endless.backend.numbers.present[BACKEND_REVISION] = true;
    endless.backend.numbers.values[BACKEND_REVISION] = LONG_HISTORY + 1;
    endless.backend.numbers.values[BACKEND_DB_BYTES_IN_USE] = LONG_HISTORY * applier_db_bytes(40);
    assert_int_equal(store_load_index(&endless.backend, f->index), ST_OK);
    buf_fini(&endless.backend.encoded);
    index_check(f->index);
    size_t kept = bytes_taken(f->index) - endless.bytes_before;
    size_t most = endless.bytes_max - endless.bytes_before;
    print_message("%zu bytes kept, at most %zu while loading\n", kept, most);
    /* This is the worst case: all keys outgrow their arrays at the same time. */
    assert_true(most < 25ul * LONG_HISTORY);
    assert_true(most < 2 * kept);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(empty_checkpoint_makes_an_empty_index),
        TEST(invalid_locations_are_damage),
        TEST(versions_of_an_unfinished_record_are_left_out),
        TEST(versions_of_a_key_are_collected_in_order),
        TEST(tombstone_is_not_counted_as_a_key),
        TEST(keys_with_small_differences_are_distinguished),
        TEST(many_keys_in_random_order_are_all_found),
        TEST(loading_a_long_history_needs_no_extra_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
