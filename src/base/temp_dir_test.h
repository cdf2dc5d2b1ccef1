/* A directory of its own for a test, which removes it with everything in it. */
#ifndef VIGIL_BASE_TEMP_DIR_TEST_H
#define VIGIL_BASE_TEMP_DIR_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

enum { TEMP_DIR_BYTES = 64 };

static inline void temp_dir_make_in(const char *parent, const char *name,
                                    char ret_dir[static TEMP_DIR_BYTES])
{
    int len = snprintf(ret_dir, TEMP_DIR_BYTES, "%s/vigil-%s-XXXXXX", parent, name);
    assert_in_range(len, 1, TEMP_DIR_BYTES - 1);
    assert_non_null(mkdtemp(ret_dir));
}

static inline void temp_dir_make(const char *name, char ret_dir[static TEMP_DIR_BYTES])
{
    temp_dir_make_in("/tmp", name, ret_dir);
}

/* In memory if possible, for tests that sync often and do not test the disk. */
static inline void temp_dir_make_fast(const char *name, char ret_dir[static TEMP_DIR_BYTES])
{
    temp_dir_make_in(access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp", name, ret_dir);
}

static inline void temp_dir_remove(const char *dir)
{
    char command[2 * TEMP_DIR_BYTES];
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    assert_int_equal(system(command), 0);
}

#endif
