/*
 * The second copy of a segment's head. Any byte of the head, or the whole sector, may be damaged:
 * the log opens, has all records, and the head is on the disk again. Segments that an earlier
 * version has written have no copy; they get one if they have room for it.
 */
#include "simulated/file_sim.h"
#include "store/log/damage.h"
#include "store/log/format.h"
#include "store/log/log.h"
#include "store/log/mark.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { CAPACITY = 64 << 10, TWIN = CAPACITY - SEGMENT_TWIN_BYTES, RECORDS = 20, BODY_BYTES = 1000 };
enum { FULL_RECORDS = 8, FULL_RECORD_BYTES = (CAPACITY - SEGMENT_RECORDS_OFFSET) / FULL_RECORDS };

struct bed {
    struct fs_sim *sim;
    struct log_options options;
    struct log *log;
    uint64_t replayed;
    struct error error;
};

static int setup(void **state)
{
    struct bed *bed = calloc(1, sizeof(*bed));
    assert_non_null(bed);
    bed->sim = fs_sim_new(1);
    bed->options = (struct log_options){
        .fs = fs_sim_fs(bed->sim),
        .dir = "/log",
        .segment_bytes_first = CAPACITY,
        .segment_bytes_max = CAPACITY,
        .salt = 99,
    };
    assert_int_equal(fs_make_dir(bed->options.fs, "/log"), ST_OK);
    *state = bed;
    return 0;
}

static int teardown(void **state)
{
    struct bed *bed = *state;
    fs_sim_free(bed->sim);
    free(bed);
    return 0;
}

static enum status see_record(void *ctx, const struct log_record *record)
{
    struct bed *bed = ctx;
    assert_int_equal(record->index, bed->replayed + 1);
    assert_int_equal(record->body.ptr[0], (uint8_t)record->index);
    bed->replayed++;
    return ST_OK;
}

static enum status open_log(struct bed *bed)
{
    bed->replayed = 0;
    return log_open(&bed->options, 0, NULL, 0, see_record, bed, &bed->log, &bed->error);
}

static void append(struct bed *bed)
{
    log_loc loc;
    assert_int_equal(log_reserve(bed->log, BODY_BYTES), ST_OK);
    uint8_t *body = log_append_begin(bed->log, &loc);
    memset(body, (int)(log_last_index(bed->log) + 1), BODY_BYTES);
    log_append_end(bed->log, LOG_TYPE_OF_REVISIONS, (int64_t)log_last_index(bed->log) + 1,
                   BODY_BYTES);
    assert_int_equal(log_write(bed->log), ST_OK);
    assert_int_equal(log_sync(bed->log), ST_OK);
}

static void fill(struct bed *bed)
{
    assert_int_equal(open_log(bed), ST_OK);
    for (int i = 0; i < RECORDS; i++)
        append(bed);
    assert_int_equal(log_mark(bed->log), ST_OK);
    log_close(TAKE(bed->log));
}

static void change_file(struct bed *bed, void *bytes, size_t len, uint64_t offset, bool writes)
{
    struct file *file;
    assert_int_equal(fs_open(bed->options.fs, "/log/0000000000000001.seg", FILE_READ_WRITE, &file),
                     ST_OK);
    assert_int_equal(writes ? file_pwrite(file, slice_of(bytes, len), offset)
                            : file_pread(file, bytes, len, offset),
                     ST_OK);
    file_close(file);
}

/* Everything is there, nothing was cut off, and both copies are right. */
static void check_opens(struct bed *bed, uint64_t records, unsigned mended, const char *where)
{
    struct segment_head head, twin;
    if (open_log(bed) != ST_OK)
        fail_msg("%s: %s", where, bed->error.text);
    assert_int_equal(bed->replayed, records);
    assert_int_equal(log_cut(bed->log).bytes, 0);
    assert_int_equal(log_heads_mended(bed->log), mended);
    log_close(TAKE(bed->log));
    change_file(bed, &head, sizeof(head), 0, false);
    change_file(bed, &twin, sizeof(twin), TWIN, false);
    assert_int_equal(segment_head_check(&head), ST_OK);
    assert_memory_equal(&head, &twin, sizeof(head));
}

static void any_byte_of_either_copy_may_be_damaged(void **state)
{
    struct bed *bed = *state;
    fill(bed);
    check_opens(bed, RECORDS, 0, "intact");
    for (uint64_t at = 0; at < 2 * sizeof(struct segment_head); at++) {
        bool in_head = at < sizeof(struct segment_head);
        uint64_t offset = in_head ? at : TWIN + at - sizeof(struct segment_head);
        uint8_t byte;
        char where[64];
        snprintf(where, sizeof(where), "byte %llu", (unsigned long long)offset);
        change_file(bed, &byte, 1, offset, false);
        byte ^= (uint8_t)(1u << at % 8);
        change_file(bed, &byte, 1, offset, true);
        check_opens(bed, RECORDS, in_head, where);
    }
}

