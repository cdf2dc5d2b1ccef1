/*
 * A small log that has become idle, and damage in every part of its files: a bit flipped in each
 * byte, each 512 bytes and each 4096 bytes set to zero. A start returns everything that was
 * acknowledged, or refuses, or reports a record as damaged: it never loses one silently. What was
 * never acknowledged is cut off and reported. A refused log can be repaired, unless the head of a
 * segment is damaged; then it starts without the records that the repair has named.
 */
#include "simulated/file_sim.h"
#include "store/log/damage.h"
#include "store/log/format.h"
#include "store/log/log.h"
#include "store/log/mark.h"
#include "store/log/reader.h"
#include "store/log/repair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { BODY_BYTES = 100, RECORD_BYTES = 136, SEGMENT_BYTES = 4096, FILES_MAX = 8 };

#ifdef VIGIL_SANITIZED
enum { BYTE_STEP = 7 };
#else
enum { BYTE_STEP = 1 };
#endif

/* A file as it was when the log was idle. */
struct kept_file {
    char path[64];
    uint8_t *bytes; /* owned */
    uint64_t len;
};

struct bed {
    struct fs_sim *sim;
    struct log_options options;
    struct log *log;
    uint64_t records;
    uint64_t after_index; /* last index of the checkpoint */
    uint64_t listed[FILES_MAX];
    struct log_listed known[FILES_MAX]; /* the same, as a repair needs it */
    size_t listed_count;
    uint64_t reported_lost; /* the number of records that a repair has reported as lost */
    uint64_t replayed;
    struct error error;
    struct kept_file files[FILES_MAX];
    size_t file_count;
};

/* -- The log -- */

static bool body_is_right(const struct log_record *record)
{
    for (size_t i = 0; i < record->body.len; i++) {
        if (record->body.ptr[i] != (uint8_t)(record->index * 7 + i))
            return false;
    }
    return record->body.len == BODY_BYTES;
}

static enum status see_record(void *ctx, const struct log_record *record)
{
    struct bed *bed = ctx;
    bed->replayed++;
    assert_int_equal(record->index, bed->after_index + bed->replayed);
    assert_true(body_is_right(record));
    return ST_OK;
}

static enum status bed_open(struct bed *bed)
{
    bed->replayed = 0;
    bed->error.text[0] = 0;
    return log_open(&bed->options, bed->after_index, bed->after_index ? bed->listed : NULL,
                    bed->listed_count, see_record, bed, &bed->log, &bed->error);
}

static void bed_close(struct bed *bed)
{
    log_close(TAKE(bed->log));
}

static void append(struct bed *bed)
{
    log_loc loc;
    assert_int_equal(log_reserve(bed->log, BODY_BYTES), ST_OK);
    uint64_t index = log_last_index(bed->log) + 1;
    uint8_t *body = log_append_begin(bed->log, &loc);
    for (size_t i = 0; i < BODY_BYTES; i++)
        body[i] = (uint8_t)(index * 7 + i);
    log_append_end(bed->log, LOG_TYPE_OF_REVISIONS, (int64_t)index, BODY_BYTES);
}

static void append_acked(struct bed *bed, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        append(bed);
        assert_int_equal(log_write(bed->log), ST_OK);
        assert_int_equal(log_sync(bed->log), ST_OK);
    }
    bed->records += count;
}

/* -- Its files -- */

static void keep_file(void *ctx, const char *name)
{
    struct bed *bed = ctx;
    assert_true(bed->file_count < FILES_MAX);
    struct kept_file *kept = &bed->files[bed->file_count++];
    assert_true(snprintf(kept->path, sizeof(kept->path), "/log/%s", name) > 0);
    struct file *file;
    assert_int_equal(fs_open(bed->options.fs, kept->path, FILE_READ_WRITE, &file), ST_OK);
    assert_int_equal(file_size(file, &kept->len), ST_OK);
    kept->bytes = malloc(kept->len);
    assert_int_equal(file_pread(file, kept->bytes, kept->len, 0), ST_OK);
    file_close(file);
}

