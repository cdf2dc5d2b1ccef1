/* One set of tests for both implementations of the checkpoint, then tests for LMDB only. */
#include "base/random.h"
#include "base/temp_dir_test.h"
#include "store/backend/backend_memory.h"
#include "store/backend/backend_private.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { MAP_BYTES = 1 << 28 };

struct bed {
    bool in_memory;
    char dir[TEMP_DIR_BYTES];
    struct backend_disk *disk;
    struct backend *backend;
};

static void bed_open(struct bed *bed)
{
    backend_close(TAKE(bed->backend));
    if (bed->in_memory) {
        bed->backend = backend_memory_open(bed->disk);
        return;
    }
    struct error error;
    if (backend_lmdb_open(bed->dir, MAP_BYTES, &bed->backend, &error) != ST_OK)
        fail_msg("%s", error.text);
}

static int set_up(void **state, bool in_memory)
{
    struct bed *bed = calloc(1, sizeof(*bed));
    bed->in_memory = in_memory;
    temp_dir_make("backend", bed->dir);
    bed->disk = backend_disk_new();
    bed_open(bed);
    *state = bed;
    return 0;
}

static int set_up_memory(void **state)
{
    return set_up(state, true);
}

static int set_up_lmdb(void **state)
{
    return set_up(state, false);
}

static int tear_down(void **state)
{
    struct bed *bed = *state;
    backend_close(bed->backend);
    backend_disk_free(bed->disk);
    temp_dir_remove(bed->dir);
    free(bed);
    return 0;
}

static struct backend_version version_of(int64_t revision, uint32_t sub)
{
    static char key[64];
    snprintf(key, sizeof(key), "/registry/pods/default/%lld-%u", (long long)revision, sub);
    return (struct backend_version){
        .id = {revision, sub},
        .prev = {revision % 3 ? revision / 3 * 3 : 0, revision > 3 && revision % 3 ? 5 : 0},
        .create_revision = revision % 7 ? revision / 7 * 7 + 1 : 0,
        .version = revision % 7 ? 4 : 0,
        .lease = revision % 5 ? 0 : INT64_MAX - revision,
        .loc = (uint64_t)revision << 20,
        .field_bytes = 300,
        .key = slice_from_text(key),
    };
}

static void assert_version(const struct backend_version *got, const struct backend_version *want)
{
    assert_int_equal(got->id.revision, want->id.revision);
    assert_int_equal(got->id.sub, want->id.sub);
    assert_int_equal(got->prev.revision, want->prev.revision);
    assert_int_equal(got->prev.sub, want->prev.sub);
    assert_int_equal(got->create_revision, want->create_revision);
    assert_int_equal(got->version, want->version);
    assert_int_equal(got->lease, want->lease);
    assert_int_equal(got->loc, want->loc);
    assert_int_equal(got->field_bytes, want->field_bytes);
    assert_true(slice_equal(got->key, want->key));
}

static void put(struct bed *bed, int64_t revision, uint32_t sub)
{
    struct backend_version version = version_of(revision, sub);
    assert_int_equal(backend_version_put(bed->backend, &version), ST_OK);
}

static void assert_has(struct bed *bed, int64_t revision, uint32_t sub)
{
    struct backend_version got;
    assert_int_equal(
        backend_version_get(bed->backend, (struct backend_version_id){revision, sub}, &got), ST_OK);
    struct backend_version want = version_of(revision, sub);
    assert_version(&got, &want);
}

static void assert_has_not(struct bed *bed, int64_t revision)
{
    struct backend_version got;
    assert_int_equal(
        backend_version_get(bed->backend, (struct backend_version_id){revision, 0}, &got),
        ST_NOT_FOUND);
}

