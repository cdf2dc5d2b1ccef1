/* Quota, alarms and defragmenting on the local engine with its real threads. */
#include "base/clock.h"
#include "codec/pb/rpc.pb.h"
#include "engine/local.h"
#include "engine/maintenance.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

enum { QUOTA_BYTES = 64 << 10, MEMBER = 12 };

struct fixture {
    char dir[64];
    struct loop *loop;
    struct engine *engine;
    struct engine_shard *shard;
    struct arena arena;
    int waiting;
};

static struct fixture *fixture; /* operations find it through this: tests run one at a time */

static void open_engine(struct fixture *f)
{
    struct error error = {0};
    enum status status = engine_local_open(
        &(struct engine_local_options){
            .data_dir = f->dir,
            .segment_bytes_first = 16 << 10,
            .segment_bytes_max = 16 << 10,
            .checkpoint_bytes = 128 << 10,
            .quota_bytes = QUOTA_BYTES,
            .cluster_id = 11,
            .member_id = MEMBER,
            .shards_max = 1,
        },
        &f->engine, &error);
    if (status != ST_OK)
        fail_msg("%s", error.text);
    assert_int_equal(engine_shard_new(f->engine, f->loop, &f->shard), ST_OK);
}

static void close_engine(struct fixture *f)
{
    engine_shard_free(f->shard);
    engine_local_close(f->engine);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    snprintf(f->dir, sizeof(f->dir), "/tmp/vigil-space-test-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    assert_int_equal(loop_new(clock_system(), &f->loop), ST_OK);
    arena_init(&f->arena, NULL, 0, 64 << 20);
    open_engine(f);
    fixture = f;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    close_engine(f);
    loop_free(f->loop);
    arena_fini(&f->arena);
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", f->dir);
    assert_int_equal(system(command), 0);
    free(f);
    return 0;
}

static void count_done(struct engine_op *op)
{
    (void)op;
    fixture->waiting--;
}

static struct engine_op new_op(struct fixture *f)
{
    f->waiting++;
    return (struct engine_op){.done = count_done, .arena = &f->arena};
}

static void wait_all(struct fixture *f)
{
    engine_shard_turn_end(f->shard);
    while (f->waiting > 0) {
        loop_turn(f->loop, INT64_C(10000000000));
        engine_shard_turn_end(f->shard);
    }
}

static enum status put(struct fixture *f, size_t value_bytes)
{
    struct pb_put_request request = {
        .key = SLICE_LITERAL("key"),
        .value = slice_of(arena_calloc(&f->arena, 1, value_bytes), value_bytes),
    };
    struct engine_write write = {.op = new_op(f)};
    engine_put(f->shard, &write, &request);
    wait_all(f);
    engine_write_close(&write);
    return write.op.status;
}

static enum status compact(struct fixture *f)
{
    struct engine_status status;
    engine_status_get(f->shard, &status);
    struct pb_compaction_request request = {.revision = status.revision, .physical = true};
    struct engine_op op = new_op(f);
    engine_compact(f->shard, &op, &request);
    wait_all(f);
    return op.status;
}

static enum status delete_all(struct fixture *f)
{
    struct pb_delete_range_request request = {.key = SLICE_LITERAL("key")};
    struct engine_write write = {.op = new_op(f)};
    engine_delete_range(f->shard, &write, &request);
    wait_all(f);
    engine_write_close(&write);
    return write.op.status;
}

static size_t set_alarm(struct fixture *f, int32_t action, uint64_t member, int32_t type)
{
    struct pb_alarm_request request = {.action = action, .member_id = member, .alarm = type};
    struct engine_alarm op = {.op = new_op(f)};
    engine_alarm(f->shard, &op, &request);
    wait_all(f);
    assert_int_equal(op.op.status, ST_OK);
    return op.row_count;
}

static enum status defragment(struct fixture *f)
{
    struct engine_defragment op = {.op = new_op(f)};
    engine_defragment(f->shard, &op);
    wait_all(f);
    return op.op.status;
}

static struct engine_status status_of(struct fixture *f)
{
    struct engine_status status;
    engine_status_get(f->shard, &status);
    return status;
}

static void fill(struct fixture *f)
{
    enum status status;
    int puts = 0;
    while ((status = put(f, 4096)) == ST_OK)
        assert_true(++puts < 100);
    assert_int_equal(status, ST_NO_SPACE);
    assert_true(puts > 3);
}

static void full_store_raises_the_alarm_which_lasts(void **state)
{
    struct fixture *f = *state;
    fill(f);
    struct engine_status full = status_of(f);
    assert_int_equal(full.alarms, 1u << ENGINE_ALARM_NOSPACE);
    assert_int_equal(full.quota_bytes, QUOTA_BYTES);
    assert_true(full.db_size_bytes < QUOTA_BYTES);
    close_engine(f);
    open_engine(f);
    assert_int_equal(status_of(f).alarms, 1u << ENGINE_ALARM_NOSPACE);
    assert_int_equal(status_of(f).db_size_bytes, full.db_size_bytes);
    assert_int_equal(put(f, 0), ST_NO_SPACE);
    struct engine_alarm_row rows[ENGINE_ALARMS_MAX];
    assert_int_equal(engine_alarms_get(f->shard, rows), 1);
    assert_int_equal(rows[0].member_id, MEMBER);
    assert_int_equal(rows[0].type, ENGINE_ALARM_NOSPACE);
}

static void alarms_of_clients_leave_room_for_the_servers_own(void **state)
{
    struct fixture *f = *state;
    enum { SOME = 7 };
    enum status status = ST_OK;
    uint64_t raised = 0;
    for (; status == ST_OK; raised++) {
        struct pb_alarm_request request = {
            .action = PB_ALARM_ACTION_ACTIVATE, .member_id = raised, .alarm = SOME};
        struct engine_alarm op = {.op = new_op(f)};
        engine_alarm(f->shard, &op, &request);
        wait_all(f);
        status = op.op.status;
    }
    assert_int_equal(status, ST_LIMIT);
    fill(f);
    assert_int_equal(status_of(f).alarms, 1u << ENGINE_ALARM_NOSPACE | 1u << SOME);
    close_engine(f);
    open_engine(f);
    assert_int_equal(status_of(f).alarms, 1u << ENGINE_ALARM_NOSPACE | 1u << SOME);
}

static void room_must_be_made_and_the_alarm_disarmed(void **state)
{
    struct fixture *f = *state;
    fill(f);
    assert_int_equal(compact(f), ST_OK);
    assert_int_equal(set_alarm(f, PB_ALARM_ACTION_DEACTIVATE, MEMBER, ENGINE_ALARM_NOSPACE), 1);
    assert_int_equal(put(f, 4096), ST_NO_SPACE); /* raised again: the size is the same */
    int64_t before = status_of(f).db_size_bytes;
    assert_int_equal(defragment(f), ST_OK);
    assert_true(status_of(f).db_size_bytes < before / 2);
    assert_int_equal(put(f, 1), ST_NO_SPACE);
    assert_int_equal(set_alarm(f, PB_ALARM_ACTION_DEACTIVATE, MEMBER, ENGINE_ALARM_NOSPACE), 1);
    assert_int_equal(put(f, 4096), ST_OK);
    assert_int_equal(status_of(f).alarms, 0);
    close_engine(f);
    open_engine(f);
    assert_int_equal(status_of(f).alarms, 0);
    assert_int_equal(put(f, 4096), ST_OK);
}

static void corrupt_refuses_deletes_and_compactions_too(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(put(f, 1), ST_OK);
    assert_int_equal(set_alarm(f, PB_ALARM_ACTION_ACTIVATE, 5, ENGINE_ALARM_CORRUPT), 1);
    assert_int_equal(put(f, 1), ST_CORRUPT);
    assert_int_equal(delete_all(f), ST_CORRUPT);
    assert_int_equal(compact(f), ST_CORRUPT);
    assert_int_equal(defragment(f), ST_OK);
    assert_int_equal(set_alarm(f, PB_ALARM_ACTION_DEACTIVATE, 5, ENGINE_ALARM_CORRUPT), 1);
    assert_int_equal(delete_all(f), ST_OK);
}

static void many_ask_to_defragment_and_some_give_up(void **state)
{
    enum { ASKED = 20 };
    struct fixture *f = *state;
    fill(f);
    assert_int_equal(compact(f), ST_OK);
    struct engine_defragment ops[ASKED];
    for (int i = 0; i < ASKED; i++) {
        ops[i] = (struct engine_defragment){.op = new_op(f)};
        engine_defragment(f->shard, &ops[i]);
    }
    for (int i = 0; i < ASKED; i += 2)
        engine_defragment_give_up(&ops[i]);
    wait_all(f);
    for (int i = 0; i < ASKED; i++) {
        bool well = ops[i].op.status == ST_OK || (i % 2 == 0 && ops[i].op.status == ST_CANCELED);
        assert_true(well);
    }
    assert_true(status_of(f).db_size_bytes < QUOTA_BYTES / 2);
}

static enum status downgrade(struct fixture *f, const char *target)
{
    struct engine_op op = new_op(f);
    engine_downgrade(f->shard, &op, target);
    wait_all(f);
    return op.status;
}

static void one_downgrade_at_a_time_is_kept(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(downgrade(f, ""), ST_NO_INFLIGHT_DOWNGRADE);
    assert_int_equal(downgrade(f, "3.6.0"), ST_OK);
    assert_int_equal(downgrade(f, "3.6.0"), ST_DOWNGRADE_IN_PROCESS);
    close_engine(f);
    open_engine(f);
    assert_string_equal(status_of(f).downgrade_target, "3.6.0");
    assert_int_equal(downgrade(f, ""), ST_OK);
    assert_string_equal(status_of(f).downgrade_target, "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(full_store_raises_the_alarm_which_lasts),
        TEST(alarms_of_clients_leave_room_for_the_servers_own),
        TEST(room_must_be_made_and_the_alarm_disarmed),
        TEST(corrupt_refuses_deletes_and_compactions_too),
        TEST(many_ask_to_defragment_and_some_give_up),
        TEST(one_downgrade_at_a_time_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
