#include "kube/merge/apply/typed.h"

#include "kube/merge/apply/fixture_test.h"

static struct apply_type pod(void)
{
    return (struct apply_type){.kind = APPLY_TYPE_MESSAGE,
                               .of = kube_type_find(SLICE_LITERAL("v1"), SLICE_LITERAL("Pod"))};
}

static struct typed typed_of(struct fixture *f)
{
    return (struct typed){.arena = &f->arena, .why = &f->error};
}

#define CONTAINERS(list) "{\"spec\":{\"containers\":[" list "]}}"

static void assert_merged(struct fixture *f, const char *live, const char *config,
                          const char *expected)
{
    struct typed typed = typed_of(f);
    struct json_node *merged = NULL;
    assert_int_equal(typed_merge(&typed, pod(), tree(f, live), tree(f, config), &merged), ST_OK);
    assert_tree(merged, expected);
}

static void lists_by_key_are_merged_item_by_item(void **state)
{
    struct fixture *f = *state;
    assert_merged(f, CONTAINERS("{\"name\":\"a\",\"image\":\"1\"},{\"name\":\"b\"}"),
                  CONTAINERS("{\"name\":\"a\",\"image\":\"2\"},{\"name\":\"c\"}"),
                  CONTAINERS("{\"name\":\"a\",\"image\":\"2\"},{\"name\":\"b\"},{\"name\":\"c\"}"));
}

static void merged_lists_have_the_order_of_the_configuration(void **state)
{
    struct fixture *f = *state;
    assert_merged(f, CONTAINERS("{\"name\":\"a\"},{\"name\":\"b\"},{\"name\":\"c\"}"),
                  CONTAINERS("{\"name\":\"c\"},{\"name\":\"a\"}"),
                  CONTAINERS("{\"name\":\"b\"},{\"name\":\"c\"},{\"name\":\"a\"}"));
}

static void atomic_lists_and_maps_are_replaced(void **state)
{
    struct fixture *f = *state;
    assert_merged(f, "{\"spec\":{\"nodeSelector\":{\"a\":\"1\"}}}",
                  "{\"spec\":{\"nodeSelector\":{\"b\":\"1\"}}}",
                  "{\"spec\":{\"nodeSelector\":{\"b\":\"1\"}}}");
    assert_merged(f, "{\"metadata\":{\"labels\":{\"a\":\"1\"}}}",
                  "{\"metadata\":{\"labels\":{\"b\":\"1\"}}}",
                  "{\"metadata\":{\"labels\":{\"a\":\"1\",\"b\":\"1\"}}}");
}

static void duplicate_keys_in_a_configuration_are_refused(void **state)
{
    struct fixture *f = *state;
    struct typed typed = typed_of(f);
    struct json_node *merged, *live = tree(f, CONTAINERS("{\"name\":\"a\"}"));
    struct json_node *config = tree(f, CONTAINERS("{\"name\":\"b\"},{\"name\":\"b\"}"));
    assert_int_equal(typed_merge(&typed, pod(), live, config, &merged), ST_INVALID);
    assert_string_equal(f->error.text, "duplicate entries for key [name=\"b\"]");
}

static void fields_are_found_by_type(void **state)
{
    struct fixture *f = *state;
    struct typed typed = typed_of(f);
    const struct field_set *set;
    struct json_node *value = tree(
        f,
        "{\"metadata\":{\"labels\":{\"a\":\"1\"},\"finalizers\":[\"x\"]},\"spec\":{\"containers\":["
        "{\"name\":\"a\",\"args\":[\"y\"],\"ports\":[{\"containerPort\":80}]}],"
        "\"nodeSelector\":{\"n\":\"1\"},\"securityContext\":{}}}");
    assert_int_equal(typed_fields(&typed, pod(), value, &set), ST_OK);
    assert_set(
        f, set,
        "{\"f:metadata\":{\"f:finalizers\":{\"v:\\\"x\\\"\":{}},\"f:labels\":{\"f:a\":{}}},"
        "\"f:spec\":{\"f:containers\":{\"k:{\\\"name\\\":\\\"a\\\"}\":{\".\":{},\"f:args\":{},"
        "\"f:name\":{},\"f:ports\":{"
        "\"k:{\\\"containerPort\\\":80,\\\"protocol\\\":\\\"TCP\\\"}\":{\".\":{},"
        "\"f:containerPort\":{}}}}},\"f:nodeSelector\":{},\"f:securityContext\":{}}}");
}

