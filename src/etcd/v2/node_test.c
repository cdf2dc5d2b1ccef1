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

static void assert_expiry(int64_t expires_ns, const char *want)
{
    AUTO(buf_fini) struct buf json = {0};
    struct v2_node node = {.key = SLICE_LITERAL(V2_KEYS_ROOT "\0k"),
                           .value = SLICE_LITERAL("v"),
                           .expires_ns = expires_ns};
    assert_int_equal(v2_node_json_open(&json, &node, false, 1000), ST_OK);
    assert_int_equal(buf_append(&json, SLICE_LITERAL("\0")), ST_OK);
    assert_string_equal(json.ptr, want);
}

/* Stored values may be written through the v3 API, too. */
static void any_time_of_expiry_can_be_shown(void **state)
{
    (void)state;
    assert_expiry(1000000000, "{\"key\":\"/k\",\"value\":\"v\",\"expiration\":"
                              "\"1970-01-01T00:00:01Z\",\"ttl\":1");
    assert_expiry(1, "{\"key\":\"/k\",\"value\":\"v\",\"expiration\":"
                     "\"1970-01-01T00:00:00.000000001Z\"");
    assert_expiry(-500000000, "{\"key\":\"/k\",\"value\":\"v\",\"expiration\":"
                              "\"1969-12-31T23:59:59.5Z\"");
    assert_expiry(INT64_MIN, "{\"key\":\"/k\",\"value\":\"v\",\"expiration\":"
                             "\"1677-09-21T00:12:43.145224192Z\"");
    assert_expiry(INT64_MAX, "{\"key\":\"/k\",\"value\":\"v\",\"expiration\":"
                             "\"2262-04-11T23:47:16.854775807Z\",\"ttl\":9223372037");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_are_cleaned),
        cmocka_unit_test(paths_past_the_limits_are_refused),
        cmocka_unit_test(hidden_parts_are_found_below_the_base),
        cmocka_unit_test(any_time_of_expiry_can_be_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