struct names {
    char paths[2 * FILES_MAX][64];
    size_t count;
};

static void note_name(void *ctx, const char *name)
{
    struct names *names = ctx;
    assert_true(names->count < COUNT_OF(names->paths));
    char *path = names->paths[names->count++];
    assert_true(snprintf(path, sizeof(names->paths[0]), "/log/%s", name) > 0);
}

static void remove_files(struct bed *bed)
{
    struct names names = {.count = 0};
    assert_int_equal(fs_list(bed->options.fs, "/log", note_name, &names), ST_OK);
    for (size_t i = 0; i < names.count; i++)
        assert_int_equal(fs_unlink(bed->options.fs, names.paths[i]), ST_OK);
}

static void forget_files(struct bed *bed)
{
    for (size_t i = 0; i < bed->file_count; i++)
        free(bed->files[i].bytes);
    bed->file_count = 0;
}

static void keep_files(struct bed *bed)
{
    forget_files(bed);
    assert_int_equal(fs_list(bed->options.fs, "/log", keep_file, bed), ST_OK);
}

/* Restores the files, except for len bytes of one of them. */
static void lay_out(struct bed *bed, size_t damaged, uint64_t offset, const uint8_t *bytes,
                    uint64_t len)
{
    remove_files(bed);
    for (size_t i = 0; i < bed->file_count; i++) {
        struct file *file;
        assert_int_equal(fs_open(bed->options.fs, bed->files[i].path, FILE_CREATE, &file), ST_OK);
        assert_int_equal(file_pwrite(file, slice_of(bed->files[i].bytes, bed->files[i].len), 0),
                         ST_OK);
        if (i == damaged)
            assert_int_equal(file_pwrite(file, slice_of(bytes, len), offset), ST_OK);
        file_close(file);
    }
}

/* -- The result of a start -- */

struct outcomes {
    unsigned intact, refused, read_as_damaged;
};

/* Records up to this are present and correct, or reading them reports that they are damaged. */
static void check_up_to(struct bed *bed, uint64_t records, struct outcomes *outcomes)
{
    /* Further records were written and never acknowledged. */
    assert_true(log_last_index(bed->log) >= records);
    assert_true(bed->after_index + bed->replayed >= records);
    struct log_reader reader;
    log_reader_init(&reader, bed->log, 1);
    for (uint64_t index = 1; index <= records; index++) {
        struct log_record record;
        enum status status = log_reader_next(&reader, UINT64_MAX, &record);
        if (status == ST_DAMAGED && index <= bed->after_index) {
            outcomes->read_as_damaged++;
            return;
        }
        assert_int_equal(status, ST_OK);
        assert_int_equal(record.index, index);
        assert_true(body_is_right(&record));
    }
    outcomes->intact++;
}

static void count_lost(void *ctx, const struct log_lost *lost)
{
    struct bed *bed = ctx;
    assert_true(lost->record.index > bed->after_index);
    assert_true(!lost->whole || body_is_right(&lost->record));
    bed->reported_lost++;
}

static void see_passed(void *ctx, const struct log *log, log_loc from, log_loc to)
{
    (void)ctx;
    assert_true(from < to);
    assert_true(log_rest_at(log, from).len > 0);
}

static enum status repair(struct bed *bed, bool accept, struct log_repair *ret_repair)
{
    bed->reported_lost = 0;
    return log_repair(
        &(struct log_repair_options){
            .log = bed->options,
            .after_index = bed->after_index,
            .after_revision = (int64_t)bed->after_index,
            .listed = bed->known,
            .listed_count = bed->listed_count,
            .accept = accept,
            .lost = count_lost,
            .passed = see_passed,
            .ctx = bed,
        },
        ret_repair, &bed->error);
}

