/* The contents of the file, read with bolt/reader.h, and events while it is made. */
#include "store/snapshot.h"

#include "bolt/reader.h"
#include "store/fixture_test.h"

/* -- Other buckets -- */

/* Some leases, and the compact revision. */
struct lease_source {
    struct snapshot_source base;
    size_t leases;
    uint8_t key[BOLT_NUMBER_BYTES];
};

static bool entry(struct snapshot_source *base, enum bolt_etcd_bucket bucket, size_t i,
                  int64_t compact_revision, struct snapshot_entry *ret_entry)
{
    struct lease_source *source = CONTAINER_OF(base, struct lease_source, base);
    if (bucket == BOLT_BUCKET_META && i == 0 && compact_revision >= 0) {
        bolt_number_write((uint64_t)compact_revision, source->key);
        *ret_entry = (struct snapshot_entry){BOLT_META_FINISHED_COMPACT,
                                             slice_of(source->key, sizeof(source->key))};
        return true;
    }
    if (bucket != BOLT_BUCKET_LEASE || i >= source->leases)
        return false;
    bolt_number_write(i, source->key);
    *ret_entry = (struct snapshot_entry){slice_of(source->key, sizeof(source->key)),
                                         SLICE_LITERAL("\x08\x01")};
    return true;
}

static struct lease_source source = {.base.entry = entry, .leases = 300};

/* -- Making one -- */

static enum status no_row(void *ctx, const struct row *row)
{
    (void)ctx;
    (void)row;
    return ST_OK;
}

static struct store_snapshot *begin(struct fixture *f)
{
    fixture_commit(f);
    struct upkeep_base base;
    assert_int_equal(upkeep_base_take(f->upkeep, no_row, NULL, &base), ST_OK);
    assert_int_equal(base.revision, store_view(f->store)->revision);
    assert_int_equal(base.log_index, store_view(f->store)->log_index);
    return store_snapshot_new(base.hold, base.revision, &source.base);
}

static enum status step(struct fixture *f, struct store_snapshot *snapshot, unsigned changes)
{
    return store_snapshot_measure(snapshot, store_view(f->store), store_log(f->store), changes);
}

static void measure(struct fixture *f, struct store_snapshot *snapshot, unsigned changes)
{
    enum status status;
    while ((status = step(f, snapshot, changes)) == ST_AGAIN)
        ;
    assert_int_equal(status, ST_OK);
}

static struct buf fill(struct store_snapshot *snapshot, size_t room)
{
    struct buf file = {0};
    for (size_t len = room; len == room; file.len += len) {
        assert_int_equal(buf_reserve(&file, room), ST_OK);
        assert_int_equal(store_snapshot_fill(snapshot, file.ptr + file.len, room, &len), ST_OK);
    }
    assert_int_equal(file.len, store_snapshot_bytes(snapshot));
    return file;
}

/* -- Reading it -- */

static enum status read_bytes(void *ctx, void *to, size_t len, uint64_t offset)
{
    const struct buf *file = ctx;
    assert_true(offset <= file->len && len <= file->len - offset);
    memcpy(to, file->ptr + offset, len);
    return ST_OK;
}

/* The bucket of keys as text: "2.0 a=1 | 3.0t a". */
static const char *keys_text(struct fixture *f, struct buf *file)
{
    struct bolt_reader reader;
    struct bolt_cursor cursor;
    assert_int_equal(bolt_reader_init(&reader, (struct bolt_source){read_bytes, file, file->len}),
                     ST_OK);
    assert_int_equal(bolt_cursor_init_named(&cursor, &reader, SLICE_LITERAL("key")), ST_OK);
    struct buf text = {0};
    struct bolt_entry e;
    while (bolt_cursor_next(&cursor, &e) == ST_OK) {
        struct bolt_revision revision;
        struct pb_key_value kv;
        assert_true(bolt_revision_read(e.key, &revision));
        assert_int_equal(pb_decode(&pb_key_value_table, e.value, &f->arena, &kv), ST_OK);
        assert_int_equal(kv.mod_revision, revision.is_tombstone ? 0 : revision.main);
        assert_int_equal(buf_append_format(&text, "%s%d.%d%s %.*s", text.len ? " | " : "",
                                           (int)revision.main, (int)revision.sub,
                                           revision.is_tombstone ? "t" : "", SLICE_ARGS(kv.key)),
                         ST_OK);
        if (!revision.is_tombstone)
            assert_int_equal(buf_append_format(&text, "=%.*s", SLICE_ARGS(kv.value)), ST_OK);
    }
    struct slice copy;
    assert_int_equal(buf_append(&text, slice_of("", 1)), ST_OK);
    assert_int_equal(arena_dup(&f->arena, buf_slice(&text), &copy), ST_OK);
    buf_fini(&text);
    bolt_cursor_fini(&cursor);
    return (const char *)copy.ptr;
}

