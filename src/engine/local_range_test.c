/* Ranges that look at many keys do it in turns, and others are served between them. */
#include "base/clock.h"
#include "codec/pb/rpc.pb.h"
#include "engine/local.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

enum { KEYS = 60000 };

struct fixture {
    char dir[64];
    struct engine *engine;
    struct loop *loop;
    struct engine_shard *shard;
    unsigned waiting;
};

static struct fixture *fixture; /* operations find it through this */

static void turn(struct fixture *f, int64_t wait_ns)
{
    loop_turn(f->loop, wait_ns);
    engine_shard_turn_begin(f->shard);
    engine_shard_turn_end(f->shard);
    engine_shard_flushed(f->shard);
}

static void count_done(struct engine_op *op)
{
    assert_int_equal(op->status, ST_OK);
    fixture->waiting--;
}

/* All keys, a few hundred puts at a time; every third once more. */
static void fill(struct fixture *f)
{
    enum { AT_ONCE = 500 };
    static struct engine_write writes[AT_ONCE];
    static struct pb_put_request requests[AT_ONCE];
    static char keys[AT_ONCE][16];
    struct arena arena;
    arena_init(&arena, NULL, 0, 64 << 20);
    for (int i = 0; i < KEYS; i += AT_ONCE) {
        for (int k = 0; k < AT_ONCE; k++) {
            snprintf(keys[k], sizeof(keys[k]), "k%07d", (i + k) % 1000000);
            requests[k] = (struct pb_put_request){.key = slice_from_text(keys[k]),
                                                  .value = slice_from_text(keys[k] + 4)};
            writes[k] = (struct engine_write){.op = {.done = count_done, .arena = &arena}};
            f->waiting++;
            engine_put(f->shard, &writes[k], &requests[k]);
        }
        engine_shard_turn_end(f->shard);
        while (f->waiting)
            turn(f, NS_PER_S);
        for (int k = 0; k < AT_ONCE; k++)
            engine_write_close(&writes[k]);
    }
    arena_fini(&arena);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct error error = {0};
    assert_non_null(f);
    snprintf(f->dir, sizeof(f->dir), "/tmp/vigil-local-range-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    assert_int_equal(loop_new(clock_system(), &f->loop), ST_OK);
    struct engine_local_options options = {.data_dir = f->dir, .shards_max = 1};
    assert_int_equal(engine_local_open(&options, &f->engine, &error), ST_OK);
    assert_int_equal(engine_shard_new(f->engine, f->loop, &f->shard), ST_OK);
    *state = fixture = f;
    fill(f);
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    char command[128];
    engine_shard_free(f->shard);
    engine_local_close(f->engine);
    loop_free(f->loop);
    snprintf(command, sizeof(command), "rm -rf %s", f->dir);
    assert_int_equal(system(command), 0);
    free(f);
    return 0;
}

static struct pb_range_request all(void)
{
    return (struct pb_range_request){.key = SLICE_LITERAL("k"), .range_end = SLICE_LITERAL("l")};
}

/* Returns the turns that it took. */
static unsigned read_range(struct fixture *f, const struct pb_range_request *request, int64_t count,
                           int64_t kvs)
{
    struct arena arena;
    arena_init(&arena, NULL, 0, 1 << 20);
    struct engine_range range = {.op = {.done = count_done, .arena = &arena}};
    unsigned turns = 0;
    f->waiting++;
    engine_range_start(f->shard, &range, request);
    engine_shard_flushed(f->shard);
    for (; f->waiting; turns++) {
        assert_true(loop_next_ns(f->loop) <= clock_mono_ns(clock_system())); /* it does not rest */
        turn(f, NS_PER_S);
    }
    assert_int_equal(range.count, count);
    assert_int_equal(range.kvs, kvs);
    uint8_t bytes[64 << 10];
    uint64_t all_bytes = 0;
    for (size_t n; (n = engine_range_fill(&range, bytes, sizeof(bytes))) > 0;)
        all_bytes += n;
    assert_int_equal(all_bytes, range.kvs_bytes);
    engine_range_close(&range);
    arena_fini(&arena);
    return turns;
}

static void a_range_over_many_keys_takes_turns(void **state)
{
    struct fixture *f = *state;
    struct pb_range_request request = all();
    assert_int_equal(read_range(f, &request, KEYS, KEYS), 0); /* the index knows */
    request.limit = 10;
    assert_int_equal(read_range(f, &request, KEYS, 10), 0);
    request = all();
    request.keys_only = true;
    assert_true(read_range(f, &request, KEYS, KEYS) >= 3);
    request.keys_only = false;
    request.revision = KEYS / 2;
    assert_true(read_range(f, &request, KEYS / 2 - 1, KEYS / 2 - 1) >= 3);
    request.count_only = true;
    assert_true(read_range(f, &request, KEYS / 2 - 1, 0) >= 2);
    request = all();
    request.sort_target = PB_SORT_TARGET_VALUE;
    request.sort_order = PB_SORT_ORDER_DESCEND;
    assert_true(read_range(f, &request, KEYS, KEYS) >= 10);
    request = all();
    request.min_mod_revision = KEYS;
    assert_true(read_range(f, &request, KEYS, 2) >= 3);
}

static void many_ranges_go_on_beside_each_other(void **state)
{
    enum { RANGES = 5 };
    struct fixture *f = *state;
    struct pb_range_request request = all(), one = {.key = SLICE_LITERAL("k0000001")};
    request.keys_only = true;
    struct engine_range ranges[RANGES], get;
    struct arena arena;
    arena_init(&arena, NULL, 0, 1 << 20);
    for (int i = 0; i < RANGES; i++) {
        ranges[i] = (struct engine_range){.op = {.done = count_done, .arena = &arena}};
        f->waiting++;
        engine_range_start(f->shard, &ranges[i], &request);
    }
    get = (struct engine_range){.op = {.done = count_done, .arena = &arena}};
    f->waiting++;
    engine_range_start(f->shard, &get, &one);
    assert_int_equal(f->waiting, RANGES); /* who asks for little is answered at once */
    engine_range_close(&get);
    engine_shard_flushed(f->shard);
    while (f->waiting)
        turn(f, NS_PER_S);
    for (int i = 0; i < RANGES; i++) {
        assert_int_equal(ranges[i].kvs, KEYS);
        engine_range_close(&ranges[i]);
    }
    arena_fini(&arena);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_range_over_many_keys_takes_turns),
        TEST(many_ranges_go_on_beside_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