static void assert_compared(struct fixture *f, const char *before, const char *after, unsigned mark,
                            const char *expected)
{
    struct typed typed = typed_of(f);
    const struct field_set *marked, *set;
    assert_int_equal(typed_compare(&typed, pod(), tree(f, before), tree(f, after), &marked), ST_OK);
    assert_int_equal(field_set_select(&f->arena, marked, mark, &set), ST_OK);
    assert_set(f, set, expected);
}

static void differences_are_added_modified_or_removed(void **state)
{
    struct fixture *f = *state;
    const char *before = CONTAINERS("{\"name\":\"a\",\"image\":\"1\"},{\"name\":\"b\"}");
    const char *after = CONTAINERS("{\"name\":\"c\"},{\"name\":\"a\",\"image\":\"2\"}");
    assert_compared(f, before, after, FIELD_ADDED,
                    "{\"f:spec\":{\"f:containers\":{\"k:{\\\"name\\\":\\\"c\\\"}\":{\".\":{},"
                    "\"f:name\":{}}}}}");
    assert_compared(f, before, after, FIELD_MODIFIED,
                    "{\"f:spec\":{\"f:containers\":{\"k:{\\\"name\\\":\\\"a\\\"}\":{"
                    "\"f:image\":{}}}}}");
    assert_compared(f, before, after, FIELD_REMOVED,
                    "{\"f:spec\":{\"f:containers\":{\"k:{\\\"name\\\":\\\"b\\\"}\":{\".\":{},"
                    "\"f:name\":{}}}}}");
    assert_compared(f, before, before, FIELD_ADDED | FIELD_MODIFIED | FIELD_REMOVED, "{}");
}

static void duplicate_items_are_compared_as_a_whole(void **state)
{
    struct fixture *f = *state;
    const char *one = CONTAINERS("{\"name\":\"a\"}");
    const char *two = CONTAINERS("{\"name\":\"a\"},{\"name\":\"a\",\"image\":\"x\"}");
    const char *other = CONTAINERS("{\"name\":\"a\"},{\"name\":\"a\",\"image\":\"y\"}");
    const char *item = "{\"f:spec\":{\"f:containers\":{\"k:{\\\"name\\\":\\\"a\\\"}\":{}}}}";
    assert_compared(f, one, two, FIELD_ADDED, item);
    assert_compared(f, two, other, FIELD_MODIFIED, item);
    assert_compared(f, two, two, FIELD_MODIFIED, "{}");
}

static void a_container_that_loses_everything_becomes_null(void **state)
{
    struct fixture *f = *state;
    struct typed typed = typed_of(f);
    struct json_node *value;
    const struct field_set *set =
        set_of(f, "{\"f:metadata\":{\"f:labels\":{\"f:a\":{}}},\"f:spec\":{\"f:containers\":{"
                  "\"k:{\\\"name\\\":\\\"b\\\"}\":{}}}}");
    assert_int_equal(
        typed_without(&typed, pod(),
                      tree(f, "{\"metadata\":{\"labels\":{\"a\":\"1\"},\"name\":\"p\"},\"spec\":{"
                              "\"containers\":[{\"name\":\"a\"},{\"name\":\"b\"}]}}"),
                      set, &value),
        ST_OK);
    assert_tree(value, "{\"metadata\":{\"labels\":null,\"name\":\"p\"},\"spec\":{\"containers\":[{"
                       "\"name\":\"a\"}]}}");
}

static void named_fields_that_lead_to_members_become_members(void **state)
{
    struct fixture *f = *state;
    struct typed typed = typed_of(f);
    const struct field_set *set = set_of(f, "{\"f:metadata\":{\"f:labels\":{\"f:a\":{}}}}");
    assert_int_equal(typed_with_named(&typed, pod(), set, &set), ST_OK);
    assert_set(f, set, "{\"f:metadata\":{\".\":{},\"f:labels\":{\".\":{},\"f:a\":{}}}}");
}