/* The log continues after the repair, and what is written then is durable. */
static void check_continues(struct bed *bed, uint64_t last)
{
    append(bed);
    assert_int_equal(log_write(bed->log), ST_OK);
    assert_int_equal(log_sync(bed->log), ST_OK);
    assert_int_equal(log_mark(bed->log), ST_OK);
    bed_close(bed);
    assert_int_equal(bed_open(bed), ST_OK);
    assert_int_equal(log_last_index(bed->log), last + 1);
}

static void check_repair(struct bed *bed, size_t damaged, uint64_t offset)
{
    struct log_repair dry, done;
    enum status status = repair(bed, false, &dry);
    if (status != ST_OK) {
        /* The contents of the head cannot be derived from anything else. */
        assert_int_equal(status, ST_DAMAGED);
        assert_true(strstr(bed->files[damaged].path, ".seg") != NULL);
        assert_true(offset < sizeof(struct segment_head));
        return;
    }
    assert_true(dry.damaged);
    uint64_t named = bed->reported_lost;
    assert_int_equal(bed_open(bed), ST_DAMAGED); /* the dry run has changed nothing */
    assert_int_equal(repair(bed, true, &done), ST_OK);
    assert_int_equal(bed->reported_lost, named);
    assert_int_equal(done.cut.index, dry.cut.index);
    assert_int_equal(done.passed_to_index, dry.passed_to_index);
    if (bed_open(bed) != ST_OK)
        fail_msg("%s at %llu: repaired, and refused: %s", bed->files[damaged].path,
                 (unsigned long long)offset, bed->error.text);
    uint64_t last = done.cut.reason ? done.cut.index - 1 : bed->records;
    assert_true(last >= bed->after_index);
    struct outcomes ignored;
    check_up_to(bed, last, &ignored);
    last = log_last_index(bed->log);
    check_continues(bed, last);
    bed_close(bed);
    assert_int_equal(repair(bed, true, &done), ST_OK);
    assert_false(done.damaged);
}

static void start(struct bed *bed, size_t damaged, uint64_t offset, struct outcomes *outcomes)
{
    enum status status = bed_open(bed);
    if (status == ST_OK) {
        check_up_to(bed, bed->records, outcomes);
    } else {
        if (status != ST_DAMAGED)
            fail_msg("%s at %llu: %s", bed->files[damaged].path, (unsigned long long)offset,
                     bed->error.text);
        assert_non_null(strstr(bed->error.text, "/log/"));
        outcomes->refused++;
        check_repair(bed, damaged, offset);
    }
    bed_close(bed);
}

static void flip_every_byte(struct bed *bed, struct outcomes *outcomes)
{
    for (size_t i = 0; i < bed->file_count; i++) {
        for (uint64_t at = 0; at < bed->files[i].len; at += BYTE_STEP) {
            uint8_t flipped = bed->files[i].bytes[at] ^ (uint8_t)(1 << at % 8);
            lay_out(bed, i, at, &flipped, 1);
            start(bed, i, at, outcomes);
        }
    }
}

static void zero_every_block(struct bed *bed, uint64_t block, struct outcomes *outcomes)
{
    static const uint8_t zeros[2 * 4096];
    assert_true(block <= sizeof(zeros));
    for (size_t i = 0; i < bed->file_count; i++) {
        for (uint64_t at = 0; at < bed->files[i].len; at += block) {
            uint64_t left = bed->files[i].len - at;
            lay_out(bed, i, at, zeros, block < left ? block : left);
            start(bed, i, at, outcomes);
        }
    }
}

static void damage_everywhere(struct bed *bed)
{
    struct outcomes outcomes = {0};
    flip_every_byte(bed, &outcomes);
    zero_every_block(bed, 512, &outcomes);
    zero_every_block(bed, 4096, &outcomes);
    zero_every_block(bed, 2 * 4096, &outcomes);
    /* The test must see both results. */
    assert_true(outcomes.intact > 0);
    assert_true(outcomes.refused > 0);
    lay_out(bed, 0, 0, NULL, 0);
}

