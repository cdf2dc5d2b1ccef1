/* Ranges over many keys are read over several turns, and other requests are served in between. */
#include "engine/local/fixture_test.h"

enum { KEYS = 60000 };

/* Puts all keys, a few hundred at a time, and every third one twice. */
static void fill(struct fixture *f)
{
    enum { AT_ONCE = 500 };
    static struct engine_write writes[AT_ONCE];
    static struct pb_put_request requests[AT_ONCE];
    static char keys[AT_ONCE][16];
    for (int i = 0; i < KEYS; i += AT_ONCE) {
        for (int k = 0; k < AT_ONCE; k++) {
            snprintf(keys[k], sizeof(keys[k]), "k%07d", (i + k) % 1000000);
            requests[k] = (struct pb_put_request){.key = slice_from_text(keys[k]),
                                                  .value = slice_from_text(keys[k] + 4)};
            writes[k] = (struct engine_write){.op = new_op(f)};
            engine_put(f->shard, &writes[k], &requests[k]);
        }
        wait_for(f, 0);
        for (int k = 0; k < AT_ONCE; k++) {
            assert_int_equal(writes[k].op.status, ST_OK);
            engine_write_close(&writes[k]);
        }
    }
}

static int setup(void **state)
{
    *state = fixture_new((struct engine_local_options){0});
    fill(*state);
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
    struct engine_range range = {.op = new_op(f)};
    unsigned turns = 0;
    engine_range_start(f->shard, &range, request);
    engine_shard_flushed(f->shard);
    for (; f->waiting; turns++) {
        assert_true(loop_next_ns(f->loop) <= clock_mono_ns(clock_system())); /* it does not pause */
        turn_shard(f->shard, f->loop, NS_PER_S);
    }
    assert_int_equal(range.op.status, ST_OK);
    assert_int_equal(range.count, count);
    assert_int_equal(range.kvs, kvs);
    uint8_t bytes[64 << 10];
    uint64_t all_bytes = 0;
    for (size_t n; (n = engine_range_fill(&range, bytes, sizeof(bytes))) > 0;)
        all_bytes += n;
    assert_int_equal(all_bytes, range.kvs_bytes);
    engine_range_close(&range);
    return turns;
}

static void a_range_over_many_keys_takes_turns(void **state)
{
    struct fixture *f = *state;
    struct pb_range_request request = all();
    assert_int_equal(read_range(f, &request, KEYS, KEYS), 0); /* the index answers it */
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

static void many_ranges_continue_side_by_side(void **state)
{
    enum { RANGES = 5 };
    struct fixture *f = *state;
    struct pb_range_request request = all(), one = {.key = SLICE_LITERAL("k0000001")};
    request.keys_only = true;
    struct engine_range ranges[RANGES], get;
    for (int i = 0; i < RANGES; i++) {
        ranges[i] = (struct engine_range){.op = new_op(f)};
        engine_range_start(f->shard, &ranges[i], &request);
    }
    get = (struct engine_range){.op = new_op(f)};
    engine_range_start(f->shard, &get, &one);
    assert_int_equal(f->waiting, RANGES); /* a short range is answered at once */
    engine_range_close(&get);
    engine_shard_flushed(f->shard);
    wait_for(f, 0);
    for (int i = 0; i < RANGES; i++) {
        assert_int_equal(ranges[i].kvs, KEYS);
        engine_range_close(&ranges[i]);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, fixture_free)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_range_over_many_keys_takes_turns),
        TEST(many_ranges_continue_side_by_side),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
