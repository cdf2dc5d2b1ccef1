#include "etcd/v2/node.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void assert_key(const char *path, struct slice rest, size_t depth)
{
    struct arena arena;
    struct v2_key key;
    arena_init(&arena, NULL, 0, 64 * 1024);
    assert_int_equal(v2_key_make(&arena, slice_from_text(path), &key), ST_OK);
    size_t root = strlen(V2_KEYS_ROOT);
    assert_true(slice_equal(slice_sub(key.key, root, key.key.len - root), rest));
    assert_int_equal(key.depth, depth);
    arena_fini(&arena);
}

static void paths_are_cleaned(void **state)
{
    (void)state;
    assert_key("", SLICE_EMPTY, 0);
    assert_key("/", SLICE_EMPTY, 0);
    assert_key("/a/b", SLICE_LITERAL("\0a\0b"), 2);
    assert_key("//a/./b/../c/", SLICE_LITERAL("\0a\0c"), 2);
    assert_key("/../../a", SLICE_LITERAL("\0a"), 1);
}

static void paths_past_the_limits_are_refused(void **state)
{
    (void)state;
    struct arena arena;
    struct v2_key key;
    char path[V2_PATH_BYTES_MAX + 2];
    arena_init(&arena, NULL, 0, 64 * 1024);
    for (size_t i = 0; i < sizeof(path); i++)
        path[i] = i ? 'x' : '/';
    assert_int_equal(v2_key_make(&arena, slice_of(path, V2_PATH_BYTES_MAX), &key), ST_OK);
    assert_int_equal(v2_key_make(&arena, slice_of(path, V2_PATH_BYTES_MAX + 1), &key), ST_LIMIT);
    for (size_t i = 0; i < sizeof(path); i++)
        path[i] = i % 2 ? 'x' : '/';
    assert_int_equal(v2_key_make(&arena, slice_of(path, (size_t)2 * V2_DEPTH_MAX), &key), ST_OK);
    assert_int_equal(v2_key_make(&arena, slice_of(path, (size_t)2 * V2_DEPTH_MAX + 2), &key),
                     ST_LIMIT);
    assert_int_equal(v2_key_make(&arena, slice_of("/a\0b", 4), &key), ST_INVALID);
    arena_fini(&arena);
}

static void hidden_parts_are_found_below_the_base(void **state)
{
    (void)state;
    struct slice key = SLICE_LITERAL("r\0_a\0b");
    assert_true(v2_key_is_hidden(key, 1));
    assert_false(v2_key_is_hidden(key, 4));
    assert_int_equal(v2_key_depth_below(key, 1), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_are_cleaned),
        cmocka_unit_test(paths_past_the_limits_are_refused),
        cmocka_unit_test(hidden_parts_are_found_below_the_base),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