static size_t entries_in(struct buf *file, const char *bucket)
{
    struct bolt_reader reader;
    struct bolt_cursor cursor;
    assert_int_equal(bolt_reader_init(&reader, (struct bolt_source){read_bytes, file, file->len}),
                     ST_OK);
    assert_int_equal(bolt_cursor_init_named(&cursor, &reader, slice_from_text(bucket)), ST_OK);
    size_t count = 0;
    struct bolt_entry e;
    while (bolt_cursor_next(&cursor, &e) == ST_OK)
        count++;
    bolt_cursor_fini(&cursor);
    return count;
}

static void expect_keys(struct fixture *f, const char *text)
{
    AUTO(store_snapshot_freep) struct store_snapshot *snapshot = begin(f);
    measure(f, snapshot, 1000);
    struct buf file = fill(snapshot, 4096);
    assert_string_equal(keys_text(f, &file), text);
    buf_fini(&file);
}

static void write_history(struct fixture *f)
{
    fixture_put(f, "a", "1");     /* 2 */
    fixture_put(f, "b", "1");     /* 3 */
    fixture_put(f, "a", "2");     /* 4 */
    fixture_delete(f, "b", "");   /* 5 */
    fixture_put(f, "c", "1");     /* 6 */
    fixture_delete(f, "a", "zz"); /* 7: a and c */
    fixture_put(f, "a", "3");     /* 8 */
}

/* -- Tests -- */

static void empty_store_has_all_buckets(void **state)
{
    struct fixture *f = *state;
    AUTO(store_snapshot_freep) struct store_snapshot *snapshot = begin(f);
    measure(f, snapshot, 7);
    struct buf file = fill(snapshot, 100);
    assert_string_equal(keys_text(f, &file), "");
    for (int i = 0; i < BOLT_BUCKETS; i++) {
        const char *name = (const char *)bolt_bucket_name((enum bolt_etcd_bucket)i).ptr;
        assert_int_equal(entries_in(&file, name), i == BOLT_BUCKET_LEASE ? 300 : 0);
    }
    buf_fini(&file);
}

static void all_versions_are_in_order(void **state)
{
    struct fixture *f = *state;
    write_history(f);
    expect_keys(f, "2.0 a=1 | 3.0 b=1 | 4.0 a=2 | 5.0t b | 6.0 c=1 | 7.0t a | 7.1t c | 8.0 a=3");
}

/* The same whether the store has dropped them or not. */
static void compaction_leaves_the_same_versions_as_in_etcd(void **state)
{
    struct fixture *f = *state;
    static const struct {
        int64_t to;
        const char *keys;
    } rows[] = {
        {4, "3.0 b=1 | 4.0 a=2 | 5.0t b | 6.0 c=1 | 7.0t a | 7.1t c | 8.0 a=3"},
        {5, "4.0 a=2 | 5.0t b | 6.0 c=1 | 7.0t a | 7.1t c | 8.0 a=3"},
        {6, "4.0 a=2 | 6.0 c=1 | 7.0t a | 7.1t c | 8.0 a=3"},
        {7, "7.0t a | 7.1t c | 8.0 a=3"},
        {8, "8.0 a=3"},
    };
    write_history(f);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        fixture_compact(f, rows[i].to);
        expect_keys(f, rows[i].keys);
        fixture_settle(f);
        expect_keys(f, rows[i].keys);
    }
    fixture_restart(f);
    expect_keys(f, "8.0 a=3");
}

static void file_does_not_depend_on_the_size_of_steps(void **state)
{
    struct fixture *f = *state;
    write_history(f);
    fixture_compact(f, 4);
    AUTO(store_snapshot_freep) struct store_snapshot *whole = begin(f);
    measure(f, whole, 1000 * 1000);
    struct buf expected = fill(whole, 1 << 20);
    for (unsigned n = 1; n < 5000; n = n * 3 + 1) {
        AUTO(store_snapshot_freep) struct store_snapshot *snapshot = begin(f);
        measure(f, snapshot, n);
        struct buf file = fill(snapshot, n);
        assert_true(slice_equal(buf_slice(&file), buf_slice(&expected)));
        buf_fini(&file);
    }
    buf_fini(&expected);
}

