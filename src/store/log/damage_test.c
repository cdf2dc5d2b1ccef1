/*
 * Damage planted in the files of a log: in the middle the start refuses it with segment and offset;
 * a torn tail is cut off.
 */
#include "base/crc32c.h"
#include "simulated/file_sim.h"
#include "store/log/damage.h"
#include "store/log/format.h"
#include "store/log/log.h"
#include "store/log/reader.h"
#include "store/log/rewrite.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { RECORDS = 60, BODY_BYTES = 100, RECORD_BYTES = 136 /* head, body, padding */ };

struct bed {
    struct fs_sim *sim;
    struct log_options options;
    struct log *log;
    uint64_t after_index;
    const uint64_t *listed;
    size_t listed_count;
    uint64_t replayed;
    struct error error;
};

static enum status see_record(void *ctx, const struct log_record *record)
{
    struct bed *bed = ctx;
    bed->replayed++;
    assert_int_equal(record->body.len, BODY_BYTES);
    for (size_t i = 0; i < BODY_BYTES; i++)
        assert_int_equal(record->body.ptr[i], (uint8_t)(record->index + 1));
    return ST_OK;
}

static enum status bed_open(struct bed *bed)
{
    log_close(TAKE(bed->log));
    bed->replayed = 0;
    bed->error.text[0] = 0;
    return log_open(&bed->options, bed->after_index, bed->listed, bed->listed_count, see_record,
                    bed, &bed->log, &bed->error);
}

static void append_synced(struct bed *bed)
{
    log_loc loc;
    assert_int_equal(log_reserve(bed->log, BODY_BYTES), ST_OK);
    uint8_t *body = log_append_begin(bed->log, &loc);
    memset(body, (int)(log_last_index(bed->log) + 2), BODY_BYTES);
    log_append_end(bed->log, 1, 1, BODY_BYTES);
    assert_int_equal(log_write(bed->log), ST_OK);
    assert_int_equal(log_sync(bed->log), ST_OK);
}

/* Segments of 4096 bytes hold 26 records: 1 to 26, 27 to 52, and 53 to 60 in the third. */
static int set_up(void **state)
{
    struct bed *bed = calloc(1, sizeof(*bed));
    bed->sim = fs_sim_new(3);
    assert_int_equal(fs_make_dir(fs_sim_fs(bed->sim), "/log"), ST_OK);
    bed->options = (struct log_options){
        .fs = fs_sim_fs(bed->sim),
        .dir = "/log",
        .segment_bytes_first = 4096,
        .segment_bytes_max = 4096,
        .salt = 99,
    };
    assert_int_equal(bed_open(bed), ST_OK);
    for (int i = 0; i < RECORDS; i++)
        append_synced(bed);
    struct log_segment_info infos[8];
    assert_int_equal(log_segments(bed->log, infos, 8), 3);
    assert_int_equal(infos[2].first_index, 53);
    log_close(TAKE(bed->log));
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

static void segment_name(uint64_t id, char *to, size_t room)
{
    snprintf(to, room, "/log/%016llx.seg", (unsigned long long)id);
}

static struct file *open_segment(struct bed *bed, uint64_t id)
{
    char path[64];
    segment_name(id, path, sizeof(path));
    struct file *file;
    assert_int_equal(fs_open(bed->options.fs, path, FILE_READ_WRITE, &file), ST_OK);
    return file;
}

static void plant(struct bed *bed, uint64_t id, uint64_t offset, const void *bytes, size_t len)
{
    struct file *file = open_segment(bed, id);
    assert_int_equal(file_pwrite(file, slice_of(bytes, len), offset), ST_OK);
    assert_int_equal(file_sync(file), ST_OK);
    file_close(file);
}

static uint8_t flip(struct bed *bed, uint64_t id, uint64_t offset, uint8_t mask)
{
    struct file *file = open_segment(bed, id);
    uint8_t byte;
    assert_int_equal(file_pread(file, &byte, 1, offset), ST_OK);
    file_close(file);
    uint8_t flipped = byte ^ mask;
    plant(bed, id, offset, &flipped, 1);
    return byte;
}

static void assert_refused_at(struct bed *bed, uint64_t id, uint64_t offset)
{
    char want[64];
    assert_int_equal(bed_open(bed), ST_DAMAGED);
    segment_name(id, want, sizeof(want));
    assert_non_null(strstr(bed->error.text, want));
    snprintf(want, sizeof(want), "offset %llu:", (unsigned long long)offset);
    if (!strstr(bed->error.text, want))
        fail_msg("%s: not at %s", bed->error.text, want);
}

static uint64_t offset_of(uint64_t index_in_segment)
{
    return SEGMENT_RECORDS_OFFSET + index_in_segment * RECORD_BYTES;
}

static void any_byte_of_a_middle_record_is_refused_at_its_place(void **state)
{
    struct bed *bed = *state;
    const struct {
        uint64_t id, record;
    } places[] = {{1, 0}, {1, 13}, {2, 0}, {2, 25}, {3, 0}, {3, 6}};
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        uint64_t offset = offset_of(places[i].record);
        for (uint64_t at = 0; at < RECORD_HEAD_BYTES + BODY_BYTES; at++) {
            uint8_t was = flip(bed, places[i].id, offset + at, (uint8_t)(1 << at % 8));
            assert_refused_at(bed, places[i].id, offset);
            plant(bed, places[i].id, offset + at, &was, 1);
        }
    }
    /* The refused start changed nothing: once the damage is undone, all records are present. */
    assert_int_equal(bed_open(bed), ST_OK);
    assert_int_equal(bed->replayed, RECORDS);
}

