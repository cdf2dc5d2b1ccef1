#include "kube/types/defaults/defaults.h"

#include "kube/types/defaults/rows.h"
#include "kube/types/schema/strict.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { ARENA_BYTES = 256 << 20 };

static const struct kube_kind *kind_of(const char *group, const char *version, const char *plural)
{
    const struct kube_kind *kind = kube_builtin_find(
        slice_from_text(group), slice_from_text(version), slice_from_text(plural));
    assert_non_null(kind);
    return kind;
}

static struct json_node *tree(struct arena *arena, const char *text)
{
    struct json_node *root;
    struct error error;
    assert_int_equal(json_tree_read(arena, slice_from_text(text), &root, &error), ST_OK);
    return root;
}

static void assert_same(struct json_node *object, struct json_node *expected)
{
    AUTO(buf_fini) struct buf text = {0};
    if (json_node_equal(object, expected))
        return;
    assert_int_equal(json_tree_write(object, &text), ST_OK);
    fail_msg("%.*s", SLICE_ARGS(buf_slice(&text)));
}

/* A second time nothing changes. */
static void assert_defaults(const struct kube_kind *kind, const char *given, const char *expected)
{
    struct arena arena;
    struct kube_status status = {0};
    arena_init(&arena, NULL, 0, ARENA_BYTES);
    struct json_node *object = tree(&arena, given);
    for (int i = 0; i < 2; i++) {
        assert_true(kube_default(&arena, kind, object, &status));
        assert_same(object, tree(&arena, expected));
    }
    arena_fini(&arena);
}

#define POD_SPEC                                                                          \
    "\"dnsPolicy\":\"ClusterFirst\",\"restartPolicy\":\"Always\",\"securityContext\":{}," \
    "\"schedulerName\":\"default-scheduler\",\"terminationGracePeriodSeconds\":30"
#define CONTAINER \
    "\"terminationMessagePath\":\"/dev/termination-log\",\"terminationMessagePolicy\":\"File\""

static void a_pod_gets_what_the_client_omitted(void **state)
{
    (void)state;
    assert_defaults(
        kind_of("", "v1", "pods"),
        "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"containers\":[{\"name\":\"c\","
        "\"image\":\"nginx\",\"ports\":[{\"containerPort\":80}],\"resources\":{\"limits\":"
        "{\"cpu\":\"1000m\",\"memory\":\"1024Mi\"},\"requests\":{\"cpu\":\"0.5\"}},"
        "\"livenessProbe\":{\"httpGet\":{\"port\":1}}}]}}",
        "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"containers\":[{\"name\":\"c\","
        "\"image\":\"nginx\",\"ports\":[{\"containerPort\":80,\"protocol\":\"TCP\"}],"
        "\"resources\":{\"limits\":{\"cpu\":\"1\",\"memory\":\"1Gi\"},\"requests\":"
        "{\"cpu\":\"500m\",\"memory\":\"1Gi\"}},\"imagePullPolicy\":\"Always\"," CONTAINER
        ",\"livenessProbe\":{\"httpGet\":{\"port\":1,\"path\":\"/\",\"scheme\":\"HTTP\"},"
        "\"timeoutSeconds\":1,\"periodSeconds\":10,\"successThreshold\":1,"
        "\"failureThreshold\":3}}]," POD_SPEC ",\"enableServiceLinks\":true},\"status\":{}}");
}

