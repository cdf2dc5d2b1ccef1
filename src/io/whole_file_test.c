#include "io/whole_file.h"

#include "base/temp_dir_test.h"

#include <sys/stat.h>

struct fixture {
    char dir[TEMP_DIR_BYTES];
    char path[TEMP_DIR_BYTES + 8];
    struct buf bytes;
    struct error error;
};

static int setup(void **state)
{
    static struct fixture f;
    memset(&f, 0, sizeof(f));
    temp_dir_make("whole", f.dir);
    snprintf(f.path, sizeof(f.path), "%s/file", f.dir);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    buf_fini(&f->bytes);
    temp_dir_remove(f->dir);
    return 0;
}

static void write_bytes(const struct fixture *f, size_t count)
{
    FILE *file = fopen(f->path, "w");
    assert_non_null(file);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(fputc('a' + (int)(i % 26), file), 'a' + (int)(i % 26));
    assert_int_equal(fclose(file), 0);
}

static void file_is_appended_up_to_its_limit(void **state)
{
    struct fixture *f = *state;
    write_bytes(f, 100000);
    assert_int_equal(buf_append_text(&f->bytes, "head "), ST_OK);
    assert_int_equal(whole_file_read(f->path, WHOLE_FILE_REGULAR, 100000, &f->bytes, &f->error),
                     ST_OK);
    assert_int_equal(f->bytes.len, 100005);
    assert_memory_equal(f->bytes.ptr, "head abc", 8);
    assert_int_equal(whole_file_read(f->path, WHOLE_FILE_ANY, 99999, &f->bytes, &f->error),
                     ST_LIMIT);
    assert_non_null(strstr(f->error.text, "/file: longer than 99999 bytes"));
}

static void missing_file_is_named(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(whole_file_read(f->path, WHOLE_FILE_REGULAR, 10, &f->bytes, &f->error),
                     ST_NOT_FOUND);
    assert_non_null(strstr(f->error.text, "/file: No such file"));
}

/* No process writes to the pipe: opening it for reading would wait. */
static void pipe_does_not_block(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(mkfifo(f->path, 0600), 0);
    assert_int_equal(whole_file_read(f->path, WHOLE_FILE_REGULAR, 10, &f->bytes, &f->error),
                     ST_INVALID);
    assert_int_equal(whole_file_read(f->dir, WHOLE_FILE_REGULAR, 10, &f->bytes, &f->error),
                     ST_INVALID);
    assert_int_equal(whole_file_read(f->dir, WHOLE_FILE_ANY, 10, &f->bytes, &f->error), ST_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(file_is_appended_up_to_its_limit, setup, teardown),
        cmocka_unit_test_setup_teardown(missing_file_is_named, setup, teardown),
        cmocka_unit_test_setup_teardown(pipe_does_not_block, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
