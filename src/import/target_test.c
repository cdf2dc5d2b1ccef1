/* A data directory is complete or absent, and made by one import at a time. */
#include "import/target.h"

#include "base/temp_dir_test.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* Real files; the nth sync of a directory from now fails. */
static struct fs_ops ops;
static struct fs fs = {.ops = &ops};
static int fails_at;

static char root[TEMP_DIR_BYTES], data_dir[96], path[256];

static enum status sync_dir(struct fs *self, const char *dir)
{
    (void)self;
    return --fails_at == 0 ? ST_IO : fs_sync_dir(fs_posix(), dir);
}

static int set_up(void **state)
{
    (void)state;
    ops = *fs_posix()->ops;
    ops.sync_dir = sync_dir;
    fails_at = 0;
    temp_dir_make("target", root);
    snprintf(data_dir, sizeof(data_dir), "%s/data", root);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    temp_dir_remove(root);
    return 0;
}

static const char *in_dir(const char *name)
{
    snprintf(path, sizeof(path), "%s/%s", data_dir, name);
    return path;
}

static bool exists(const char *name)
{
    return access(in_dir(name), F_OK) == 0;
}

static void make_file(const char *name)
{
    int fd = open(in_dir(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
}

/* What a store builder leaves when it is closed. */
static void build(void)
{
    mkdir(in_dir("import.tmp"), 0700); /* begun, it is there */
    assert_int_equal(mkdir(in_dir("import.tmp/log"), 0700), 0);
    assert_int_equal(mkdir(in_dir("import.tmp/meta"), 0700), 0);
    make_file("import.tmp/log/1.seg");
    make_file("import.tmp/FORMAT");
    make_file("import.tmp/LOCK");
}

static void begin(struct import_target *target)
{
    struct error error;
    assert_int_equal(import_target_begin(target, &fs, data_dir, &error), ST_OK);
}

static void committed_directory_has_all_parts(void **state)
{
    (void)state;
    struct import_target target;
    struct error error;
    begin(&target);
    build();
    assert_int_equal(import_target_commit(&target, &fs, &error), ST_OK);
    import_target_end(&target);
    assert_true(exists("FORMAT") && exists("log/1.seg") && exists("meta"));
    assert_false(exists("import.tmp"));
}

/* A FORMAT without the rest would be served as an empty store. */
static void nothing_is_left_of_a_commit_that_fails_anywhere(void **state)
{
    (void)state;
    int failures = 0;
    for (enum status status = ST_IO; status != ST_OK; failures++) {
        struct import_target target;
        struct error error;
        begin(&target);
        build();
        fails_at = failures + 1;
        status = import_target_commit(&target, &fs, &error);
        import_target_end(&target);
        assert_int_equal(exists("FORMAT"), status == ST_OK);
        assert_int_equal(exists(""), status == ST_OK);
    }
    assert_int_equal(failures, 5); /* parent directory, log, meta, FORMAT; then none */
}

static void second_import_is_refused_and_removes_nothing(void **state)
{
    (void)state;
    struct import_target first, second;
    struct error error;
    begin(&first);
    build();
    assert_int_equal(import_target_begin(&second, &fs, data_dir, &error), ST_IN_USE);
    import_target_end(&second);
    assert_true(exists("import.tmp/log/1.seg"));
    assert_int_equal(import_target_commit(&first, &fs, &error), ST_OK);
    assert_int_equal(import_target_begin(&second, &fs, data_dir, &error), ST_EXISTS);
    import_target_end(&second);
    assert_true(exists("FORMAT") && exists("log/1.seg"));
}

/* A server that has just started has its lock and nothing else. */
static void directory_of_a_server_is_refused(void **state)
{
    (void)state;
    struct import_target target;
    struct error error;
    assert_int_equal(mkdir(data_dir, 0700), 0);
    AUTO(file_closep) struct file *lock = NULL;
    assert_int_equal(fs_lock(&fs, in_dir("LOCK"), &lock), ST_OK);
    assert_int_equal(import_target_begin(&target, &fs, data_dir, &error), ST_IN_USE);
    import_target_end(&target);
    assert_true(exists("LOCK"));
    assert_false(exists("import.tmp"));
}

static void import_that_was_killed_begins_again(void **state)
{
    (void)state;
    struct import_target target;
    assert_int_equal(mkdir(data_dir, 0700), 0);
    build();
    make_file("LOCK");
    assert_int_equal(mkdir(in_dir("log"), 0700), 0);
    begin(&target);
    assert_false(exists("import.tmp/log") || exists("log"));
    assert_true(exists("import.tmp")); /* so that no server takes the directory for a new one */
    import_target_end(&target);
    assert_true(exists("")); /* it existed before */
    assert_false(exists("LOCK"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(committed_directory_has_all_parts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nothing_is_left_of_a_commit_that_fails_anywhere, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(second_import_is_refused_and_removes_nothing, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(directory_of_a_server_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(import_that_was_killed_begins_again, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