/* In a template, requests are not set from limits, and enableServiceLinks is not set. */
static void a_deployment_gets_its_strategy_and_the_defaults_of_its_template(void **state)
{
    (void)state;
    assert_defaults(
        kind_of("apps", "v1", "deployments"),
        "{\"metadata\":{},\"spec\":{\"selector\":{},\"strategy\":{\"rollingUpdate\":"
        "{\"maxSurge\":0}},\"template\":{\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":"
        "\"a:1\",\"resources\":{\"limits\":{\"cpu\":2}}}]}}}}",
        "{\"metadata\":{},\"spec\":{\"selector\":{},\"strategy\":{\"type\":\"RollingUpdate\","
        "\"rollingUpdate\":{\"maxSurge\":0,\"maxUnavailable\":\"25%\"}},\"replicas\":1,"
        "\"revisionHistoryLimit\":10,\"progressDeadlineSeconds\":600,\"template\":{\"metadata\":{},"
        "\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"a:1\",\"imagePullPolicy\":"
        "\"IfNotPresent\",\"resources\":{\"limits\":{\"cpu\":\"2\"}}," CONTAINER "}]," POD_SPEC
        "}}},\"status\":{}}");
}

static void values_that_go_loses_are_removed(void **state)
{
    (void)state;
    assert_defaults(kind_of("", "v1", "configmaps"),
                    "{\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\",\"labels\":{},"
                    "\"creationTimestamp\":null,\"managedFields\":[]},\"data\":{},"
                    "\"immutable\":false}",
                    "{\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\",\"managedFields\":[]},"
                    "\"immutable\":false}");
    assert_defaults(kind_of("rbac.authorization.k8s.io", "v1", "roles"), "{\"rules\":[]}",
                    "{\"metadata\":{},\"rules\":null}");
}

/* A zero is absent where Go cannot tell the difference, and a value where it can. */
static void a_zero_is_absent_unless_the_field_is_a_pointer(void **state)
{
    (void)state;
    assert_defaults(kind_of("flowcontrol.apiserver.k8s.io", "v1", "flowschemas"),
                    "{\"metadata\":{},\"spec\":{\"matchingPrecedence\":0,"
                    "\"priorityLevelConfiguration\":{\"name\":\"x\"}}}",
                    "{\"metadata\":{},\"spec\":{\"matchingPrecedence\":1000,"
                    "\"priorityLevelConfiguration\":{\"name\":\"x\"}},\"status\":{}}");
    assert_defaults(kind_of("apps", "v1", "replicasets"),
                    "{\"metadata\":{},\"spec\":{\"replicas\":0,\"selector\":{},"
                    "\"template\":{\"spec\":{\"terminationGracePeriodSeconds\":0}}}}",
                    "{\"metadata\":{},\"spec\":{\"replicas\":0,\"selector\":{},\"template\":"
                    "{\"metadata\":{},\"spec\":{\"containers\":null,\"dnsPolicy\":\"ClusterFirst\","
                    "\"restartPolicy\":\"Always\",\"securityContext\":{},\"schedulerName\":"
                    "\"default-scheduler\",\"terminationGracePeriodSeconds\":0}}},"
                    "\"status\":{\"replicas\":0}}");
}

/* One member of an object, written with single quotes. */
static void assert_member(const char *plural, const char *member, const char *given,
                          const char *expected)
{
    struct arena arena;
    struct kube_status status = {0};
    char texts[2][512];
    snprintf(texts[0], sizeof(texts[0]), "{\"%s\":{%s}}", member, given);
    snprintf(texts[1], sizeof(texts[1]), "{\"%s\":{%s}}", member, expected);
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        for (char *at = texts[i]; *at; at++)
            *at = *at == '\'' ? '"' : *at;
    arena_init(&arena, NULL, 0, ARENA_BYTES);
    struct json_node *object = tree(&arena, texts[0]);
    assert_true(kube_default_member(&arena, kind_of("", "v1", plural), object,
                                    slice_from_text(member), &status));
    assert_same(object, tree(&arena, texts[1]));
    arena_fini(&arena);
}

