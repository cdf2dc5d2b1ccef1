/* When the keeper does which work: none may keep another one from being done. The steps themselves
 * are replaced, so that they fail or last as long as a test needs (--wrap). */
#include "engine/local/fixture_test.h"
#include "store/upkeep.h"

#include <stdatomic.h>
#include <unistd.h>

enum { CHECKPOINT_BYTES = 1 << 20, WAIT_S_MAX = 60 };

/* What the steps do. */
static struct {
    _Atomic bool checkpoints_fail; /* with an error of the disk */
    _Atomic unsigned steps;        /* steps of each checkpoint; 0: the real ones */
    _Atomic unsigned adds;        /* so many of these steps add records, the others drop versions */
    _Atomic uint64_t lag_bytes;   /* lag of the checkpoint behind the log; 0: the real number */
    _Atomic unsigned pieces_left; /* missing pieces of the next segment; 0: the real ones */
    _Atomic bool copies_are_damaged;
} work;

/* How often it was done. */
static struct {
    _Atomic unsigned checkpoints, steps, drops, pieces, cleanings;
} done;

#define WRAPPED(type, name, ...)     \
    type __real_##name(__VA_ARGS__); \
    type __wrap_##name(__VA_ARGS__)

WRAPPED(void, upkeep_checkpoint_begin, struct upkeep *upkeep);
WRAPPED(enum status, upkeep_checkpoint_step, struct upkeep *upkeep, bool *ret_done);
WRAPPED(bool, upkeep_checkpoint_lags, const struct upkeep *upkeep);
WRAPPED(uint64_t, upkeep_checkpoint_lag_bytes, struct upkeep *upkeep);
WRAPPED(enum status, upkeep_prepare_step, struct upkeep *upkeep);
WRAPPED(bool, upkeep_is_preparing, const struct upkeep *upkeep);
WRAPPED(enum status, upkeep_clean_begin, struct upkeep *upkeep, struct relocation **ret_relocation);
WRAPPED(enum status, upkeep_clean_step, struct upkeep *upkeep, struct relocation *relocation,
        bool *ret_done);

/* What is left of the checkpoint in progress, on the keeper's thread. */
static unsigned steps_left, adds_left;

void __wrap_upkeep_checkpoint_begin(struct upkeep *upkeep)
{
    atomic_fetch_add(&done.checkpoints, 1);
    steps_left = atomic_load(&work.steps);
    adds_left = atomic_load(&work.adds);
    __real_upkeep_checkpoint_begin(upkeep);
}

enum status __wrap_upkeep_checkpoint_step(struct upkeep *upkeep, bool *ret_done)
{
    atomic_fetch_add(&done.steps, 1);
    if (atomic_load(&work.checkpoints_fail))
        return ST_IO;
    if (!atomic_load(&work.steps))
        return __real_upkeep_checkpoint_step(upkeep, ret_done);
    usleep(1000);
    *ret_done = steps_left == 0;
    atomic_fetch_add(&done.drops, adds_left == 0);
    steps_left -= steps_left > 0;
    adds_left -= adds_left > 0;
    return ST_OK;
}

bool __wrap_upkeep_checkpoint_lags(const struct upkeep *upkeep)
{
    return atomic_load(&work.steps) ? adds_left > 0 : __real_upkeep_checkpoint_lags(upkeep);
}

uint64_t __wrap_upkeep_checkpoint_lag_bytes(struct upkeep *upkeep)
{
    uint64_t bytes = atomic_load(&work.lag_bytes);
    return bytes ? bytes : __real_upkeep_checkpoint_lag_bytes(upkeep);
}

enum status __wrap_upkeep_prepare_step(struct upkeep *upkeep)
{
    if (!atomic_load(&work.pieces_left))
        return __real_upkeep_prepare_step(upkeep);
    atomic_fetch_sub(&work.pieces_left, 1);
    atomic_fetch_add(&done.pieces, 1);
    return ST_OK;
}

bool __wrap_upkeep_is_preparing(const struct upkeep *upkeep)
{
    return atomic_load(&work.pieces_left) || __real_upkeep_is_preparing(upkeep);
}

enum status __wrap_upkeep_clean_begin(struct upkeep *upkeep, struct relocation **ret_relocation)
{
    atomic_fetch_add(&done.cleanings, 1);
    return __real_upkeep_clean_begin(upkeep, ret_relocation);
}

enum status __wrap_upkeep_clean_step(struct upkeep *upkeep, struct relocation *relocation,
                                     bool *ret_done)
{
    if (atomic_load(&work.copies_are_damaged))
        return ST_DAMAGED;
    return __real_upkeep_clean_step(upkeep, relocation, ret_done);
}