static void committed_data_is_present_after_reopening(void **state)
{
    struct bed *bed = *state;
    assert_int_equal(backend_meta_get(bed->backend, BACKEND_COMPACT_REVISION, -1), -1);
    assert_int_equal(backend_begin(bed->backend), ST_OK);
    for (int64_t revision = 1; revision <= 200; revision++)
        put(bed, revision, 0);
    assert_int_equal(backend_meta_put(bed->backend, BACKEND_INDEX, 200), ST_OK);
    assert_has(bed, 200, 0);
    assert_int_equal(backend_meta_get(bed->backend, BACKEND_INDEX, 0), 200);
    assert_int_equal(backend_commit(bed->backend), ST_OK);

    bed_open(bed);
    assert_int_equal(backend_meta_get(bed->backend, BACKEND_INDEX, 0), 200);
    assert_int_equal(backend_meta_get(bed->backend, BACKEND_TERM, 9), 9);
    for (int64_t revision = 1; revision <= 200; revision++)
        assert_has(bed, revision, 0);
    assert_has_not(bed, 201);
}

static void an_aborted_transaction_leaves_nothing(void **state)
{
    struct bed *bed = *state;
    assert_int_equal(backend_begin(bed->backend), ST_OK);
    put(bed, 5, 0);
    assert_int_equal(backend_meta_put(bed->backend, BACKEND_REVISION, 5), ST_OK);
    assert_int_equal(backend_commit(bed->backend), ST_OK);

    for (int how = 0; how < 2; how++) {
        assert_int_equal(backend_begin(bed->backend), ST_OK);
        put(bed, 6, 0);
        assert_int_equal(backend_version_delete(bed->backend, (struct backend_version_id){5, 0}),
                         ST_OK);
        assert_int_equal(backend_meta_put(bed->backend, BACKEND_REVISION, 6), ST_OK);
        assert_has_not(bed, 5);
        if (how == 0)
            backend_abort(bed->backend);
        else
            bed_open(bed);
        assert_has(bed, 5, 0);
        assert_has_not(bed, 6);
        assert_int_equal(backend_meta_get(bed->backend, BACKEND_REVISION, 0), 5);
    }
}

static void versions_are_put_in_any_order_replaced_and_deleted(void **state)
{
    struct bed *bed = *state;
    assert_int_equal(backend_begin(bed->backend), ST_OK);
    put(bed, 10, 1);
    put(bed, 10, 0);
    put(bed, 3, 0);
    put(bed, 12, 0);
    struct backend_version moved = version_of(10, 0);
    moved.loc = 77;
    assert_int_equal(backend_version_put(bed->backend, &moved), ST_OK);
    assert_int_equal(backend_version_delete(bed->backend, (struct backend_version_id){12, 0}),
                     ST_OK);
    assert_int_equal(backend_version_delete(bed->backend, (struct backend_version_id){12, 0}),
                     ST_NOT_FOUND);
    put(bed, 11, 0);
    assert_int_equal(backend_commit(bed->backend), ST_OK);
    bed_open(bed);
    struct backend_version got;
    assert_int_equal(backend_version_get(bed->backend, (struct backend_version_id){10, 0}, &got),
                     ST_OK);
    assert_int_equal(got.loc, 77);
    assert_has(bed, 3, 0);
    assert_has(bed, 10, 1);
    assert_has(bed, 11, 0);
    assert_has_not(bed, 12);
}

static enum status append_row(void *ctx, const struct row *row)
{
    char *text = ctx;
    size_t used = strlen(text);
    snprintf(text + used, 256 - used, "%d:%.*s=%.*s ", row->table, (int)row->key.len,
             (const char *)row->key.ptr, (int)row->value.len, (const char *)row->value.ptr);
    return ST_OK;
}

static void assert_rows(struct bed *bed, const char *expected)
{
    char text[256] = "";
    assert_int_equal(backend_rows_scan(bed->backend, append_row, text), ST_OK);
    assert_string_equal(text, expected);
}

static void put_row(struct bed *bed, enum row_table table, const char *key, const char *value)
{
    struct row row = {.table = table, .key = slice_from_text(key), .deleted = !value};
    if (value)
        row.value = slice_from_text(value);
    assert_int_equal(backend_row_put(bed->backend, &row), ST_OK);
}

