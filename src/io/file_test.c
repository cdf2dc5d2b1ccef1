/* Files of the operating system and simulated ones with the same expectations, then what only
 * simulated ones can do. */
#include "simulated/file_sim.h"

#include "base/temp_dir_test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

struct bed {
    char dir[TEMP_DIR_BYTES];
    struct fs_sim *sim;
    struct fs *fs;
};

static int set_up_posix(void **state)
{
    struct bed *bed = calloc(1, sizeof(*bed));
    temp_dir_make("file", bed->dir);
    bed->fs = fs_posix();
    *state = bed;
    return 0;
}

static int set_up_sim(void **state)
{
    struct bed *bed = calloc(1, sizeof(*bed));
    snprintf(bed->dir, sizeof(bed->dir), "/sim");
    bed->sim = fs_sim_new(1);
    bed->fs = fs_sim_fs(bed->sim);
    assert_int_equal(fs_make_dir(bed->fs, bed->dir), ST_OK);
    *state = bed;
    return 0;
}

static int tear_down(void **state)
{
    struct bed *bed = *state;
    if (!bed->sim)
        temp_dir_remove(bed->dir);
    fs_sim_free(bed->sim);
    free(bed);
    return 0;
}

/* Valid until the fourth call after it. */
static const char *in_dir(const struct bed *bed, const char *name)
{
    static char paths[4][128];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof(paths[0]), "%s/%s", bed->dir, name);
    return path;
}

static struct file *open_file(struct bed *bed, const char *name, int flags)
{
    struct file *file = NULL;
    assert_int_equal(fs_open(bed->fs, in_dir(bed, name), flags, &file), ST_OK);
    return file;
}

static void write_text(struct file *file, const char *text, uint64_t offset)
{
    assert_int_equal(file_pwrite(file, slice_from_text(text), offset), ST_OK);
}

static void assert_text(struct file *file, const char *text, uint64_t offset)
{
    char got[64] = {0};
    assert_int_equal(file_pread(file, got, strlen(text), offset), ST_OK);
    assert_string_equal(got, text);
}

static void written_bytes_are_read_and_visible_in_the_mapping(void **state)
{
    struct bed *bed = *state;
    struct file *file = open_file(bed, "a", FILE_CREATE);
    uint64_t size;
    assert_int_equal(file_pwrite(file, slice_of("", 1), 8191), ST_OK);
    const uint8_t *base;
    assert_int_equal(file_map(file, 8192, &base), ST_OK);
    assert_int_equal(base[5000], 0);
    write_text(file, "hello", 5000);
    assert_memory_equal(base + 5000, "hello", 5);
    assert_text(file, "hello", 5000);
    assert_int_equal(file_size(file, &size), ST_OK);
    assert_int_equal(size, 8192);
    assert_int_equal(file_sync(file), ST_OK);
    char past[8];
    assert_int_equal(file_pread(file, past, 8, 8188), ST_IO);
    file_unmap(file, base, 8192);
    file_close(file);
    file_close(NULL);
}

static void opening_distinguishes_existing_and_missing_files(void **state)
{
    struct bed *bed = *state;
    struct file *file = NULL;
    assert_int_equal(fs_open(bed->fs, in_dir(bed, "a"), FILE_READ_WRITE, &file), ST_NOT_FOUND);
    file_close(open_file(bed, "a", FILE_CREATE));
    assert_int_equal(fs_open(bed->fs, in_dir(bed, "a"), FILE_CREATE, &file), ST_EXISTS);
    assert_null(file);
    assert_int_equal(fs_make_dir(bed->fs, bed->dir), ST_EXISTS);
}

static void count_name(void *ctx, const char *name)
{
    int *seen = ctx;
    assert_int_equal(strlen(name), 1);
    seen[(unsigned char)name[0]]++;
}

static void names_are_listed_renamed_and_removed(void **state)
{
    struct bed *bed = *state;
    struct file *file = open_file(bed, "a", FILE_CREATE);
    write_text(file, "kept", 0);
    file_close(open_file(bed, "b", FILE_CREATE));
    file_close(open_file(bed, "c", FILE_CREATE));
    assert_int_equal(fs_rename(bed->fs, in_dir(bed, "a"), in_dir(bed, "d")), ST_OK);
    assert_int_equal(fs_rename(bed->fs, in_dir(bed, "a"), in_dir(bed, "d")), ST_NOT_FOUND);
    assert_int_equal(fs_unlink(bed->fs, in_dir(bed, "b")), ST_OK);
    assert_int_equal(fs_unlink(bed->fs, in_dir(bed, "b")), ST_NOT_FOUND);
    assert_int_equal(fs_sync_dir(bed->fs, bed->dir), ST_OK);
    int seen[256] = {0};
    assert_int_equal(fs_list(bed->fs, bed->dir, count_name, seen), ST_OK);
    assert_int_equal(seen['a'] + seen['b'], 0);
    assert_int_equal(seen['c'], 1);
    assert_int_equal(seen['d'], 1);
    assert_text(file, "kept", 0);
    file_close(file);
    file = open_file(bed, "d", FILE_READ_WRITE);
    assert_text(file, "kept", 0);
    file_close(file);
}