/* Everything is real. */
static void reset(void)
{
    atomic_store(&work.checkpoints_fail, false);
    atomic_store(&work.steps, 0);
    atomic_store(&work.adds, 0);
    atomic_store(&work.lag_bytes, 0);
    atomic_store(&work.pieces_left, 0);
    atomic_store(&work.copies_are_damaged, false);
}

static int setup(void **state)
{
    reset();
    *state = fixture_new_fast((struct engine_local_options){
        .segment_bytes_first = 16 << 10,
        .segment_bytes_max = 16 << 10,
        .checkpoint_bytes = CHECKPOINT_BYTES,
    });
    atomic_store(&done.checkpoints, 0);
    atomic_store(&done.steps, 0);
    atomic_store(&done.drops, 0);
    atomic_store(&done.pieces, 0);
    atomic_store(&done.cleanings, 0);
    return 0;
}

/* The engine closes with the real steps. */
static int teardown(void **state)
{
    reset();
    return fixture_free(state);
}

/* Clients write until the condition holds. */
#define WRITE_UNTIL(f, condition)                                               \
    do {                                                                        \
        int64_t by_ns_ = clock_mono_ns(clock_system()) + WAIT_S_MAX * NS_PER_S; \
        while (!(condition) && clock_mono_ns(clock_system()) < by_ns_)          \
            put_text(f, "k", "v");                                              \
        assert_true(condition);                                                 \
    } while (0)

/* Each checkpoint is due when the one before it has ended. */
static void cleaning_begins_between_checkpoints_that_follow_each_other(void **state)
{
    enum { CHECKPOINTS = 10 };
    struct fixture *f = *state;
    atomic_store(&work.lag_bytes, CHECKPOINT_BYTES * 5 / 4 - 1);
    atomic_store(&work.adds, 3);
    atomic_store(&work.steps, 3);
    WRITE_UNTIL(f, atomic_load(&done.checkpoints) > CHECKPOINTS);
    assert_true(atomic_load(&done.cleanings) >= CHECKPOINTS / 2);
}

/* Dropping versions takes long: what clients write meanwhile gets into the checkpoint, but not only
 * that is done. */
static void checkpoint_that_drops_versions_gets_a_new_goal(void **state)
{
    enum { GOALS = 5 };
    struct fixture *f = *state;
    atomic_store(&work.lag_bytes, 2 * CHECKPOINT_BYTES);
    atomic_store(&work.adds, 2);
    atomic_store(&work.steps, 1u << 30);
    WRITE_UNTIL(f, atomic_load(&done.checkpoints) >= GOALS);
    assert_true(atomic_load(&done.drops) >= GOALS - 1);
    assert_true(atomic_load(&done.cleanings) >= 1);
}

/* A failed checkpoint is tried again every second. */
static void next_segment_does_not_wait_for_other_failures(void **state)
{
    enum { PIECES = 64 };
    struct fixture *f = *state;
    atomic_store(&work.checkpoints_fail, true);
    atomic_store(&work.lag_bytes, CHECKPOINT_BYTES);
    WRITE_UNTIL(f, atomic_load(&done.steps) >= 1);
    unsigned failed = atomic_load(&done.steps);
    atomic_store(&work.pieces_left, PIECES);
    WRITE_UNTIL(f, atomic_load(&done.pieces) == PIECES);
    assert_true(atomic_load(&done.steps) < failed + PIECES / 2);
}

/* Not even defragmenting waits for copies that cannot be used. */
static void defragmenting_is_answered_after_damage(void **state)
{
    struct fixture *f = *state;
    struct engine_status status;
    int64_t by_ns = clock_mono_ns(clock_system()) + WAIT_S_MAX * NS_PER_S;
    for (int i = 0; i < 2000; i++)
        put_text(f, "k", "v");
    atomic_store(&work.copies_are_damaged, true);
    engine_status_get(f->shard, &status);
    struct pb_compaction_request request = {.revision = status.revision};
    struct engine_op compact = new_op(f);
    engine_compact(f->shard, &compact, &request);
    wait_for(f, 0);
    struct engine_op op = new_op(f);
    engine_defragment(f->shard, &op);
    while (f->waiting && clock_mono_ns(clock_system()) < by_ns)
        turn_shard(f->shard, f->loop, 10 * NS_PER_MS);
    assert_int_equal(f->waiting, 0);
    assert_int_equal(op.status, ST_CORRUPT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(cleaning_begins_between_checkpoints_that_follow_each_other),
        TEST(checkpoint_that_drops_versions_gets_a_new_goal),
        TEST(next_segment_does_not_wait_for_other_failures),
        TEST(defragmenting_is_answered_after_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