static void types_that_became_atomic_are_owned_as_a_whole(void **state)
{
    struct fixture *f = *state;
    struct typed typed = typed_of(f);
    const struct field_set *set =
        set_of(f, "{\"f:metadata\":{\"f:labels\":{\"f:a\":{}}},\"f:spec\":{\"f:containers\":{"
                  "\"k:{\\\"name\\\":\\\"a\\\"}\":{\"f:args\":{\"v:\\\"x\\\"\":{}}}},"
                  "\"f:nodeSelector\":{\"f:n\":{}}}}");
    assert_int_equal(typed_reconcile(&typed, pod(), set, &set), ST_OK);
    assert_set(f, set,
               "{\"f:metadata\":{\"f:labels\":{\"f:a\":{}}},\"f:spec\":{\"f:containers\":{"
               "\"k:{\\\"name\\\":\\\"a\\\"}\":{\"f:args\":{}}},\"f:nodeSelector\":{}}}");
}

static void assert_errors(struct fixture *f, const char *value, size_t count, const char *expected)
{
    struct buf errors = {0};
    size_t found;
    assert_int_equal(typed_validate(&f->arena, pod(), tree(f, value), &errors, &found), ST_OK);
    assert_int_equal(found, count);
    assert_int_equal(buf_append(&errors, slice_of("", 1)), ST_OK);
    assert_string_equal((const char *)errors.ptr, expected);
    buf_fini(&errors);
}

static void values_of_wrong_types_are_reported(void **state)
{
    struct fixture *f = *state;
    assert_errors(f, CONTAINERS("{\"name\":\"a\"}"), 0, "");
    assert_errors(f, "{\"spec\":{\"x\":1}}", 1, ".spec.x: field not declared in schema");
    assert_errors(f, CONTAINERS("{\"name\":\"a\",\"image\":[]}"), 1,
                  ".spec.containers[name=\"a\"].image: expected string, got "
                  "&value.valueUnstructured{Value:[]interface {}{[]}}");
    assert_errors(f, CONTAINERS("{\"name\":\"a\"},{\"name\":\"a\"}"), 1,
                  ".spec.containers: duplicate entries for key [name=\"a\"]");
    assert_errors(f, CONTAINERS("1"), 1,
                  ".spec.containers: element 0: associative list with keys may not have non-map "
                  "elements");
    assert_errors(f, "{\"spec\":[]}", 1, ".spec: expected map, got &{[]}");
}

static void reported_errors_are_limited(void **state)
{
    struct fixture *f = *state;
    struct buf text = {0}, errors = {0};
    size_t count, lines = 1;
    assert_int_equal(buf_append_text(&text, "{\"metadata\":{\"labels\":{"), ST_OK);
    for (size_t i = 0; i < TYPED_ERRORS_MAX + 10; i++)
        assert_int_equal(buf_append_format(&text, "%s\"l%zu\":1", i ? "," : "", i), ST_OK);
    assert_int_equal(buf_append(&text, slice_of("}}}", 4)), ST_OK);
    assert_int_equal(
        typed_validate(&f->arena, pod(), tree(f, (const char *)text.ptr), &errors, &count), ST_OK);
    for (size_t i = 0; i < errors.len; i++)
        lines += errors.ptr[i] == '\n';
    assert_int_equal(count, TYPED_ERRORS_MAX + 10);
    assert_int_equal(lines, TYPED_ERRORS_MAX);
    buf_fini(&text);
    buf_fini(&errors);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_by_key_are_merged_item_by_item),
        cmocka_unit_test(merged_lists_have_the_order_of_the_configuration),
        cmocka_unit_test(atomic_lists_and_maps_are_replaced),
        cmocka_unit_test(duplicate_keys_in_a_configuration_are_refused),
        cmocka_unit_test(fields_are_found_by_type),
        cmocka_unit_test(differences_are_added_modified_or_removed),
        cmocka_unit_test(duplicate_items_are_compared_as_a_whole),
        cmocka_unit_test(a_container_that_loses_everything_becomes_null),
        cmocka_unit_test(named_fields_that_lead_to_members_become_members),
        cmocka_unit_test(types_that_became_atomic_are_owned_as_a_whole),
        cmocka_unit_test(values_of_wrong_types_are_reported),
        cmocka_unit_test(reported_errors_are_limited),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