static void the_whole_sector_of_either_copy_may_be_lost(void **state)
{
    struct bed *bed = *state;
    uint8_t zeros[SEGMENT_TWIN_BYTES] = {0};
    fill(bed);
    change_file(bed, zeros, sizeof(zeros), 0, true);
    check_opens(bed, RECORDS, 1, "head");
    change_file(bed, zeros, sizeof(zeros), TWIN, true);
    check_opens(bed, RECORDS, 0, "twin");
}

/* As above: such a segment ends with zeros. */
static void a_segment_of_an_earlier_version_gets_a_twin(void **state)
{
    struct bed *bed = *state;
    uint8_t zeros[SEGMENT_TWIN_BYTES] = {0}, byte = 0xff;
    fill(bed);
    change_file(bed, zeros, sizeof(zeros), TWIN, true);
    check_opens(bed, RECORDS, 0, "upgraded");
    change_file(bed, &byte, 1, 3, true);
    check_opens(bed, RECORDS, 1, "damaged after that");
    /* The log continues in the next segment before the twin. */
    assert_int_equal(open_log(bed), ST_OK);
    for (int i = RECORDS; i < 100; i++)
        append(bed);
    assert_int_equal(log_mark(bed->log), ST_OK);
    log_close(TAKE(bed->log));
    check_opens(bed, 100, 0, "continued");
}

/* Earlier versions wrote records up to the last byte. */
static void a_full_segment_of_an_earlier_version_stays_as_it_is(void **state)
{
    struct bed *bed = *state;
    static uint8_t bytes[CAPACITY];
    memset(bytes, 0, sizeof(bytes));
    struct segment_head head = {.id = 1, .capacity = CAPACITY, .salt = 5};
    segment_head_finish(&head);
    memcpy(bytes, &head, sizeof(head));
    for (uint64_t i = 0; i < FULL_RECORDS; i++) {
        uint8_t *at = bytes + SEGMENT_RECORDS_OFFSET + i * FULL_RECORD_BYTES;
        struct record_head record = {.len = FULL_RECORD_BYTES,
                                     .index = i + 1,
                                     .revision = (int64_t)i + 1,
                                     .behind = 1,
                                     .type = LOG_TYPE_OF_REVISIONS};
        memset(at, (int)(i + 1), FULL_RECORD_BYTES);
        memcpy(at, &record, sizeof(record));
        record_finish(at, head.salt);
    }
    struct file *file;
    assert_int_equal(fs_open(bed->options.fs, "/log/0000000000000001.seg", FILE_CREATE, &file),
                     ST_OK);
    assert_int_equal(file_pwrite(file, slice_of(bytes, sizeof(bytes)), 0), ST_OK);
    file_close(file);
    static uint8_t after[CAPACITY];
    for (uint64_t i = 0; i < 2; i++) {
        if (open_log(bed) != ST_OK)
            fail_msg("%s", bed->error.text);
        assert_int_equal(bed->replayed, FULL_RECORDS + i);
        append(bed);
        assert_int_equal(log_mark(bed->log), ST_OK);
        log_close(TAKE(bed->log));
    }
    change_file(bed, after, sizeof(after), 0, false);
    memset(after + SEGMENT_SEAL_OFFSET, 0, sizeof(struct segment_seal));
    assert_memory_equal(after, bytes, sizeof(bytes));
}

/* It is empty, so nothing is lost with it, and the start is not refused. */
static void a_damaged_spare_segment_is_replaced(void **state)
{
    struct bed *bed = *state;
    uint8_t byte = 0xff, zeros[SEGMENT_TWIN_BYTES] = {0};
    fill(bed);
    assert_int_equal(open_log(bed), ST_OK);
    assert_int_equal(log_prepare(bed->log), ST_OK);
    log_close(TAKE(bed->log));
    struct file *file;
    assert_int_equal(fs_open(bed->options.fs, "/log/0000000000000002.seg", FILE_READ_WRITE, &file),
                     ST_OK);
    assert_int_equal(file_pwrite(file, slice_of(&byte, 1), 2), ST_OK);
    assert_int_equal(file_pwrite(file, slice_of(zeros, sizeof(zeros)), TWIN), ST_OK);
    file_close(file);
    check_opens(bed, RECORDS, 0, "spare");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(any_byte_of_either_copy_may_be_damaged),
        TEST(the_whole_sector_of_either_copy_may_be_lost),
        TEST(a_segment_of_an_earlier_version_gets_a_twin),
        TEST(a_full_segment_of_an_earlier_version_stays_as_it_is),
        TEST(a_damaged_spare_segment_is_replaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
