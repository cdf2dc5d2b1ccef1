/* A mirror whose log cannot be written any more: every batch is done, and fails. The program is
 * linked with --wrap=file_pwrite. */
#include "engine/local/mirror/fixture_test.h"
#include "io/file.h"

#include <pthread.h>
#include <string.h>

enum status __real_file_pwrite(struct file *file, struct slice bytes, uint64_t offset);
enum status __wrap_file_pwrite(struct file *file, struct slice bytes, uint64_t offset);

static _Atomic bool write_fails;
static _Atomic int failures;

static bool is_writer(void)
{
    char name[16] = "";
    return pthread_getname_np(pthread_self(), name, sizeof(name)) == 0 &&
           strcmp(name, "vigil-writer") == 0;
}

enum status __wrap_file_pwrite(struct file *file, struct slice bytes, uint64_t offset)
{
    if (atomic_load(&write_fails) && is_writer())
        return ST_IO;
    return __real_file_pwrite(file, bytes, offset);
}

static void on_failure(void *ctx, const char *text)
{
    (void)ctx;
    (void)text;
    atomic_fetch_add(&failures, 1);
}

static int setup(void **state)
{
    atomic_store(&write_fails, false);
    atomic_store(&failures, 0);
    *state = fixture_new_fast(
        (struct engine_local_options){.is_mirror = true, .on_failure = on_failure});
    return 0;
}

static enum status apply_put(struct fixture *f, int64_t revision, bool is_state)
{
    struct imported_change change = put_of("k", "v", revision, 1);
    change.kv.mod_revision = revision;
    struct mirror_revision one = {.revision = revision, .changes = &change, .count = 1};
    struct mirror_batch batch = {.revisions = &one, .count = 1, .is_part = is_state};
    if (is_state)
        batch.compact = revision;
    return apply_batch(f, batch);
}

static void batches_fail_after_a_failed_write(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(apply_put(f, 5, false), ST_OK);
    atomic_store(&write_fails, true);
    assert_int_equal(apply_put(f, 6, false), ST_STOPPED);
    assert_int_equal(apply_put(f, 7, false), ST_STOPPED);
    assert_int_equal(atomic_load(&failures), 1);
    assert_int_equal(local_mirror_revision(f->engine), 5);
}

static void part_of_a_state_fails_after_a_failed_write(void **state)
{
    struct fixture *f = *state;
    atomic_store(&write_fails, true);
    assert_int_equal(apply_put(f, 5, true), ST_STOPPED);
    assert_int_equal(apply_put(f, 5, true), ST_STOPPED);
    assert_int_equal(atomic_load(&failures), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(batches_fail_after_a_failed_write, setup, fixture_free),
        cmocka_unit_test_setup_teardown(part_of_a_state_fails_after_a_failed_write, setup,
                                        fixture_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