/* -- The tests -- */

static int set_up(void **state)
{
    struct bed *bed = calloc(1, sizeof(*bed));
    bed->sim = fs_sim_new(3);
    assert_int_equal(fs_make_dir(fs_sim_fs(bed->sim), "/log"), ST_OK);
    bed->options = (struct log_options){
        .fs = fs_sim_fs(bed->sim),
        .dir = "/log",
        .segment_bytes_first = SEGMENT_BYTES,
        .segment_bytes_max = SEGMENT_BYTES,
        .salt = 99,
    };
    assert_int_equal(bed_open(bed), ST_OK);
    *state = bed;
    return 0;
}

static int tear_down(void **state)
{
    struct bed *bed = *state;
    forget_files(bed);
    log_close(bed->log);
    fs_sim_free(bed->sim);
    free(bed);
    return 0;
}

/* From a single record, which only the mark proves to be durable, to some in a third segment. */
static void fall_idle(struct bed *bed, uint64_t records)
{
    append_acked(bed, records);
    assert_int_equal(log_mark(bed->log), ST_OK);
    bed_close(bed);
    keep_files(bed);
}

static void one_record_is_never_lost_silently(void **state)
{
    struct bed *bed = *state;
    fall_idle(bed, 1);
    damage_everywhere(bed);
}

static void several_segments_are_never_lost_silently(void **state)
{
    struct bed *bed = *state;
    fall_idle(bed, (SEGMENT_BYTES - SEGMENT_RECORDS_OFFSET) / RECORD_BYTES + 3);
    damage_everywhere(bed);
}

/* A power cut after the mark tore what followed it. */
static void a_torn_tail_after_the_mark_hides_nothing(void **state)
{
    struct bed *bed = *state;
    append_acked(bed, 4);
    assert_int_equal(log_mark(bed->log), ST_OK);
    append(bed);
    append(bed);
    assert_int_equal(log_write(bed->log), ST_OK);
    bed_close(bed);
    keep_files(bed);
    for (size_t i = 0; i < bed->file_count; i++) {
        uint64_t torn = SEGMENT_RECORDS_OFFSET + 4 * RECORD_BYTES + 60;
        if (strcmp(bed->files[i].path, "/log/0000000000000001.seg") == 0)
            bed->files[i].bytes[torn] ^= 1;
    }
    damage_everywhere(bed);
}

static void check_point(struct bed *bed, uint64_t index)
{
    struct log_segment_info infos[FILES_MAX];
    size_t count = log_segments(bed->log, infos, FILES_MAX);
    for (size_t i = 0; i < count; i++) {
        if (infos[i].first_index > index)
            continue;
        bed->known[bed->listed_count] =
            (struct log_listed){infos[i].id, infos[i].first_index, infos[i].used_bytes};
        bed->listed[bed->listed_count++] = infos[i].id;
    }
    bed->after_index = index;
}

/* Records that the checkpoint covers are not replayed; their values are still in the log. */
static void what_a_checkpoint_covers_is_never_lost_silently(void **state)
{
    struct bed *bed = *state;
    append_acked(bed, 6);
    check_point(bed, 6);
    fall_idle(bed, 0);
    damage_everywhere(bed);
}

static void what_follows_a_checkpoint_is_never_lost_silently(void **state)
{
    struct bed *bed = *state;
    append_acked(bed, 34);
    check_point(bed, 32);
    fall_idle(bed, 1);
    damage_everywhere(bed);
}

