/*
 * The whole store on a simulated disk, compared with the naive model: random requests, groups,
 * trims, checkpoints and cleanings, each in the small steps in which the engine's threads
 * interleave them; then a power cut or a failing call anywhere, and a new start. What was committed
 * is present, and of the rest a prefix: complete requests, none without those before it.
 */
#include "store/store.h"

#include "base/crc32c.h"
#include "base/random.h"
#include "codec/pb/kv.pb.h"
#include "codec/pb/rpc.pb.h"
#include "simulated/file_sim.h"
#include "store/backend/backend_memory.h"
#include "store/model_test.h"
#include "store/mvcc/range.h"
#include "store/upkeep.h"
#include "store/upkeep/cleaner.h"
#include "store/upkeep/whole_hash_test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { INDEX_MAX = 4000, ROWS = 12 };

/* The contents of the log up to an index. */
struct moment {
    int64_t revision, compact_revision;
    uint32_t rows[ROWS]; /* 0: does not exist */
};

enum cleaning { CLEAN_IDLE, CLEAN_RELOCATING, CLEAN_RELOCATED, CLEAN_RECORDED };

struct world {
    uint64_t seed;
    struct random random;
    struct model model;
    struct fs_sim *sim;
    struct backend_disk *disk;
    struct store *store;
    struct upkeep *upkeep;
    struct epoch_slot *slot;
    struct moment moments[INDEX_MAX];
    uint64_t committed; /* up to this index nothing may be lost */
    struct relocation *relocation;
    enum cleaning cleaning;
    uint64_t old_segment;
    unsigned cleaned;
    uint32_t rows[ROWS];   /* as the requests have left them */
    uint32_t loaded[ROWS]; /* as reported while the store opened */
    bool faults;           /* the disk may fail; only then may anything else fail */
};

/* VIGIL_TEST_DEPTH=100 runs that many times more than the default. */
static uint64_t deep(uint64_t seeds)
{
    const char *depth = getenv("VIGIL_TEST_DEPTH");
    return depth ? seeds * strtoull(depth, NULL, 10) : seeds;
}

static void world_init(struct world *world, uint64_t seed)
{
    memset(world, 0, sizeof(*world));
    world->seed = seed;
    random_init(&world->random, seed);
    model_init(&world->model);
    world->moments[0] = (struct moment){.revision = 1, .compact_revision = -1};
    world->sim = fs_sim_new(seed * 31 + 7);
    world->disk = backend_disk_new();
}

static void world_fini(struct world *world)
{
    model_fini(&world->model);
    fs_sim_free(world->sim);
    backend_disk_free(world->disk);
}

static void check_result(const struct world *world, enum status status)
{
    if (status != ST_OK && !world->faults)
        fail_msg("seed %llu: %s, on a disk without fault", (unsigned long long)world->seed,
                 status_text(status));
}

/* -- Rows: number n is in one of two tables -- */

static enum row_table row_table_of(uint32_t number)
{
    return number % 2 ? ROW_LEASE : ROW_ALARM;
}

static enum status note_row(void *ctx, const struct row *row)
{
    struct world *world = ctx;
    uint32_t number;
    assert_int_equal(row->key.len, sizeof(number));
    memcpy(&number, row->key.ptr, sizeof(number));
    assert_true(number < ROWS);
    assert_int_equal(row->table, row_table_of(number));
    assert_int_equal(row->value.len, row->deleted ? 0 : sizeof(world->loaded[0]));
    world->loaded[number] = 0;
    slice_copy((uint8_t *)&world->loaded[number], row->value);
    return ST_OK;
}

/* -- Starting -- */

static enum status world_open(struct world *world, struct error *ret_error)
{
    memset(world->loaded, 0, sizeof(world->loaded));
    TRY(store_open(
        &(struct store_options){
            .row_seen = note_row,
            .row_ctx = world,
            .fs = fs_sim_fs(world->sim),
            .dir = "/data",
            .segment_bytes_first = 4096,
            .segment_bytes_max = 16 << 10,
            .readers_max = 2,
            .cluster_id = 1,
            .member_id = 2,
            .salt = world->seed,
            .backend = backend_memory_open(world->disk),
        },
        &world->store, ret_error));
    world->upkeep = upkeep_new(world->store);
    /* Steps of a few versions each, so that a checkpoint takes many. */
    upkeep_limit_steps(world->upkeep, 64 + random_below(&world->random, 2048),
                       1 + (unsigned)random_below(&world->random, 30));
    upkeep_join(world->upkeep);
    world->slot = epoch_slot_add(store_epoch(world->store));
    world->cleaning = CLEAN_IDLE;
    return ST_OK;
}

