/* A log that is not synced with each group, on a simulated disk. */
#include "simulated/file_sim.h"
#include "store/log/log.h"
#include "store/log/mark.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { RECORDS = 400, BODY_BYTES = 300 };

struct bed {
    struct fs_sim *sim;
    struct log *log;
    uint64_t replayed;
};

static enum status see_record(void *ctx, const struct log_record *record)
{
    struct bed *bed = ctx;
    assert_int_equal(record->index, ++bed->replayed);
    assert_int_equal(record->body.len, BODY_BYTES);
    return ST_OK;
}

static void bed_open(struct bed *bed)
{
    struct log_options options = {
        .fs = fs_sim_fs(bed->sim),
        .dir = "/log",
        .segment_bytes_first = 16 << 10,
        .segment_bytes_max = 64 << 10,
        .unsynced = true,
        .salt = 7,
    };
    struct error error = {0};
    bed->replayed = 0;
    if (log_open(&options, 0, NULL, 0, see_record, bed, &bed->log, &error) != ST_OK)
        fail_msg("%s", error.text);
}

static int set_up(void **state)
{
    struct bed *bed = calloc(1, sizeof(*bed));
    assert_non_null(bed);
    bed->sim = fs_sim_new(1);
    assert_int_equal(fs_make_dir(fs_sim_fs(bed->sim), "/log"), ST_OK);
    bed_open(bed);
    *state = bed;
    return 0;
}

static int tear_down(void **state)
{
    struct bed *bed = *state;
    log_close(bed->log);
    fs_sim_free(bed->sim);
    free(bed);
    return 0;
}

static uint64_t syncs(const struct bed *bed)
{
    return fs_sim_calls(bed->sim, FS_SIM_SYNC) + fs_sim_calls(bed->sim, FS_SIM_SYNC_DIR);
}

/* Over many segments, as writer and keeper do it. */
static void write_records(struct bed *bed)
{
    log_loc loc;
    for (int i = 0; i < RECORDS; i++) {
        assert_int_equal(log_reserve(bed->log, BODY_BYTES), ST_OK);
        memset(log_append_begin(bed->log, &loc), i, BODY_BYTES);
        log_append_end(bed->log, LOG_TYPE_OF_REVISIONS, i + 1, BODY_BYTES);
        assert_int_equal(log_write(bed->log), ST_OK);
        assert_int_equal(log_sync(bed->log), ST_OK);
        assert_int_equal(log_durable_index(bed->log), i + 1); /* readers see it */
        assert_int_equal(log_prepare(bed->log), ST_OK);
        assert_int_equal(log_mark(bed->log), ST_OK);
    }
    log_check(bed->log);
}

static void nothing_is_synced_until_everything_is(void **state)
{
    struct bed *bed = *state;
    uint64_t before = syncs(bed);
    write_records(bed);
    assert_int_equal(syncs(bed), before);
    assert_int_equal(log_sync_all(bed->log), ST_OK);
    assert_true(syncs(bed) > before + 5); /* one sync of every segment */
    fs_sim_crash(bed->sim);
    log_close(bed->log);
    bed_open(bed);
    assert_int_equal(bed->replayed, RECORDS);
}

static void a_crash_of_the_process_loses_nothing(void **state)
{
    struct bed *bed = *state;
    write_records(bed);
    log_close(bed->log); /* it does not sync */
    bed_open(bed);
    assert_int_equal(bed->replayed, RECORDS);
}

static void a_sync_that_fails_is_reported(void **state)
{
    struct bed *bed = *state;
    write_records(bed);
    fs_sim_fail(bed->sim, FS_SIM_SYNC, 2, ST_IO, false);
    assert_int_equal(log_sync_all(bed->log), ST_IO);
    fs_sim_fail(bed->sim, FS_SIM_SYNC_DIR, 1, ST_IO, false);
    assert_int_equal(log_sync_all(bed->log), ST_IO);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nothing_is_synced_until_everything_is),
        TEST(a_crash_of_the_process_loses_nothing),
        TEST(a_sync_that_fails_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
