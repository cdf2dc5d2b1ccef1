/*
 * The whole store in one thread, compared with a naive model: random requests, commits, trimming,
 * checkpoints, cleaning and reopening in seeded order, on a real disk and on a simulated one that
 * crashes.
 */
#include "store/store.h"

#include "base/random.h"
#include "base/temp_dir_test.h"
#include "codec/pb/kv.pb.h"
#include "codec/pb/rpc.pb.h"
#include "store/clean_test.h"
#include "store/model_test.h"
#include "store/mvcc/range.h"
#include "store/upkeep.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

struct world {
    struct random random;
    struct model model;
    struct store *store;
    struct upkeep *upkeep;
    struct epoch_slot *slot;
    char dir[TEMP_DIR_BYTES];
    struct fs *fs;
    uint64_t seed;
    unsigned cleaned; /* segments */
};

static void world_open(struct world *world)
{
    struct error error;
    enum status status = store_open(
        &(struct store_options){
            .fs = world->fs,
            .dir = world->dir,
            .segment_bytes_first = 16 << 10,
            .segment_bytes_max = 64 << 10,
            .checkpoint_map_bytes = 64 << 20,
            .readers_max = 2,
            .cluster_id = 1,
            .member_id = 2,
        },
        &world->store, &error);
    if (status != ST_OK)
        fail_msg("seed %lu: %s", world->seed, error.text);
    world->upkeep = upkeep_new(world->store);
    upkeep_join(world->upkeep);
    world->slot = epoch_slot_add(store_epoch(world->store));
}

static void world_close(struct world *world)
{
    upkeep_free(world->upkeep);
    store_close(world->store);
    world->upkeep = NULL;
    world->store = NULL;
}

/* -- Requests, to both -- */

static void do_put(struct world *world)
{
    char name[32];
    uint8_t bytes[MODEL_VALUE_MAX];
    int key = (int)random_below(&world->random, MODEL_KEYS);
    uint32_t value = (uint32_t)random_u64(&world->random);
    struct pb_put_request request = {.key = model_key(key, name),
                                     .value = model_value(value, bytes)};
    struct kv_answer answer;
    assert_int_equal(applier_put(store_applier(world->store), &request, NULL, &answer), ST_OK);
    model_add(&world->model, key, value, false);
    world->model.revision++;
    assert_int_equal(answer.revision, world->model.revision);
}

static void do_delete(struct world *world)
{
    char from_name[32], to_name[32];
    int from = (int)random_below(&world->random, MODEL_KEYS);
    int to = from + (int)random_below(&world->random, 4);
    struct pb_delete_range_request request = {.key = model_key(from, from_name)};
    if (to > from)
        request.range_end = model_key(to, to_name);
    else
        to = from + 1;
    struct kv_answer answer;
    assert_int_equal(applier_delete_range(store_applier(world->store), &request, NULL, &answer),
                     ST_OK);
    int64_t deleted = 0;
    for (int key = from; key < to && key < MODEL_KEYS; key++) {
        if (!model_exists(&world->model, key, world->model.revision + 1))
            continue;
        model_add(&world->model, key, 0, true);
        deleted++;
    }
    world->model.revision += deleted > 0;
    assert_int_equal(answer.delete_range.deleted, deleted);
    assert_int_equal(answer.revision, world->model.revision);
}

/* Two puts and a delete of another key, at one revision. */
static void do_txn(struct world *world)
{
    char names[3][32];
    uint8_t bytes[2][MODEL_VALUE_MAX];
    int first = (int)random_below(&world->random, MODEL_KEYS - 2);
    uint32_t values[2] = {(uint32_t)random_u64(&world->random),
                          (uint32_t)random_u64(&world->random)};
    struct pb_put_request puts[2];
    struct pb_request_op ops[3] = {0};
    for (int i = 0; i < 2; i++) {
        puts[i] = (struct pb_put_request){.key = model_key(first + i, names[i]),
                                          .value = model_value(values[i], bytes[i])};
        ops[i] = (struct pb_request_op){.request_case = PB_REQUEST_OP_REQUEST_PUT,
                                        .request_put = &puts[i]};
    }
    struct pb_delete_range_request remove = {.key = model_key(first + 2, names[2])};
    ops[2] = (struct pb_request_op){.request_case = PB_REQUEST_OP_REQUEST_DELETE_RANGE,
                                    .request_delete_range = &remove};
    struct pb_txn_request request = {.success = ops, .success_count = 3};
    struct arena arena;
    arena_init(&arena, NULL, 0, 1 << 20);
    struct kv_answer answer;
    assert_int_equal(applier_txn(store_applier(world->store), &request, &arena, &answer), ST_OK);
    assert_true(answer.txn.succeeded);
    for (int i = 0; i < 2; i++)
        model_add(&world->model, first + i, values[i], false);
    if (model_exists(&world->model, first + 2, world->model.revision + 1))
        model_add(&world->model, first + 2, 0, true);
    world->model.revision++;
    assert_int_equal(answer.revision, world->model.revision);
    arena_fini(&arena);
}

static void do_compact(struct world *world)
{
    int64_t to = random_between(&world->random, world->model.compact_revision - 2,
                                world->model.revision + 2);
    enum status expected = ST_OK;
    if (to <= world->model.compact_revision)
        expected = ST_COMPACTED;
    else if (to > world->model.revision)
        expected = ST_FUTURE_REV;
    else
        world->model.compact_revision = to;
    assert_int_equal(applier_compact(store_applier(world->store), to), expected);
}

