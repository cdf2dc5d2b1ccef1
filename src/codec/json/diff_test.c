#include "codec/json/diff.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void put_value(struct buf *to, const struct json_node *node)
{
    if (node)
        assert_int_equal(json_tree_write(node, to), ST_OK);
    else
        assert_int_equal(buf_append_text(to, "-"), ST_OK);
}

static void note(void *ctx, const struct json_difference *difference)
{
    struct buf *to = ctx;
    assert_int_equal(buf_append(to, difference->path), ST_OK);
    assert_int_equal(buf_append_text(to, ": "), ST_OK);
    put_value(to, difference->before);
    assert_int_equal(buf_append_text(to, " > "), ST_OK);
    put_value(to, difference->after);
    assert_int_equal(buf_append_text(to, "\n"), ST_OK);
}

static const struct json_node *read(struct arena *arena, const char *text)
{
    struct json_node *root;
    struct error error;
    assert_int_equal(json_tree_read(arena, slice_from_text(text), &root, &error), ST_OK);
    return root;
}

static void expect(const char *before, const char *after, const char *differences)
{
    struct arena arena;
    struct buf found = {0};
    arena_init(&arena, NULL, 0, 1 << 20);
    assert_int_equal(json_diff(&arena, read(&arena, before), read(&arena, after), note, &found),
                     ST_OK);
    assert_int_equal(buf_append(&found, slice_of("", 1)), ST_OK);
    assert_string_equal((const char *)found.ptr, differences);
    buf_fini(&found);
    arena_fini(&arena);
}

static void equal_values_have_no_differences(void **state)
{
    (void)state;
    expect("{\"a\":1,\"b\":[1,{\"c\":\"x\"}]}", "{\"b\":[1,{\"c\":\"\\u0078\"}],\"a\":1.0}", "");
    expect("null", "null", "");
}

static void members_are_added_removed_and_changed(void **state)
{
    (void)state;
    expect("{\"a\":1,\"b\":{\"c\":2,\"d\":3}}", "{\"b\":{\"c\":4,\"e\":5}}",
           "b.c: 2 > 4\nb.e: - > 5\nb.d: 3 > -\na: 1 > -\n");
    expect("{\"a\":1}", "{\"a\":\"1\"}", "a: 1 > \"1\"\n");
    expect("1", "2", ": 1 > 2\n");
}

static void keys_with_dots_are_quoted(void **state)
{
    (void)state;
    expect("{\"labels\":{}}", "{\"labels\":{\"app.io/name\":\"x\",\"\":1}}",
           "labels['app.io/name']: - > \"x\"\nlabels['']: - > 1\n");
}

static void items_are_matched_by_name(void **state)
{
    (void)state;
    expect("{\"c\":[{\"name\":\"a\",\"i\":1},{\"name\":\"b\",\"i\":2}]}",
           "{\"c\":[{\"name\":\"b\",\"i\":3},{\"name\":\"c\"}]}",
           "c[name=b].i: 2 > 3\nc[name=c]: - > {\"name\":\"c\"}\n"
           "c[name=a]: {\"name\":\"a\",\"i\":1} > -\n");
    expect("[{\"type\":\"Ready\",\"s\":1}]", "[{\"type\":\"Ready\",\"s\":2}]",
           "[type=Ready].s: 1 > 2\n");
}

static void other_items_are_matched_by_place(void **state)
{
    (void)state;
    expect("[1,2,3]", "[1,4]", "[1]: 2 > 4\n[2]: 3 > -\n");
    expect("[{\"name\":\"a\"},{\"name\":\"a\"}]", "[{\"name\":\"a\"},{\"name\":\"b\"}]",
           "[1].name: \"a\" > \"b\"\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_values_have_no_differences),
        cmocka_unit_test(members_are_added_removed_and_changed),
        cmocka_unit_test(keys_with_dots_are_quoted),
        cmocka_unit_test(items_are_matched_by_name),
        cmocka_unit_test(other_items_are_matched_by_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
