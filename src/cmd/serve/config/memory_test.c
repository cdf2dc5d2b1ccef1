#include "cmd/serve/config/memory.h"

#include "base/temp_dir_test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define MIB ((size_t)1 << 20)
#define MACHINE (4096 * MIB)

static char root[TEMP_DIR_BYTES];

static void make(const char *directory)
{
    char path[256];
    snprintf(path, sizeof(path), "%s", root);
    for (const char *at = directory; *at; at++) {
        if (*at != '/')
            continue;
        snprintf(path, sizeof(path), "%s%.*s", root, (int)(at - directory), directory);
        (void)mkdir(path, 0700);
    }
}

static void put(const char *name, const char *text)
{
    char path[256];
    make(name);
    snprintf(path, sizeof(path), "%s%s", root, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int setup(void **state)
{
    (void)state;
    temp_dir_make("memory", root);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    temp_dir_remove(root);
    return 0;
}

static void without_control_groups_the_machines_memory_counts(void **state)
{
    (void)state;
    assert_int_equal(memory_bytes(root, MACHINE), MACHINE);
    put("/proc/self/cgroup", "0::/\n");
    assert_int_equal(memory_bytes(root, MACHINE), MACHINE);
    put("/sys/fs/cgroup/memory.max", "max\n");
    assert_int_equal(memory_bytes(root, MACHINE), MACHINE);
    put("/proc/self/cgroup", "rubbish\n\n:\n");
    assert_int_equal(memory_bytes(root, MACHINE), MACHINE);
}

static void group_of_version_2_and_those_above_it_count(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "0::/a/b\n");
    put("/sys/fs/cgroup/a/b/memory.max", "max\n");
    put("/sys/fs/cgroup/a/memory.max", "67108864\n");
    assert_int_equal(memory_bytes(root, MACHINE), 64 * MIB);
    put("/sys/fs/cgroup/a/b/memory.max", "33554432\n");
    assert_int_equal(memory_bytes(root, MACHINE), 32 * MIB);
}

static void uppermost_group_counts(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "0::/\n");
    put("/sys/fs/cgroup/memory.max", "67108864\n"); /* as a container sees it */
    assert_int_equal(memory_bytes(root, MACHINE), 64 * MIB);
}

static void group_of_version_1_counts(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/x/y\n0::/z\n");
    put("/sys/fs/cgroup/memory/x/y/memory.limit_in_bytes", "9223372036854771712\n");
    assert_int_equal(memory_bytes(root, MACHINE), MACHINE);
    put("/sys/fs/cgroup/memory/x/y/memory.limit_in_bytes", "134217728\n");
    assert_int_equal(memory_bytes(root, MACHINE), 128 * MIB);
}

static void clients_get_a_quarter(void **state)
{
    (void)state;
    assert_int_equal(memory_for_clients(64 * MIB), 16 * MIB);
    assert_int_equal(memory_for_clients(4096 * MIB), 1024 * MIB);
    assert_int_equal(memory_for_clients(SIZE_MAX), 1024 * MIB);
    assert_int_equal(memory_for_clients(1 * MIB), 4 * MIB);
    assert_in_range(memory_for_clients(memory_bytes_here()), 4 * MIB, 1024 * MIB);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(without_control_groups_the_machines_memory_counts, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(group_of_version_2_and_those_above_it_count, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(uppermost_group_counts, setup, teardown),
        cmocka_unit_test_setup_teardown(group_of_version_1_counts, setup, teardown),
        cmocka_unit_test(clients_get_a_quarter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
