/* The log on real files: what every start after a clean or unclean stop must return. */
#include "base/temp_dir_test.h"
#include "store/log/damage.h"
#include "store/log/log.h"
#include "store/log/prepare.h"
#include "store/log/reader.h"
#include "store/log/rewrite.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

struct bed {
    char dir[TEMP_DIR_BYTES];
    struct log *log;
    struct log_options options;
    uint64_t replayed_first, replayed_last;
    size_t replayed;
};

static int bed_set_up(void **state)
{
    struct bed *bed = calloc(1, sizeof(*bed));
    temp_dir_make("log", bed->dir);
    bed->options = (struct log_options){
        .fs = fs_posix(),
        .dir = bed->dir,
        .segment_bytes_first = 16 * 1024,
        .segment_bytes_max = 64 * 1024,
        .salt = 7,
    };
    *state = bed;
    return 0;
}

static int bed_tear_down(void **state)
{
    struct bed *bed = *state;
    log_close(bed->log);
    temp_dir_remove(bed->dir);
    free(bed);
    return 0;
}

/* The body of the record with that index; its length and bytes are derived from the index. */
static size_t body_bytes(uint64_t index)
{
    return (size_t)(index * 7919 % 700);
}

static void body_fill(uint8_t *to, uint64_t index)
{
    for (size_t i = 0; i < body_bytes(index); i++)
        to[i] = (uint8_t)(index * 31 + i);
}

static void assert_record(const struct log_record *record, uint64_t index)
{
    uint8_t want[700];
    body_fill(want, index);
    assert_int_equal(record->index, index);
    assert_int_equal(record->revision, (int64_t)index * 2);
    assert_int_equal(record->type, index % 200);
    assert_int_equal(record->body.len, body_bytes(index));
    assert_memory_equal(record->body.ptr, want, body_bytes(index));
}

static enum status see_record(void *ctx, const struct log_record *record)
{
    struct bed *bed = ctx;
    if (!bed->replayed++)
        bed->replayed_first = record->index;
    bed->replayed_last = record->index;
    assert_record(record, record->index);
    return ST_OK;
}

static enum status bed_open(struct bed *bed, uint64_t after_index, const uint64_t *listed,
                            size_t listed_count, struct error *ret_error)
{
    log_close(bed->log);
    bed->log = NULL;
    bed->replayed = bed->replayed_first = bed->replayed_last = 0;
    return log_open(&bed->options, after_index, listed, listed_count, see_record, bed, &bed->log,
                    ret_error);
}

static void bed_reopen(struct bed *bed)
{
    struct error error = {0};
    enum status status = bed_open(bed, 0, NULL, 0, &error);
    if (status != ST_OK)
        print_error("%s\n", error.text);
    assert_int_equal(status, ST_OK);
}

static log_loc append(struct bed *bed)
{
    uint64_t index = log_last_index(bed->log) + 1;
    log_loc loc;
    assert_int_equal(log_reserve(bed->log, body_bytes(index) + 10), ST_OK);
    uint8_t *body = log_append_begin(bed->log, &loc);
    body_fill(body, index);
    assert_int_equal(
        log_append_end(bed->log, (uint8_t)(index % 200), (int64_t)index * 2, body_bytes(index)),
        index);
    return loc;
}

static void append_synced(struct bed *bed, int count)
{
    for (int i = 0; i < count; i++)
        append(bed);
    assert_int_equal(log_write(bed->log), ST_OK);
    assert_int_equal(log_sync(bed->log), ST_OK);
    log_check(bed->log);
}

static void everything_is_present_after_reopening(void **state)
{
    struct bed *bed = *state;
    bed_reopen(bed);
    for (int i = 0; i < 100; i++) {
        append_synced(bed, 1 + i % 17);
        if (i % 5 == 0 && log_wants_prepare(bed->log))
            assert_int_equal(log_prepare(bed->log), ST_OK);
    }
    uint64_t last = log_last_index(bed->log);
    assert_int_equal(log_durable_index(bed->log), last);
    assert_true(log_segments(bed->log, NULL, 0) > 3);

    bed_reopen(bed);
    assert_int_equal(bed->replayed, last);
    assert_int_equal(bed->replayed_first, 1);
    assert_int_equal(log_last_index(bed->log), last);

    append_synced(bed, 50);
    bed_reopen(bed);
    assert_int_equal(bed->replayed, last + 50);
}