static void world_close(struct world *world)
{
    relocation_free(TAKE(world->relocation));
    upkeep_free(TAKE(world->upkeep));
    store_close(TAKE(world->store));
}

/* All keys at a revision. */
static void check_all_at(struct world *world, int64_t revision)
{
    struct range_state state = range_state_of(store_view(world->store), store_log(world->store));
    struct pb_range_request request = {
        .key = SLICE_LITERAL("a"), .range_end = SLICE_LITERAL("z"), .revision = revision};
    struct range range;
    assert_int_equal(range_init(&range, &state, &request), ST_OK);
    uint8_t *bytes = malloc(range.kvs_bytes + 1);
    assert_int_equal(range_fill(&range, bytes, range.kvs_bytes + 1), range.kvs_bytes);
    struct arena arena;
    arena_init(&arena, NULL, 0, 16 << 20);
    struct pb_range_response response;
    assert_int_equal(
        pb_decode(&pb_range_response_table, slice_of(bytes, range.kvs_bytes), &arena, &response),
        ST_OK);
    size_t seen = 0;
    for (int key = 0; key < MODEL_KEYS; key++) {
        if (!model_exists(&world->model, key, revision))
            continue;
        assert_true(seen < response.kvs_count);
        model_check_kv(&response.kvs[seen++], model_at(&world->model, key, revision));
    }
    assert_int_equal(seen, response.kvs_count);
    arena_fini(&arena);
    free(bytes);
    range_fini(&range);
}

static void check_hash(struct world *world, int64_t revision)
{
    struct upkeep_hash hash;
    assert_int_equal(whole_hash_at(world->upkeep, revision, &hash), ST_OK);
    uint32_t expected = model_hash(&world->model, world->model.compact_revision, revision);
    if (hash.hash != expected)
        fail_msg("seed %llu: hash at %lld of %lld, compacted to %lld",
                 (unsigned long long)world->seed, (long long)revision,
                 (long long)world->model.revision, (long long)world->model.compact_revision);
}

/*
 * Compares everything committed and readable, at both ends and somewhere in between, and its
 * hashes.
 */
static void check_state(struct world *world)
{
    store_check_writer(world->store);
    upkeep_check(world->upkeep);
    uint64_t pinned = epoch_pin(world->slot);
    int64_t newest = world->model.revision;
    int64_t oldest = world->model.compact_revision > 1 ? world->model.compact_revision : 1;
    check_all_at(world, newest);
    check_all_at(world, oldest);
    check_all_at(world, random_between(&world->random, oldest, newest));
    epoch_unpin(world->slot, pinned);
    check_hash(world, newest);
    check_hash(world, random_between(&world->random, oldest, newest));
}

static void world_start(struct world *world)
{
    struct error error;
    if (world_open(world, &error) != ST_OK)
        fail_msg("seed %llu: %s", (unsigned long long)world->seed, error.text);
    const struct store_view *view = store_view(world->store);
    if (view->log_index < world->committed)
        fail_msg("seed %llu: %llu records were committed, and only %llu are present",
                 (unsigned long long)world->seed, (unsigned long long)world->committed,
                 (unsigned long long)view->log_index);
    struct moment moment = world->moments[view->log_index];
    assert_memory_equal(world->loaded, moment.rows, sizeof(moment.rows));
    memcpy(world->rows, moment.rows, sizeof(moment.rows));
    assert_int_equal(view->revision, moment.revision);
    assert_int_equal(view->compact_revision, moment.compact_revision);
    model_cut(&world->model, moment.revision);
    world->model.compact_revision = moment.compact_revision;
    world->committed = view->log_index;
    check_state(world);
}

/* -- Requests: to the store, and to the model if it accepts them -- */

static void note_moment(struct world *world)
{
    uint64_t index = log_last_index(store_log(world->store));
    assert_true(index < INDEX_MAX);
    struct moment *moment = &world->moments[index];
    *moment = (struct moment){world->model.revision, world->model.compact_revision, {0}};
    memcpy(moment->rows, world->rows, sizeof(moment->rows));
}