/* Without the mark it is an unfinished write, which is cut off and reported. */
static void a_cut_is_reported_with_its_place_and_length(void **state)
{
    struct bed *bed = *state;
    append_acked(bed, 3);
    bed_close(bed);
    keep_files(bed);
    assert_int_equal(bed->file_count, 1);
    uint64_t last = SEGMENT_RECORDS_OFFSET + 2 * RECORD_BYTES;
    uint8_t flipped = bed->files[0].bytes[last + 50] ^ 1;
    lay_out(bed, 0, last + 50, &flipped, 1);
    assert_int_equal(bed_open(bed), ST_OK);
    struct log_cut cut = log_cut(bed->log);
    assert_int_equal(cut.index, 3);
    assert_int_equal(cut.segment_id, 1);
    assert_int_equal(cut.offset, last);
    assert_int_equal(cut.bytes, RECORD_HEAD_BYTES + BODY_BYTES);
    assert_string_equal(cut.reason, "its checksum is wrong");
    bed_close(bed);
    assert_int_equal(bed_open(bed), ST_OK); /* afterwards there is nothing left to cut off */
    assert_int_equal(log_cut(bed->log).bytes, 0);
}

static void a_mark_without_a_good_copy_is_refused(void **state)
{
    struct bed *bed = *state;
    fall_idle(bed, 2);
    for (size_t i = 0; i < bed->file_count; i++) {
        if (!strstr(bed->files[i].path, MARK_FILE_NAME))
            continue;
        bed->files[i].bytes[20] ^= 1;
        bed->files[i].bytes[MARK_COPY_BYTES + 20] ^= 1;
    }
    lay_out(bed, 0, 0, NULL, 0);
    assert_int_equal(bed_open(bed), ST_DAMAGED);
    assert_non_null(strstr(bed->error.text, "/log/" MARK_FILE_NAME));
    struct log_repair done;
    assert_int_equal(repair(bed, true, &done), ST_OK);
    assert_true(done.mark);
    assert_null(done.cut.reason);
    assert_int_equal(bed_open(bed), ST_OK);
    assert_int_equal(bed->replayed, 2);
}

static bool file_exists(struct bed *bed, const char *path, struct slice contents)
{
    AUTO(file_closep) struct file *file = NULL;
    if (fs_open(bed->options.fs, path, FILE_READ_ONLY, &file) != ST_OK)
        return false;
    uint64_t len;
    assert_int_equal(file_size(file, &len), ST_OK);
    assert_int_equal(len, contents.len);
    uint8_t bytes[2 * RECORD_BYTES];
    assert_int_equal(file_pread(file, bytes, len, 0), ST_OK);
    assert_memory_equal(bytes, contents.ptr, len);
    return true;
}

/*
 * The damaged record and the one after it are removed; their bytes are saved, also by a second
 * repair.
 */
static void a_repair_saves_what_it_cuts_off(void **state)
{
    struct bed *bed = *state;
    fall_idle(bed, 3);
    uint64_t at = SEGMENT_RECORDS_OFFSET + RECORD_BYTES, len = RECORD_BYTES + 132;
    size_t file = 0;
    while (!strstr(bed->files[file].path, ".seg"))
        file++;
    uint8_t *bytes = bed->files[file].bytes;
    bytes[at + 60] ^= 1;
    for (int i = 0; i < 2; i++) {
        if (i == 0)
            lay_out(bed, 0, 0, NULL, 0);
        struct file *again;
        assert_int_equal(fs_open(bed->options.fs, bed->files[file].path, FILE_READ_WRITE, &again),
                         ST_OK);
        assert_int_equal(file_pwrite(again, slice_of(bytes, bed->files[file].len), 0), ST_OK);
        file_close(again);
        struct log_repair done;
        assert_int_equal(repair(bed, true, &done), ST_OK);
        assert_int_equal(bed->reported_lost, 2);
        assert_int_equal(done.cut.index, 2);
        assert_int_equal(done.last_index, 3);
        assert_int_equal(done.cut.bytes, len);
        char path[64];
        snprintf(path, sizeof(path), "/log/0000000000000001.seg.lost-%llu%s",
                 (unsigned long long)at, i ? "-1" : "");
        assert_string_equal(done.saved_path, path);
        assert_true(file_exists(bed, path, slice_of(bytes + at, len)));
    }
    assert_int_equal(bed_open(bed), ST_OK);
    assert_int_equal(bed->replayed, 1);
}

