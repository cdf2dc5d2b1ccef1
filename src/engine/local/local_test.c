/* The local engine with its real threads, driven by one loop as a shard would. */
#include "engine/engine.h"
#include "engine/local/fixture_test.h"
#include "engine/local/local.h"

#include <pthread.h>
#include <unistd.h>

/* With this many shards in addition to the fixture's own. */
static struct engine_local_options options_for(unsigned others)
{
    return (struct engine_local_options){
        .segment_bytes_first = 64 << 10,
        .segment_bytes_max = 256 << 10,
        .checkpoint_bytes = 128 << 10,
        .cluster_id = 11,
        .member_id = 12,
        .shards_max = 1 + others,
    };
}

static void open_again(struct fixture *f)
{
    fixture_close(f);
    fixture_open(f, options_for(0));
}

static int setup(void **state)
{
    *state = fixture_new(options_for(0));
    return 0;
}

/* Decodes all key-values with the prefix; returns their number. */
static int64_t list(struct fixture *f, const char *from, const char *to, int64_t revision)
{
    struct pb_range_request request = {
        .key = slice_from_text(from), .range_end = slice_from_text(to), .revision = revision};
    struct engine_range range = {.op = new_op(f)};
    engine_range_start(f->shard, &range, &request);
    while (f->waiting > 0) /* a range over many keys takes several turns */
        engine_shard_turn_begin(f->shard);
    if (range.op.status == ST_COMPACTED)
        return -1;
    assert_int_equal(range.op.status, ST_OK);
    uint8_t *bytes = malloc(range.kvs_bytes + 1);
    assert_int_equal(engine_range_fill(&range, bytes, range.kvs_bytes + 1), range.kvs_bytes);
    struct pb_range_response response;
    assert_int_equal(
        pb_decode(&pb_range_response_table, slice_of(bytes, range.kvs_bytes), &f->arena, &response),
        ST_OK);
    assert_int_equal(response.kvs_count, range.kvs);
    engine_range_close(&range);
    free(bytes);
    return range.kvs;
}

static void limited_address_space_leaves_room_for_the_log(void **state)
{
    (void)state;
    assert_int_equal(local_map_bytes(UINT64_MAX), (size_t)256 << 30);
    assert_int_equal(local_map_bytes(80 << 20), 20 << 20);
}

/* Like the second of two pipelined requests, after the first answer was sent. */
static void a_write_started_while_sending_reaches_the_writer(void **state)
{
    struct fixture *f = *state;
    struct pb_put_request request = {.key = SLICE_LITERAL("k")};
    engine_shard_turn_begin(f->shard);
    engine_shard_turn_end(f->shard);
    struct engine_write write = {.op = new_op(f)};
    engine_put(f->shard, &write, &request);
    engine_shard_flushed(f->shard);
    for (int i = 0; i < 100 && f->waiting; i++) /* no turn of the test submits it */
        loop_turn(f->loop, INT64_C(100000000));
    assert_int_equal(f->waiting, 0);
    assert_int_equal(write.op.status, ST_OK);
    engine_write_close(&write);
}

static void acknowledged_put_is_visible_at_once(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(list(f, "a", "z", 0), 0);
    assert_int_equal(put_text(f, "key", "value"), 2);
    assert_int_equal(list(f, "a", "z", 0), 1);
    assert_int_equal(list(f, "key", "", 0), 1);
    assert_int_equal(list(f, "key", "", 1), 0);
}

enum { MANY = 2000 };

static void many_in_flight_are_all_answered_and_survive_a_restart(void **state)
{
    struct fixture *f = *state;
    struct {
        char key[32];
        struct pb_put_request request;
        struct engine_write write;
    } *puts = calloc(MANY, sizeof(*puts));
    static uint8_t value[300];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < MANY; i++) {
            snprintf(puts[i].key, sizeof(puts[i].key), "many/%05d", i);
            puts[i].request = (struct pb_put_request){.key = slice_from_text(puts[i].key),
                                                      .value = slice_of(value, sizeof(value))};
            puts[i].write = (struct engine_write){.op = new_op(f)};
            engine_put(f->shard, &puts[i].write, &puts[i].request);
        }
        wait_for(f, 0);
        for (int i = 0; i < MANY; i++) {
            assert_int_equal(puts[i].write.op.status, ST_OK);
            assert_int_equal(puts[i].write.op.revision, 2 + round * MANY + i);
        }
    }
    free(puts);
    assert_int_equal(list(f, "many/", "many0", 0), MANY);
    open_again(f);
    assert_int_equal(list(f, "many/", "many0", 0), MANY);
    assert_int_equal(list(f, "many/", "many0", 1 + MANY / 2), MANY / 2);
    assert_int_equal(put_text(f, "many/x", ""), 2 + 3 * MANY);
}

