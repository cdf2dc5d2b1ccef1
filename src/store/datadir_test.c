/* The data directory: created, marked, locked, and never mistaken for another. */
#include "store/datadir.h"

#include "base/buf.h"
#include "simulated/file_sim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static int setup(void **state)
{
    *state = fs_sim_new(3);
    return 0;
}

static int teardown(void **state)
{
    fs_sim_free(*state);
    return 0;
}

static struct fs *fs_of(void **state)
{
    return fs_sim_fs(*state);
}

static enum status open_and_close(struct fs *fs, struct error *ret_error)
{
    struct datadir dir;
    *ret_error = (struct error){0};
    enum status status = datadir_open(&dir, fs, "/data", false, ret_error);
    if (status == ST_OK) /* otherwise it is not locked */
        datadir_close(&dir);
    return status;
}

static void write_file(struct fs *fs, const char *path, struct slice text)
{
    AUTO(file_closep) struct file *file = NULL;
    assert_int_equal(fs_open(fs, path, FILE_CREATE, &file), ST_OK);
    if (text.len)
        assert_int_equal(file_pwrite(file, text, 0), ST_OK);
}

static void note_name(void *ctx, const char *name)
{
    struct buf *names = ctx;
    assert_int_equal(buf_append_format(names, "%s ", name), ST_OK);
}

static bool holds(struct fs *fs, const char *dir, const char *name)
{
    struct buf names = {0};
    assert_int_equal(fs_list(fs, dir, note_name, &names), ST_OK);
    assert_int_equal(buf_append(&names, slice_of("", 1)), ST_OK);
    bool found = strstr((const char *)names.ptr, name) != NULL;
    buf_fini(&names);
    return found;
}

static void new_directory_is_created_and_reopened(void **state)
{
    struct error error;
    struct fs *fs = fs_of(state);
    for (int i = 0; i < 3; i++)
        assert_int_equal(open_and_close(fs, &error), ST_OK);
    assert_true(holds(fs, "/data", "FORMAT"));
    assert_true(holds(fs, "/data", "log"));
    assert_true(holds(fs, "/data", "meta"));
    assert_false(holds(fs, "/data", "FORMAT.new"));
}

static void directory_in_use_is_refused_until_it_is_released(void **state)
{
    struct fs *fs = fs_of(state);
    struct datadir dir;
    struct error error;
    assert_int_equal(datadir_open(&dir, fs, "/data", false, &error), ST_OK);
    assert_int_equal(open_and_close(fs, &error), ST_IN_USE);
    assert_non_null(strstr(error.text, "/data"));
    datadir_close(&dir);
    assert_int_equal(open_and_close(fs, &error), ST_OK);
}

static void data_of_a_real_etcd_is_left_alone(void **state)
{
    struct fs *fs = fs_of(state);
    struct error error;
    assert_int_equal(fs_make_dir(fs, "/data"), ST_OK);
    assert_int_equal(fs_make_dir(fs, "/data/member"), ST_OK);
    assert_int_equal(open_and_close(fs, &error), ST_WRONG_FORMAT);
    assert_non_null(strstr(error.text, "etcd"));
    assert_false(holds(fs, "/data", "LOCK"));
    assert_false(holds(fs, "/data", "FORMAT"));
}

static void a_mirror_is_not_opened_as_a_store(void **state)
{
    struct fs *fs = fs_of(state);
    struct error error;
    struct datadir dir;
    assert_int_equal(datadir_open(&dir, fs, "/data", true, &error), ST_OK);
    datadir_close(&dir);
    assert_int_equal(open_and_close(fs, &error), ST_WRONG_FORMAT);
    assert_non_null(strstr(error.text, "--upstream-endpoints"));
    assert_int_equal(datadir_open(&dir, fs, "/data", true, &error), ST_OK);
    datadir_close(&dir);
}

static void a_store_is_not_opened_as_a_mirror(void **state)
{
    struct fs *fs = fs_of(state);
    struct error error;
    struct datadir dir;
    assert_int_equal(open_and_close(fs, &error), ST_OK);
    assert_int_equal(datadir_open(&dir, fs, "/data", true, &error), ST_WRONG_FORMAT);
    assert_int_equal(open_and_close(fs, &error), ST_OK);
}

static void directory_with_other_files_is_left_alone(void **state)
{
    struct fs *fs = fs_of(state);
    struct error error;
    assert_int_equal(fs_make_dir(fs, "/data"), ST_OK);
    write_file(fs, "/data/holiday.jpg", SLICE_LITERAL("x"));
    assert_int_equal(open_and_close(fs, &error), ST_WRONG_FORMAT);
    assert_false(holds(fs, "/data", "LOCK"));
}