/*
 * It is not set aside with records that can be read: the error names the length, with which they
 * are readable.
 */
static void a_shortened_segment_is_repaired_once_its_length_is_restored(void **state)
{
    struct bed *bed = *state;
    fall_idle(bed, 3);
    size_t file = 0;
    while (!strstr(bed->files[file].path, "1.seg"))
        file++;
    struct kept_file *kept = &bed->files[file];
    uint64_t whole = kept->len, left = SEGMENT_RECORDS_OFFSET + 2 * RECORD_BYTES + 40;
    char advice[64];
    snprintf(advice, sizeof(advice), "truncate -s %llu /log/", (unsigned long long)whole);
    struct log_repair done;
    kept->len = left;
    lay_out(bed, 0, 0, NULL, 0);
    assert_int_equal(bed_open(bed), ST_DAMAGED);
    assert_non_null(strstr(bed->error.text, advice));
    assert_int_equal(repair(bed, true, &done), ST_DAMAGED);
    assert_non_null(strstr(bed->error.text, advice));
    kept->len = whole;
    memset(kept->bytes + left, 0, whole - left);
    lay_out(bed, 0, 0, NULL, 0);
    assert_int_equal(repair(bed, true, &done), ST_OK);
    assert_int_equal(done.cut.index, 3);
    assert_int_equal(bed_open(bed), ST_OK);
    assert_int_equal(bed->replayed, 2);
}

static void without_its_only_segment_a_repair_fails(void **state)
{
    struct bed *bed = *state;
    fall_idle(bed, 3);
    for (size_t i = 0; i < bed->file_count; i++) {
        if (strstr(bed->files[i].path, "1.seg")) {
            memset(bed->files[i].bytes, 0xff, SEGMENT_RECORDS_OFFSET + RECORD_HEAD_BYTES);
        }
    }
    lay_out(bed, 0, 0, NULL, 0);
    struct log_repair done;
    assert_int_equal(bed_open(bed), ST_DAMAGED);
    assert_int_equal(repair(bed, true, &done), ST_DAMAGED);
    assert_non_null(strstr(bed->error.text, "is missing"));
}

/* The salt is in the checksum of the first record. */
static void a_damaged_head_without_a_twin_is_made_again(void **state)
{
    struct bed *bed = *state;
    fall_idle(bed, 3);
    for (size_t i = 0; i < bed->file_count; i++) {
        if (strstr(bed->files[i].path, "1.seg"))
            memset(bed->files[i].bytes, 0xff, sizeof(struct segment_head));
    }
    lay_out(bed, 0, 0, NULL, 0);
    struct log_repair done;
    assert_int_equal(bed_open(bed), ST_DAMAGED);
    assert_int_equal(repair(bed, false, &done), ST_OK);
    assert_int_equal(bed_open(bed), ST_DAMAGED);
    assert_int_equal(repair(bed, true, &done), ST_OK);
    assert_true(done.damaged);
    assert_int_equal(done.heads, 1);
    assert_int_equal(done.cut.bytes, 0);
    assert_int_equal(bed_open(bed), ST_OK);
}

static void make_durable(struct bed *bed)
{
    for (size_t i = 0; i < bed->file_count; i++) {
        struct file *file;
        assert_int_equal(fs_open(bed->options.fs, bed->files[i].path, FILE_READ_WRITE, &file),
                         ST_OK);
        assert_int_equal(file_sync(file), ST_OK);
        file_close(file);
    }
    assert_int_equal(fs_sync_dir(bed->options.fs, "/log"), ST_OK);
}

