/* Slow readers, on a clock that the test advances: what they may keep, and for how long.
 */
#include "base/temp_dir_test.h"
#include "engine/local/local.h"
#include "engine/local/shard/shard.h"

#include "codec/pb/rpc.pb.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

enum { KEYS = 50, VALUE_BYTES = 1000 };

struct bed {
    char dir[TEMP_DIR_BYTES];
    struct clock_sim clock;
    struct loop *loop;
    struct engine *engine;
    struct engine_shard *shard;
    struct arena arena;
    struct engine_range range; /* the slow list */
    bool done;
};

static struct bed *bed;

static void note_done(struct engine_op *op)
{
    (void)op;
    bed->done = true;
}

static void turn_until_done(void)
{
    engine_shard_turn_end(bed->shard);
    while (!bed->done)
        loop_turn(bed->loop, 10 * NS_PER_S);
}

static int64_t put(int key)
{
    static uint8_t value[VALUE_BYTES];
    char name[32];
    snprintf(name, sizeof(name), "slow/%02d", key);
    struct pb_put_request request = {.key = slice_from_text(name),
                                     .value = slice_of(value, sizeof(value))};
    struct engine_write write = {.op = {.done = note_done}};
    bed->done = false;
    engine_put(bed->shard, &write, &request);
    turn_until_done();
    assert_int_equal(write.op.status, ST_OK);
    engine_write_close(&write);
    return write.op.revision;
}

static void compact(int64_t revision)
{
    struct pb_compaction_request request = {.revision = revision, .physical = true};
    struct engine_op op = {.done = note_done};
    bed->done = false;
    engine_compact(bed->shard, &op, &request);
    turn_until_done();
    assert_int_equal(op.status, ST_OK);
}

static void advance(int64_t seconds)
{
    clock_sim_advance(&bed->clock, seconds * NS_PER_S);
    loop_turn(bed->loop, 0);
}

static uint64_t pinned_behind(void)
{
    struct local_shared *shared = CONTAINER_OF(bed->engine, struct local_shared, engine);
    struct local_shard *shard = CONTAINER_OF(bed->shard, struct local_shard, base.shard);
    uint64_t newest = epoch_pin(shard->slot);
    uint64_t oldest = epoch_oldest(store_epoch(shared->store));
    epoch_unpin(shard->slot, newest);
    return newest - oldest;
}

static int setup(void **state)
{
    (void)state;
    bed = calloc(1, sizeof(*bed));
    temp_dir_make("slow", bed->dir);
    clock_sim_init(&bed->clock, 0);
    arena_init(&bed->arena, NULL, 0, 1 << 20);
    assert_int_equal(loop_new(&bed->clock.clock, &bed->loop), ST_OK);
    struct error error;
    assert_int_equal(
        engine_local_open(&(struct engine_local_options){.data_dir = bed->dir, .shards_max = 1},
                          &bed->engine, &error),
        ST_OK);
    assert_int_equal(engine_shard_new(bed->engine, bed->loop, &bed->shard), ST_OK);
    for (int key = 0; key < KEYS; key++)
        put(key);
    static const struct pb_range_request all = {.key = {(const uint8_t *)"slow/", 5},
                                                .range_end = {(const uint8_t *)"slow0", 5}};
    bed->range = (struct engine_range){.op = {.done = note_done, .arena = &bed->arena}};
    engine_range_start(bed->shard, &bed->range, &all);
    assert_int_equal(bed->range.op.status, ST_OK);
    assert_int_equal(bed->range.kvs, KEYS);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    engine_range_close(&bed->range);
    engine_shard_free(bed->shard);
    engine_local_close(bed->engine);
    loop_free(bed->loop);
    arena_fini(&bed->arena);
    temp_dir_remove(bed->dir);
    free(bed);
    return 0;
}

static void a_slow_list_releases_old_states(void **state)
{
    (void)state;
    uint8_t piece[1500];
    uint64_t got = 0;
    for (int i = 0; got < bed->range.kvs_bytes; i++) {
        got += engine_range_fill(&bed->range, piece, sizeof(piece));
        assert_int_equal(bed->range.op.status, ST_OK);
        assert_true(pinned_behind() <= 4);
        put(i % KEYS);
        put(i * 7 % KEYS);
        advance(30);
    }
    assert_int_equal(got, bed->range.kvs_bytes);
}

/* The same with single keys: each is read at the revision of the list, whatever is put meanwhile.
 */
static void a_slow_reader_of_single_keys_releases_old_states(void **state)
{
    (void)state;
    uint64_t got = 0;
    int64_t keys = 0;
    struct slice field;
    while (engine_range_next(&bed->range, &field)) {
        assert_int_equal(field.ptr[0], 0x12);
        got += field.len;
        keys++;
        assert_true(pinned_behind() <= 4);
        put((int)(keys % KEYS));
        put((int)(keys * 7 % KEYS));
        advance(30);
    }
    assert_int_equal(bed->range.op.status, ST_OK);
    assert_int_equal(keys, KEYS);
    assert_int_equal(got, bed->range.kvs_bytes);
}