static void a_write_to_status_completes_the_status_alone(void **state)
{
    struct arena arena;
    struct kube_status status = {0};
    (void)state;
    arena_init(&arena, NULL, 0, ARENA_BYTES);
    struct json_node *node = tree(&arena, "{\"spec\":{\"taints\":[]},\"status\":{\"capacity\":"
                                          "{\"cpu\":\"2000m\"}}}");
    assert_true(kube_default_member(&arena, kind_of("", "v1", "nodes"), node,
                                    SLICE_LITERAL("status"), &status));
    assert_same(node, tree(&arena, "{\"spec\":{\"taints\":[]},\"status\":{\"capacity\":{\"cpu\":"
                                   "\"2\"},\"allocatable\":{\"cpu\":\"2\"},\"daemonEndpoints\":"
                                   "{\"kubeletEndpoint\":{\"Port\":0}},\"nodeInfo\":"
                                   "{\"machineID\":\"\",\"systemUUID\":\"\",\"bootID\":\"\","
                                   "\"kernelVersion\":\"\",\"osImage\":\"\","
                                   "\"containerRuntimeVersion\":\"\",\"kubeletVersion\":\"\","
                                   "\"kubeProxyVersion\":\"\",\"operatingSystem\":\"\","
                                   "\"architecture\":\"\"}}}"));
    arena_fini(&arena);
}

static void an_address_and_the_first_of_its_list_are_the_same(void **state)
{
    (void)state;
    static const struct {
        const char *given, *expected;
    } nodes[] =
        {
            {"'podCIDR':'a'", "'podCIDR':'a','podCIDRs':['a']"},
            {"'podCIDRs':['a','b']", "'podCIDR':'a','podCIDRs':['a','b']"},
            {"'podCIDR':'a','podCIDRs':['a','b']", "'podCIDR':'a','podCIDRs':['a','b']"},
            {"'podCIDR':'a','podCIDRs':['b']", "'podCIDR':'a','podCIDRs':['a']"},
            {"'podCIDR':'','podCIDRs':[]", ""},
        },
      pods[] = {
          {"'podIP':'a'", "'podIP':'a','podIPs':[{'ip':'a'}]"},
          {"'podIPs':[{'ip':'a'},{'ip':'b'}]", "'podIP':'a','podIPs':[{'ip':'a'},{'ip':'b'}]"},
          {"'podIP':'a','podIPs':[{'ip':'b'}]", "'podIP':'a','podIPs':[{'ip':'a'}]"},
          {"'podIP':'a','podIPs':[{}]", "'podIP':'a','podIPs':[{'ip':'a'}]"},
      };
    for (size_t i = 0; i < COUNT_OF(nodes); i++)
        assert_member("nodes", "spec", nodes[i].given, nodes[i].expected);
    for (size_t i = 0; i < COUNT_OF(pods); i++)
        assert_member("pods", "status", pods[i].given, pods[i].expected);
}

/* A patch does not complete what it does not touch. */
static void a_member_that_has_not_changed_is_not_walked(void **state)
{
    struct arena arena;
    struct kube_status status = {0};
    const struct kube_kind *kind = kind_of("apps", "v1", "replicasets");
    (void)state;
    arena_init(&arena, NULL, 0, ARENA_BYTES);
    const char *before =
        "{\"metadata\":{\"labels\":{}},\"spec\":{\"selector\":{},\"template\":null}}";
    struct json_node *object = tree(&arena, before);
    assert_true(kube_default_changed(&arena, kind, tree(&arena, before), object, &status));
    assert_same(object, tree(&arena, "{\"metadata\":{\"labels\":{}},\"spec\":{\"selector\":{},"
                                     "\"template\":null},\"status\":{\"replicas\":0}}"));
    assert_true(kube_default_changed(&arena, kind, tree(&arena, "{\"metadata\":{},\"spec\":{}}"),
                                     object, &status));
    assert_same(json_node_named(object, "metadata"), tree(&arena, "{}"));
    assert_non_null(json_node_path(object, "spec.replicas"));
    arena_fini(&arena);
}