static void a_pending_record_is_read_where_it_will_be(void **state)
{
    struct bed *bed = *state;
    bed_reopen(bed);
    log_loc locs[200];
    for (uint64_t i = 0; i < 200; i++)
        locs[i] = append(bed);
    for (int pass = 0; pass < 2; pass++) {
        for (uint64_t i = 0; i < 200; i++) {
            uint8_t want[700];
            body_fill(want, i + 1);
            assert_int_equal(locs[i] % 8, 0);
            if (body_bytes(i + 1))
                assert_memory_equal(log_rest_at(bed->log, locs[i]).ptr, want, body_bytes(i + 1));
        }
        assert_int_equal(log_write(bed->log), ST_OK);
        assert_int_equal(log_pending_bytes(bed->log), 0);
    }
}

static void an_aborted_record_leaves_nothing(void **state)
{
    struct bed *bed = *state;
    bed_reopen(bed);
    append(bed);
    log_loc loc, again;
    assert_int_equal(log_reserve(bed->log, 100), ST_OK);
    memset(log_append_begin(bed->log, &loc), 0xee, 100);
    log_append_abort(bed->log);
    /* The same for one that would have been in a new segment. */
    for (size_t bytes = 100000; bytes < 400000; bytes += 100000) {
        assert_int_equal(log_reserve(bed->log, bytes), ST_OK);
        log_append_begin(bed->log, &again);
        log_append_abort(bed->log);
    }
    assert_int_equal(append(bed), loc);
    append_synced(bed, 10);
    bed_reopen(bed);
    assert_int_equal(bed->replayed, 12);
}

static void a_record_larger_than_a_segment_gets_its_own(void **state)
{
    struct bed *bed = *state;
    bed_reopen(bed);
    append_synced(bed, 3);
    assert_int_equal(log_prepare(bed->log), ST_OK);
    size_t bytes = 1000000;
    log_loc loc;
    assert_int_equal(log_reserve(bed->log, bytes), ST_OK);
    memset(log_append_begin(bed->log, &loc), 'x', bytes);
    log_append_end(bed->log, 1, 0, bytes);
    assert_int_equal(log_write(bed->log), ST_OK);
    const uint8_t *at = log_rest_at(bed->log, loc).ptr;
    for (size_t i = 0; i < bytes; i++)
        assert_int_equal(at[i], 'x');
    assert_int_equal(log_reserve(bed->log, (size_t)2 << 30), ST_LIMIT);
}

static void the_first_record_may_be_larger_than_the_first_segment(void **state)
{
    struct bed *bed = *state;
    bed_reopen(bed);
    size_t bytes = 300000;
    for (int i = 0; i < 2; i++) {
        log_loc loc;
        assert_int_equal(log_reserve(bed->log, bytes), ST_OK);
        memset(log_append_begin(bed->log, &loc), 'x', bytes);
        log_append_abort(bed->log);
        bed_reopen(bed); /* empty, and as large as it had to be */
    }
    append_synced(bed, 2000);
    bed_reopen(bed);
    assert_int_equal(bed->replayed, 2000);
}

static void the_reader_walks_from_any_index_and_revision(void **state)
{
    struct bed *bed = *state;
    bed_reopen(bed);
    append_synced(bed, 300);
    for (uint64_t from = 1; from <= 301; from += 7) {
        struct log_reader reader;
        struct log_record record;
        log_reader_init(&reader, bed->log, from);
        for (uint64_t index = from; index <= 290; index++) {
            assert_int_equal(log_reader_next(&reader, 290, &record), ST_OK);
            assert_record(&record, index);
        }
        assert_int_equal(log_reader_next(&reader, 290, &record), ST_END);

        log_reader_seek_revision(&reader, bed->log, (int64_t)from * 2 - 1);
        if (from <= 300) {
            assert_int_equal(log_reader_next(&reader, 300, &record), ST_OK);
            assert_record(&record, from);
        }
    }
    /* A reader at the end continues when more is written. */
    struct log_reader reader;
    struct log_record record;
    log_reader_init(&reader, bed->log, 301);
    assert_int_equal(log_reader_next(&reader, UINT64_MAX, &record), ST_END);
    append_synced(bed, 200);
    for (uint64_t index = 301; index <= 500; index++) {
        assert_int_equal(log_reader_next(&reader, UINT64_MAX, &record), ST_OK);
        assert_record(&record, index);
    }
    assert_int_equal(log_reader_next(&reader, UINT64_MAX, &record), ST_END);
}

