/*
 * The log on a simulated disk, compared with a model: random work, a power cut or a failing call at
 * any point, and a new start. What was synced is present, byte for byte and in order. Of the rest,
 * each record is either complete or absent, and none is present without those before it.
 */
#include "base/random.h"
#include "simulated/file_sim.h"
#include "store/log/log.h"
#include "store/log/mark.h"
#include "store/log/prepare.h"
#include "store/log/reader.h"
#include "store/log/rewrite.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { INDEX_MAX = 4000, BODY_MAX = 900, SEGMENTS_MAX = 256 };

struct checkpoint {
    uint64_t index;
    uint64_t listed[SEGMENTS_MAX];
    size_t listed_count;
    bool dropped[INDEX_MAX]; /* dropped by a rewrite */
};

struct model {
    uint64_t seed;
    struct random random;
    struct fs_sim *sim;
    struct log *log;
    uint64_t appended;         /* indexes up to this have a nonce */
    uint64_t acked;            /* records up to this must never be lost */
    uint64_t nonce[INDEX_MAX]; /* from which the record with that index was made */
    struct checkpoint checkpoint;
    bool dropped[INDEX_MAX]; /* as in the current log */
    uint64_t seen;           /* the last index replayed */
};

/* In every third run all records have the same length, so that the remains of a torn tail align. */
static bool same_length;

/* VIGIL_TEST_DEPTH=100 runs that many times more than the default. */
static uint64_t deep(uint64_t seeds)
{
    const char *depth = getenv("VIGIL_TEST_DEPTH");
    return depth ? seeds * strtoull(depth, NULL, 10) : seeds;
}

static void model_init(struct model *model, uint64_t seed)
{
    memset(model, 0, sizeof(*model));
    model->seed = seed;
    same_length = seed % 3 == 0;
    random_init(&model->random, seed);
    model->sim = fs_sim_new(seed * 31 + 7);
    assert_int_equal(fs_make_dir(fs_sim_fs(model->sim), "/log"), ST_OK);
}

static void model_fini(struct model *model)
{
    log_close(TAKE(model->log));
    fs_sim_free(model->sim);
}

/* -- Records from nonces -- */

static size_t body_bytes(uint64_t nonce)
{
    if (same_length)
        return 200;
    return nonce % 50 ? (size_t)(nonce % 300) : (size_t)(nonce % BODY_MAX);
}

static void body_fill(uint8_t *to, uint64_t nonce)
{
    struct random random;
    random_init(&random, nonce);
    random_fill(&random, to, body_bytes(nonce));
}

static void check_record(struct model *model, const struct log_record *record)
{
    uint64_t nonce = model->nonce[record->index];
    uint8_t want[BODY_MAX];
    body_fill(want, nonce);
    bool same = record->body.len == body_bytes(nonce) && record->type == (uint8_t)nonce &&
                record->revision == (int64_t)(nonce >> 40) &&
                memcmp(record->body.ptr, want, record->body.len) == 0;
    if (!same)
        fail_msg("seed %llu: record %llu is not what was appended", (unsigned long long)model->seed,
                 (unsigned long long)record->index);
}

/* -- Starting -- */

static enum status see_record(void *ctx, const struct log_record *record)
{
    struct model *model = ctx;
    assert_int_equal(record->index, model->seen + 1);
    assert_true(record->index <= model->appended);
    check_record(model, record);
    model->seen++;
    return ST_OK;
}

/* Replays everything from the first record on, including what the checkpoint has. */
static void check_all(struct model *model)
{
    struct log_reader reader;
    struct log_record record;
    log_check(model->log);
    log_reader_init(&reader, model->log, 1);
    for (uint64_t index = 1; index <= model->appended; index++) {
        if (model->dropped[index])
            continue;
        assert_int_equal(log_reader_next(&reader, UINT64_MAX, &record), ST_OK);
        assert_int_equal(record.index, index);
        check_record(model, &record);
    }
    assert_int_equal(log_reader_next(&reader, UINT64_MAX, &record), ST_END);
}

static enum status model_open(struct model *model, struct error *ret_error)
{
    struct log_options options = {
        .fs = fs_sim_fs(model->sim),
        .dir = "/log",
        .segment_bytes_first = 4096,
        .segment_bytes_max = 16384,
        .salt = model->seed,
    };
    const struct checkpoint *checkpoint = &model->checkpoint;
    model->seen = checkpoint->index;
    return log_open(&options, checkpoint->index, checkpoint->index ? checkpoint->listed : NULL,
                    checkpoint->listed_count, see_record, model, &model->log, ret_error);
}