/* A power cut at any call: the next repair, or the next start, has the same result. */
static void a_repair_that_was_interrupted_can_be_repeated(void **state)
{
    struct bed *bed = *state;
    fall_idle(bed, 3);
    size_t file = 0;
    while (!strstr(bed->files[file].path, ".seg"))
        file++;
    bed->files[file].bytes[SEGMENT_RECORDS_OFFSET + RECORD_BYTES + 60] ^= 1;
    enum status status = ST_IO;
    unsigned started = 0, refused = 0;
    for (uint64_t call = 1; status != ST_OK; call++) {
        lay_out(bed, 0, 0, NULL, 0);
        make_durable(bed);
        struct log_repair done;
        fs_sim_fail(bed->sim, FS_SIM_ANY, call, ST_IO, true);
        status = repair(bed, true, &done);
        fs_sim_fail(bed->sim, FS_SIM_ANY, 0, ST_OK, false);
        fs_sim_crash(bed->sim);
        if (bed_open(bed) == ST_OK) {
            started++;
        } else {
            refused++;
            assert_int_equal(repair(bed, true, &done), ST_OK);
            assert_int_equal(bed_open(bed), ST_OK);
        }
        assert_int_equal(bed->replayed, 1);
        bed_close(bed);
    }
    assert_true(started > 0 && refused > 0);
}

/* If every segment is removed and the mark is left, it is not a new log. */
static void a_mark_alone_is_not_a_new_log(void **state)
{
    struct bed *bed = *state;
    fall_idle(bed, 2);
    assert_int_equal(fs_unlink(bed->options.fs, "/log/0000000000000001.seg"), ST_OK);
    assert_int_equal(bed_open(bed), ST_DAMAGED);
    assert_non_null(strstr(bed->error.text, "missing"));
}

/* Without the mark, only the seal before it tells that it existed. */
static void a_log_without_its_last_segment_and_mark_is_repaired(void **state)
{
    struct bed *bed = *state;
    uint64_t first = (SEGMENT_BYTES - SEGMENT_RECORDS_OFFSET) / RECORD_BYTES;
    fall_idle(bed, first + 3);
    assert_int_equal(fs_unlink(bed->options.fs, "/log/0000000000000002.seg"), ST_OK);
    assert_int_equal(fs_unlink(bed->options.fs, "/log/" MARK_FILE_NAME), ST_OK);
    assert_int_equal(bed_open(bed), ST_DAMAGED);
    struct log_repair dry, done;
    assert_int_equal(repair(bed, false, &dry), ST_OK);
    assert_true(dry.damaged);
    assert_string_equal(dry.cut.reason, "the next segment is missing");
    assert_int_equal(repair(bed, true, &done), ST_OK);
    assert_int_equal(done.cut.index, first + 1);
    assert_int_equal(bed_open(bed), ST_OK);
    assert_int_equal(bed->replayed, first);
    check_continues(bed, first);
}

/* A segment for later records, of which there are none yet, with an impossible seal. */
static void a_damaged_seal_of_an_unused_segment_is_repaired(void **state)
{
    struct bed *bed = *state;
    fall_idle(bed, 3);
    uint8_t bytes[SEGMENT_BYTES] = {0};
    struct segment_head head;
    struct file *file;
    for (size_t i = 0; i < bed->file_count; i++) {
        if (strstr(bed->files[i].path, "1.seg"))
            memcpy(&head, bed->files[i].bytes, sizeof(head));
    }
    head.id = 2;
    segment_head_finish(&head);
    memcpy(bytes, &head, sizeof(head));
    bytes[SEGMENT_SEAL_OFFSET] = 1;
    assert_int_equal(fs_open(bed->options.fs, "/log/0000000000000002.seg", FILE_CREATE, &file),
                     ST_OK);
    assert_int_equal(file_pwrite(file, slice_of(bytes, sizeof(bytes)), 0), ST_OK);
    file_close(file);
    assert_int_equal(bed_open(bed), ST_DAMAGED);
    struct log_repair done;
    assert_int_equal(repair(bed, true, &done), ST_OK);
    assert_int_equal(done.seals, 1);
    assert_int_equal(bed_open(bed), ST_OK);
    assert_int_equal(bed->replayed, 3);
    check_continues(bed, 3);
}