/* Many records without a revision, long records, and values that look like records. */
static void append_odd(struct bed *bed, uint64_t index, const uint8_t *bait, size_t bait_bytes)
{
    size_t bytes = index % 500 == 77 ? 90000 : 100 + bait_bytes;
    log_loc loc;
    assert_int_equal(log_reserve(bed->log, bytes), ST_OK);
    uint8_t *body = log_append_begin(bed->log, &loc);
    memset(body, 0, bytes);
    memcpy(body, &index, sizeof(index));
    memcpy(body + 16, bait, bait_bytes);
    bool plain = index % 1000 > 600;
    log_append_end(bed->log, 1, plain ? 0 : (int64_t)index * 2, bytes);
    assert_int_equal(log_write(bed->log), ST_OK);
}

static void seeking_lands_on_the_right_record_in_large_segments(void **state)
{
    struct bed *bed = *state;
    bed->options.segment_bytes_first = bed->options.segment_bytes_max = 1 << 20;
    bed_reopen(bed);
    uint8_t bait[300] = {0};
    for (uint64_t index = 1; index <= 8000; index++) {
        append_odd(bed, index, bait, index % 3 ? sizeof(bait) : 0);
        struct log_reader reader;
        struct log_record record;
        log_reader_init(&reader, bed->log, index);
        assert_int_equal(log_reader_next(&reader, index, &record), ST_OK);
        /* A complete record of this very segment becomes the value of a later one. */
        if (record.body.len < 200)
            memcpy(bait, record.body.ptr - 32, 32 + record.body.len);
    }
    assert_in_range(log_segments(bed->log, NULL, 0), 3, 10);
    for (uint64_t index = 1; index <= 8000; index += 37) {
        struct log_reader reader;
        struct log_record record;
        uint64_t found;
        log_reader_init(&reader, bed->log, index);
        assert_int_equal(log_reader_next(&reader, 8000, &record), ST_OK);
        memcpy(&found, record.body.ptr, sizeof(found));
        assert_int_equal(record.index, index);
        assert_int_equal(found, index);

        uint64_t want = index % 1000 > 600 ? index / 1000 * 1000 + 1000 : index;
        log_reader_seek_revision(&reader, bed->log, (int64_t)index * 2);
        assert_int_equal(log_reader_next(&reader, 8000, &record), ST_OK);
        assert_int_equal(record.index, want);
    }
    struct log_reader reader;
    struct log_record record;
    log_reader_seek_revision(&reader, bed->log, -5);
    assert_int_equal(log_reader_next(&reader, 8000, &record), ST_OK);
    assert_int_equal(record.index, 1);
    log_reader_seek_revision(&reader, bed->log, INT64_MAX);
    assert_int_equal(log_reader_next(&reader, UINT64_MAX, &record), ST_END);
}

static void assert_same_info(const struct log_segment_info *a, const struct log_segment_info *b)
{
    assert_int_equal(a->id, b->id);
    assert_int_equal(a->first_index, b->first_index);
    assert_int_equal(a->last_index, b->last_index);
    assert_int_equal(a->first_revision, b->first_revision);
    assert_int_equal(a->last_revision, b->last_revision);
    assert_int_equal(a->used_bytes, b->used_bytes);
    assert_int_equal(a->full, b->full);
}

static void replay_starts_after_the_checkpoint(void **state)
{
    struct bed *bed = *state;
    bed_reopen(bed);
    append_synced(bed, 500);
    struct log_segment_info infos[64], again[64];
    size_t count = log_segments(bed->log, infos, 64);
    assert_in_range(count, 4, 64);

    for (uint64_t after = 1; after <= 500; after += 13) {
        uint64_t listed[64];
        size_t listed_count = 0;
        for (size_t i = 0; i < count; i++) {
            if (infos[i].first_index <= after)
                listed[listed_count++] = infos[i].id;
        }
        struct error error;
        assert_int_equal(bed_open(bed, after, listed, listed_count, &error), ST_OK);
        assert_int_equal(bed->replayed, 500 - after);
        assert_int_equal(log_segments(bed->log, again, 64), count);
        for (size_t i = 0; i < count; i++)
            assert_same_info(&infos[i], &again[i]);
    }
}

/* Rewrites the segment, keeping the records whose index is a multiple of `every`. */
static uint64_t rewrite(struct bed *bed, const struct log_segment_info *info, uint64_t every)
{
    struct log_rewrite *rewrite = NULL;
    assert_int_equal(log_rewrite_begin(bed->log, info->id, &rewrite), ST_OK);
    struct log_reader reader;
    struct log_record record;
    log_reader_init(&reader, bed->log, info->first_index);
    while (log_reader_next(&reader, info->last_index, &record) == ST_OK) {
        log_loc loc;
        if (!every || record.index % every)
            continue;
        assert_int_equal(log_rewrite_record(rewrite, &record, record.body.len, &loc), ST_OK);
        assert_int_equal(log_rewrite_piece(rewrite, record.body), ST_OK);
    }
    uint64_t new_id = 99;
    assert_int_equal(log_rewrite_commit(rewrite, &new_id), ST_OK);
    return new_id;
}

