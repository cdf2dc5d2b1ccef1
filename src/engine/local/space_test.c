/* Quota, alarms and defragmenting on the local engine with its real threads. */
#include "codec/pb/rpc.pb.h"
#include "engine/engine.h"
#include "engine/local/fixture_test.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { QUOTA_BYTES = 64 << 10, MEMBER = 12 };

static const struct engine_local_options OPTIONS = {
    .segment_bytes_first = 16 << 10,
    .segment_bytes_max = 16 << 10,
    .checkpoint_bytes = 128 << 10,
    .quota_bytes = QUOTA_BYTES,
    .cluster_id = 11,
    .member_id = MEMBER,
};

static int setup(void **state)
{
    *state = fixture_new(OPTIONS);
    return 0;
}

static enum status put(struct fixture *f, size_t value_bytes)
{
    struct pb_put_request request = {
        .key = SLICE_LITERAL("key"),
        .value = slice_of(arena_calloc(&f->arena, 1, value_bytes), value_bytes),
    };
    struct engine_write write = {.op = new_op(f)};
    engine_put(f->shard, &write, &request);
    wait_for(f, 0);
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
    wait_for(f, 0);
    return op.status;
}

static enum status delete_all(struct fixture *f)
{
    struct pb_delete_range_request request = {.key = SLICE_LITERAL("key")};
    struct engine_write write = {.op = new_op(f)};
    engine_delete_range(f->shard, &write, &request);
    wait_for(f, 0);
    engine_write_close(&write);
    return write.op.status;
}

static size_t set_alarm(struct fixture *f, int32_t action, uint64_t member, int32_t type)
{
    struct pb_alarm_request request = {.action = action, .member_id = member, .alarm = type};
    struct engine_alarm op = {.op = new_op(f)};
    engine_alarm(f->shard, &op, &request);
    wait_for(f, 0);
    assert_int_equal(op.op.status, ST_OK);
    return op.row_count;
}

static enum status defragment(struct fixture *f)
{
    struct engine_op op = new_op(f);
    engine_defragment(f->shard, &op);
    wait_for(f, 0);
    return op.status;
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

static void full_store_raises_a_lasting_alarm(void **state)
{
    struct fixture *f = *state;
    fill(f);
    struct engine_status full = status_of(f);
    assert_int_equal(full.alarms, 1u << ENGINE_ALARM_NOSPACE);
    assert_int_equal(full.quota_bytes, QUOTA_BYTES);
    assert_true(full.db_size_bytes < QUOTA_BYTES);
    fixture_close(f);
    fixture_open(f, OPTIONS);
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
        wait_for(f, 0);
        status = op.op.status;
    }
    assert_int_equal(status, ST_LIMIT);
    fill(f);
    assert_int_equal(status_of(f).alarms, 1u << ENGINE_ALARM_NOSPACE | 1u << SOME);
    fixture_close(f);
    fixture_open(f, OPTIONS);
    assert_int_equal(status_of(f).alarms, 1u << ENGINE_ALARM_NOSPACE | 1u << SOME);
}

static void writes_need_freed_space_and_a_disarmed_alarm(void **state)
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
    fixture_close(f);
    fixture_open(f, OPTIONS);
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

static void concurrent_defragmentations_may_be_canceled(void **state)
{
    enum { ASKED = 20 };
    struct fixture *f = *state;
    fill(f);
    assert_int_equal(compact(f), ST_OK);
    struct engine_op ops[ASKED];
    for (int i = 0; i < ASKED; i++) {
        ops[i] = new_op(f);
        engine_defragment(f->shard, &ops[i]);
    }
    for (int i = 0; i < ASKED; i += 2)
        engine_give_up(&ops[i]);
    wait_for(f, 0);
    for (int i = 0; i < ASKED; i++) {
        bool well = ops[i].status == ST_OK || (i % 2 == 0 && ops[i].status == ST_CANCELED);
        assert_true(well);
    }
    assert_true(status_of(f).db_size_bytes < QUOTA_BYTES / 2);
}

static enum status downgrade(struct fixture *f, const char *target)
{
    struct engine_op op = new_op(f);
    engine_downgrade(f->shard, &op, target);
    wait_for(f, 0);
    return op.status;
}

static void one_downgrade_at_a_time_is_kept(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(downgrade(f, ""), ST_NO_INFLIGHT_DOWNGRADE);
    assert_int_equal(downgrade(f, "3.6.0"), ST_OK);
    assert_int_equal(downgrade(f, "3.6.0"), ST_DOWNGRADE_IN_PROCESS);
    fixture_close(f);
    fixture_open(f, OPTIONS);
    assert_string_equal(status_of(f).downgrade_target, "3.6.0");
    assert_int_equal(downgrade(f, ""), ST_OK);
    assert_string_equal(status_of(f).downgrade_target, "");
}

static _Atomic bool mark_has_failed;

static void note_warning(void *ctx, const char *text)
{
    (void)ctx;
    if (strstr(text, "the log could not be marked"))
        atomic_store(&mark_has_failed, true);
}

static int setup_noting_warnings(void **state)
{
    struct engine_local_options options = OPTIONS;
    options.on_warning = note_warning;
    *state = fixture_new(options);
    return 0;
}

/* A mark that cannot be written does not keep the keeper from other work, such as freeing space. */
static void a_failing_mark_delays_nothing_else(void **state)
{
    struct fixture *f = *state;
    int64_t give_up_ns = clock_mono_ns(clock_system()) + 60 * NS_PER_S;
    char path[128];
    snprintf(path, sizeof(path), "%s/log/MARK", f->dir);
    unlink(path);
    assert_int_equal(mkdir(path, 0700), 0); /* so that the file can be neither opened nor created */
    put_text(f, "k", "v");
    while (!atomic_load(&mark_has_failed) && clock_mono_ns(clock_system()) < give_up_ns)
        turn_shard(f->shard, f->loop, 10 * NS_PER_MS);
    assert_true(atomic_load(&mark_has_failed));
    struct engine_op op = new_op(f);
    engine_defragment(f->shard, &op);
    while (f->waiting && clock_mono_ns(clock_system()) < give_up_ns)
        turn_shard(f->shard, f->loop, 10 * NS_PER_MS);
    assert_int_equal(f->waiting, 0);
    assert_int_equal(op.status, ST_OK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, fixture_free)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_failing_mark_delays_nothing_else, setup_noting_warnings,
                                        fixture_free),
        TEST(full_store_raises_a_lasting_alarm),
        TEST(alarms_of_clients_leave_room_for_the_servers_own),
        TEST(writes_need_freed_space_and_a_disarmed_alarm),
        TEST(corrupt_refuses_deletes_and_compactions_too),
        TEST(concurrent_defragmentations_may_be_canceled),
        TEST(one_downgrade_at_a_time_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