static void later_writes_are_not_included(void **state)
{
    struct fixture *f = *state;
    write_history(f);
    AUTO(store_snapshot_freep) struct store_snapshot *snapshot = begin(f);
    fixture_put(f, "late", "1");
    fixture_delete(f, "a", "");
    fixture_commit(f);
    measure(f, snapshot, 1);
    fixture_put(f, "later", "1");
    fixture_commit(f);
    struct buf file = fill(snapshot, 512);
    assert_string_equal(
        keys_text(f, &file),
        "2.0 a=1 | 3.0 b=1 | 4.0 a=2 | 5.0t b | 6.0 c=1 | 7.0t a | 7.1t c | 8.0 a=3");
    buf_fini(&file);
}

static void compaction_during_the_measuring_pass_restarts_it(void **state)
{
    struct fixture *f = *state;
    write_history(f);
    AUTO(store_snapshot_freep) struct store_snapshot *snapshot = begin(f);
    assert_int_equal(step(f, snapshot, 5), ST_AGAIN);
    fixture_compact(f, 6);
    fixture_settle(f);
    measure(f, snapshot, 5);
    assert_int_equal(store_snapshot_restarts(snapshot), 1);
    struct buf file = fill(snapshot, 512);
    assert_string_equal(keys_text(f, &file), "4.0 a=2 | 6.0 c=1 | 7.0t a | 7.1t c | 8.0 a=3");
    buf_fini(&file);
}

static void compaction_beyond_the_revision_ends_the_snapshot(void **state)
{
    struct fixture *f = *state;
    write_history(f);
    AUTO(store_snapshot_freep) struct store_snapshot *snapshot = begin(f);
    assert_int_equal(step(f, snapshot, 5), ST_AGAIN);
    fixture_put(f, "b", "2");
    fixture_compact(f, 9);
    fixture_settle(f);
    assert_int_equal(step(f, snapshot, 5), ST_COMPACTED);
}

/* -- Concurrently with the cleaner -- */

static void count_name(void *ctx, const char *name)
{
    (void)name;
    ++*(size_t *)ctx;
}

static size_t files(struct fixture *f)
{
    size_t count = 0;
    assert_int_equal(fs_list(fs_sim_fs(f->sim), "/data/log", count_name, &count), ST_OK);
    return count;
}

/* Returns the last revision. */
static int64_t fill_segments(struct fixture *f, char letter)
{
    char value[400];
    memset(value, letter, sizeof(value));
    value[sizeof(value) - 1] = '\0';
    int64_t revision = 0;
    for (int i = 0; i < 400; i++) {
        char key[16];
        snprintf(key, sizeof(key), "k%02d", i % 40);
        revision = fixture_put(f, key, value);
        fixture_commit(f);
        assert_int_equal(upkeep_prepare(f->upkeep), ST_OK);
    }
    return revision;
}

static void clean_all(struct fixture *f)
{
    fixture_defragment(f, upkeep_defragment_end(f->upkeep));
    while (store_has_retired(f->store))
        assert_int_equal(store_trim_step(f->store), ST_OK);
    assert_int_equal(upkeep_prepare(f->upkeep), ST_OK);
}

static void cleaned_segments_are_kept_until_the_snapshot_ends(void **state)
{
    struct fixture *f = *state;
    fill_segments(f, 'x');
    AUTO(store_snapshot_freep) struct store_snapshot *before = begin(f);
    measure(f, before, 1000);
    struct buf expected = fill(before, 4096);

    struct store_snapshot *slow = begin(f);
    measure(f, slow, 1000);
    size_t held = files(f);
    fixture_compact(f, fill_segments(f, 'y'));
    fixture_settle(f);
    clean_all(f);
    assert_true(files(f) >= held);
    store_snapshot_free(TAKE(before));
    assert_int_equal(upkeep_prepare(f->upkeep), ST_OK);
    assert_true(files(f) >= held);

    struct buf file = fill(slow, 4096);
    assert_true(slice_equal(buf_slice(&file), buf_slice(&expected)));
    store_snapshot_free(slow);
    assert_int_equal(upkeep_prepare(f->upkeep), ST_OK);
    assert_true(files(f) < held);
    buf_fini(&file);
    buf_fini(&expected);
}

