#include "kube/merge/apply/field_set.h"

#include "kube/merge/apply/fixture_test.h"

static void assert_combined(struct fixture *f, enum field_operation operation, const char *a,
                            const char *b, const char *expected)
{
    const struct field_set *set;
    assert_int_equal(field_set_combine(&f->arena, operation, set_of(f, a), set_of(f, b), &set),
                     ST_OK);
    assert_set(f, set, expected);
}

static void sets_combine_as_in_structured_merge_diff(void **state)
{
    struct fixture *f = *state;
    const char *a = "{\"f:a\":{},\"f:b\":{\".\":{},\"f:c\":{}},\"f:d\":{\"f:e\":{}}}";
    const char *b = "{\"f:b\":{},\"f:d\":{\"f:e\":{},\"f:f\":{}}}";
    assert_combined(f, FIELD_UNION, a, b,
                    "{\"f:a\":{},\"f:b\":{\".\":{},\"f:c\":{}},\"f:d\":{\"f:e\":{},\"f:f\":{}}}");
    assert_combined(f, FIELD_INTERSECTION, a, b, "{\"f:b\":{},\"f:d\":{\"f:e\":{}}}");
    assert_combined(f, FIELD_DIFFERENCE, a, b, "{\"f:a\":{},\"f:b\":{\"f:c\":{}}}");
    assert_combined(f, FIELD_RECURSIVE_DIFFERENCE, a, b, "{\"f:a\":{}}");
    assert_combined(f, FIELD_DIFFERENCE, b, a, "{\"f:d\":{\"f:f\":{}}}");
    assert_combined(f, FIELD_DIFFERENCE, a, a, "{}");
}

static void the_empty_set_is_null(void **state)
{
    struct fixture *f = *state;
    const struct field_set *set;
    assert_null(set_of(f, "{}"));
    assert_int_equal(field_set_combine(&f->arena, FIELD_UNION, NULL, NULL, &set), ST_OK);
    assert_null(set);
    assert_int_equal(
        field_set_combine(&f->arena, FIELD_INTERSECTION, set_of(f, "{\"f:a\":{}}"), NULL, &set),
        ST_OK);
    assert_null(set);
}

static void elements_are_sorted_by_kind_and_value(void **state)
{
    struct fixture *f = *state;
    assert_set(f,
               set_of(f, "{\"v:true\":{},\"v:\\\"b\\\"\":{},\"v:10\":{},\"v:9\":{},\"i:1\":{},"
                         "\"k:{\\\"b\\\":1,\\\"a\\\":\\\"x\\\"}\":{},\"f:z\":{},\"f:a\":{}}"),
               "{\"f:a\":{},\"f:z\":{},\"k:{\\\"a\\\":\\\"x\\\",\\\"b\\\":1}\":{},\"v:9\":{},"
               "\"v:10\":{},\"v:\\\"b\\\"\":{},\"v:true\":{},\"i:1\":{}}");
}

static void adding_an_element_twice_keeps_one(void **state)
{
    struct fixture *f = *state;
    const struct field_set *set = set_of(f, "{\"v:1\":{},\"v:0\":{},\"v:1.0\":{\"f:a\":{}}}");
    assert_int_equal(set->count, 2);
    struct field_element element = set->entries[1].element;
    assert_ptr_equal(field_set_find(set, &element), &set->entries[1]);
    assert_true(set->entries[1].marks && set->entries[1].below);
    element = field_name(SLICE_LITERAL("a"));
    assert_null(field_set_find(set, &element));
}

static void sets_are_equal_by_their_members(void **state)
{
    struct fixture *f = *state;
    const char *a = "{\"f:a\":{\".\":{},\"f:b\":{}}}";
    assert_true(field_set_equal(set_of(f, a), set_of(f, a)));
    assert_false(field_set_equal(set_of(f, a), set_of(f, "{\"f:a\":{\"f:b\":{}}}")));
    assert_false(field_set_equal(set_of(f, a), NULL));
}

static void marks_are_selected(void **state)
{
    struct fixture *f = *state;
    struct field_builder builder = {.arena = &f->arena};
    const struct field_set *set, *selected;
    assert_int_equal(
        field_builder_add(&builder, field_name(SLICE_LITERAL("b")), FIELD_REMOVED, NULL), ST_OK);
    assert_int_equal(field_builder_add(&builder, field_name(SLICE_LITERAL("a")), FIELD_ADDED, NULL),
                     ST_OK);
    assert_int_equal(field_builder_add(&builder, field_name(SLICE_LITERAL("c")), 0, NULL), ST_OK);
    assert_int_equal(field_builder_finish(&builder, &set), ST_OK);
    assert_int_equal(field_set_select(&f->arena, set, FIELD_ADDED | FIELD_MODIFIED, &selected),
                     ST_OK);
    assert_set(f, selected, "{\"f:a\":{}}");
}

static void no_memory_is_reported(void **state)
{
    struct fixture *f = *state;
    const struct field_set *a = set_of(f, "{\"f:a\":{}}"), *b = set_of(f, "{\"f:b\":{}}"), *set;
    struct arena none;
    arena_init(&none, NULL, 0, 0);
    assert_int_equal(field_set_combine(&none, FIELD_UNION, a, b, &set), ST_NOMEM);
    arena_fini(&none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sets_combine_as_in_structured_merge_diff),
        cmocka_unit_test(the_empty_set_is_null),
        cmocka_unit_test(elements_are_sorted_by_kind_and_value),
        cmocka_unit_test(adding_an_element_twice_keeps_one),
        cmocka_unit_test(sets_are_equal_by_their_members),
        cmocka_unit_test(marks_are_selected),
        cmocka_unit_test(no_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