/* Also if the file is removed and made again. */
static void a_removed_lock_is_still_held(void **state)
{
    struct bed *bed = *state;
    struct file *first, *second;
    assert_int_equal(fs_lock(bed->fs, in_dir(bed, "lock"), &first), ST_OK);
    assert_int_equal(fs_unlink(bed->fs, in_dir(bed, "lock")), ST_OK);
    assert_int_equal(fs_lock(bed->fs, in_dir(bed, "lock"), &second), ST_IN_USE);
    file_close(first);
    assert_int_equal(fs_lock(bed->fs, in_dir(bed, "lock"), &second), ST_OK);
    file_close(second);
}

static void only_one_process_holds_a_lock(void **state)
{
    struct bed *bed = *state;
    struct file *first = NULL, *second = NULL;
    assert_int_equal(fs_lock(bed->fs, in_dir(bed, "lock"), &first), ST_OK);
    assert_int_equal(fs_lock(bed->fs, in_dir(bed, "lock"), &second), ST_IN_USE);
    assert_null(second);
    file_close(first);
    assert_int_equal(fs_lock(bed->fs, in_dir(bed, "lock"), &second), ST_OK);
    file_close(second);
    uint64_t space;
    assert_int_equal(fs_space(bed->fs, bed->dir, &space), ST_OK);
    assert_true(space > 0);
}

/* -- only simulated -- */

enum { SECTORS = 16, FILE_BYTES = SECTORS * 512 };

static void synced_bytes_survive_and_each_sector_is_old_or_new(void **state)
{
    struct bed *bed = *state;
    bool saw_old = false, saw_new = false, saw_mixed = false;
    for (int round = 0; round < 200; round++) {
        struct file *file = open_file(bed, "a", FILE_CREATE);
        uint8_t bytes[FILE_BYTES];
        memset(bytes, 1, sizeof(bytes));
        assert_int_equal(file_pwrite(file, slice_of(bytes, sizeof(bytes)), 0), ST_OK);
        assert_int_equal(file_sync(file), ST_OK);
        assert_int_equal(fs_sync_dir(bed->fs, bed->dir), ST_OK);
        memset(bytes, 2, sizeof(bytes));
        assert_int_equal(file_pwrite(file, slice_of(bytes, sizeof(bytes)), 0), ST_OK);
        fs_sim_crash(bed->sim);
        assert_int_equal(file_pwrite(file, slice_of(bytes, 1), 0), ST_IO);
        assert_int_equal(file_sync(file), ST_IO);
        file_close(file);

        file = open_file(bed, "a", FILE_READ_WRITE);
        assert_int_equal(file_pread(file, bytes, sizeof(bytes), 0), ST_OK);
        int olds = 0;
        for (int sector = 0; sector < SECTORS; sector++) {
            uint8_t first = bytes[sector * 512];
            assert_in_range(first, 1, 2);
            olds += first == 1;
            for (int i = 0; i < 512; i++)
                assert_int_equal(bytes[sector * 512 + i], first);
        }
        saw_old |= olds == SECTORS;
        saw_new |= olds == 0;
        saw_mixed |= olds > 0 && olds < SECTORS;
        file_close(file);
        assert_int_equal(fs_unlink(bed->fs, in_dir(bed, "a")), ST_OK);
        assert_int_equal(fs_sync_dir(bed->fs, bed->dir), ST_OK);
    }
    assert_true(saw_old && saw_new && saw_mixed);
}

static void unsynced_names_may_be_lost_and_synced_ones_are_not(void **state)
{
    struct bed *bed = *state;
    int kept = 0, lost = 0;
    for (int round = 0; round < 100; round++) {
        struct file *file = open_file(bed, "t", FILE_CREATE);
        write_text(file, "text", 0);
        assert_int_equal(file_sync(file), ST_OK);
        file_close(file);
        assert_int_equal(fs_rename(bed->fs, in_dir(bed, "t"), in_dir(bed, "n")), ST_OK);
        bool synced = round % 2;
        if (synced)
            assert_int_equal(fs_sync_dir(bed->fs, bed->dir), ST_OK);
        fs_sim_crash(bed->sim);
        enum status status = fs_open(bed->fs, in_dir(bed, "n"), FILE_READ_WRITE, &file);
        if (synced)
            assert_int_equal(status, ST_OK);
        kept += !synced && status == ST_OK;
        lost += status != ST_OK;
        if (status == ST_OK) {
            assert_text(file, "text", 0);
            file_close(file);
            assert_int_equal(fs_unlink(bed->fs, in_dir(bed, "n")), ST_OK);
        } else if (fs_open(bed->fs, in_dir(bed, "t"), FILE_READ_WRITE, &file) == ST_OK) {
            file_close(file);
            assert_int_equal(fs_unlink(bed->fs, in_dir(bed, "t")), ST_OK);
        }
        assert_int_equal(fs_sync_dir(bed->fs, bed->dir), ST_OK);
    }
    assert_true(kept > 5 && lost > 5);
}

