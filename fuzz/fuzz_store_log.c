/*
 * Arbitrary bytes as the segment files of a log. Opening them succeeds or is refused. A log that
 * was opened can be read, appended to and opened again with one record more; one that was refused
 * is repaired, unless that is refused, too. After a repair it can be opened, unless seals or
 * records have the right checksum and contradict each other or the checkpoint, which no damage
 * explains.
 *
 *   input   how | after_index | listed | bytes of 1 to 3 segments, of equal length
 *
 * `how` has bits that make checksums right, so that the fuzzer gets past them, and the number of
 * records, less one, that a repair takes listed segments to have.
 */
#include "cost.h"

#include "simulated/file_sim.h"
#include "store/log/format.h"
#include "store/log/log.h"
#include "store/log/reader.h"
#include "store/log/repair.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    HOW_FINISH_HEADS = 1,
    HOW_FINISH_SEALS = 2,
    HOW_FINISH_RECORDS = 4,
    HOW_SEGMENTS_SHIFT = 3, /* two bits */
    HOW_RECORDS_SHIFT = 5,  /* three bits */
    INPUT_HEAD_BYTES = 3,
    SEGMENTS_MAX = 16,
    SEGMENT_BYTES_MIN = SEGMENT_RECORDS_OFFSET + RECORD_HEAD_BYTES,
};

static void must(bool is_true)
{
    if (!is_true)
        abort();
}

static void finish_records(uint8_t *bytes, size_t len, uint32_t salt)
{
    size_t offset = SEGMENT_RECORDS_OFFSET;
    while (offset + RECORD_HEAD_BYTES <= len) {
        uint32_t record_len;
        memcpy(&record_len, bytes + offset + offsetof(struct record_head, len), sizeof(record_len));
        if (record_len < RECORD_HEAD_BYTES || record_len > len - offset)
            return;
        record_finish(bytes + offset, salt);
        offset += align_up(record_len, RECORD_ALIGN);
    }
}

static void finish_segment(uint8_t *bytes, size_t len, uint64_t id, uint8_t how)
{
    struct segment_head head;
    memcpy(&head, bytes, sizeof(head));
    if (how & HOW_FINISH_HEADS) {
        head.id = id;
        head.capacity = len;
        segment_head_finish(&head);
        memcpy(bytes, &head, sizeof(head));
    }
    struct segment_seal seal;
    memcpy(&seal, bytes + SEGMENT_SEAL_OFFSET, sizeof(seal));
    if ((how & HOW_FINISH_SEALS) && seal.id) {
        seal.id = id;
        segment_seal_finish(&seal);
        memcpy(bytes + SEGMENT_SEAL_OFFSET, &seal, sizeof(seal));
    }
    if (how & HOW_FINISH_RECORDS)
        finish_records(bytes, len, head.salt);
}

static void put_segment(struct fs *fs, uint64_t id, struct slice input, uint8_t how)
{
    size_t len = align_up(size_max(input.len, SEGMENT_BYTES_MIN), RECORD_ALIGN);
    uint8_t *bytes = calloc(1, len);
    must(bytes);
    slice_copy(bytes, input);
    finish_segment(bytes, len, id, how);
    char path[64];
    snprintf(path, sizeof(path), "/log/%016llx.seg", (unsigned long long)id);
    struct file *file;
    must(fs_open(fs, path, FILE_CREATE, &file) == ST_OK);
    must(file_pwrite(file, slice_of(bytes, len), 0) == ST_OK);
    file_close(file);
    free(bytes);
}

struct replayed {
    uint64_t count, sum;
};

static enum status see_record(void *ctx, const struct log_record *record)
{
    struct replayed *replayed = ctx;
    replayed->count++;
    for (size_t i = 0; i < record->body.len; i++)
        replayed->sum += record->body.ptr[i];
    return ST_OK;
}

static void use_and_open_again(const struct log_options *options, struct log *log, uint64_t after,
                               struct replayed before)
{
    struct log_reader reader;
    struct log_record record;
    log_reader_init(&reader, log, 1);
    while (log_reader_next(&reader, UINT64_MAX, &record) == ST_OK)
        see_record(&(struct replayed){0}, &record);

    log_loc loc;
    must(log_reserve(log, 10) == ST_OK);
    memset(log_append_begin(log, &loc), 7, 10);
    log_append_end(log, 1, 1, 10);
    must(log_write(log) == ST_OK);
    must(log_sync(log) == ST_OK);
    struct log_segment_info infos[SEGMENTS_MAX];
    size_t count = log_segments(log, infos, SEGMENTS_MAX), listed_count = 0;
    uint64_t listed[SEGMENTS_MAX];
    must(count <= SEGMENTS_MAX);
    for (size_t i = 0; i < count; i++) {
        if (infos[i].first_index <= after)
            listed[listed_count++] = infos[i].id;
    }
    log_close(log);