static enum status do_put(struct world *world)
{
    char name[32];
    uint8_t bytes[MODEL_VALUE_MAX];
    int key = (int)random_below(&world->random, MODEL_KEYS);
    uint32_t value = (uint32_t)random_u64(&world->random);
    struct pb_put_request request = {.key = model_key(key, name),
                                     .value = model_value(value, bytes)};
    struct kv_answer answer;
    TRY(applier_put(store_applier(world->store), &request, NULL, &answer));
    model_add(&world->model, key, value, false);
    world->model.revision++;
    assert_int_equal(answer.revision, world->model.revision);
    note_moment(world);
    return ST_OK;
}

/* Puts of several keys and the deletion of a range of them, at one revision. */
static enum status do_txn(struct world *world)
{
    enum { PUTS = 3 };
    char names[PUTS + 2][32];
    uint8_t bytes[PUTS][MODEL_VALUE_MAX];
    int first = (int)random_below(&world->random, MODEL_KEYS - 8);
    uint32_t values[PUTS];
    struct pb_put_request puts[PUTS];
    struct pb_request_op ops[PUTS + 1] = {0};
    for (int i = 0; i < PUTS; i++) {
        values[i] = (uint32_t)random_u64(&world->random);
        puts[i] = (struct pb_put_request){.key = model_key(first + i, names[i]),
                                          .value = model_value(values[i], bytes[i])};
        ops[i] = (struct pb_request_op){.request_case = PB_REQUEST_OP_REQUEST_PUT,
                                        .request_put = &puts[i]};
    }
    /*
     * The last put is deleted again: the store allows it, although the API does so only between
     * nested transactions.
     */
    struct pb_delete_range_request remove = {.key = model_key(first + PUTS - 1, names[PUTS]),
                                             .range_end = model_key(first + 6, names[PUTS + 1])};
    ops[PUTS] = (struct pb_request_op){.request_case = PB_REQUEST_OP_REQUEST_DELETE_RANGE,
                                       .request_delete_range = &remove};
    struct pb_txn_request request = {.success = ops, .success_count = PUTS + 1};
    struct arena arena;
    arena_init(&arena, NULL, 0, 1 << 20);
    struct kv_answer answer;
    enum status status = applier_txn(store_applier(world->store), &request, &arena, &answer);
    arena_fini(&arena);
    TRY(status);
    for (int i = 0; i < PUTS; i++)
        model_add(&world->model, first + i, values[i], false);
    for (int key = first + PUTS - 1; key < first + 6; key++) {
        if (model_exists(&world->model, key, world->model.revision + 1))
            model_add(&world->model, key, 0, true);
    }
    world->model.revision++;
    assert_int_equal(answer.revision, world->model.revision);
    note_moment(world);
    return ST_OK;
}

static enum status do_delete(struct world *world)
{
    char name[32];
    int key = (int)random_below(&world->random, MODEL_KEYS);
    struct pb_delete_range_request request = {.key = model_key(key, name)};
    struct kv_answer answer;
    TRY(applier_delete_range(store_applier(world->store), &request, NULL, &answer));
    bool existed = model_exists(&world->model, key, world->model.revision + 1);
    assert_int_equal(answer.delete_range.deleted, existed);
    if (existed) {
        model_add(&world->model, key, 0, true);
        world->model.revision++;
        note_moment(world);
    }
    return ST_OK;
}

/* A row is written or deleted, with or without some keys. */
static enum status do_rows(struct world *world)
{
    enum { KEYS = 3 };
    uint32_t number = (uint32_t)random_below(&world->random, ROWS);
    uint32_t value = 1 + (uint32_t)random_below(&world->random, UINT32_MAX);
    struct row row = {
        .table = row_table_of(number),
        .deleted = random_chance(&world->random, 1, 3),
        .key = slice_of(&number, sizeof(number)),
    };
    if (!row.deleted)
        row.value = slice_of(&value, sizeof(value));
    char names[KEYS][32];
    struct slice keys[KEYS];
    size_t key_count = random_chance(&world->random, 1, 2) ? KEYS : 0;
    int first = (int)random_below(&world->random, MODEL_KEYS - KEYS);
    for (int i = 0; i < KEYS; i++)
        keys[i] = model_key(first + i, names[i]);
    int64_t revision;
    TRY(applier_rows(store_applier(world->store), &row, 1, keys, key_count, &revision));
    bool any = false;
    for (int key = first; key < first + (int)key_count; key++) {
        if (!model_exists(&world->model, key, world->model.revision + 1))
            continue;
        model_add(&world->model, key, 0, true);
        any = true;
    }
    world->model.revision += any;
    assert_int_equal(revision, world->model.revision);
    world->rows[number] = row.deleted ? 0 : value;
    note_moment(world);
    return ST_OK;
}