static void model_start(struct model *model)
{
    struct error error;
    if (model_open(model, &error) != ST_OK)
        fail_msg("seed %llu: %s", (unsigned long long)model->seed, error.text);
    if (model->seen < model->acked)
        fail_msg("seed %llu: %llu records were acknowledged, and only %llu are present",
                 (unsigned long long)model->seed, (unsigned long long)model->acked,
                 (unsigned long long)model->seen);
    assert_int_equal(log_last_index(model->log), model->seen);
    assert_int_equal(log_durable_index(model->log), model->seen);
    model->appended = model->acked = model->seen;
    memcpy(model->dropped, model->checkpoint.dropped, sizeof(model->dropped));
    check_all(model);
}

/* -- Working -- */

static enum status do_append(struct model *model)
{
    uint64_t nonce = random_u64(&model->random);
    log_loc loc;
    if (model->appended + 1 >= INDEX_MAX)
        return ST_OK;
    TRY(log_reserve(model->log, body_bytes(nonce)));
    body_fill(log_append_begin(model->log, &loc), nonce);
    if (random_chance(&model->random, 1, 20)) {
        log_append_abort(model->log);
        return ST_OK;
    }
    uint64_t index =
        log_append_end(model->log, (uint8_t)nonce, (int64_t)(nonce >> 40), body_bytes(nonce));
    assert_int_equal(index, model->appended + 1);
    model->nonce[index] = nonce;
    model->appended = index;
    return ST_OK;
}

/* A group that may fill several segments, none of them synced. */
static enum status do_burst(struct model *model)
{
    uint64_t count = random_below(&model->random, 60);
    for (uint64_t i = 0; i < count; i++) {
        TRY(do_append(model));
        if (random_chance(&model->random, 1, 15))
            TRY(log_write(model->log));
    }
    return log_write(model->log);
}

static enum status do_sync(struct model *model)
{
    TRY(log_sync(model->log));
    model->acked = log_durable_index(model->log);
    return ST_OK;
}

/* As the keeper does it: what is durable becomes the checkpoint, completely or not at all. */
static void do_checkpoint(struct model *model)
{
    struct checkpoint *checkpoint = &model->checkpoint;
    struct log_segment_info infos[SEGMENTS_MAX];
    size_t count = log_segments(model->log, infos, SEGMENTS_MAX);
    assert_in_range(count, 1, SEGMENTS_MAX);
    uint64_t index = model->acked;
    if (random_chance(&model->random, 1, 2) && index > checkpoint->index)
        index -= random_below(&model->random, index - checkpoint->index);
    if (!index)
        return;
    checkpoint->index = index;
    checkpoint->listed_count = 0;
    for (size_t i = 0; i < count; i++) {
        if (infos[i].first_index <= index)
            checkpoint->listed[checkpoint->listed_count++] = infos[i].id;
    }
    memcpy(checkpoint->dropped, model->dropped, sizeof(model->dropped));
}

static enum status copy_some(struct model *model, struct log_rewrite *rewrite,
                             const struct log_segment_info *info, bool *dropped)
{
    uint32_t keep = (uint32_t)random_below(&model->random, 4);
    struct log_reader reader;
    struct log_record record;
    log_reader_init(&reader, model->log, info->first_index);
    while (log_reader_next(&reader, info->last_index, &record) == ST_OK) {
        log_loc loc;
        if (!random_chance(&model->random, keep, 3)) {
            dropped[record.index] = true;
            continue;
        }
        TRY(log_rewrite_record(rewrite, &record, record.body.len, &loc));
        TRY(log_rewrite_piece(rewrite, record.body));
    }
    return ST_OK;
}

static enum status do_rewrite(struct model *model)
{
    struct log_segment_info infos[SEGMENTS_MAX];
    size_t count = log_segments(model->log, infos, SEGMENTS_MAX);
    size_t at = random_below(&model->random, count);
    if (!infos[at].full || infos[at].last_index > model->checkpoint.index)
        return ST_OK;
    AUTO(log_rewrite_abortp) struct log_rewrite *rewrite = NULL;
    static bool dropped[INDEX_MAX];
    memcpy(dropped, model->dropped, sizeof(dropped));
    enum status status = log_rewrite_begin(model->log, infos[at].id, &rewrite);
    if (status == ST_AGAIN)
        return ST_OK;
    TRY(status);
    TRY(copy_some(model, rewrite, &infos[at], dropped));
    if (random_chance(&model->random, 1, 5))
        return ST_OK;
    uint64_t new_id;
    TRY(log_rewrite_commit(TAKE(rewrite), &new_id));
    memcpy(model->dropped, dropped, sizeof(dropped));
    if (random_chance(&model->random, 1, 5))
        return ST_CLOSED; /* stop here, before the checkpoint knows of it */
    do_checkpoint(model);
    if (random_chance(&model->random, 1, 5))
        return ST_CLOSED;
    return log_forget(model->log, infos[at].id);
}