static void zeroed_records_in_the_middle_are_refused(void **state)
{
    struct bed *bed = *state;
    uint8_t zeros[4096] = {0};
    plant(bed, 2, offset_of(10), zeros, 2 * RECORD_BYTES);
    assert_refused_at(bed, 2, offset_of(10));
    plant(bed, 2, offset_of(10), zeros, 4096 - offset_of(10));
    assert_refused_at(bed, 2, offset_of(10));
}

static void any_byte_of_the_last_record_is_a_torn_tail(void **state)
{
    struct bed *bed = *state;
    for (uint64_t at = 0; at < RECORD_HEAD_BYTES + BODY_BYTES; at++) {
        flip(bed, 3, offset_of(7) + at, (uint8_t)(1 << at % 8));
        assert_int_equal(bed_open(bed), ST_OK);
        assert_int_equal(bed->replayed, RECORDS - 1);
        /* The space is used again, and nothing of the torn record is left after it. */
        append_synced(bed);
        assert_int_equal(bed_open(bed), ST_OK);
        assert_int_equal(bed->replayed, RECORDS);
        log_close(TAKE(bed->log));
    }
}

static void append_unsynced(struct bed *bed, int count)
{
    for (int i = 0; i < count; i++) {
        log_loc loc;
        assert_int_equal(log_reserve(bed->log, BODY_BYTES), ST_OK);
        uint8_t *body = log_append_begin(bed->log, &loc);
        memset(body, (int)(log_last_index(bed->log) + 2), BODY_BYTES);
        log_append_end(bed->log, 1, 1, BODY_BYTES);
    }
    assert_int_equal(log_write(bed->log), ST_OK);
}

/*
 * The third segment is filled and left in one group that is torn; then it is filled again, exactly.
 */
static void a_cut_segment_loses_its_seal(void **state)
{
    struct bed *bed = *state;
    assert_int_equal(bed_open(bed), ST_OK);
    append_unsynced(bed, 19);
    struct log_segment_info infos[8];
    assert_int_equal(log_segments(bed->log, infos, 8), 4);
    assert_true(infos[2].full);
    log_close(TAKE(bed->log));
    flip(bed, 3, offset_of(12), 1);
    assert_int_equal(bed_open(bed), ST_OK);
    assert_int_equal(bed->replayed, 64);
    assert_int_equal(log_segments(bed->log, infos, 8), 3);
    for (int i = 65; i <= 78; i++)
        append_synced(bed);
    assert_int_equal(log_segments(bed->log, infos, 8), 3);
    assert_int_equal(bed_open(bed), ST_OK);
    assert_int_equal(bed->replayed, 78);
    append_synced(bed);
    assert_int_equal(bed_open(bed), ST_OK);
    assert_int_equal(bed->replayed, 79);
}

static void what_the_checkpoint_covers_is_never_a_torn_tail(void **state)
{
    struct bed *bed = *state;
    const uint64_t listed[] = {1, 2, 3};
    bed->after_index = RECORDS;
    bed->listed = listed;
    bed->listed_count = 3;
    assert_int_equal(bed_open(bed), ST_OK);
    assert_int_equal(bed->replayed, 0);
    flip(bed, 3, offset_of(7) + 50, 1);
    assert_refused_at(bed, 3, offset_of(7));
}