static void planned_call_fails(void **state)
{
    struct bed *bed = *state;
    struct file *file = open_file(bed, "a", FILE_CREATE);
    fs_sim_fail(bed->sim, FS_SIM_PWRITE, 2, ST_IO, false);
    write_text(file, "1", 0);
    assert_int_equal(file_pwrite(file, SLICE_LITERAL("2"), 0), ST_IO);
    write_text(file, "3", 0);
    fs_sim_fail(bed->sim, FS_SIM_ANY, 1, ST_DISK_FULL, true);
    assert_int_equal(file_sync(file), ST_DISK_FULL);
    assert_int_equal(file_sync(file), ST_DISK_FULL);
    assert_int_equal(fs_sync_dir(bed->fs, bed->dir), ST_DISK_FULL);
    fs_sim_fail(bed->sim, FS_SIM_ANY, 0, ST_OK, false);
    assert_int_equal(file_sync(file), ST_OK);
    assert_int_equal(fs_sim_calls(bed->sim, FS_SIM_PWRITE), 3);
    assert_int_equal(fs_sim_calls(bed->sim, FS_SIM_SYNC), 3);
    file_close(file);
}

static void after_a_failed_sync_bytes_can_be_read_and_still_be_lost(void **state)
{
    struct bed *bed = *state;
    int lost = 0;
    for (int round = 0; round < 50; round++) {
        struct file *file = open_file(bed, "a", FILE_CREATE);
        assert_int_equal(fs_sync_dir(bed->fs, bed->dir), ST_OK);
        write_text(file, "bytes", 0);
        fs_sim_fail(bed->sim, FS_SIM_SYNC, 1, ST_IO, false);
        assert_int_equal(file_sync(file), ST_IO);
        assert_text(file, "bytes", 0);
        if (round % 2)
            write_text(file, "bytes", 0);
        assert_int_equal(file_sync(file), ST_OK);
        file_close(file);
        fs_sim_crash(bed->sim);
        file = open_file(bed, "a", FILE_READ_WRITE);
        char got[5];
        bool there = file_pread(file, got, 5, 0) == ST_OK;
        if (round % 2)
            assert_true(there);
        lost += !there;
        file_close(file);
        assert_int_equal(fs_unlink(bed->fs, in_dir(bed, "a")), ST_OK);
    }
    assert_true(lost > 3);
}

static void full_disk_refuses_writes(void **state)
{
    struct bed *bed = *state;
    fs_sim_set_space(bed->sim, 1000);
    struct file *file = open_file(bed, "a", FILE_CREATE);
    uint8_t bytes[600] = {0};
    assert_int_equal(file_pwrite(file, slice_of(bytes, 600), 0), ST_OK);
    assert_int_equal(file_pwrite(file, slice_of(bytes, 600), 0), ST_OK);
    assert_int_equal(file_pwrite(file, slice_of(bytes, 600), 600), ST_DISK_FULL);
    uint64_t space;
    assert_int_equal(fs_space(bed->fs, bed->dir, &space), ST_OK);
    assert_true(space <= 400);
    file_close(file);
}

int main(void)
{
#define SIM(name) cmocka_unit_test_setup_teardown(name, set_up_sim, tear_down)
#define BOTH(name) cmocka_unit_test_setup_teardown(name, set_up_posix, tear_down), SIM(name)
    const struct CMUnitTest tests[] = {
        BOTH(written_bytes_are_read_and_visible_in_the_mapping),
        BOTH(opening_distinguishes_existing_and_missing_files),
        BOTH(names_are_listed_renamed_and_removed),
        BOTH(only_one_process_holds_a_lock),
        cmocka_unit_test_setup_teardown(a_removed_lock_is_still_held, set_up_posix, tear_down),
        SIM(synced_bytes_survive_and_each_sector_is_old_or_new),
        SIM(unsynced_names_may_be_lost_and_synced_ones_are_not),
        SIM(planned_call_fails),
        SIM(after_a_failed_sync_bytes_can_be_read_and_still_be_lost),
        SIM(full_disk_refuses_writes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