    struct replayed again = {0};
    struct error error;
    enum status status =
        log_open(options, after, listed, listed_count, see_record, &again, &log, &error);
    if (status != ST_OK)
        fprintf(stderr, "%s\n", error.text);
    must(status == ST_OK);
    must(again.count == before.count + 1 && again.sum == before.sum + 70);
    log_close(log);
}

/* -- Repairs -- */

static void see_lost(void *ctx, const struct log_lost *lost)
{
    see_record(ctx, &lost->record);
}

static void see_passed(void *ctx, const struct log *log, log_loc from, log_loc to)
{
    (void)ctx, (void)log;
    must(from <= to);
}

/* The seals say that what the checkpoint has ends before a segment that it lists. */
static bool seals_contradict(const struct log_repair *done, uint64_t after,
                             const struct log_listed *listed, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (listed[i].id == done->cut.segment_id)
            return done->cut.offset == SEGMENT_RECORDS_OFFSET && done->cut.index > after;
    }
    return false;
}

/* What was passed has the right checksum, and not the index that its place gives it. */
static bool record_contradicts(const struct log_options *options, const struct log_repair *done)
{
    char path[64];
    struct segment_head segment;
    struct record_head head;
    struct file *file;
    if (!done->passed_segment_id)
        return false;
    snprintf(path, sizeof(path), "/log/%016llx.seg", (unsigned long long)done->passed_segment_id);
    must(fs_open(options->fs, path, FILE_READ_ONLY, &file) == ST_OK);
    must(file_pread(file, &segment, sizeof(segment), 0) == ST_OK);
    size_t len = segment.capacity - done->passed_offset;
    uint8_t *bytes = malloc(len);
    must(bytes && file_pread(file, bytes, len, done->passed_offset) == ST_OK);
    file_close(file);
    bool good = record_check(slice_of(bytes, len), segment.salt, &head) == RECORD_GOOD;
    free(bytes);
    return good;
}

/* First as `vigil repair` shows what would be lost, then accepting it. */
static void repair_and_open(const struct log_options *options, uint64_t after,
                            const struct log_listed *listed, size_t count)
{
    struct replayed lost[2] = {0}, replayed = {0};
    struct log_repair_options repair = {.log = *options,
                                        .after_index = after,
                                        .after_revision = (int64_t)after,
                                        .listed = listed,
                                        .listed_count = count,
                                        .lost = see_lost,
                                        .passed = see_passed};
    struct log_repair shown, done;
    struct error error = {.text = ""};
    repair.ctx = &lost[0];
    enum status status = log_repair(&repair, &shown, &error);
    must(status == ST_OK || error.text[0]);
    if (status != ST_OK)
        return;
    repair.accept = true;
    repair.ctx = &lost[1];
    must(log_repair(&repair, &done, &error) == ST_OK);
    must(done.damaged == shown.damaged && lost[0].count == lost[1].count);

    uint64_t ids[SEGMENTS_MAX];
    struct log *log;
    for (size_t i = 0; i < count; i++)
        ids[i] = listed[i].id;
    status = log_open(options, after, ids, count, see_record, &replayed, &log, &error);
    if (status != ST_OK)
        fprintf(stderr, "%s\n", error.text);
    must(status == ST_OK || strstr(error.text, "is missing") ||
         seals_contradict(&done, after, listed, count) || record_contradicts(options, &done));
    if (status == ST_OK)
        use_and_open_again(options, log, after, replayed);
}

/* -- Inputs -- */

FUZZ_INPUT()
{
    if (size < INPUT_HEAD_BYTES)
        return 0;
    AUTO(fs_sim_freep) struct fs_sim *sim = fs_sim_new(1);
    struct fs *fs = fs_sim_fs(sim);
    must(fs_make_dir(fs, "/log") == ST_OK);
    uint8_t how = data[0];
    uint64_t after = data[1], listed[3];
    struct log_listed rows[3];
    size_t segments = (how >> HOW_SEGMENTS_SHIFT) % 3 + 1, listed_count = 0;
    size_t each = (size - INPUT_HEAD_BYTES) / segments;
    for (size_t i = 0; i < segments; i++) {
        put_segment(fs, i + 1, slice_of(data + INPUT_HEAD_BYTES + i * each, each), how);
        uint64_t first_index = 1 + i * ((how >> HOW_RECORDS_SHIFT) + 1U);
        if (first_index > after || !(data[2] & (1 << i)))
            continue;
        rows[listed_count] = (struct log_listed){
            .id = i + 1,
            .first_index = first_index,
            .used_bytes = size_max(each, SEGMENT_BYTES_MIN),
        };
        listed[listed_count++] = i + 1;
    }
    struct log_options options = {
        .fs = fs, .dir = "/log", .segment_bytes_first = 4096, .segment_bytes_max = 4096};
    struct replayed replayed = {0};
    struct error error = {.text = ""};
    struct log *log;
    enum status status =
        log_open(&options, after, listed, listed_count, see_record, &replayed, &log, &error);
    if (status == ST_OK) {
        use_and_open_again(&options, log, after, replayed);
        return 0;
    }
    must(error.text[0] != 0);
    repair_and_open(&options, after, rows, listed_count);
    return 0;
}
