#include "kube/merge/patch/patch.h"

#include "codec/json/tree_fixture_test.h"

#include <stddef.h>
#include <stdlib.h>

static int setup(void **state)
{
    *state = fixture_new(16 << 20);
    return 0;
}

/* The examples of RFC 7386, appendix A. */
static void merge_patches_follow_the_rfc(void **state)
{
    static const char *const cases[][3] = {
        {"{\"a\":\"b\"}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
        {"{\"a\":\"b\"}", "{\"b\":\"c\"}", "{\"a\":\"b\",\"b\":\"c\"}"},
        {"{\"a\":\"b\"}", "{\"a\":null}", "{}"},
        {"{\"a\":\"b\",\"b\":\"c\"}", "{\"a\":null}", "{\"b\":\"c\"}"},
        {"{\"a\":[\"b\"]}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
        {"{\"a\":\"c\"}", "{\"a\":[\"b\"]}", "{\"a\":[\"b\"]}"},
        {"{\"a\":{\"b\":\"c\"}}", "{\"a\":{\"b\":\"d\",\"c\":null}}", "{\"a\":{\"b\":\"d\"}}"},
        {"{\"a\":[{\"b\":\"c\"}]}", "{\"a\":[1]}", "{\"a\":[1]}"},
        {"[\"a\",\"b\"]", "[\"c\",\"d\"]", "[\"c\",\"d\"]"},
        {"{\"a\":\"b\"}", "[\"c\"]", "[\"c\"]"},
        {"{\"a\":\"foo\"}", "null", "null"},
        {"{\"a\":\"foo\"}", "\"bar\"", "\"bar\""},
        {"{\"e\":null}", "{\"a\":1}", "{\"e\":null,\"a\":1}"},
        {"[1,2]", "{\"a\":\"b\",\"c\":null}", "{\"a\":\"b\"}"},
        {"{}", "{\"a\":{\"bb\":{\"ccc\":null}}}", "{\"a\":{\"bb\":{}}}"},
        /* Also within lists, unless they replace an object; items that are null stay. */
        {"{\"a\":[1]}", "{\"a\":[null,{\"b\":null,\"c\":[{\"d\":null}]}]}",
         "{\"a\":[null,{\"c\":[{}]}]}"},
        {"{\"a\":{}}", "{\"a\":[{\"b\":null}]}", "{\"a\":[{\"b\":null}]}"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct fixture *f = *state;
        struct json_node *merged;
        assert_int_equal(
            patch_merge(&f->arena, read_json(f, cases[i][0]), read_json(f, cases[i][1]), &merged),
            ST_OK);
        assert_written(merged, cases[i][2]);
    }
}

static void json_patches_follow_the_rfc(void **state)
{
    static const char *const cases[][3] = {
        {"{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/b\",\"value\":[2]}]", "{\"a\":1,\"b\":[2]}"},
        {"{\"a\":[1,3]}", "[{\"op\":\"add\",\"path\":\"/a/1\",\"value\":2}]", "{\"a\":[1,2,3]}"},
        {"{\"a\":[1]}", "[{\"op\":\"add\",\"path\":\"/a/-\",\"value\":2}]", "{\"a\":[1,2]}"},
        {"{\"a\":1,\"b\":2}", "[{\"op\":\"remove\",\"path\":\"/a\"}]", "{\"b\":2}"},
        {"{\"a\":[1,2]}", "[{\"op\":\"remove\",\"path\":\"/a/0\"}]", "{\"a\":[2]}"},
        {"{\"a\":[1,2]}", "[{\"op\":\"remove\",\"path\":\"/a/-1\"}]", "{\"a\":[1]}"},
        {"{\"a\":[1,2]}", "[{\"op\":\"remove\",\"path\":\"/a/01\"}]", "{\"a\":[1]}"},
        {"{\"a\":[1,2]}", "[{\"op\":\"remove\",\"path\":\"/a/+0\"}]", "{\"a\":[2]}"},
        {"{\"a\":[1,2]}", "[{\"op\":\"replace\",\"path\":\"/a/1\",\"value\":{}}]",
         "{\"a\":[1,{}]}"},
        {"{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"/b\",\"value\":2}]", "{\"a\":1,\"b\":2}"},
        {"{\"a\":1}", "[{\"op\":\"copy\",\"from\":\"/b\",\"path\":\"/c\"}]",
         "{\"a\":1,\"c\":null}"},
        {"{\"a\":{\"b\":1}}", "[{\"op\":\"move\",\"from\":\"/a/b\",\"path\":\"/c\"}]",
         "{\"a\":{},\"c\":1}"},
        {"{\"a\":{\"b\":1}}", "[{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/c\"}]",
         "{\"a\":{\"b\":1},\"c\":{\"b\":1}}"},
        {"{\"a~/b\":1}", "[{\"op\":\"test\",\"path\":\"/a~0~1b\",\"value\":1.0}]", "{\"a~/b\":1}"},
        {"{\"a\":1}", "[{\"op\":\"test\",\"path\":\"/b\",\"value\":null}]", "{\"a\":1}"},
        {"{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"\",\"value\":{\"b\":2}}]", "{\"b\":2}"},
        {"{\"a\":1}", "[]", "{\"a\":1}"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct fixture *f = *state;
        struct json_node *patched;
        assert_int_equal(patch_json(&f->arena, read_json(f, cases[i][0]), read_json(f, cases[i][1]),
                                    &patched, &f->error),
                         ST_OK);
        assert_written(patched, cases[i][2]);
    }
}

static void impossible_operations_are_refused(void **state)
{
    static const struct {
        const char *patch;
        enum status status;
    } cases[] = {
        {"{}", ST_MALFORMED},
        {"[1]", ST_MALFORMED},
        {"[{\"op\":\"jump\",\"path\":\"/a\"}]", ST_INVALID},
        {"[{\"op\":\"remove\",\"path\":\"/x\"}]", ST_INVALID},
        {"[{\"op\":\"remove\",\"path\":\"\"}]", ST_INVALID},
        {"[{\"op\":\"add\",\"path\":\"\",\"value\":{}}]", ST_INVALID},
        {"[{\"op\":\"replace\",\"path\":\"\",\"value\":1}]", ST_INVALID},
        {"[{\"op\":\"copy\",\"from\":\"\",\"path\":\"/c\"}]", ST_INVALID},
        {"[{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"\"}]", ST_INVALID},
        {"[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"\"}]", ST_INVALID},
        {"[{\"op\":\"replace\",\"path\":\"/x/y\",\"value\":1}]", ST_INVALID},
        {"[{\"op\":\"replace\",\"path\":\"/l/1\",\"value\":1}]", ST_INVALID},
        {"[{\"op\":\"add\",\"path\":\"/x/y\",\"value\":1}]", ST_INVALID},
        {"[{\"op\":\"add\",\"path\":\"a\",\"value\":1}]", ST_INVALID},
        {"[{\"op\":\"add\",\"path\":\"/l/9\",\"value\":1}]", ST_INVALID},
        {"[{\"op\":\"add\",\"path\":\"/l/x\",\"value\":1}]", ST_INVALID},
        {"[{\"op\":\"add\",\"path\":\"/a/b\",\"value\":1}]", ST_INVALID},
        {"[{\"op\":\"move\",\"from\":\"/l\",\"path\":\"/l/0\"}]", ST_INVALID},
        {"[{\"op\":\"copy\",\"from\":\"/x/z\",\"path\":\"/y\"}]", ST_INVALID},
        {"[{\"op\":\"copy\",\"from\":\"/l/1\",\"path\":\"/y\"}]", ST_INVALID},
        {"[{\"op\":\"move\",\"from\":\"/x\",\"path\":\"/y\"}]", ST_INVALID},
        {"[{\"op\":\"test\",\"path\":\"/a\",\"value\":2}]", ST_INVALID},
        {"[{\"op\":\"test\",\"path\":\"/l/x\",\"value\":null}]", ST_INVALID},
        {"[{\"op\":\"test\",\"path\":\"/l/1\",\"value\":null}]", ST_INVALID},
        {"[{\"op\":\"test\",\"path\":\"/l/-2\"}]", ST_INVALID},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct fixture *f = *state;
        struct json_node *patched;
        assert_int_equal(patch_json(&f->arena, read_json(f, "{\"a\":1,\"l\":[1]}"),
                                    read_json(f, cases[i].patch), &patched, &f->error),
                         cases[i].status);
    }
}

static void an_index_that_go_cannot_read_has_the_text_of_go(void **state)
{
    static const struct {
        const char *patch, *end;
    } cases[] = {
        {"[{\"op\":\"add\",\"path\":\"/l/x\",\"value\":1}]", "\"x\": invalid syntax"},
        {"[{\"op\":\"add\",\"path\":\"/l/-\\u0031x\",\"value\":1}]", "\"-1x\": invalid syntax"},
        {"[{\"op\":\"add\",\"path\":\"/l/18446744073709551616\",\"value\":1}]",
         "\"18446744073709551616\": value out of range"},
        {"[{\"op\":\"remove\",\"path\":\"/l/-99999999999999999999\"}]",
         "\"-99999999999999999999\": value out of range"},
        {"[{\"op\":\"test\",\"path\":\"/l/99999999999999999999\",\"value\":1}]",
         "\"99999999999999999999\": value out of range"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct fixture *f = *state;
        struct json_node *patched;
        assert_int_equal(patch_json(&f->arena, read_json(f, "{\"l\":[1]}"),
                                    read_json(f, cases[i].patch), &patched, &f->error),
                         ST_INVALID);
        assert_non_null(strstr(f->error.text, cases[i].end));
    }
}

static void growing_copies_are_limited_by_the_arena(void **state)
{
    struct fixture *f = *state;
    struct buf patch = {0};
    assert_int_equal(buf_append_text(&patch, "[{\"op\":\"add\",\"path\":\"/a\",\"value\":{}}"),
                     ST_OK);
    for (int i = 0; i < 64; i++)
        assert_int_equal(
            buf_append_format(&patch, ",{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/a/%d\"}", i),
            ST_OK);
    assert_int_equal(buf_append_text(&patch, "]"), ST_OK);
    struct json_node *document, *patched;
    assert_int_equal(json_tree_read(&f->arena, buf_slice(&patch), &document, &f->error), ST_OK);
    assert_int_equal(patch_json(&f->arena, read_json(f, "{}"), document, &patched, &f->error),
                     ST_NOMEM);
    buf_fini(&patch);
}

static void moves_that_nest_too_deeply_are_refused(void **state)
{
    struct fixture *f = *state;
    struct buf patch = {0};
    assert_int_equal(buf_append_text(&patch, "["), ST_OK);
    for (int i = 0; i < 3000; i++)
        assert_int_equal(buf_append_text(&patch,
                                         "{\"op\":\"add\",\"path\":\"/b\",\"value\":{}},"
                                         "{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/b/a\"},"
                                         "{\"op\":\"move\",\"from\":\"/b\",\"path\":\"/a\"},"),
                         ST_OK);
    assert_int_equal(buf_append_text(&patch, "{\"op\":\"test\",\"path\":\"/x\",\"value\":null}]"),
                     ST_OK);
    struct json_node *document, *patched;
    assert_int_equal(json_tree_read(&f->arena, buf_slice(&patch), &document, &f->error), ST_OK);
    assert_int_equal(
        patch_json(&f->arena, read_json(f, "{\"a\":{}}"), document, &patched, &f->error), ST_LIMIT);
    assert_string_equal(f->error.text, "a JSON patch nests values at most 256 levels deep");
    buf_fini(&patch);
}

/* Every position of a long list, from the front, in the middle and from its end. */
static void operations_on_a_long_list_find_their_items(void **state)
{
    enum { ITEMS = 3000, OPERATIONS = 9999 };
    struct fixture *f = *state;
    struct buf list = {0}, patch = {0};
    for (int i = 0; i < ITEMS; i++)
        assert_int_equal(buf_append_format(&list, "%s%d", i ? "," : "[", i), ST_OK);
    assert_int_equal(buf_append(&list, slice_of("]", 2)), ST_OK);
    for (int i = 0; i < OPERATIONS; i += 3)
        assert_int_equal(buf_append_format(&patch,
                                           "%s{\"op\":\"move\",\"from\":\"/%d\",\"path\":\"/%d\"},"
                                           "{\"op\":\"replace\",\"path\":\"/%d\",\"value\":%d},"
                                           "{\"op\":\"test\",\"path\":\"/%d\",\"value\":%d}",
                                           i ? "," : "[", i % ITEMS, i * 7 % ITEMS, i % 97 - 100, i,
                                           ITEMS + i % 97 - 100, i),
                         ST_OK);
    assert_int_equal(buf_append(&patch, slice_of("]", 2)), ST_OK);
    struct json_node *patched;
    struct json_node *object = read_json(f, (const char *)list.ptr);
    struct json_node *operations = read_json(f, (const char *)patch.ptr);
    assert_int_equal(patch_json(&f->arena, object, operations, &patched, &f->error), ST_OK);
    assert_int_equal(patched->count, ITEMS);
    buf_fini(&list);
    buf_fini(&patch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(merge_patches_follow_the_rfc, setup, teardown),
        cmocka_unit_test_setup_teardown(json_patches_follow_the_rfc, setup, teardown),
        cmocka_unit_test_setup_teardown(impossible_operations_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(moves_that_nest_too_deeply_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(operations_on_a_long_list_find_their_items, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(an_index_that_go_cannot_read_has_the_text_of_go, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(growing_copies_are_limited_by_the_arena, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