static enum status do_something(struct model *model)
{
    uint64_t what = random_below(&model->random, 100);
    if (what < 57)
        return do_append(model);
    if (what < 60)
        return do_burst(model);
    if (what < 75)
        return log_write(model->log);
    if (what < 87)
        return do_sync(model);
    if (what < 88)
        return log_prepare(model->log);
    if (what < 90)
        return log_prepare_step(model->log, 1 + random_below(&model->random, 20000), &(bool){0});
    if (what < 93)
        return log_mark(model->log); /* as if the log had become idle */
    if (what < 96) {
        do_checkpoint(model);
        return ST_OK;
    }
    return do_rewrite(model);
}

/* -- The tests -- */

static void power_cuts_lose_nothing_that_was_synced(void **state)
{
    (void)state;
    static struct model model;
    for (uint64_t seed = 1; seed <= deep(400); seed++) {
        model_init(&model, seed);
        for (int life = 0; life < 4; life++) {
            model_start(&model);
            uint64_t steps = random_below(&model.random, 120);
            enum status status = ST_OK;
            for (uint64_t step = 0; step < steps && status == ST_OK; step++)
                status = do_something(&model);
            assert_true(status == ST_OK || status == ST_CLOSED);
            /* Sometimes only the process dies. */
            if (random_chance(&model.random, 4, 5))
                fs_sim_crash(model.sim);
            log_close(TAKE(model.log));
        }
        model_start(&model);
        model_fini(&model);
    }
}

/* The power may fail at any call of a start: the next start recovers. */
static void a_power_cut_during_recovery_loses_nothing(void **state)
{
    (void)state;
    static struct model model;
    for (uint64_t seed = 1; seed <= deep(6); seed++) {
        for (uint64_t call = 1;; call++) {
            model_init(&model, seed);
            model_start(&model);
            for (int step = 0; step < 100; step++) {
                if (do_something(&model) != ST_OK)
                    break;
            }
            fs_sim_crash(model.sim);
            log_close(TAKE(model.log));
            struct error error;
            fs_sim_fail(model.sim, FS_SIM_ANY, call, ST_IO, true);
            enum status status = model_open(&model, &error);
            fs_sim_fail(model.sim, FS_SIM_ANY, 0, ST_OK, false);
            log_close(TAKE(model.log));
            if (call % 2)
                fs_sim_crash(model.sim);
            model_start(&model);
            model_fini(&model);
            if (status == ST_OK)
                break;
        }
    }
}

static enum status work(struct model *model, int steps)
{
    for (int step = 0; step < steps; step++) {
        enum status status = do_something(model);
        if (status != ST_OK)
            return status;
    }
    return ST_OK;
}

/*
 * The nth call fails, for every n: an error is reported, and a new start finds all that was
 * acknowledged.
 */
static void fail_each_call(enum status failure, bool sticky)
{
    static struct model model;
    for (uint64_t seed = 1; seed <= deep(1); seed++) {
        uint64_t calls = UINT64_MAX;
        for (uint64_t n = 1; n <= calls; n++) {
            model_init(&model, seed);
            model_start(&model);
            fs_sim_fail(model.sim, FS_SIM_ANY, n, failure, sticky);
            uint64_t before = fs_sim_calls(model.sim, FS_SIM_ANY);
            enum status status = work(&model, 300);
            if (fs_sim_calls(model.sim, FS_SIM_ANY) - before < n)
                calls = 0; /* all of them were tried */
            else
                assert_true(status == failure || status == ST_CLOSED || !sticky);
            fs_sim_fail(model.sim, FS_SIM_ANY, 0, ST_OK, false);
            if (n % 2)
                fs_sim_crash(model.sim);
            log_close(TAKE(model.log));
            model_start(&model);
            if (work(&model, 30) == ST_OK)
                fs_sim_crash(model.sim);
            log_close(TAKE(model.log));
            model_start(&model);
            model_fini(&model);
        }
    }
}

static void every_call_may_fail_with_an_io_error(void **state)
{
    (void)state;
    fail_each_call(ST_IO, true);
    fail_each_call(ST_IO, false);
}