static void write_file(struct bed *bed, const char *path, const void *bytes, size_t len)
{
    struct file *file;
    enum status removed = fs_unlink(bed->options.fs, path);
    assert_true(removed == ST_OK || removed == ST_NOT_FOUND);
    assert_int_equal(fs_open(bed->options.fs, path, FILE_CREATE, &file), ST_OK);
    assert_int_equal(file_pwrite(file, slice_of(bytes, len), 0), ST_OK);
    file_close(file);
}

/* It is made again, since it cannot have had a record. */
static void a_damaged_head_of_an_unused_segment_does_not_matter(void **state)
{
    struct bed *bed = *state;
    const char *spare = "/log/0000000000000002.seg";
    const size_t lengths[] = {SEGMENT_BYTES, SEGMENT_BYTES / 2};
    uint8_t bytes[SEGMENT_BYTES] = "garbage";
    fall_idle(bed, 3);
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        write_file(bed, spare, bytes, lengths[i]);
        if (bed_open(bed) != ST_OK)
            fail_msg("%s", bed->error.text);
        assert_int_equal(bed->replayed, 3);
        assert_int_equal(log_removed_spare(bed->log), 2);
        bed_close(bed);
        assert_int_equal(bed_open(bed), ST_OK);
        assert_int_equal(log_removed_spare(bed->log), 0);
        bed_close(bed);
    }
    /* This one may have had records. */
    bytes[SEGMENT_RECORDS_OFFSET + 3] = 1;
    write_file(bed, spare, bytes, SEGMENT_BYTES);
    assert_int_equal(bed_open(bed), ST_DAMAGED);
}

/* Zeros instead of records are a loss, also if nothing else tells that there were any. */
static void a_segment_that_had_records_is_not_taken_for_an_unused_one(void **state)
{
    struct bed *bed = *state;
    enum { RECORDS = 2 * ((SEGMENT_BYTES - SEGMENT_RECORDS_OFFSET) / RECORD_BYTES) + 3 };
    static const uint8_t bytes[SEGMENT_BYTES] = "garbage";
    fall_idle(bed, RECORDS);
    size_t segments = 0;
    for (size_t i = 0; i < bed->file_count; i++) {
        if (!strstr(bed->files[i].path, ".seg"))
            continue;
        segments++;
        write_file(bed, bed->files[i].path, bytes, SEGMENT_BYTES);
        assert_int_equal(bed_open(bed), ST_DAMAGED);
        write_file(bed, bed->files[i].path, bed->files[i].bytes, bed->files[i].len);
    }
    assert_true(segments > 2);
    assert_int_equal(bed_open(bed), ST_OK);
    assert_int_equal(bed->replayed, RECORDS);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(one_record_is_never_lost_silently),
        TEST(several_segments_are_never_lost_silently),
        TEST(a_torn_tail_after_the_mark_hides_nothing),
        TEST(what_a_checkpoint_covers_is_never_lost_silently),
        TEST(what_follows_a_checkpoint_is_never_lost_silently),
        TEST(a_cut_is_reported_with_its_place_and_length),
        TEST(a_mark_without_a_good_copy_is_refused),
        TEST(a_repair_saves_what_it_cuts_off),
        TEST(a_shortened_segment_is_repaired_once_its_length_is_restored),
        TEST(without_its_only_segment_a_repair_fails),
        TEST(a_damaged_head_without_a_twin_is_made_again),
        TEST(a_repair_that_was_interrupted_can_be_repeated),
        TEST(a_mark_alone_is_not_a_new_log),
        TEST(a_log_without_its_last_segment_and_mark_is_repaired),
        TEST(a_damaged_seal_of_an_unused_segment_is_repaired),
        TEST(a_damaged_head_of_an_unused_segment_does_not_matter),
        TEST(a_segment_that_had_records_is_not_taken_for_an_unused_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