static void custom_resources_and_definitions_are_left_alone(void **state)
{
    static const struct kube_kind custom = {.group = "example.com",
                                            .version = "v1",
                                            .kind = "Pod",
                                            .plural = "pods",
                                            .flags = KUBE_CUSTOM};
    (void)state;
    assert_defaults(&custom, "{\"spec\":null}", "{\"spec\":null}");
    assert_defaults(kind_of("apiextensions.k8s.io", "v1", "customresourcedefinitions"),
                    "{\"spec\":null}", "{\"spec\":null}");
}

/* -- The table -- */

static const struct kube_type *find_type(const char *name)
{
    for (size_t i = 0; i < kube_type_count(); i++) {
        char full[256];
        const struct kube_type *type = kube_type_at(i);
        snprintf(full, sizeof(full), "%s.%s", kube_type_package(type), kube_type_name(type));
        if (strcmp(full, name) == 0)
            return type;
    }
    fail_msg("there is no type %s", name);
    return NULL;
}

static void rows_are_ordered_and_name_fields_that_exist(void **state)
{
    size_t count;
    const struct default_row *rows = default_rows(&count);
    (void)state;
    assert_in_range(count, 100, 1000);
    for (size_t i = 0; i < count; i++) {
        const struct kube_type *type = find_type(rows[i].type);
        char path[64];
        assert_true(i == 0 || strcmp(rows[i - 1].type, rows[i].type) <= 0);
        snprintf(path, sizeof(path), "%s", rows[i].field);
        char *dot = strchr(path, '.');
        if (dot) {
            *dot = '\0';
            type = kube_field_type(kube_type_field(type, slice_from_text(path)));
        }
        if (!kube_type_field(type, slice_from_text(dot ? dot + 1 : path)))
            fail_msg("%s has no field %s", rows[i].type, rows[i].field);
    }
}

static void every_rule_belongs_to_a_type(void **state)
{
    size_t found = 0;
    (void)state;
    for (size_t i = 0; i < kube_type_count(); i++)
        found += default_plan_of(kube_type_at(i))->rule != NULL;
    assert_int_equal(found, default_rules_count());
}

/* -- Hostile objects -- */

static const char *const values[] = {"null",
                                     "true",
                                     "0",
                                     "-1",
                                     "1e999",
                                     "\"\"",
                                     "\"x\"",
                                     "[]",
                                     "[[]]",
                                     "[null]",
                                     "[{}]",
                                     "{}",
                                     "{\"x\":1}",
                                     "{\"x\":null}",
                                     "{\"type\":3}",
                                     "\"\\u0000\"",
                                     "[{\"x\":[]},1,\"y\"]"};

static struct json_node *make(struct arena *arena, const struct kube_type *type, size_t which,
                              unsigned depth);

/* This value, or down to a depth an object of the field's type. */
static struct json_node *make_value(struct arena *arena, const struct kube_field *field,
                                    size_t which, unsigned depth)
{
    const struct kube_type *type = kube_field_type(field);
    if (!type || !depth)
        return tree(arena, values[which]);
    struct json_node *value = make(arena, type, which, depth - 1), *holder;
    if (field->shape == KUBE_SHAPE_ONE)
        return value;
    bool list = field->shape <= KUBE_SHAPE_WRAPPED_LIST;
    holder = json_node_new(arena, list ? JSON_TYPE_ARRAY : JSON_TYPE_OBJECT);
    assert_int_equal(list ? json_node_insert(holder, NULL, value)
                          : json_node_set(arena, holder, SLICE_LITERAL("k"), value),
                     ST_OK);
    return holder;
}

/* An object with every field of the type. */
static struct json_node *make(struct arena *arena, const struct kube_type *type, size_t which,
                              unsigned depth)
{
    struct json_node *object = json_node_new(arena, JSON_TYPE_OBJECT);
    const struct kube_field *field = kube_type_fields(type);
    for (size_t i = 0; i < type->field_count; i++, field++) {
        bool inlined = field->flags & KUBE_FIELD_INLINE;
        struct json_node *value = make_value(arena, field, which, inlined ? depth + 1 : depth);
        while (inlined && value->first) {
            struct json_node *member = json_node_first(value);
            assert_int_equal(json_node_set(arena, object, member->key, member), ST_OK);
        }
        if (!inlined)
            assert_int_equal(json_node_set(arena, object, kube_field_name(field), value), ST_OK);
    }
    return object;
}