static void compact(struct fixture *f, int64_t revision, enum status expected)
{
    struct pb_compaction_request request = {.revision = revision, .physical = true};
    struct engine_op op = new_op(f);
    engine_compact(f->shard, &op, &request);
    wait_for(f, 0);
    assert_int_equal(op.status, expected);
}

static uint32_t hash(struct fixture *f, int64_t revision)
{
    struct engine_hash op = {.op = new_op(f), .at_revision = revision};
    engine_hash_kv(f->shard, &op);
    wait_for(f, 0);
    assert_int_equal(op.op.status, ST_OK);
    return op.hash;
}

static void a_compaction_removes_history_and_keeps_the_hash(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 3000; i++) {
        char key[32] = "";
        snprintf(key, sizeof(key), "c/%d", i % 10);
        struct pb_put_request request = {.key = slice_from_text(key), .value = slice_of(key, 32)};
        struct engine_write write = {.op = new_op(f)};
        engine_put(f->shard, &write, &request);
        wait_for(f, 0);
    }
    uint32_t before = hash(f, 2500);
    compact(f, 2500, ST_OK);
    assert_int_equal(hash(f, 2500), before);
    compact(f, 2500, ST_COMPACTED);
    compact(f, 9999, ST_FUTURE_REV);
    assert_int_equal(list(f, "c/", "c0", 2499), -1);
    assert_int_equal(list(f, "c/", "c0", 2500), 10);
    uint32_t now = hash(f, 0);
    open_again(f);
    assert_int_equal(hash(f, 0), now);
    assert_int_equal(list(f, "c/", "c0", 2500), 10);
    assert_int_equal(list(f, "c/", "c0", 2499), -1);
}

/* Stops come between any two steps of checkpoints, trims and cleanings. */
static void a_store_stopped_at_any_time_opens_again(void **state)
{
    enum { ROUNDS = 6, KEYS = 40, PUTS = 200 };
    struct fixture *f = *state;
    static char value[2000];
    int64_t revision = 1;
    for (int round = 0; round < ROUNDS; round++) {
        memset(value, 'a' + round, sizeof(value) - 1);
        for (int i = 0; i < PUTS; i++) {
            char key[32];
            snprintf(key, sizeof(key), "s/%02d", i % KEYS);
            revision = put_text(f, key, value);
            if (i % 100 == 99 && revision > 200)
                compact(f, revision - 50, ST_OK);
        }
        usleep((useconds_t)round * 300);
        open_again(f);
        assert_int_equal(list(f, "s/", "s0", 0), KEYS);
        assert_int_equal(list(f, "s/", "s0", revision - 50), KEYS);
    }
}

/* -- Two shards at once, while history is compacted and segments are cleaned -- */

struct reader {
    struct engine *engine;
    int number;
    int waiting;
    int64_t seen; /* the newest revision known */
};

static _Thread_local struct reader *reader;

static void reader_done(struct engine_op *op)
{
    (void)op;
    reader->waiting--;
}

static void reader_wait(struct loop *loop, struct engine_shard *shard)
{
    engine_shard_turn_end(shard);
    while (reader->waiting > 0)
        turn_shard(shard, loop, 10 * NS_PER_S);
}

/* A put whose answer points into the log: the bytes must stay valid and be a KeyValue. */
static void put_and_look(struct loop *loop, struct engine_shard *shard, int i)
{
    static char value[1000];
    char key[32];
    snprintf(key, sizeof(key), "two/%d", i % 20);
    struct pb_put_request request = {.key = slice_from_text(key),
                                     .value = slice_of(value, (size_t)(i * 37 % 1000)),
                                     .prev_kv = true};
    struct arena arena;
    arena_init(&arena, NULL, 0, 1 << 20);
    struct engine_write write = {.op = {.done = reader_done, .arena = &arena}};
    reader->waiting++;
    engine_put(shard, &write, &request);
    reader_wait(loop, shard);
    assert_int_equal(write.op.status, ST_OK);
    assert_true(write.op.revision > reader->seen);
    reader->seen = write.op.revision;
    struct pb_range_response before;
    assert_int_equal(
        pb_decode(&pb_range_response_table, write.answer.put.prev_field, &arena, &before), ST_OK);
    if (before.kvs_count)
        assert_true(slice_equal(before.kvs[0].key, request.key));
    engine_write_close(&write);
    arena_fini(&arena);
}