static void rewritten_segments_give_the_same_snapshot(void **state)
{
    struct fixture *f = *state;
    int64_t revision = fill_segments(f, 'x');
    fixture_compact(f, revision - 20);
    fixture_settle(f);
    AUTO(store_snapshot_freep) struct store_snapshot *before = begin(f);
    measure(f, before, 1000);
    struct buf expected = fill(before, 4096);
    clean_all(f);
    AUTO(store_snapshot_freep) struct store_snapshot *after = begin(f);
    measure(f, after, 1000);
    struct buf file = fill(after, 4096);
    assert_true(slice_equal(buf_slice(&file), buf_slice(&expected)));
    buf_fini(&file);
    buf_fini(&expected);
}

struct first_segment {
    char path[256];
};

static void note_first(void *ctx, const char *name)
{
    struct first_segment *first = ctx;
    char path[256];
    snprintf(path, sizeof(path), "/data/log/%.100s", name);
    if (!first->path[0] || strcmp(path, first->path) < 0)
        memcpy(first->path, path, sizeof(path));
}

/* A backup must not hide damage. */
static void damaged_value_ends_it(void **state)
{
    struct fixture *f = *state;
    fill_segments(f, 'x');
    fixture_settle(f);
    struct first_segment first = {0};
    assert_int_equal(fs_list(fs_sim_fs(f->sim), "/data/log", note_first, &first), ST_OK);
    AUTO(file_closep) struct file *file = NULL;
    assert_int_equal(fs_open(fs_sim_fs(f->sim), first.path, 0, &file), ST_OK);
    assert_int_equal(file_pwrite(file, SLICE_LITERAL("!"), 512 + 300), ST_OK);

    AUTO(store_snapshot_freep) struct store_snapshot *snapshot = begin(f);
    measure(f, snapshot, 1000);
    static uint8_t bytes[1 << 20];
    size_t len;
    assert_true(store_snapshot_bytes(snapshot) < sizeof(bytes));
    assert_int_equal(store_snapshot_fill(snapshot, bytes, sizeof(bytes), &len), ST_DAMAGED);
}

/* The first pass reads keys before their checksums are verified: any damage must be an error. */
static void damage_anywhere_is_an_error(void **state)
{
    struct fixture *f = *state;
    fixture_compact(f, fill_segments(f, 'x') - 20);
    fixture_settle(f);
    struct first_segment first = {0};
    assert_int_equal(fs_list(fs_sim_fs(f->sim), "/data/log", note_first, &first), ST_OK);
    AUTO(file_closep) struct file *file = NULL;
    assert_int_equal(fs_open(fs_sim_fs(f->sim), first.path, 0, &file), ST_OK);
    static uint8_t bytes[1 << 20];
    for (unsigned i = 0; i < 2 * 160; i++) {
        AUTO(store_snapshot_freep) struct store_snapshot *snapshot = begin(f);
        uint64_t offset = 512 + i / 2;
        uint8_t right;
        assert_int_equal(file_pread(file, &right, 1, offset), ST_OK);
        uint8_t wrong = right ^ (i % 2 ? 0xff : 0x01);
        assert_int_equal(file_pwrite(file, slice_of(&wrong, 1), offset), ST_OK);
        enum status status;
        while ((status = step(f, snapshot, 1000)) == ST_AGAIN)
            ;
        size_t len;
        if (status == ST_OK)
            status = store_snapshot_fill(snapshot, bytes, sizeof(bytes), &len);
        assert_int_equal(status, ST_DAMAGED);
        assert_int_equal(file_pwrite(file, slice_of(&right, 1), offset), ST_OK);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(empty_store_has_all_buckets),
        TEST(all_versions_are_in_order),
        TEST(compaction_leaves_the_same_versions_as_in_etcd),
        TEST(file_does_not_depend_on_the_size_of_steps),
        TEST(later_writes_are_not_included),
        TEST(compaction_during_the_measuring_pass_restarts_it),
        TEST(compaction_beyond_the_revision_ends_the_snapshot),
        TEST(cleaned_segments_are_kept_until_the_snapshot_ends),
        TEST(rewritten_segments_give_the_same_snapshot),
        TEST(damaged_value_ends_it),
        TEST(damage_anywhere_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
