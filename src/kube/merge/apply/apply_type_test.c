#include "kube/merge/apply/apply_type.h"

#include "kube/custom/schema/patterns.h"
#include "kube/merge/apply/fixture_test.h"
#include "kube/types/schema/zero.h"

static struct apply_type message(const char *version, const char *kind)
{
    return (struct apply_type){.kind = APPLY_TYPE_MESSAGE,
                               .of =
                                   kube_type_find(slice_from_text(version), slice_from_text(kind))};
}

/* The type at a path such as "spec.containers[].ports". */
static struct apply_type at(struct apply_type type, const char *path)
{
    while (*path) {
        struct apply_rules rules = apply_rules_of(type);
        size_t len = strcspn(path, ".");
        bool named, item = len > 2 && path[len - 1] == ']';
        type = apply_rules_member(type, &rules, slice_of(path, item ? len - 2 : len), &named);
        assert_true(named);
        if (item)
            type = apply_rules_of(type).item;
        path += len + (path[len] == '.');
    }
    return type;
}

static void lists_and_maps_follow_their_types(void **state)
{
    (void)state;
    struct apply_type pod = message("v1", "Pod");
    assert_true(apply_rules_of(at(pod, "spec.containers")).list_keyed);
    assert_true(apply_rules_of(at(pod, "spec.containers[].args")).list_atomic);
    assert_true(apply_rules_of(at(pod, "spec.nodeSelector")).map_atomic);
    assert_false(apply_rules_of(at(pod, "metadata.labels")).map_atomic);
    assert_false(apply_rules_of(at(pod, "metadata.finalizers")).list_atomic);
    assert_false(apply_rules_of(at(pod, "metadata.finalizers")).list_keyed);
    assert_true(apply_rules_of(at(pod, "metadata.ownerReferences[]")).map_atomic);
    assert_int_equal(apply_rules_of(at(pod, "spec.containers[].image")).scalar,
                     APPLY_SCALAR_STRING);
    assert_int_equal(apply_rules_of(at(pod, "spec.hostPID")).scalar, APPLY_SCALAR_BOOLEAN);
    assert_int_equal(apply_rules_of(at(pod, "spec.priority")).scalar, APPLY_SCALAR_NUMERIC);
}

static void a_field_can_be_granular_where_its_type_is_atomic(void **state)
{
    (void)state;
    assert_false(apply_rules_of(at(message("v1", "PersistentVolume"), "spec.claimRef")).map_atomic);
    assert_true(apply_rules_of(at(message("v1", "ServiceAccount"), "secrets[]")).map_atomic);
}

static void keys_have_defaults(void **state)
{
    (void)state;
    struct apply_type ports = at(message("v1", "Pod"), "spec.containers[].ports");
    struct apply_type_key key;
    size_t n = 0;
    assert_true(apply_type_key(ports, &n, &key));
    assert_true(slice_is(key.name, "containerPort"));
    assert_true(slice_is(key.preset, "0"));
    assert_true(apply_type_key(ports, &n, &key));
    assert_true(slice_is(key.name, "protocol"));
    assert_true(slice_is(key.preset, "\"TCP\""));
    assert_false(apply_type_key(ports, &n, &key));
}

static void the_value_decides_between_several_forms(void **state)
{
    struct fixture *f = *state;
    struct apply_rules any = apply_rules_of((struct apply_type){.kind = APPLY_TYPE_DEDUCED});
    assert_int_equal(apply_rules_forms(&any, tree(f, "1")), APPLY_FORM_SCALAR);
    assert_int_equal(apply_rules_forms(&any, tree(f, "[]")), APPLY_FORM_LIST);
    assert_int_equal(apply_rules_forms(&any, tree(f, "{}")), APPLY_FORM_MAP);
    assert_int_equal(apply_rules_forms(&any, tree(f, "null")), any.forms);
    assert_int_equal(apply_rules_forms(&any, NULL), any.forms);
}

static void zero_values_have_the_fields_without_omitempty(void **state)
{
    struct fixture *f = *state;
    struct json_node *zero;
    assert_int_equal(kube_zero_object(&f->arena, message("apps/v1", "Deployment").of, &zero),
                     ST_OK);
    assert_tree(zero, "{\"metadata\":{},\"spec\":{\"selector\":null,\"template\":{\"metadata\":{},"
                      "\"spec\":{\"containers\":null}},\"strategy\":{}},\"status\":{}}");
}

static void schemas_of_custom_resources_are_types_too(void **state)
{
    struct fixture *f = *state;
    const struct schema *schema;
    struct patterns patterns;
    struct schema_traits traits = {0};
    struct json_node *node = tree(
        f, "{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"object\",\"properties\":{"
           "\"list\":{\"type\":\"array\",\"x-kubernetes-list-type\":\"map\","
           "\"x-kubernetes-list-map-keys\":[\"n\"],\"items\":{\"type\":\"object\",\"properties\":{"
           "\"n\":{\"type\":\"string\",\"default\":\"d\"}}}},"
           "\"whole\":{\"type\":\"object\",\"x-kubernetes-map-type\":\"atomic\"},"
           "\"free\":{\"type\":\"object\",\"x-kubernetes-preserve-unknown-fields\":true,"
           "\"properties\":{\"in\":{\"type\":\"object\",\"properties\":{\"x\":{\"type\":\"string\"}"
           "}}}},"
           "\"either\":{\"x-kubernetes-int-or-string\":true}}}}}");
    patterns_init(&patterns, &f->arena);
    assert_int_equal(schema_compile(&f->arena, &patterns, node, &schema, &traits, &f->error),
                     ST_OK);
    patterns_fini(&patterns);
    struct apply_type type = {.kind = APPLY_TYPE_RESOURCE, .of = schema};
    struct apply_type_key key;
    size_t n = 0;
    assert_true(apply_type_key(at(type, "spec.list"), &n, &key));
    assert_true(key.preset_node && json_node_is_text(key.preset_node, "d"));
    assert_true(apply_rules_of(at(type, "spec.whole")).map_atomic);
    assert_int_equal(apply_rules_of(at(type, "spec")).rest.kind, APPLY_TYPE_NOTHING);
    assert_int_equal(apply_rules_of(at(type, "spec.free.in")).rest.kind, APPLY_TYPE_DEDUCED);
    assert_int_equal(apply_rules_of(at(type, "spec.either")).forms,
                     APPLY_FORM_MAP | APPLY_FORM_SCALAR | APPLY_FORM_LIST);
    assert_int_equal(apply_rules_of(at(type, "metadata.labels")).forms, APPLY_FORM_MAP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_and_maps_follow_their_types),
        cmocka_unit_test(a_field_can_be_granular_where_its_type_is_atomic),
        cmocka_unit_test(keys_have_defaults),
        cmocka_unit_test(the_value_decides_between_several_forms),
        cmocka_unit_test(zero_values_have_the_fields_without_omitempty),
        cmocka_unit_test(schemas_of_custom_resources_are_types_too),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
