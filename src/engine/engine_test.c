#include "engine/engine.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static unsigned done_count, given_up_count;
static struct engine_op *started;

static void note_done(struct engine_op *op)
{
    (void)op;
    done_count++;
}

static void note_started(struct engine_op *op)
{
    started = op;
}

static void note_given_up(struct engine_op *op)
{
    assert_ptr_equal(op, started);
    given_up_count++;
}

static const struct engine_ops lacks_all;
static const struct engine_ops has_compactions = {.start[ENGINE_COMPACT] = note_started,
                                                  .give_up = note_given_up};

static int set_up(void **state)
{
    (void)state;
    done_count = given_up_count = 0;
    started = NULL;
    return 0;
}

static void an_operation_that_the_engine_lacks_is_answered_once(void **state)
{
    (void)state;
    struct engine engine = {.ops = &lacks_all};
    struct engine_shard shard = {.engine = &engine};
    for (unsigned kind = ENGINE_RANGE; kind < ENGINE_KINDS; kind++) {
        struct engine_op op = {.done = note_done};
        engine_start(&shard, &op, (enum engine_kind)kind, NULL);
        assert_int_equal(done_count, kind);
        assert_int_equal(op.status, ST_UNIMPLEMENTED);
        assert_true(op.text.len > 0);
        engine_give_up(&op); /* an engine without a function for that is not asked */
    }
    struct engine_snapshot snapshot = {.op.done = note_done};
    engine_snapshot_start(&shard, &snapshot);
    engine_snapshot_close(&snapshot); /* none was started */
    struct engine_alarm_row rows[ENGINE_ALARMS_MAX];
    assert_int_equal(engine_alarms_get(&shard, rows), 0);
}

static void giving_up_ends_with_the_next_start(void **state)
{
    (void)state;
    struct engine engine = {.ops = &has_compactions};
    struct engine_shard shard = {.engine = &engine};
    struct engine_op op = {.done = note_done};
    engine_give_up(&op); /* before the first start: no engine has it */
    assert_int_equal(given_up_count, 0);
    engine_compact(&shard, &op, NULL);
    assert_ptr_equal(started, &op);
    assert_false(atomic_load(&op.given_up));
    engine_give_up(&op);
    assert_int_equal(given_up_count, 1);
    assert_true(atomic_load(&op.given_up));
    engine_compact(&shard, &op, NULL);
    assert_false(atomic_load(&op.given_up));
    assert_int_equal(done_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(an_operation_that_the_engine_lacks_is_answered_once, set_up),
        cmocka_unit_test_setup(giving_up_ends_with_the_next_start, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