static enum status do_compact(struct world *world)
{
    int64_t to = random_between(&world->random, world->model.revision / 2, world->model.revision);
    if (to <= world->model.compact_revision)
        return ST_OK;
    TRY(applier_compact(store_applier(world->store), to));
    world->model.compact_revision = to;
    note_moment(world);
    return ST_OK;
}

static enum status do_request(struct world *world)
{
    if (log_last_index(store_log(world->store)) + 1 >= INDEX_MAX)
        return ST_OK;
    uint64_t what = random_below(&world->random, 100);
    if (what < 55)
        return do_put(world);
    if (what < 65)
        return do_rows(world);
    if (what < 80)
        return do_txn(world);
    if (what < 96)
        return do_delete(world);
    return do_compact(world);
}

/* -- The work of the threads. A failure here ends the process. -- */

static enum status do_commit(struct world *world)
{
    TRY(store_commit(world->store));
    world->committed = log_last_index(store_log(world->store));
    return ST_OK;
}

/* The next step of a cleaning. */
static enum status do_clean(struct world *world)
{
    switch (world->cleaning) {
    case CLEAN_IDLE: {
        bool all = random_chance(&world->random, 1, 4); /* like defragmenting */
        check_result(world, all ? upkeep_defragment_next(world->upkeep,
                                                         upkeep_defragment_end(world->upkeep),
                                                         &world->relocation)
                                : upkeep_clean_begin(world->upkeep, &world->relocation));
        if (all)
            store_shrink(world->store);
        if (!world->relocation)
            return ST_OK;
        world->old_segment = world->relocation->old_segment;
        world->cleaning = CLEAN_RELOCATING;
        return ST_OK;
    }
    case CLEAN_RELOCATING: {
        bool done;
        TRY(do_commit(world));
        TRY(store_relocate(world->store, world->relocation, 7, &done));
        world->cleaning = done ? CLEAN_RELOCATED : CLEAN_RELOCATING;
        return ST_OK;
    }
    case CLEAN_RELOCATED: {
        bool done = false;
        enum status status = upkeep_clean_step(world->upkeep, world->relocation, &done);
        check_result(world, status);
        if (status != ST_OK)
            return random_chance(&world->random, 1, 2) ? ST_OK : ST_CLOSED;
        if (!done) {
            world->cleaning = world->relocation->count ? CLEAN_RELOCATING : CLEAN_RELOCATED;
            return ST_OK;
        }
        world->relocation = NULL;
        world->cleaning = CLEAN_RECORDED;
        return ST_OK;
    }
    default:
        TRY(do_commit(world));
        store_forget_segment(world->store, world->old_segment);
        world->cleaning = CLEAN_IDLE;
        world->cleaned++;
        return do_commit(world);
    }
}

static enum status do_work(struct world *world)
{
    for (uint64_t steps = random_below(&world->random, 64); steps > 0; steps--)
        TRY(store_trim_step(world->store));
    return store_trim_step(world->store);
}

/* Runs it to the end or stops somewhere: the next one continues from there. */
static enum status do_checkpoint(struct world *world)
{
    bool done = false;
    uint64_t steps = random_chance(&world->random, 1, 2) ? 1 + random_below(&world->random, 8) : 0;
    upkeep_checkpoint_begin(world->upkeep);
    for (uint64_t i = 0; !done && (steps == 0 || i < steps); i++)
        TRY(upkeep_checkpoint_step(world->upkeep, &done));
    return ST_OK;
}

/* Returns only failures that must end the process. */
static enum status do_something(struct world *world)
{
    enum status result = ST_OK;
    uint64_t what = random_below(&world->random, 100);
    if (what < 60)
        result = do_request(world);
    else if (what < 72)
        return do_commit(world);
    else if (what < 80) {
        TRY(do_commit(world));
        return do_work(world);
    } else if (what < 84)
        result = do_checkpoint(world);
    else if (what < 94)
        return do_clean(world);
    else if (what < 96)
        result = upkeep_prepare(world->upkeep);
    else if (what < 98)
        result = upkeep_mark(world->upkeep);
    else {
        TRY(do_commit(world));
        check_state(world);
    }
    check_result(world, result);
    return ST_OK;
}