static void every_call_may_find_the_disk_full(void **state)
{
    (void)state;
    fail_each_call(ST_DISK_FULL, true);
    fail_each_call(ST_DISK_FULL, false);
}

static void append_sync(struct model *model, int count)
{
    for (int i = 0; i < count; i++)
        assert_int_equal(do_append(model), ST_OK);
    assert_int_equal(log_write(model->log), ST_OK);
    assert_int_equal(do_sync(model), ST_OK);
}

static void append_up_to(struct model *model, uint64_t index)
{
    while (model->appended < index)
        assert_int_equal(do_append(model), ST_OK);
    assert_int_equal(log_write(model->log), ST_OK);
}

/* The process dies after the first record of a new segment was written; the power fails later. */
static void a_seal_is_made_durable_with_the_record_after_it(void **state)
{
    (void)state;
    static struct model model;
    enum { RECORDS_PER_SEGMENT = (4096 - 512) / 232 };
    for (uint64_t seed = 3; seed <= 180; seed += 3) {
        model_init(&model, seed);
        model_start(&model);
        append_up_to(&model, RECORDS_PER_SEGMENT);
        assert_int_equal(do_sync(&model), ST_OK);
        append_up_to(&model, RECORDS_PER_SEGMENT + 1);
        struct log_segment_info infos[2];
        assert_int_equal(log_segments(model.log, infos, 2), 2);
        assert_int_equal(infos[1].first_index, RECORDS_PER_SEGMENT + 1);
        log_close(TAKE(model.log));
        model_start(&model); /* finds and shows it, so it must stay */
        assert_int_equal(model.acked, RECORDS_PER_SEGMENT + 1);
        fs_sim_crash(model.sim);
        log_close(TAKE(model.log));
        model_start(&model);
        model_fini(&model);
    }
}

/*
 * The power fails at any call of writing a mark: the next start finds the previous mark or this
 * one.
 */
static void a_power_cut_while_the_mark_is_written_changes_nothing(void **state)
{
    (void)state;
    static struct model model;
    for (uint64_t seed = 1; seed <= deep(10); seed++) {
        enum status status = ST_IO;
        for (uint64_t call = 1; status != ST_OK; call++) {
            model_init(&model, seed);
            model_start(&model);
            append_sync(&model, 5);
            if (seed % 2)
                assert_int_equal(log_mark(model.log), ST_OK);
            append_sync(&model, 5);
            append_up_to(&model, 14); /* and some that were not synced */
            fs_sim_fail(model.sim, FS_SIM_ANY, call, ST_IO, true);
            status = log_mark(model.log);
            fs_sim_fail(model.sim, FS_SIM_ANY, 0, ST_OK, false);
            fs_sim_crash(model.sim);
            log_close(TAKE(model.log));
            model_start(&model);
            assert_int_equal(log_mark(model.log), ST_OK);
            append_sync(&model, 3);
            log_close(TAKE(model.log));
            model_start(&model);
            model_fini(&model);
        }
    }
}

/* The mark is an additional safeguard: without it nothing is lost, and the log continues. */
static void a_failed_mark_leaves_the_log_as_it_is(void **state)
{
    (void)state;
    static struct model model;
    model_init(&model, 4);
    model_start(&model);
    append_sync(&model, 3);
    fs_sim_fail(model.sim, FS_SIM_ANY, 1, ST_IO, true);
    assert_int_equal(log_mark(model.log), ST_IO);
    fs_sim_fail(model.sim, FS_SIM_ANY, 0, ST_OK, false);
    append_sync(&model, 3);
    assert_int_equal(log_mark(model.log), ST_OK);
    log_close(TAKE(model.log));
    model_start(&model);
    model_fini(&model);
}

/* One mark each time the log becomes idle. */
static void a_mark_is_written_once(void **state)
{
    (void)state;
    static struct model model;
    model_init(&model, 4);
    model_start(&model);
    uint64_t before = fs_sim_calls(model.sim, FS_SIM_ANY);
    assert_int_equal(log_mark(model.log), ST_OK);
    assert_int_equal(fs_sim_calls(model.sim, FS_SIM_ANY), before); /* nothing to mark */
    append_sync(&model, 3);
    assert_int_equal(log_mark(model.log), ST_OK);
    before = fs_sim_calls(model.sim, FS_SIM_ANY);
    assert_int_equal(log_mark(model.log), ST_OK);
    assert_int_equal(fs_sim_calls(model.sim, FS_SIM_ANY), before);
    log_close(TAKE(model.log));
    model_start(&model);
    before = fs_sim_calls(model.sim, FS_SIM_ANY);
    assert_int_equal(log_mark(model.log), ST_OK);
    assert_int_equal(fs_sim_calls(model.sim, FS_SIM_ANY), before);
    model_fini(&model);
}