/* -- The work of the store's threads -- */

static void do_clean(struct world *world)
{
    struct relocation *relocation;
    assert_int_equal(upkeep_clean_begin(world->upkeep, &relocation), ST_OK);
    if (!relocation)
        return;
    uint64_t old = relocation->old_segment;
    clean_to_end(world->store, world->upkeep, relocation, 7);
    store_forget_segment(world->store, old);
    world->cleaned++;
    assert_int_equal(store_commit(world->store), ST_OK);
}

static void check_ranges(struct world *world);

static void do_something(struct world *world)
{
    uint64_t draw = random_below(&world->random, 100);
    if (draw < 50)
        do_put(world);
    else if (draw < 62)
        do_delete(world);
    else if (draw < 72)
        do_txn(world);
    else if (draw < 74)
        do_compact(world);
    else if (draw < 84)
        assert_int_equal(store_commit(world->store), ST_OK);
    else if (draw < 90) {
        assert_int_equal(store_commit(world->store), ST_OK);
        for (uint64_t steps = random_below(&world->random, 64); steps > 0; steps--)
            assert_int_equal(store_trim_step(world->store), ST_OK);
    } else if (draw < 92)
        assert_int_equal(upkeep_checkpoint(world->upkeep), ST_OK);
    else if (draw < 94)
        do_clean(world);
    else if (draw < 96)
        assert_int_equal(upkeep_prepare(world->upkeep), ST_OK);
    else if (draw < 99) {
        assert_int_equal(store_commit(world->store), ST_OK);
        check_ranges(world);
    } else {
        assert_int_equal(store_commit(world->store), ST_OK);
        world_close(world);
        world_open(world);
        check_ranges(world);
    }
}

/* -- Comparing -- */

/* Fills in odd pieces, so that fields are cut everywhere. */
static void fill_all(struct world *world, struct range *range, struct buf *out)
{
    for (;;) {
        size_t room = 1 + random_below(&world->random, 300);
        assert_int_equal(buf_reserve(out, room), ST_OK);
        size_t n = range_fill(range, out->ptr + out->len, room);
        out->len += n;
        if (n < room)
            return;
    }
}

static void check_range(struct world *world, int from, int to, int64_t at, int64_t limit)
{
    char from_name[32], to_name[32];
    struct range_state state = range_state_of(store_view(world->store), store_log(world->store));
    struct pb_range_request request = {
        .key = model_key(from, from_name),
        .range_end = model_key(to, to_name),
        .revision = at,
        .limit = limit,
    };
    struct range range;
    enum status status = range_init(&range, &state, &request);
    if (at > 0 && at < world->model.compact_revision) {
        assert_int_equal(status, ST_COMPACTED);
        return;
    }
    assert_int_equal(status, ST_OK);
    struct buf out = {0};
    fill_all(world, &range, &out);
    assert_int_equal(out.len, range.kvs_bytes);
    struct arena arena;
    arena_init(&arena, NULL, 0, 16 << 20);
    struct pb_range_response response;
    assert_int_equal(pb_decode(&pb_range_response_table, buf_slice(&out), &arena, &response),
                     ST_OK);
    assert_int_equal(response.kvs_count, range.kvs);
    int64_t revision = at > 0 ? at : world->model.revision;
    size_t seen = 0;
    int64_t count = 0;
    for (int key = from; key < to && key < MODEL_KEYS; key++) {
        if (!model_exists(&world->model, key, revision))
            continue;
        if (limit == 0 || count < limit)
            model_check_kv(&response.kvs[seen++], model_at(&world->model, key, revision));
        count++;
    }
    assert_int_equal(seen, response.kvs_count);
    assert_int_equal(range.count, count);
    assert_int_equal(range.more, limit && count > limit);
    arena_fini(&arena);
    buf_fini(&out);
    range_fini(&range);
}

static void check_ranges(struct world *world)
{
    uint64_t pinned = epoch_pin(world->slot);
    assert_int_equal(store_view(world->store)->revision, world->model.revision);
    check_range(world, 0, MODEL_KEYS, 0, 0);
    for (int i = 0; i < 4; i++) {
        int from = (int)random_below(&world->random, MODEL_KEYS);
        int to = from + (int)random_below(&world->random, 20);
        int64_t at = random_between(&world->random, 1, world->model.revision);
        check_range(world, from, to, random_chance(&world->random, 1, 3) ? 0 : at,
                    (int64_t)random_below(&world->random, 5));
    }
    check_range(world, 0, MODEL_KEYS, world->model.compact_revision, 0);
    epoch_unpin(world->slot, pinned);
}

static void store_agrees_with_a_naive_model(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct world world = {.seed = seed, .fs = fs_posix()};
        temp_dir_make_fast("store", world.dir);
        random_init(&world.random, seed);
        model_init(&world.model);
        world_open(&world);
        for (int i = 0; i < 3000; i++)
            do_something(&world);
        assert_int_equal(store_commit(world.store), ST_OK);
        check_ranges(&world);
        assert_true(world.cleaned > 0);
        world_close(&world);
        model_fini(&world.model);
        temp_dir_remove(world.dir);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(store_agrees_with_a_naive_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