static void remains_of_a_mount_or_an_interrupted_start_are_accepted(void **state)
{
    struct fs *fs = fs_of(state);
    struct error error;
    assert_int_equal(fs_make_dir(fs, "/data"), ST_OK);
    assert_int_equal(fs_make_dir(fs, "/data/lost+found"), ST_OK);
    write_file(fs, "/data/FORMAT.new", SLICE_LITERAL("vig"));
    assert_int_equal(open_and_close(fs, &error), ST_OK);
}

static void empty_parts_of_an_interrupted_start_are_accepted(void **state)
{
    struct fs *fs = fs_of(state);
    struct error error;
    assert_int_equal(fs_make_dir(fs, "/data"), ST_OK);
    assert_int_equal(fs_make_dir(fs, "/data/meta"), ST_OK);
    assert_int_equal(fs_make_dir(fs, "/data/log"), ST_OK);
    assert_int_equal(open_and_close(fs, &error), ST_OK);
}

/* The data of a directory whose FORMAT file was lost. */
static void parts_with_files_are_left_alone(void **state)
{
    static const char *const parts[] = {"log", "meta"};
    struct fs *fs = fs_of(state);
    struct error error;
    char path[40];
    assert_int_equal(fs_make_dir(fs, "/data"), ST_OK);
    assert_int_equal(fs_make_dir(fs, "/data/meta"), ST_OK);
    assert_int_equal(fs_make_dir(fs, "/data/log"), ST_OK);
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        snprintf(path, sizeof(path), "/data/%s/file", parts[i]);
        write_file(fs, path, SLICE_LITERAL("x"));
        assert_int_equal(open_and_close(fs, &error), ST_WRONG_FORMAT);
        assert_false(holds(fs, "/data", "LOCK"));
        assert_int_equal(fs_unlink(fs, path), ST_OK);
    }
}

static void other_formats_are_refused(void **state)
{
    static const struct slice texts[] = {
        SLICE_LITERAL(""),
        SLICE_LITERAL("vigil data directory, format 4, little endian\n"),
        SLICE_LITERAL("vigil data directory, format 1, little endian"),
        SLICE_LITERAL("vigil data directory, format 1, little endian\nand more"),
        SLICE_LITERAL("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
    };
    struct fs *fs = fs_of(state);
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        struct error error;
        enum status made = fs_make_dir(fs, "/data");
        assert_true(made == ST_OK || made == ST_EXISTS);
        write_file(fs, "/data/FORMAT", texts[i]);
        assert_int_equal(open_and_close(fs, &error), ST_WRONG_FORMAT);
        assert_non_null(strstr(error.text, "/data"));
        assert_non_null(strstr(error.text, i == 1 ? "vigil snapshot restore" : "vigil repair"));
        assert_int_equal(fs_unlink(fs, "/data/FORMAT"), ST_OK);
    }
}