static void quick_list_keeps_its_state(void **state)
{
    (void)state;
    uint8_t piece[100];
    assert_int_equal(engine_range_fill(&bed->range, piece, sizeof(piece)), sizeof(piece));
    for (int i = 0; i < 10; i++)
        put(i);
    assert_int_equal(engine_range_fill(&bed->range, piece, sizeof(piece)), sizeof(piece));
    assert_true(pinned_behind() >= 10);
}

static void a_list_of_a_compacted_revision_fails_after_a_minute(void **state)
{
    (void)state;
    uint8_t piece[100];
    assert_int_equal(engine_range_fill(&bed->range, piece, sizeof(piece)), sizeof(piece));
    compact(put(1));
    advance(30);
    assert_int_equal(engine_range_fill(&bed->range, piece, sizeof(piece)), sizeof(piece));
    assert_int_equal(bed->range.op.status, ST_OK);
    advance(31);
    assert_int_equal(engine_range_fill(&bed->range, piece, sizeof(piece)), 0);
    assert_int_equal(bed->range.op.status, ST_COMPACTED);
}

/* -- Many keys -- */

enum { MANY = 10000 };

static unsigned waiting;

static void count_done(struct engine_op *op)
{
    assert_int_equal(op->status, ST_OK);
    waiting--;
}

static void put_many(void)
{
    static struct engine_write writes[MANY];
    static struct pb_put_request requests[MANY];
    static char names[MANY][24];
    for (int i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof(names[i]), "many/%05d", i);
        requests[i] = (struct pb_put_request){.key = slice_from_text(names[i]),
                                              .value = slice_from_text(names[i])};
        writes[i] = (struct engine_write){.op = {.done = count_done}};
        waiting++;
        engine_put(bed->shard, &writes[i], &requests[i]);
    }
    engine_shard_turn_end(bed->shard);
    while (waiting)
        loop_turn(bed->loop, 10 * NS_PER_S);
}

static void turn(void)
{
    loop_turn(bed->loop, 0);
    engine_shard_turn_begin(bed->shard);
    engine_shard_turn_end(bed->shard);
    engine_shard_flushed(bed->shard);
}

static struct pb_range_request many(void)
{
    return (struct pb_range_request){.key = SLICE_LITERAL("many/"),
                                     .range_end = SLICE_LITERAL("many0")};
}

static void start_range(struct engine_range *range, const struct pb_range_request *request)
{
    *range = (struct engine_range){.op = {.done = count_done, .arena = &bed->arena}};
    waiting++;
    engine_range_start(bed->shard, range, request);
}

/* However long the server searches, what it finds is sent. */
static void a_long_search_is_not_mistaken_for_a_slow_reader(void **state)
{
    (void)state;
    uint8_t piece[1000];
    put_many();
    struct pb_range_request request = many();
    request.max_mod_revision = KEYS + 2; /* the first of them */
    struct engine_range range;
    start_range(&range, &request);
    assert_int_equal(waiting, 1);
    compact(put(1));
    advance(90);
    while (waiting)
        turn();
    assert_int_equal(range.kvs, 1);
    assert_int_equal(engine_range_fill(&range, piece, sizeof(piece)), range.kvs_bytes);
    engine_range_close(&range);
}

static void a_sorted_list_moves_to_newer_states_in_steps(void **state)
{
    (void)state;
    put_many();
    engine_range_close(&bed->range);
    struct pb_range_request request = many();
    request.sort_order = PB_SORT_ORDER_DESCEND;
    request.sort_target = PB_SORT_TARGET_VALUE;
    struct engine_range range;
    start_range(&range, &request);
    while (waiting)
        turn();
    uint8_t piece[100];
    uint64_t got = 0;
    for (int i = 0; i < 50; i++) {
        got += engine_range_fill(&range, piece, sizeof(piece));
        put(i % KEYS);
        advance(2);
        turn();
        uint64_t behind = pinned_behind();
        got += engine_range_fill(&range, piece, sizeof(piece));
        assert_true(pinned_behind() >= behind); /* not all at once */
        for (int turns = 0; pinned_behind() > 1; turns++) {
            assert_true(turns < 10);
            turn();
        }
    }
    assert_int_equal(got, 100 * sizeof(piece));
    put(1);
    advance(2);
    turn();
    assert_int_equal(engine_range_fill(&range, piece, sizeof(piece)), sizeof(piece));
    engine_range_close(&range); /* in the middle of it */
    assert_int_equal(pinned_behind(), 0);
}

static void canceled_range_stops_its_search(void **state)
{
    (void)state;
    put_many();
    struct pb_range_request request = many();
    request.keys_only = true;
    struct engine_range range = {.op = {.done = note_done, .arena = &bed->arena}};
    bed->done = false;
    engine_range_start(bed->shard, &range, &request);
    assert_false(bed->done);
    engine_give_up(&range.op);
    turn();
    assert_true(bed->done);
    assert_int_equal(range.op.status, ST_CANCELED);
    engine_range_close(&range);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_slow_list_releases_old_states, setup, teardown),
        cmocka_unit_test_setup_teardown(a_slow_reader_of_single_keys_releases_old_states, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(quick_list_keeps_its_state, setup, teardown),
        cmocka_unit_test_setup_teardown(a_list_of_a_compacted_revision_fails_after_a_minute, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_long_search_is_not_mistaken_for_a_slow_reader, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_sorted_list_moves_to_newer_states_in_steps, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(canceled_range_stops_its_search, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