static void rows_are_put_replaced_deleted_and_listed_by_table_and_key(void **state)
{
    struct bed *bed = *state;
    assert_rows(bed, "");
    assert_int_equal(backend_begin(bed->backend), ST_OK);
    put_row(bed, ROW_ALARM, "b", "1");
    put_row(bed, ROW_LEASE, "z", "");
    put_row(bed, ROW_LEASE, "", "empty key");
    put_row(bed, ROW_ALARM, "a", "2");
    put_row(bed, ROW_ALARM, "b", "longer than before");
    put_row(bed, ROW_ALARM, "none", NULL);
    assert_int_equal(backend_commit(bed->backend), ST_OK);
    bed_open(bed);
    assert_rows(bed, "1:=empty key 1:z= 2:a=2 2:b=longer than before ");
    assert_int_equal(backend_begin(bed->backend), ST_OK);
    put_row(bed, ROW_ALARM, "a", NULL);
    assert_rows(bed, "1:=empty key 1:z= 2:b=longer than before ");
    backend_abort(bed->backend);
    assert_rows(bed, "1:=empty key 1:z= 2:a=2 2:b=longer than before ");
    assert_int_equal(backend_begin(bed->backend), ST_OK);
    put_row(bed, ROW_LEASE, "z", NULL);
    assert_int_equal(backend_commit(bed->backend), ST_OK);
    bed_open(bed);
    assert_rows(bed, "1:=empty key 2:a=2 2:b=longer than before ");
}

static void a_version_can_be_read_changed_and_put_back(void **state)
{
    struct bed *bed = *state;
    assert_int_equal(backend_begin(bed->backend), ST_OK);
    put(bed, 8, 0);
    assert_int_equal(backend_commit(bed->backend), ST_OK);
    assert_int_equal(backend_begin(bed->backend), ST_OK);
    struct backend_version got;
    assert_int_equal(backend_version_get(bed->backend, (struct backend_version_id){8, 0}, &got),
                     ST_OK);
    got.loc = 4711;
    assert_int_equal(backend_version_put(bed->backend, &got), ST_OK);
    assert_int_equal(backend_commit(bed->backend), ST_OK);
    assert_int_equal(backend_version_get(bed->backend, (struct backend_version_id){8, 0}, &got),
                     ST_OK);
    struct backend_version want = version_of(8, 0);
    want.loc = 4711;
    assert_version(&got, &want);
}

struct scan {
    int64_t next_revision, last_revision;
    size_t seen;
};

static enum status see_version(void *ctx, const struct backend_version *version)
{
    struct scan *scan = ctx;
    if (version->id.revision > scan->last_revision)
        return ST_END;
    struct backend_version want = version_of(version->id.revision, version->id.sub);
    assert_version(version, &want);
    assert_int_equal(version->id.revision, scan->next_revision + (int64_t)scan->seen / 2);
    assert_int_equal(version->id.sub, scan->seen % 2);
    scan->seen++;
    return ST_OK;
}

static enum status refuse_version(void *ctx, const struct backend_version *version)
{
    (void)ctx, (void)version;
    return ST_LIMIT;
}

static void a_scan_visits_ids_in_order_until_the_callback_ends_it(void **state)
{
    struct bed *bed = *state;
    assert_int_equal(backend_begin(bed->backend), ST_OK);
    for (int64_t revision = 250; revision <= 1000; revision++) {
        put(bed, revision, 0);
        put(bed, revision, 1);
    }
    assert_int_equal(backend_commit(bed->backend), ST_OK);
    struct scan scan = {.next_revision = 255, .last_revision = 257};
    assert_int_equal(backend_versions_scan(bed->backend, (struct backend_version_id){255, 0},
                                           see_version, &scan),
                     ST_OK);
    assert_int_equal(scan.seen, 6);
    scan = (struct scan){.next_revision = 250, .last_revision = INT64_MAX};
    assert_int_equal(
        backend_versions_scan(bed->backend, (struct backend_version_id){0}, see_version, &scan),
        ST_OK);
    assert_int_equal(scan.seen, 751 * 2);
    assert_int_equal(
        backend_versions_scan(bed->backend, (struct backend_version_id){0}, refuse_version, NULL),
        ST_LIMIT);
}

