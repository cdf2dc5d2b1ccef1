/* Limits and errors. tests/kube_oracle.py compares the results of patches with Kubernetes. */
#include "kube/merge/patch/patch.h"

#include "codec/json/tree_fixture_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int setup(void **state)
{
    *state = fixture_new(512 << 20);
    return 0;
}

static enum status merge(struct fixture *f, struct slice object, struct slice patch,
                         struct json_node **ret_object)
{
    struct json_node *tree, *change;
    const struct kube_type *pod = kube_type_find(SLICE_LITERAL("v1"), SLICE_LITERAL("Pod"));
    assert_int_equal(json_tree_read(&f->arena, object, &tree, &f->error), ST_OK);
    assert_int_equal(json_tree_read(&f->arena, patch, &change, &f->error), ST_OK);
    return patch_strategic(&f->arena, pod, tree, change, ret_object, &f->error);
}

static void errors_have_the_texts_of_kubernetes(void **state)
{
    static const struct {
        const char *object, *patch;
        enum status status;
        const char *text;
    } cases[] = {
        {"{}", "[]", ST_MALFORMED, "invalid JSON document"},
        {"{\"spec\":{}}", "{\"spec\":{\"$retainKeys\":1}}", ST_MALFORMED,
         "invalid patch format of retainKeys"},
        {"{\"spec\":{}}", "{\"spec\":{\"$setElementOrder\":[]}}", ST_MALFORMED,
         "invalid patch format of setElementOrder list"},
        {"{\"spec\":{}}", "{\"spec\":{\"$deleteFromPrimitiveList\":[]}}", ST_MALFORMED,
         "invalid patch format of primitive list"},
        {"{\"metadata\":{\"finalizers\":[[]]}}", "{\"metadata\":{\"finalizers\":[[]]}}", ST_INVALID,
         "lists of lists are not supported"},
        {"{\"spec\":{\"containers\":[{\"name\":\"a\"}]}}",
         "{\"spec\":{\"containers\":[{\"image\":\"b\"}]}}", ST_WRONG_FORMAT,
         "map: map[image:b] does not contain declared merge key: name"},
        {"{\"spec\":{\"containers\":[{\"name\":\"a\"}]}}",
         "{\"spec\":{\"containers\":[{\"name\":\"a\",\"$patch\":\"x\"}]}}", ST_WRONG_FORMAT,
         "unknown patch type: x in map: map[$patch:x name:a]"},
        {"{\"metadata\":{\"labels\":{\"a\":{\"b\":1}}}}",
         "{\"metadata\":{\"labels\":{\"a\":{\"b\":2}}}}", ST_WRONG_FORMAT,
         "merging an object in json but data type is not struct, instead is: map"},
        {"{\"spec\":{\"a\":{}}}", "{\"spec\":{\"a\":{}}}", ST_WRONG_FORMAT,
         "unable to find api field in struct PodSpec for the json field \"a\""},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct fixture *f = *state;
        struct json_node *object;
        assert_int_equal(
            merge(f, slice_from_text(cases[i].object), slice_from_text(cases[i].patch), &object),
            cases[i].status);
        assert_string_equal(f->error.text, cases[i].text);
    }
}

/* Appends {"spec":{"containers":[{"name":"c0"…},…]}} with numbers starting at `from`. */
static void append_containers(struct buf *to, size_t from, size_t count)
{
    assert_int_equal(buf_append_text(to, "\"containers\":["), ST_OK);
    for (size_t i = from; i < from + count; i++)
        assert_int_equal(buf_append_format(to, "%s{\"name\":\"c%zu\"}", i > from ? "," : "", i),
                         ST_OK);
    assert_int_equal(buf_append_text(to, "]"), ST_OK);
}

static void a_hundred_thousand_items_merge_in_linear_time(void **state)
{
    enum { MANY = 100000 };
    struct fixture *f = *state;
    struct buf object = {0}, patch = {0};
    struct json_node *merged;
    assert_int_equal(buf_append_text(&object, "{\"spec\":{"), ST_OK);
    append_containers(&object, 0, MANY);
    assert_int_equal(buf_append_text(&object, "}}"), ST_OK);
    assert_int_equal(buf_append_text(&patch, "{\"spec\":{"), ST_OK);
    append_containers(&patch, MANY / 2, MANY);
    assert_int_equal(buf_append_text(&patch, "}}"), ST_OK);
    clock_t begun = clock();
    assert_int_equal(merge(f, buf_slice(&object), buf_slice(&patch), &merged), ST_OK);
    /*
     * This takes about 0.3 s on a slow machine with sanitizers; quadratic time would take minutes.
     */
    assert_true(clock() - begun < 20 * CLOCKS_PER_SEC);
    assert_int_equal(json_node_path(merged, "spec.containers")->count, MANY / 2 * 3);
    buf_fini(&object);
    buf_fini(&patch);
}

static void a_patch_that_exceeds_its_memory_is_refused(void **state)
{
    struct fixture *f = *state;
    struct arena small;
    struct json_node *object, *patch, *merged;
    struct buf text = {0};
    assert_int_equal(buf_append_text(&text, "{\"spec\":{"), ST_OK);
    append_containers(&text, 0, 10000);
    assert_int_equal(buf_append_text(&text, "}}"), ST_OK);
    assert_int_equal(json_tree_read(&f->arena, buf_slice(&text), &object, &f->error), ST_OK);
    assert_int_equal(json_tree_read(&f->arena, buf_slice(&text), &patch, &f->error), ST_OK);
    arena_init(&small, NULL, 0, 64 << 10);
    assert_int_equal(patch_strategic(&small,
                                     kube_type_find(SLICE_LITERAL("v1"), SLICE_LITERAL("Pod")),
                                     object, patch, &merged, &f->error),
                     ST_NOMEM);
    arena_fini(&small);
    buf_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(errors_have_the_texts_of_kubernetes, setup, teardown),
        cmocka_unit_test_setup_teardown(a_hundred_thousand_items_merge_in_linear_time, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_patch_that_exceeds_its_memory_is_refused, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