static size_t list_ids(struct bed *bed, uint64_t after_index, uint64_t *ret_ids, size_t max)
{
    struct log_segment_info infos[64];
    size_t count = log_segments(bed->log, infos, 64), listed = 0;
    assert_in_range(count, 1, max);
    for (size_t i = 0; i < count; i++) {
        if (infos[i].first_index <= after_index)
            ret_ids[listed++] = infos[i].id;
    }
    return listed;
}

static void assert_kept(struct bed *bed, const struct log_segment_info *thinned,
                        const struct log_segment_info *emptied, uint64_t last)
{
    struct log_reader reader;
    struct log_record record;
    log_reader_init(&reader, bed->log, 1);
    for (uint64_t index = 1; index <= last; index++) {
        if (index >= emptied->first_index && index <= emptied->last_index)
            continue;
        if (index >= thinned->first_index && index <= thinned->last_index && index % 10)
            continue;
        assert_int_equal(log_reader_next(&reader, last, &record), ST_OK);
        assert_record(&record, index);
    }
    assert_int_equal(log_reader_next(&reader, last, &record), ST_END);
}

static void a_rewritten_segment_takes_the_place_of_the_old(void **state)
{
    struct bed *bed = *state;
    bed_reopen(bed);
    append_synced(bed, 500);
    struct error error;
    uint64_t before[64], after[64];
    size_t before_count = list_ids(bed, 500, before, 64);
    struct log_segment_info infos[64];
    size_t count = log_segments(bed->log, infos, 64);
    assert_false(infos[count - 1].full);
    assert_in_range(count, 4, 64);

    uint64_t thinned = rewrite(bed, &infos[1], 10);
    assert_int_not_equal(thinned, 0);
    assert_int_equal(rewrite(bed, &infos[2], 0), 0);
    assert_kept(bed, &infos[1], &infos[2], 500);
    size_t after_count = list_ids(bed, 500, after, 64);
    assert_int_equal(after_count, before_count - 1);

    /* Stopped before the checkpoint has the new one: the old ones are used. */
    assert_int_equal(bed_open(bed, 500, before, before_count, &error), ST_OK);
    assert_int_equal(log_segments(bed->log, infos, 64), count);
    struct log_reader reader;
    struct log_record record;
    log_reader_init(&reader, bed->log, 1);
    for (uint64_t index = 1; index <= 500; index++) {
        assert_int_equal(log_reader_next(&reader, 500, &record), ST_OK);
        assert_record(&record, index);
    }

    /* Stopped after the checkpoint, before the old ones were forgotten: the new one is used. */
    assert_int_not_equal(rewrite(bed, &infos[1], 10), 0);
    assert_int_equal(rewrite(bed, &infos[2], 0), 0);
    after_count = list_ids(bed, 500, after, 64);
    assert_int_equal(bed_open(bed, 500, after, after_count, &error), ST_OK);
    assert_kept(bed, &infos[1], &infos[2], 500);
    append_synced(bed, 100);
    assert_kept(bed, &infos[1], &infos[2], 600);

    /* A rewritten segment can be rewritten again. */
    uint64_t replaced = rewrite(bed, &infos[0], 3);
    assert_int_equal(log_forget(bed->log, infos[0].id), ST_OK);
    assert_int_equal(log_forget(bed->log, infos[0].id), ST_NOT_FOUND);
    assert_int_equal(log_segments(bed->log, infos, 64), count - 1);
    assert_int_equal(infos[0].id, replaced);
    rewrite(bed, &infos[0], 9);
    assert_int_equal(log_forget(bed->log, replaced), ST_OK);
}

static void count_file(void *ctx, const char *name)
{
    (void)name;
    ++*(int *)ctx;
}