static enum status see_segment(void *ctx, const struct backend_segment *segment)
{
    uint64_t *last = ctx;
    assert_true(segment->id > *last);
    assert_int_equal(segment->first_index, segment->id * 10);
    assert_int_equal(segment->last_index, segment->id * 10 + 9);
    assert_int_equal(segment->used_bytes, segment->id << 33);
    assert_int_equal(segment->live_bytes, 3);
    *last = segment->id;
    return ST_OK;
}

static void segments_come_in_order_of_id(void **state)
{
    struct bed *bed = *state;
    const uint64_t ids[] = {300, 2, 1, 77, 65536, 2};
    assert_int_equal(backend_begin(bed->backend), ST_OK);
    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        struct backend_segment segment = {
            .id = ids[i],
            .first_index = ids[i] * 10,
            .last_index = ids[i] * 10 + 9,
            .used_bytes = ids[i] << 33,
            .live_bytes = 3,
        };
        assert_int_equal(backend_segment_put(bed->backend, &segment), ST_OK);
    }
    assert_int_equal(backend_segment_delete(bed->backend, 300), ST_OK);
    assert_int_equal(backend_segment_delete(bed->backend, 300), ST_NOT_FOUND);
    assert_int_equal(backend_commit(bed->backend), ST_OK);
    bed_open(bed);
    uint64_t last = 0;
    assert_int_equal(backend_segments_scan(bed->backend, see_segment, &last), ST_OK);
    assert_int_equal(last, 65536);
}

static void a_failed_commit_has_happened_completely_or_not_at_all(void **state)
{
    struct bed *bed = *state;
    for (int happened = 0; happened < 2; happened++) {
        backend_disk_fail_commit(bed->disk, 2, ST_IO, happened);
        int64_t base = happened * 100;
        assert_int_equal(backend_begin(bed->backend), ST_OK);
        put(bed, base + 1, 0);
        assert_int_equal(backend_meta_put(bed->backend, BACKEND_INDEX, base + 1), ST_OK);
        assert_int_equal(backend_commit(bed->backend), ST_OK);
        assert_int_equal(backend_begin(bed->backend), ST_OK);
        put(bed, base + 2, 0);
        assert_int_equal(backend_meta_put(bed->backend, BACKEND_INDEX, base + 2), ST_OK);
        assert_int_equal(backend_commit(bed->backend), ST_IO);
        assert_non_null(strstr(backend_error_text(bed->backend), "committing"));
        backend_disk_fail_commit(bed->disk, 0, ST_OK, false);
        bed_open(bed);
        assert_has(bed, base + 1, 0);
        assert_int_equal(backend_meta_get(bed->backend, BACKEND_INDEX, 0), base + 1 + happened);
        if (happened)
            assert_has(bed, base + 2, 0);
        else
            assert_has_not(bed, base + 2);
    }
}

static void a_stored_version_is_decoded_and_a_damaged_one_is_detected(void **state)
{
    (void)state;
    struct random random;
    random_init(&random, 1);
    struct buf bytes = {0};
    for (int i = 0; i < 20000; i++) {
        char key[1000];
        int shift = (int)random_below(&random, 64);
        struct backend_version want = {
            .id = {(int64_t)(random_u64(&random) >> 1), (uint32_t)random_u64(&random)},
            .create_revision = (int64_t)(random_u64(&random) >> shift),
            .version = (int64_t)(random_u64(&random) >> shift),
            .lease = i % 2 ? (int64_t)random_u64(&random) : 0,
            .loc = random_u64(&random) >> shift,
            .field_bytes = (uint32_t)random_u64(&random),
            .key = slice_of(key, random_below(&random, sizeof(key))),
        };
        if (i % 3)
            want.prev = (struct backend_version_id){(int64_t)random_u64(&random) | 1, 3};
        if (!want.create_revision)
            want.version = 0;
        random_fill(&random, key, want.key.len);
        bytes.len = 0;
        assert_int_equal(backend_version_encode(&want, &bytes), ST_OK);
        struct backend_version got;
        assert_int_equal(backend_version_decode(want.id, buf_slice(&bytes), &got), ST_OK);
        assert_version(&got, &want);
        /* Truncated and changed bytes are decoded or refused, within their bounds. */
        size_t cut = random_below(&random, bytes.len);
        bytes.ptr[random_below(&random, bytes.len)] ^= (uint8_t)(1 + random_below(&random, 255));
        if (backend_version_decode(want.id, slice_of(bytes.ptr, cut), &got) == ST_OK)
            assert_true(got.key.len <= cut);
    }
    buf_fini(&bytes);
    struct backend_version got;
    assert_int_equal(backend_version_decode((struct backend_version_id){1, 0}, SLICE_EMPTY, &got),
                     ST_DAMAGED);
}