/* Records can be read from `first` to `last`, and the next one, if any, is damaged. */
static void assert_readable_from(struct bed *bed, uint64_t first, uint64_t last)
{
    struct log_reader reader;
    struct log_record record;
    log_reader_init(&reader, bed->log, first);
    for (uint64_t index = first; index <= last; index++) {
        assert_int_equal(log_reader_next(&reader, RECORDS, &record), ST_OK);
        assert_int_equal(record.index, index);
    }
    assert_int_equal(log_reader_next(&reader, RECORDS, &record),
                     last == RECORDS ? ST_END : ST_DAMAGED);
}

static void old_segments_are_not_read_at_start_but_verified_when_read(void **state)
{
    struct bed *bed = *state;
    const uint64_t listed[] = {1, 2, 3};
    bed->after_index = RECORDS;
    bed->listed = listed;
    bed->listed_count = 3;
    flip(bed, 1, offset_of(3) + 50, 1);
    assert_int_equal(bed_open(bed), ST_OK);
    assert_readable_from(bed, 1, 3);
    assert_readable_from(bed, 5, RECORDS);
    flip(bed, 1, offset_of(3) + 50, 1);

    /* A reader that meets a damaged length stops within the bounds. */
    flip(bed, 1, offset_of(5) + offsetof(struct record_head, len) + 2, 0xff);
    assert_readable_from(bed, 1, 5);
}

static void broken_heads_and_seals_are_refused(void **state)
{
    struct bed *bed = *state;
    for (uint64_t id = 1; id <= 3; id++) {
        for (uint64_t at = 0; at < sizeof(struct segment_head); at++) {
            uint8_t was = flip(bed, id, at, 0x10);
            assert_refused_at(bed, id, 0);
            plant(bed, id, at, &was, 1);
        }
        for (uint64_t at = 0; at < sizeof(struct segment_seal); at++) {
            uint8_t was = flip(bed, id, SEGMENT_SEAL_OFFSET + at, 0x10);
            assert_refused_at(bed, id, SEGMENT_SEAL_OFFSET);
            plant(bed, id, SEGMENT_SEAL_OFFSET + at, &was, 1);
        }
    }
    assert_int_equal(bed_open(bed), ST_OK);
}

static void a_segment_of_another_version_is_reported_as_such(void **state)
{
    struct bed *bed = *state;
    struct file *file = open_segment(bed, 1);
    struct segment_head head;
    assert_int_equal(file_pread(file, &head, sizeof(head), 0), ST_OK);
    file_close(file);
    head.version = 2;
    head.crc = crc32c(0, slice_of(&head, offsetof(struct segment_head, crc)));
    plant(bed, 1, 0, &head, sizeof(head));
    assert_int_equal(bed_open(bed), ST_WRONG_FORMAT);
    assert_non_null(strstr(bed->error.text, "another version"));
}

static void a_missing_segment_is_named(void **state)
{
    struct bed *bed = *state;
    for (uint64_t id = 1; id <= 3; id++) {
        char path[64];
        segment_name(id, path, sizeof(path));
        assert_int_equal(fs_rename(bed->options.fs, path, "/log/away"), ST_OK);
        assert_int_equal(bed_open(bed), ST_DAMAGED);
        assert_non_null(strstr(bed->error.text, "missing"));
        if (id > 1)
            assert_non_null(strstr(bed->error.text, path));
        assert_int_equal(fs_rename(bed->options.fs, "/log/away", path), ST_OK);
    }
    const uint64_t listed[] = {1, 2, 3, 4};
    bed->after_index = RECORDS;
    bed->listed = listed;
    bed->listed_count = 4;
    assert_int_equal(bed_open(bed), ST_DAMAGED);
    assert_non_null(strstr(bed->error.text, "/log/0000000000000004.seg"));
    bed->listed_count = 3;
    assert_int_equal(bed_open(bed), ST_OK);
}

/* The first segment removed and only the prepared one left must not look like a new store. */
static void a_prepared_segment_alone_is_not_a_new_log(void **state)
{
    struct bed *bed = *state;
    struct fs *fs = bed->options.fs;
    assert_int_equal(fs_make_dir(fs, "/young"), ST_OK);
    bed->options.dir = "/young";
    assert_int_equal(bed_open(bed), ST_OK);
    assert_int_equal(log_prepare(bed->log), ST_OK);
    append_synced(bed);
    log_close(TAKE(bed->log));
    assert_int_equal(fs_unlink(fs, "/young/0000000000000001.seg"), ST_OK);
    assert_int_equal(bed_open(bed), ST_DAMAGED);
    assert_non_null(strstr(bed->error.text, "record 1 is missing"));
}