/* A list that is kept during other work, and then read in pieces. */
static void list_slowly(struct loop *loop, struct engine_shard *shard, int i)
{
    struct pb_range_request request = {.key = SLICE_LITERAL("two/"),
                                       .range_end = SLICE_LITERAL("two0"),
                                       .revision = i % 2 ? 0 : reader->seen - i % 60};
    struct arena arena;
    arena_init(&arena, NULL, 0, 1 << 20);
    struct engine_range range = {.op = {.done = reader_done, .arena = &arena}};
    reader->waiting++;
    engine_range_start(shard, &range, &request);
    reader_wait(loop, shard);
    assert_true(range.op.status == ST_OK || range.op.status == ST_COMPACTED ||
                range.op.status == ST_FUTURE_REV);
    put_and_look(loop, shard, i + 7);
    if (range.op.status == ST_OK) {
        uint8_t bytes[100];
        uint64_t got = 0;
        for (size_t n; (n = engine_range_fill(&range, bytes, sizeof(bytes))) > 0;)
            got += n;
        assert_int_equal(got, range.kvs_bytes);
    }
    engine_range_close(&range);
    arena_fini(&arena);
}

static void compact_some(struct loop *loop, struct engine_shard *shard)
{
    struct pb_compaction_request request = {.revision = reader->seen - 30};
    struct engine_op op = {.done = reader_done};
    reader->waiting++;
    engine_compact(shard, &op, &request);
    reader_wait(loop, shard);
    assert_true(op.status == ST_OK || op.status == ST_COMPACTED);
}

static void *reader_main(void *arg)
{
    reader = arg;
    struct loop *loop;
    struct engine_shard *shard;
    assert_int_equal(loop_new(clock_system(), &loop), ST_OK);
    assert_int_equal(engine_shard_new(reader->engine, loop, &shard), ST_OK);
    for (int i = 0; i < 300; i++) {
        list_slowly(loop, shard, i * (reader->number + 1));
        if (i % 25 == 24)
            compact_some(loop, shard);
    }
    engine_shard_free(shard);
    loop_free(loop);
    return NULL;
}

static void answers_stay_readable_while_segments_move(void **state)
{
    struct fixture *f = *state;
    struct reader readers[2];
    pthread_t threads[2];
    fixture_close(f);
    fixture_open(f, options_for(2));
    for (int i = 0; i < 2; i++) {
        readers[i] = (struct reader){.engine = f->engine, .number = i};
        assert_int_equal(pthread_create(&threads[i], NULL, reader_main, &readers[i]), 0);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

static void second_opening_of_a_directory_is_refused(void **state)
{
    struct fixture *f = *state;
    struct error error = {0};
    struct engine *second = NULL;
    enum status status = engine_local_open(
        &(struct engine_local_options){.data_dir = f->dir, .shards_max = 1}, &second, &error);
    assert_int_equal(status, ST_IN_USE);
    assert_non_null(strstr(error.text, f->dir));
    assert_null(second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limited_address_space_leaves_room_for_the_log),
        cmocka_unit_test_setup_teardown(acknowledged_put_is_visible_at_once, setup, fixture_free),
        cmocka_unit_test_setup_teardown(a_write_started_while_sending_reaches_the_writer, setup,
                                        fixture_free),
        cmocka_unit_test_setup_teardown(many_in_flight_are_all_answered_and_survive_a_restart,
                                        setup, fixture_free),
        cmocka_unit_test_setup_teardown(a_compaction_removes_history_and_keeps_the_hash, setup,
                                        fixture_free),
        cmocka_unit_test_setup_teardown(a_store_stopped_at_any_time_opens_again, setup,
                                        fixture_free),
        cmocka_unit_test_setup_teardown(answers_stay_readable_while_segments_move, setup,
                                        fixture_free),
        cmocka_unit_test_setup_teardown(second_opening_of_a_directory_is_refused, setup,
                                        fixture_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
