#include "kube/merge/apply/fields_v1.h"

#include "kube/merge/apply/fixture_test.h"

static void assert_refused(struct fixture *f, const char *text)
{
    size_t budget = FIELDS_V1_STEPS_MAX;
    const struct field_set *set;
    assert_int_equal(fields_v1_read(&f->arena, tree(f, text), &budget, &set), ST_MALFORMED);
}

static void values_that_are_not_sets_are_refused(void **state)
{
    struct fixture *f = *state;
    static const char *const texts[] = {
        "[]",
        "1",
        "{\"f\":{}}",
        "{\"\":{}}",
        "{\"fx\":{}}",
        "{\"f:a\":1}",
        "{\"f:a\":null}",
        "{\"k:\":{}}",
        "{\"k:[]\":{}}",
        "{\"k:{\":{}}",
        "{\"k:{\\\"a\\\":{}}\":{}}",
        "{\"v:\":{}}",
        "{\"v:{}\":{}}",
        "{\"v:[1]\":{}}",
        "{\"i:\":{}}",
        "{\"i:x\":{}}",
        "{\"i:-1\":{}}",
        "{\"i:9999999999999999999\":{}}",
    };
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        assert_refused(f, texts[i]);
}

static void unknown_kinds_of_steps_are_skipped(void **state)
{
    struct fixture *f = *state;
    assert_set(f, set_of(f, "{\"x:a\":[],\"f:a\":{\"y:b\":{}}}"), "{\"f:a\":{}}");
}

static void texts_are_escaped_as_in_go(void **state)
{
    struct fixture *f = *state;
    assert_set(f, set_of(f, "{\"f:a<b\":{},\"v:\\\"a<b&\\\\u00e9\\\"\":{}}"),
               "{\"f:a<b\":{},\"v:\\\"a\\\\u003cb\\\\u0026\xc3\xa9\\\"\":{}}");
}

static void more_steps_than_the_budget_are_refused(void **state)
{
    struct fixture *f = *state;
    struct buf text = {0};
    const struct field_set *set;
    assert_int_equal(buf_append_text(&text, "{"), ST_OK);
    for (size_t i = 0; i <= FIELDS_V1_STEPS_MAX; i++)
        assert_int_equal(buf_append_format(&text, "%s\"f:%zu\":{}", i ? "," : "", i), ST_OK);
    assert_int_equal(buf_append(&text, slice_of("}", 2)), ST_OK);
    size_t budget = FIELDS_V1_STEPS_MAX;
    struct json_node *node = tree(f, (const char *)text.ptr);
    assert_int_equal(fields_v1_read(&f->arena, node, &budget, &set), ST_LIMIT);
    budget = FIELDS_V1_STEPS_MAX + 1;
    assert_int_equal(fields_v1_read(&f->arena, node, &budget, &set), ST_OK);
    assert_int_equal(set->count, FIELDS_V1_STEPS_MAX + 1);
    buf_fini(&text);
}

static void keys_with_too_many_members_are_refused(void **state)
{
    struct fixture *f = *state;
    struct buf text = {0};
    assert_int_equal(buf_append_text(&text, "{\"k:{"), ST_OK);
    for (size_t i = 0; i <= FIELD_KEY_MEMBERS_MAX; i++)
        assert_int_equal(buf_append_format(&text, "%s\\\"m%zu\\\":1", i ? "," : "", i), ST_OK);
    assert_int_equal(buf_append(&text, slice_of("}\":{}}", 7)), ST_OK);
    assert_refused(f, (const char *)text.ptr);
    buf_fini(&text);
}

/* Uses the largest depth that a tree can have. */
static void sets_can_be_as_deep_as_trees(void **state)
{
    struct fixture *f = *state;
    struct buf text = {0};
    enum { DEPTH = JSON_TREE_DEPTH_MAX - 1 };
    for (size_t i = 0; i < DEPTH; i++)
        assert_int_equal(buf_append_text(&text, "{\"f:a\":"), ST_OK);
    assert_int_equal(buf_append_text(&text, "{}"), ST_OK);
    for (size_t i = 0; i < DEPTH; i++)
        assert_int_equal(buf_append_text(&text, "}"), ST_OK);
    assert_int_equal(buf_append(&text, slice_of("", 1)), ST_OK);
    assert_set(f, set_of(f, (const char *)text.ptr), (const char *)text.ptr);
    buf_fini(&text);
}

static void paths_are_written_as_in_messages(void **state)
{
    struct fixture *f = *state;
    struct buf text = {0};
    const struct field_set *set = set_of(f, "{\"f:a.b\":{},\"k:{\\\"n\\\":\\\"x\\\\\\\"y\\\","
                                            "\\\"p\\\":80}\":{},\"v:true\":{},\"i:3\":{}}");
    for (size_t i = 0; i < set->count; i++)
        assert_int_equal(field_element_append(&set->entries[i].element, &f->arena, &text), ST_OK);
    assert_int_equal(buf_append(&text, slice_of("", 1)), ST_OK);
    assert_string_equal((const char *)text.ptr, ".a.b[n=\"x\\\"y\",p=80][=true][3]");
    buf_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_that_are_not_sets_are_refused),
        cmocka_unit_test(unknown_kinds_of_steps_are_skipped),
        cmocka_unit_test(texts_are_escaped_as_in_go),
        cmocka_unit_test(more_steps_than_the_budget_are_refused),
        cmocka_unit_test(keys_with_too_many_members_are_refused),
        cmocka_unit_test(sets_can_be_as_deep_as_trees),
        cmocka_unit_test(paths_are_written_as_in_messages),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