static void a_segment_cut_short_is_refused(void **state)
{
    struct bed *bed = *state;
    uint8_t whole[4096];
    char path[64];
    segment_name(2, path, sizeof(path));
    struct file *file = open_segment(bed, 2);
    assert_int_equal(file_pread(file, whole, sizeof(whole), 0), ST_OK);
    file_close(file);
    for (uint64_t bytes = 0; bytes <= 4096; bytes += 512) {
        assert_int_equal(fs_unlink(bed->options.fs, path), ST_OK);
        assert_int_equal(fs_open(bed->options.fs, path, FILE_CREATE, &file), ST_OK);
        assert_int_equal(file_pwrite(file, slice_of(whole, bytes), 0), ST_OK);
        file_close(file);
        if (bytes < 4096)
            assert_refused_at(bed, 2, 0);
    }
    assert_int_equal(bed_open(bed), ST_OK);
}

static void count_names(void *ctx, const char *name)
{
    int *names = ctx;
    (void)name;
    ++*names;
}

static void temporary_files_are_removed_and_unknown_files_kept(void **state)
{
    struct bed *bed = *state;
    const char *const paths[] = {"/log/00000000000000ff.tmp", "/log/notes.txt",
                                 "/log/0000000000000001.seg.bak", "/log/000000000000000G.seg"};
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        struct file *file;
        assert_int_equal(fs_open(bed->options.fs, paths[i], FILE_CREATE, &file), ST_OK);
        file_close(file);
    }
    assert_int_equal(bed_open(bed), ST_OK);
    int names = 0;
    assert_int_equal(fs_list(bed->options.fs, "/log", count_names, &names), ST_OK);
    assert_int_equal(names, 3 + 3);
}

/*
 * A client can store any bytes. Stored where a write was torn, they must not be taken for a record.
 */
static void a_value_is_never_taken_for_a_record(void **state)
{
    struct bed *bed = *state;
    /*
     * The bytes of a real record that claims everything is durable, as stored in another segment.
     */
    assert_int_equal(bed_open(bed), ST_OK);
    log_loc loc;
    struct log_reader reader;
    struct log_record record;
    log_reader_init(&reader, bed->log, 40);
    assert_int_equal(log_reader_next(&reader, RECORDS, &record), ST_OK);
    uint8_t forged[RECORD_BYTES];
    memcpy(forged, record.body.ptr - RECORD_HEAD_BYTES, sizeof(forged));
    uint64_t huge = 1000;
    memcpy(forged + offsetof(struct record_head, index), &huge, sizeof(huge));
    record_finish(forged, 0);

    assert_int_equal(log_reserve(bed->log, sizeof(forged) * 2), ST_OK);
    uint8_t *body = log_append_begin(bed->log, &loc);
    memcpy(body, forged, sizeof(forged));
    memcpy(body + sizeof(forged), record.body.ptr - RECORD_HEAD_BYTES, sizeof(forged));
    log_append_end(bed->log, 1, 1, sizeof(forged) * 2);
    assert_int_equal(log_write(bed->log), ST_OK);
    uint64_t id = loc >> LOG_OFFSET_BITS;
    uint64_t offset = (loc & (((uint64_t)1 << LOG_OFFSET_BITS) - 1)) - RECORD_HEAD_BYTES;
    log_close(TAKE(bed->log));
    flip(bed, id, offset, 1);
    assert_int_equal(bed_open(bed), ST_OK);
    assert_int_equal(bed->replayed, RECORDS);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(any_byte_of_a_middle_record_is_refused_at_its_place),
        TEST(zeroed_records_in_the_middle_are_refused),
        TEST(any_byte_of_the_last_record_is_a_torn_tail),
        TEST(a_cut_segment_loses_its_seal),
        TEST(what_the_checkpoint_covers_is_never_a_torn_tail),
        TEST(old_segments_are_not_read_at_start_but_verified_when_read),
        TEST(broken_heads_and_seals_are_refused),
        TEST(a_segment_of_another_version_is_reported_as_such),
        TEST(a_missing_segment_is_named),
        TEST(a_prepared_segment_alone_is_not_a_new_log),
        TEST(a_segment_cut_short_is_refused),
        TEST(temporary_files_are_removed_and_unknown_files_kept),
        TEST(a_value_is_never_taken_for_a_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