/* Nothing but the constant text is lost then. */
static void a_damaged_or_missing_format_is_written_again(void **state)
{
    static const struct slice texts[] = {
        SLICE_LITERAL(""),
        SLICE_LITERAL("vigil data directory, format 3, little endian"),
        SLICE_LITERAL("vigil dat`directory, format 3, little endian\n"),
        SLICE_LITERAL("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
    };
    struct fs *fs = fs_of(state);
    struct error error;
    enum datadir_format format;
    assert_int_equal(open_and_close(fs, &error), ST_OK);
    write_file(fs, "/data/log/1.seg", SLICE_LITERAL("x"));
    write_file(fs, "/data/meta/data.mdb", SLICE_LITERAL("x"));
    for (size_t i = 0; i <= COUNT_OF(texts); i++) {
        assert_int_equal(fs_unlink(fs, "/data/FORMAT"), ST_OK);
        if (i < COUNT_OF(texts))
            write_file(fs, "/data/FORMAT", texts[i]);
        assert_int_equal(open_and_close(fs, &error), ST_WRONG_FORMAT);
        assert_non_null(strstr(error.text, "vigil repair --data-dir /data"));
        assert_non_null(strstr(error.text, "vigil salvage /data --to NEW"));
        assert_int_equal(datadir_examine_format(fs, "/data", &format, &error), ST_OK);
        assert_int_equal(format,
                         i < COUNT_OF(texts) ? DATADIR_FORMAT_DAMAGED : DATADIR_FORMAT_MISSING);
        assert_int_equal(datadir_mend_format(fs, "/data", &error), ST_OK);
        assert_int_equal(open_and_close(fs, &error), ST_OK);
    }
}

/* A program that knows only the earlier format does not open it. */
static void earlier_formats_are_opened_and_converted(void **state)
{
    static const struct slice before[] = {
        SLICE_LITERAL("vigil data directory, format 1, little endian\n"),
        SLICE_LITERAL("vigil data directory, format 2, little endian\n"),
    };
    struct fs *fs = fs_of(state);
    struct error error;
    assert_int_equal(fs_make_dir(fs, "/data"), ST_OK);
    for (size_t i = 0; i < COUNT_OF(before); i++) {
        struct file *file;
        char text[64] = "";
        if (i)
            assert_int_equal(fs_unlink(fs, "/data/FORMAT"), ST_OK);
        write_file(fs, "/data/FORMAT", before[i]);
        assert_int_equal(open_and_close(fs, &error), ST_OK);
        assert_int_equal(fs_open(fs, "/data/FORMAT", FILE_READ_WRITE, &file), ST_OK);
        assert_int_equal(file_pread(file, text, before[i].len, 0), ST_OK);
        file_close(file);
        assert_string_equal(text, "vigil data directory, format 3, little endian\n");
        assert_int_equal(open_and_close(fs, &error), ST_OK);
    }
}

static void path_too_long_is_refused(void **state)
{
    static char path[5000];
    memset(path, 'x', sizeof(path) - 1);
    struct datadir dir;
    struct error error;
    assert_int_equal(datadir_open(&dir, fs_of(state), path, false, &error), ST_INVALID);
    datadir_close(&dir);
}

/* Any call may fail: the lock is released and the next start succeeds, also after a power cut. */
static void every_call_may_fail(void **state)
{
    (void)state;
    for (int power_cut = 0; power_cut < 2; power_cut++) {
        for (uint64_t n = 1;; n++) {
            struct fs_sim *sim = fs_sim_new(n);
            struct fs *fs = fs_sim_fs(sim);
            struct error error;
            fs_sim_fail(sim, FS_SIM_ANY, n, ST_IO, true);
            enum status status = open_and_close(fs, &error);
            assert_true(status == ST_OK || (status == ST_IO && error.text[0]));
            fs_sim_fail(sim, FS_SIM_ANY, 0, ST_OK, false);
            if (power_cut)
                fs_sim_crash(sim);
            assert_int_equal(open_and_close(fs, &error), ST_OK);
            fs_sim_free(sim);
            if (status == ST_OK)
                break;
        }
    }
}

static void damage_comes_with_the_commands_that_help(void **state)
{
    (void)state;
    struct error start, repair, other;
    (void)error_set(&start, ST_DAMAGED, "/data/log/1.seg: damaged");
    assert_int_equal(datadir_advise("/data", false, &start), ST_DAMAGED);
    assert_non_null(strstr(start.text, "/data/log/1.seg: damaged; "));
    assert_non_null(strstr(start.text, "vigil repair --data-dir /data,"));
    assert_non_null(strstr(start.text, "vigil salvage /data --to NEW "));
    /* A repair that fails does not recommend itself. */
    (void)error_set(&repair, ST_IO, "/data/log/1.seg: cannot be read");
    assert_int_equal(datadir_advise("/data", true, &repair), ST_IO);
    assert_null(strstr(repair.text, "vigil repair"));
    assert_non_null(strstr(repair.text, "vigil salvage /data --to NEW "));
    (void)error_set(&other, ST_IN_USE, "in use");
    assert_int_equal(datadir_advise("/data", false, &other), ST_IN_USE);
    assert_string_equal(other.text, "in use");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(new_directory_is_created_and_reopened),
        TEST(directory_in_use_is_refused_until_it_is_released),
        TEST(data_of_a_real_etcd_is_left_alone),
        TEST(directory_with_other_files_is_left_alone),
        TEST(a_mirror_is_not_opened_as_a_store),
        TEST(a_store_is_not_opened_as_a_mirror),
        TEST(remains_of_a_mount_or_an_interrupted_start_are_accepted),
        TEST(empty_parts_of_an_interrupted_start_are_accepted),
        TEST(parts_with_files_are_left_alone),
        TEST(other_formats_are_refused),
        TEST(a_damaged_or_missing_format_is_written_again),
        TEST(earlier_formats_are_opened_and_converted),
        TEST(path_too_long_is_refused),
        TEST(damage_comes_with_the_commands_that_help),
        TEST(every_call_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
