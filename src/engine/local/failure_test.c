/* An engine that stops because its log cannot be synced: everything that has begun is answered.
 * Only the writer's syncs fail or wait. The program is linked with --wrap=fdatasync. */
#include "engine/local/fixture_test.h"
#include "engine/local/state/shared.h"
#include "engine/local/writer/writer.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);

static _Atomic bool sync_fails, sync_waits, is_syncing;
static _Atomic int failures;

static bool is_writer(void)
{
    char name[16] = "";
    return pthread_getname_np(pthread_self(), name, sizeof(name)) == 0 &&
           strcmp(name, "vigil-writer") == 0;
}

int __wrap_fdatasync(int fd)
{
    if (!is_writer())
        return __real_fdatasync(fd);
    atomic_store(&is_syncing, true);
    while (atomic_load(&sync_waits))
        usleep(100);
    atomic_store(&is_syncing, false);
    if (!atomic_load(&sync_fails))
        return __real_fdatasync(fd);
    errno = EIO;
    return -1;
}

static void on_failure(void *ctx, const char *text)
{
    (void)ctx;
    (void)text;
    atomic_fetch_add(&failures, 1);
}

static int setup(void **state)
{
    atomic_store(&sync_fails, false);
    atomic_store(&sync_waits, false);
    atomic_store(&failures, 0);
    *state = fixture_new_fast((struct engine_local_options){
        .member_id = 1,
        .checkpoint_bytes = 1, /* the keeper makes one at once, and then it rests */
        .on_failure = on_failure,
    });
    return 0;
}

static struct local_shared *shared_of(struct fixture *f)
{
    return CONTAINER_OF(f->engine, struct local_shared, engine);
}

#define AWAIT(condition)                                        \
    do {                                                        \
        for (int i_ = 0; !(condition) && i_ < 600 * 1000; i_++) \
            usleep(100);                                        \
        assert_true(condition);                                 \
    } while (0)

/* As wait_for, but a minute at most, so that an operation that is never answered is an error. */
static void await_answers(struct fixture *f)
{
    int64_t end_ns = clock_mono_ns(clock_system()) + 60 * NS_PER_S;
    engine_shard_turn_end(f->shard);
    while (f->waiting && clock_mono_ns(clock_system()) < end_ns)
        turn_shard(f->shard, f->loop, 10 * NS_PER_MS);
    if (f->waiting)
        fail_msg("%d operations were not answered", f->waiting);
}

static void start_grants(struct fixture *f, struct engine_lease *grants, int count)
{
    for (int i = 0; i < count; i++) {
        grants[i] = (struct engine_lease){.op = new_op(f), .id = 1000 + i, .ttl_s = 60};
        engine_lease_grant(f->shard, &grants[i]);
    }
}

/* The writer commits before the delete, because it could not renew leases in its middle. */
static void request_that_begins_when_a_group_fails_is_refused(void **state)
{
    struct fixture *f = *state;
    struct engine_lease grants[WRITER_GRANTS_MAX];
    struct pb_delete_range_request request = {.key = SLICE_LITERAL("a")};
    put_text(f, "a", "1");
    atomic_store(&sync_fails, true);
    start_grants(f, grants, WRITER_GRANTS_MAX);
    struct engine_write first = {.op = new_op(f)}, second = {.op = new_op(f)};
    engine_delete_range(f->shard, &first, &request);
    engine_delete_range(f->shard, &second, &request);
    await_answers(f);
    for (int i = 0; i < WRITER_GRANTS_MAX; i++)
        assert_int_equal(grants[i].op.status, ST_TIMEOUT);
    assert_int_equal(first.op.status, ST_STOPPED);
    assert_int_equal(second.op.status, ST_STOPPED);
    assert_int_equal(atomic_load(&failures), 1);
    engine_write_close(&first);
    engine_write_close(&second);
}

/* The writer's group is durable, but what waits for further work of the writer is refused. */
static void compaction_is_refused_when_the_keeper_has_failed(void **state)
{
    struct fixture *f = *state;
    struct pb_put_request put = {.key = SLICE_LITERAL("a")};
    for (int i = 0; i < 5; i++)
        put_text(f, "a", "1");
    struct engine_write write = {.op = new_op(f)};
    struct engine_op compact = new_op(f);
    atomic_store(&sync_waits, true);
    engine_put(f->shard, &write, &put);
    engine_compact(f->shard, &compact,
                   &(struct pb_compaction_request){.revision = 3, .physical = true});
    engine_shard_turn_end(f->shard);
    AWAIT(atomic_load(&is_syncing));
    /* As the keeper does. */
    local_fail(&shared_of(f)->report, "the checkpoint could not be written", ST_INTERNAL);
    waker_wake(&shared_of(f)->writer.waker);
    atomic_store(&sync_waits, false);
    await_answers(f);
    assert_int_equal(write.op.status, ST_OK);
    assert_int_equal(compact.status, ST_TIMEOUT);
    engine_write_close(&write);
}

/* The keeper waits for the writer, which never answers it. */
static void defragmentation_is_refused_when_the_writer_has_failed(void **state)
{
    struct fixture *f = *state;
    struct pb_put_request put = {.key = SLICE_LITERAL("a")};
    struct local_keeper_inbox *keeper = &shared_of(f)->keeper;
    put_text(f, "a", "1");
    AWAIT(!atomic_load(&keeper->dirty) && !atomic_load(&keeper->unmarked));
    struct engine_write write = {.op = new_op(f)};
    struct engine_op defragment = new_op(f);
    atomic_store(&sync_waits, true);
    atomic_store(&sync_fails, true);
    engine_put(f->shard, &write, &put);
    engine_shard_turn_end(f->shard);
    AWAIT(atomic_load(&is_syncing));
    engine_defragment(f->shard, &defragment);
    AWAIT(!mailbox_empty(&shared_of(f)->writer.jobs));
    atomic_store(&sync_waits, false);
    await_answers(f);
    assert_int_equal(write.op.status, ST_TIMEOUT);
    assert_int_equal(defragment.status, ST_STOPPED);
    engine_write_close(&write);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, fixture_free)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(request_that_begins_when_a_group_fails_is_refused),
        TEST(compaction_is_refused_when_the_keeper_has_failed),
        TEST(defragmentation_is_refused_when_the_writer_has_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