/* -- The tests -- */

static void live(struct world *world, uint64_t steps)
{
    enum status status = ST_OK;
    for (uint64_t step = 0; step < steps && status == ST_OK; step++)
        status = do_something(world);
    check_result(world, status);
}

static void end_life(struct world *world, bool power_cut)
{
    if (power_cut)
        fs_sim_crash(world->sim);
    world_close(world);
    fs_sim_fail(world->sim, FS_SIM_ANY, 0, ST_OK, false);
    backend_disk_fail_commit(world->disk, 0, ST_OK, false);
    world->faults = false;
}

static void power_cuts_between_any_two_steps_lose_nothing_committed(void **state)
{
    (void)state;
    static struct world world;
    unsigned cleaned = 0;
    for (uint64_t seed = 1; seed <= deep(60); seed++) {
        world_init(&world, seed);
        for (int life = 0; life < 4; life++) {
            world_start(&world);
            live(&world, random_below(&world.random, 400));
            /* Sometimes only the process dies. */
            end_life(&world, random_chance(&world.random, 4, 5));
        }
        world_start(&world);
        end_life(&world, false);
        cleaned += world.cleaned;
        world_fini(&world);
    }
    assert_true(cleaned > 50);
}

static void a_disk_that_fails_anywhere_loses_nothing_committed(void **state)
{
    (void)state;
    static struct world world;
    const enum status failures[] = {ST_IO, ST_DISK_FULL};
    for (uint64_t seed = 1; seed <= deep(60); seed++) {
        world_init(&world, seed + 1000000);
        for (int life = 0; life < 4; life++) {
            world_start(&world);
            live(&world, random_below(&world.random, 150));
            world.faults = true;
            if (random_chance(&world.random, 1, 4))
                backend_disk_fail_commit(world.disk, 1 + random_below(&world.random, 4), ST_IO,
                                         random_chance(&world.random, 1, 2));
            else
                fs_sim_fail(world.sim, FS_SIM_ANY, 1 + random_below(&world.random, 60),
                            failures[random_below(&world.random, 2)],
                            random_chance(&world.random, 1, 2));
            live(&world, random_below(&world.random, 200));
            end_life(&world, random_chance(&world.random, 1, 2));
        }
        world_start(&world);
        end_life(&world, false);
        world_fini(&world);
    }
}

/* One history whose nth call fails, for every n. */
static void fail_each_call(enum status failure, bool sticky)
{
    static struct world world;
    for (uint64_t seed = 1; seed <= deep(1); seed++) {
        bool all_tried = false;
        for (uint64_t n = 1; !all_tried; n++) {
            world_init(&world, seed);
            world_start(&world);
            world.faults = true;
            fs_sim_fail(world.sim, FS_SIM_ANY, n, failure, sticky);
            uint64_t before = fs_sim_calls(world.sim, FS_SIM_ANY);
            live(&world, 150);
            all_tried = fs_sim_calls(world.sim, FS_SIM_ANY) - before < n;
            end_life(&world, n % 2);
            world_start(&world);
            live(&world, 30);
            end_life(&world, true);
            world_start(&world);
            end_life(&world, false);
            world_fini(&world);
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

static void every_call_of_a_start_may_fail(void **state)
{
    (void)state;
    static struct world world;
    for (uint64_t seed = 1; seed <= deep(2); seed++) {
        for (uint64_t n = 1;; n++) {
            world_init(&world, seed);
            world_start(&world);
            live(&world, 200);
            end_life(&world, n % 2);
            fs_sim_fail(world.sim, FS_SIM_ANY, n, ST_IO, true);
            struct error error;
            enum status status = world_open(&world, &error);
            if (n % 3)
                fs_sim_crash(world.sim);
            if (status == ST_OK)
                world_close(&world);
            fs_sim_fail(world.sim, FS_SIM_ANY, 0, ST_OK, false);
            world_start(&world);
            end_life(&world, false);
            world_fini(&world);
            if (status == ST_OK)
                break;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(power_cuts_between_any_two_steps_lose_nothing_committed),
        cmocka_unit_test(a_disk_that_fails_anywhere_loses_nothing_committed),
        cmocka_unit_test(every_call_may_fail_with_an_io_error),
        cmocka_unit_test(every_call_may_find_the_disk_full),
        cmocka_unit_test(every_call_of_a_start_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