/* -- LMDB only -- */

static void a_full_map_is_reported_and_the_last_commit_stays(void **state)
{
    struct bed *bed = *state;
    backend_close(TAKE(bed->backend));
    struct error error;
    assert_int_equal(backend_lmdb_open(bed->dir, 256 * 1024, &bed->backend, &error), ST_OK);
    assert_int_equal(backend_begin(bed->backend), ST_OK);
    put(bed, 1, 0);
    assert_int_equal(backend_commit(bed->backend), ST_OK);

    assert_int_equal(backend_begin(bed->backend), ST_OK);
    enum status status = ST_OK;
    for (int64_t revision = 2; status == ST_OK && revision < 100000; revision++) {
        struct backend_version version = version_of(revision, 0);
        status = backend_version_put(bed->backend, &version);
    }
    assert_int_equal(status, ST_DISK_FULL);
    assert_non_null(strstr(backend_error_text(bed->backend), "MAP_FULL"));
    assert_non_null(strstr(backend_error_text(bed->backend), "ulimit -v"));
    backend_abort(bed->backend);
    bed_open(bed);
    assert_has(bed, 1, 0);
    assert_has_not(bed, 2);
}

static void a_commit_that_the_disk_refuses_leaves_the_last_one(void **state)
{
    struct bed *bed = *state;
    assert_int_equal(backend_begin(bed->backend), ST_OK);
    put(bed, 1, 0);
    assert_int_equal(backend_meta_put(bed->backend, BACKEND_INDEX, 1), ST_OK);
    assert_int_equal(backend_commit(bed->backend), ST_OK);

    struct rlimit before, tight;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    tight = (struct rlimit){.rlim_cur = 64 * 1024, .rlim_max = before.rlim_max};
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    assert_int_equal(backend_begin(bed->backend), ST_OK);
    for (int64_t revision = 2; revision < 5000; revision++)
        put(bed, revision, 0);
    assert_int_equal(backend_meta_put(bed->backend, BACKEND_INDEX, 5000), ST_OK);
    assert_int_equal(backend_commit(bed->backend), ST_IO);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, handler);

    assert_non_null(strstr(backend_error_text(bed->backend), "committing"));
    assert_int_equal(backend_meta_get(bed->backend, BACKEND_INDEX, 0), 1);
    bed_open(bed);
    assert_int_equal(backend_meta_get(bed->backend, BACKEND_INDEX, 0), 1);
    assert_has(bed, 1, 0);
    assert_has_not(bed, 2);
}

static void keys_longer_than_lmdbs_limit_are_stored(void **state)
{
    struct bed *bed = *state;
    static uint8_t key[1 << 20];
    memset(key, 'k', sizeof(key));
    struct backend_version version = version_of(9, 0), got;
    version.key = slice_of(key, sizeof(key));
    assert_int_equal(backend_begin(bed->backend), ST_OK);
    assert_int_equal(backend_version_put(bed->backend, &version), ST_OK);
    assert_int_equal(backend_commit(bed->backend), ST_OK);
    bed_open(bed);
    assert_int_equal(backend_version_get(bed->backend, version.id, &got), ST_OK);
    assert_version(&got, &version);
}