static void a_failed_write_or_sync_is_final(void **state)
{
    (void)state;
    static struct model model;
    const enum fs_sim_call calls[] = {FS_SIM_PWRITE, FS_SIM_SYNC};
    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        model_init(&model, 5);
        model_start(&model);
        append_sync(&model, 3);
        uint64_t durable = log_durable_index(model.log);
        assert_int_equal(log_reserve(model.log, 10), ST_OK);
        log_loc loc;
        memset(log_append_begin(model.log, &loc), 1, 10);
        log_append_end(model.log, 1, 1, 10);
        fs_sim_fail(model.sim, calls[i], 1, ST_IO, false);
        enum status status = log_write(model.log);
        if (status == ST_OK)
            status = log_sync(model.log);
        assert_int_equal(status, ST_IO);
        for (int again = 0; again < 2; again++) {
            assert_int_equal(log_reserve(model.log, 10), ST_IO);
            assert_int_equal(log_write(model.log), ST_IO);
            assert_int_equal(log_sync(model.log), ST_IO);
            assert_int_equal(log_prepare(model.log), ST_IO);
            assert_int_equal(log_mark(model.log), ST_IO);
            assert_false(log_wants_prepare(model.log));
        }
        assert_int_equal(log_durable_index(model.log), durable);
        model_fini(&model);
    }
}

static void a_full_disk_is_reported_before_anything_changes(void **state)
{
    (void)state;
    static struct model model;
    model_init(&model, 9);
    model_start(&model);
    append_sync(&model, 3);
    fs_sim_set_space(model.sim, 5000);
    uint64_t last = log_last_index(model.log);
    assert_int_equal(log_reserve(model.log, 4000), ST_DISK_FULL);
    assert_int_equal(log_prepare(model.log), ST_DISK_FULL);
    assert_int_equal(log_last_index(model.log), last);
    append_sync(&model, 2); /* what fits is still accepted */
    fs_sim_set_space(model.sim, 1 << 20);
    assert_int_equal(log_reserve(model.log, 4000), ST_OK);
    append_sync(&model, 20);
    log_close(TAKE(model.log));
    model_start(&model);
    model_fini(&model);
}

static void count_temporary(void *ctx, const char *name)
{
    *(int *)ctx += strstr(name, ".tmp") != NULL;
}

/* Whatever fails while a segment is being made, nothing of it is left, and the next try succeeds.
 */
static void a_segment_whose_making_fails_is_removed(void **state)
{
    (void)state;
    static struct model model;
    for (uint64_t n = 1;; n++) {
        model_init(&model, 6);
        model_start(&model);
        append_sync(&model, 3);
        fs_sim_fail(model.sim, FS_SIM_ANY, n, ST_DISK_FULL, false);
        enum status status = ST_OK;
        for (bool done = false; !done && status == ST_OK;)
            status = log_prepare_step(model.log, 8192, &done);
        fs_sim_fail(model.sim, FS_SIM_ANY, 0, ST_OK, false);
        assert_false(log_is_preparing(model.log));
        int temporary = 0;
        assert_int_equal(fs_list(fs_sim_fs(model.sim), "/log", count_temporary, &temporary), ST_OK);
        assert_int_equal(temporary, 0);
        assert_int_equal(log_wants_prepare(model.log), status != ST_OK);
        assert_int_equal(log_prepare(model.log), ST_OK);
        append_sync(&model, 20);
        model_fini(&model);
        if (status == ST_OK)
            break;
        assert_int_equal(status, ST_DISK_FULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_segment_whose_making_fails_is_removed),
        cmocka_unit_test(power_cuts_lose_nothing_that_was_synced),
        cmocka_unit_test(a_power_cut_during_recovery_loses_nothing),
        cmocka_unit_test(every_call_may_fail_with_an_io_error),
        cmocka_unit_test(every_call_may_find_the_disk_full),
        cmocka_unit_test(a_seal_is_made_durable_with_the_record_after_it),
        cmocka_unit_test(a_power_cut_while_the_mark_is_written_changes_nothing),
        cmocka_unit_test(a_failed_mark_leaves_the_log_as_it_is),
        cmocka_unit_test(a_mark_is_written_once),
        cmocka_unit_test(a_failed_write_or_sync_is_final),
        cmocka_unit_test(a_full_disk_is_reported_before_anything_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