static void nothing_but_the_writers_segment_may_be_left(void **state)
{
    struct bed *bed = *state;
    bed_reopen(bed);
    append_synced(bed, 500);
    struct log_segment_info infos[64];
    size_t count = log_segments(bed->log, infos, 64);
    for (size_t i = 0; i + 1 < count; i++) {
        assert_int_equal(rewrite(bed, &infos[i], 0), 0);
        assert_int_equal(log_forget(bed->log, infos[i].id), ST_OK);
    }
    int files = 0;
    assert_true(log_wants_prepare(bed->log));
    assert_int_equal(log_prepare(bed->log), ST_OK);
    assert_false(log_wants_prepare(bed->log));
    assert_int_equal(fs_list(bed->options.fs, bed->dir, count_file, &files), ST_OK);
    assert_int_equal(files, 2); /* the current one and the prepared one */
    uint64_t ids[64];
    size_t listed = list_ids(bed, 500, ids, 64);
    assert_int_equal(listed, 1);
    struct error error;
    assert_int_equal(bed_open(bed, 500, ids, listed, &error), ST_OK);
    append_synced(bed, 10);
    assert_int_equal(bed_open(bed, 500, ids, listed, &error), ST_OK);
    assert_int_equal(bed->replayed, 10);
}

static int count_files(const struct bed *bed)
{
    int files = 0;
    assert_int_equal(fs_list(bed->options.fs, bed->dir, count_file, &files), ST_OK);
    return files;
}

/* The writer writes meanwhile, and then continues in the new segment. */
static void the_next_segment_is_prepared_in_steps(void **state)
{
    struct bed *bed = *state;
    bool done = false;
    int steps = 0;
    bed_reopen(bed);
    while (!done) {
        assert_int_equal(log_prepare_step(bed->log, 4096, &done), ST_OK);
        assert_int_equal(log_is_preparing(bed->log), !done);
        assert_false(log_wants_prepare(bed->log)); /* the keeper need not be woken for the rest */
        append_synced(bed, 3);
        steps++;
    }
    assert_int_equal(steps, 2 * bed->options.segment_bytes_first / 4096);
    assert_int_equal(count_files(bed), 2);
    append_synced(bed, 50);
    assert_int_equal(log_segments(bed->log, NULL, 0), 2);
    assert_int_equal(count_files(bed), 2);
    bed_reopen(bed);
    assert_int_equal(bed->replayed, 3 * steps + 50);
}

static void a_segment_that_is_being_made_is_removed_at_the_end(void **state)
{
    struct bed *bed = *state;
    bool done;
    bed_reopen(bed);
    append_synced(bed, 3);
    assert_int_equal(log_prepare_step(bed->log, 4096, &done), ST_OK);
    assert_false(done);
    assert_int_equal(count_files(bed), 2);
    log_close(TAKE(bed->log));
    assert_int_equal(count_files(bed), 1);
}

/* The writer is never closer to the end of its segment than the keeper to that of the next one. */
static void steps_lag_when_the_log_grows_faster(void **state)
{
    struct bed *bed = *state;
    enum { CAPACITY = 16 << 20, STEP = 1 << 20, BODY = 600 << 10 };
    bed->options.segment_bytes_first = bed->options.segment_bytes_max = CAPACITY;
    struct error error;
    assert_int_equal(bed_open(bed, 0, NULL, 0, &error), ST_OK);
    assert_false(log_prepare_lags(bed->log));
    bool done = false;
    for (int filled = 0, used = 0; !done; filled += STEP) {
        assert_int_equal(log_prepare_step(bed->log, STEP, &done), ST_OK);
        if (done || log_prepare_lags(bed->log))
            continue;
        log_loc loc;
        assert_int_equal(log_reserve(bed->log, BODY), ST_OK);
        memset(log_append_begin(bed->log, &loc), 'x', BODY);
        log_append_end(bed->log, 1, 0, BODY);
        assert_int_equal(log_write(bed->log), ST_OK);
        used += BODY;
        assert_true(used < filled);
        assert_int_equal(log_segments(bed->log, NULL, 0), 1);
    }
    assert_false(log_prepare_lags(bed->log));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, bed_set_up, bed_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(everything_is_present_after_reopening),
        TEST(a_pending_record_is_read_where_it_will_be),
        TEST(an_aborted_record_leaves_nothing),
        TEST(a_record_larger_than_a_segment_gets_its_own),
        TEST(the_first_record_may_be_larger_than_the_first_segment),
        TEST(the_reader_walks_from_any_index_and_revision),
        TEST(seeking_lands_on_the_right_record_in_large_segments),
        TEST(replay_starts_after_the_checkpoint),
        TEST(a_rewritten_segment_takes_the_place_of_the_old),
        TEST(nothing_but_the_writers_segment_may_be_left),
        TEST(the_next_segment_is_prepared_in_steps),
        TEST(a_segment_that_is_being_made_is_removed_at_the_end),
        TEST(steps_lag_when_the_log_grows_faster),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