static void wrong_types_at_every_place_do_no_harm(void **state)
{
    size_t count;
    const struct kube_kind *kinds = kube_builtin_kinds(&count);
    (void)state;
    for (size_t i = 0; i < count; i++) {
        const struct kube_type *type = kube_type_of_kind(&kinds[i]);
        for (size_t which = 0; type && which < COUNT_OF(values); which++) {
            for (unsigned depth = 0; depth < 5; depth++) {
                struct arena arena;
                struct kube_status status = {0};
                arena_init(&arena, NULL, 0, ARENA_BYTES);
                struct json_node *object = make(&arena, type, which, depth);
                assert_true(kube_default(&arena, &kinds[i], object, &status));
                arena_fini(&arena);
            }
        }
    }
}

/* What has been defaulted is accepted by the decoder, and nothing in it is unknown. */
static void defaults_fit_the_types(void **state)
{
    size_t count;
    const struct kube_kind *kinds = kube_builtin_kinds(&count);
    (void)state;
    for (size_t i = 0; i < count; i++) {
        struct arena arena;
        struct kube_status status = {0};
        struct error error = {0};
        AUTO(buf_fini) struct buf unknown = {0};
        const struct kube_type *type = kube_type_of_kind(&kinds[i]);
        if (!type)
            continue;
        arena_init(&arena, NULL, 0, ARENA_BYTES);
        struct json_node *object = make(&arena, type, 0, 4);
        assert_true(kube_default(&arena, &kinds[i], object, &status));
        if (kube_strict(type, object, &unknown, &error) != ST_OK || unknown.len)
            fail_msg("%s: %s %.*s", kinds[i].kind, error.text, SLICE_ARGS(buf_slice(&unknown)));
        arena_fini(&arena);
    }
}

/* Wherever the memory ends, it is reported. */
static void running_out_of_memory_is_an_error(void **state)
{
    const struct kube_kind *kind = kind_of("apps", "v1", "deployments");
    bool done = false;
    (void)state;
    for (size_t extra = 0; !done; extra += 512) {
        struct arena arena;
        struct kube_status status = {0};
        arena_init(&arena, NULL, 0, ARENA_BYTES);
        struct json_node *object =
            tree(&arena, "{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"a\"},"
                         "{\"name\":\"b\"},{\"name\":\"c\"}],\"volumes\":[{\"name\":\"a\"}]}}}}");
        arena.limit_bytes = arena.held_bytes + extra;
        done = kube_default(&arena, kind, object, &status);
        assert_true(done == !arena_ran_out(&arena));
        assert_true(done || status.reason != KUBE_OK);
        arena_fini(&arena);
        assert_in_range(extra, 0, 1 << 20);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pod_gets_what_the_client_omitted),
        cmocka_unit_test(a_deployment_gets_its_strategy_and_the_defaults_of_its_template),
        cmocka_unit_test(values_that_go_loses_are_removed),
        cmocka_unit_test(a_zero_is_absent_unless_the_field_is_a_pointer),
        cmocka_unit_test(a_write_to_status_completes_the_status_alone),
        cmocka_unit_test(an_address_and_the_first_of_its_list_are_the_same),
        cmocka_unit_test(a_member_that_has_not_changed_is_not_walked),
        cmocka_unit_test(custom_resources_and_definitions_are_left_alone),
        cmocka_unit_test(rows_are_ordered_and_name_fields_that_exist),
        cmocka_unit_test(every_rule_belongs_to_a_type),
        cmocka_unit_test(wrong_types_at_every_place_do_no_harm),
        cmocka_unit_test(defaults_fit_the_types),
        cmocka_unit_test(running_out_of_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