static void an_invalid_file_is_refused_with_its_name(void **state)
{
    struct bed *bed = *state;
    backend_close(TAKE(bed->backend));
    char path[128];
    snprintf(path, sizeof(path), "%s/data.mdb", bed->dir);
    int fd = open(path, O_WRONLY | O_TRUNC);
    char junk[8192];
    memset(junk, 0x5a, sizeof(junk));
    assert_int_equal(write(fd, junk, sizeof(junk)), sizeof(junk));
    close(fd);
    struct error error;
    assert_int_equal(backend_lmdb_open(bed->dir, MAP_BYTES, &bed->backend, &error),
                     ST_WRONG_FORMAT);
    assert_non_null(strstr(error.text, bed->dir));
    assert_int_equal(backend_lmdb_open("/nonexistent", MAP_BYTES, &bed->backend, &error),
                     ST_NOT_FOUND);
}

/* What a power failure leaves during the first start: it is never found under the final name. */
static void a_file_that_was_not_finished_is_made_again(void **state)
{
    struct bed *bed = *state;
    backend_close(TAKE(bed->backend));
    char path[128], new_dir[128], new_path[160];
    snprintf(path, sizeof(path), "%s/data.mdb", bed->dir);
    snprintf(new_dir, sizeof(new_dir), "%s/new", bed->dir);
    snprintf(new_path, sizeof(new_path), "%s/data.mdb", new_dir);
    assert_int_equal(mkdir(new_dir, 0700), 0);
    assert_int_equal(rename(path, new_path), 0);
    assert_int_equal(truncate(new_path, 4096), 0);
    bed_open(bed);
    assert_int_equal(access(new_dir, F_OK), -1);
    assert_int_equal(backend_begin(bed->backend), ST_OK);
    put(bed, 1, 0);
    assert_int_equal(backend_commit(bed->backend), ST_OK);
    bed_open(bed);
    assert_has(bed, 1, 0);
}

static void overwriting_does_not_grow_the_file_forever(void **state)
{
    struct bed *bed = *state;
    long size = 0;
    for (int round = 0; round < 60; round++) {
        assert_int_equal(backend_begin(bed->backend), ST_OK);
        for (int64_t revision = 1; revision <= 300; revision++)
            put(bed, revision, 0);
        assert_int_equal(backend_commit(bed->backend), ST_OK);
        assert_has(bed, 1, 0); /* the permanent reader sees each state and pins none */
        char path[128];
        snprintf(path, sizeof(path), "%s/data.mdb", bed->dir);
        FILE *file = fopen(path, "r");
        fseek(file, 0, SEEK_END);
        if (round == 10)
            size = ftell(file);
        if (round > 10)
            assert_int_equal(ftell(file), size);
        fclose(file);
    }
}

int main(void)
{
#define BOTH(name)                                                   \
    cmocka_unit_test_setup_teardown(name, set_up_memory, tear_down), \
        cmocka_unit_test_setup_teardown(name, set_up_lmdb, tear_down)
#define LMDB(name) cmocka_unit_test_setup_teardown(name, set_up_lmdb, tear_down)
#define MEMORY(name) cmocka_unit_test_setup_teardown(name, set_up_memory, tear_down)
    const struct CMUnitTest tests[] = {
        BOTH(committed_data_is_present_after_reopening),
        BOTH(an_aborted_transaction_leaves_nothing),
        BOTH(versions_are_put_in_any_order_replaced_and_deleted),
        BOTH(rows_are_put_replaced_deleted_and_listed_by_table_and_key),
        BOTH(a_version_can_be_read_changed_and_put_back),
        BOTH(a_scan_visits_ids_in_order_until_the_callback_ends_it),
        BOTH(segments_come_in_order_of_id),
        MEMORY(a_failed_commit_has_happened_completely_or_not_at_all),
        cmocka_unit_test(a_stored_version_is_decoded_and_a_damaged_one_is_detected),
        LMDB(a_full_map_is_reported_and_the_last_commit_stays),
        LMDB(a_commit_that_the_disk_refuses_leaves_the_last_one),
        LMDB(keys_longer_than_lmdbs_limit_are_stored),
        LMDB(an_invalid_file_is_refused_with_its_name),
        LMDB(a_file_that_was_not_finished_is_made_again),
        LMDB(overwriting_does_not_grow_the_file_forever),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
