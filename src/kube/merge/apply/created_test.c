#include "kube/merge/apply/created.h"

#include "kube/merge/apply/apply.h"
#include "kube/merge/apply/fixture_test.h"
#include "kube/types/schema/zero.h"

#define POD                                                                                        \
    "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"n\",\"name\":\"p\","    \
    "\"labels\":{\"b\":\"1\",\"a\":\"2\"},\"ownerReferences\":[{\"uid\":\"u\","                    \
    "\"name\":\"o\"}]},\"spec\":{\"restartPolicy\":\"Always\","                                    \
    "\"containers\":[{\"name\":\"y\",\"image\":\"i\",\"resources\":{},\"env\":[{\"name\":\"E\"}]," \
    "\"ports\":[{\"containerPort\":80},{\"protocol\":\"UDP\",\"containerPort\":80}],"              \
    "\"args\":[\"q\",\"p\"],\"securityContext\":{}},{\"name\":\"x\",\"image\":\"i\"}],"            \
    "\"nodeSelector\":{\"k\":\"v\"},\"tolerations\":[{\"key\":\"k\"}]},\"status\":{\"phase\":"     \
    "\"Running\"}}"

static const struct field_set *reset_of(struct fixture *f, bool resets)
{
    const char *const status[] = {"status"};
    const struct field_set *set = NULL;
    if (resets)
        assert_int_equal(field_set_of_path(&f->arena, status, 1, &set), ST_OK);
    return set;
}

static struct created created_of(struct fixture *f, const char *version, const char *kind,
                                 bool resets)
{
    return (struct created){
        .arena = &f->arena,
        .type = {.kind = APPLY_TYPE_MESSAGE,
                 .of = kube_type_find(slice_from_text(version), slice_from_text(kind))},
        .reset = reset_of(f, resets),
        .manager = {.name = SLICE_LITERAL("m"), .api_version = slice_from_text(version)},
        .now = SLICE_LITERAL("2026-11-15T06:00:00Z"),
    };
}

static bool version_known(const struct apply_request *apply, struct slice api_version)
{
    (void)apply, (void)api_version;
    return true;
}

/* What a comparison with the zero object says. */
static struct json_node *compared(struct fixture *f, const struct created *created,
                                  const struct json_node *object)
{
    struct apply_request apply = {
        .typed = {.arena = &f->arena, .why = &f->error},
        .type = created->type,
        .manager = created->manager,
        .now = created->now,
        .reset = created->reset,
        .version_known = version_known,
    };
    struct managed managed = {.arena = &f->arena};
    struct json_node *zero = tree(f, "{}"), *list;
    if (created->type.kind == APPLY_TYPE_MESSAGE)
        assert_int_equal(kube_zero_object(&f->arena, created->type.of, &zero), ST_OK);
    assert_int_equal(apply_update(&apply, zero, object, &managed), ST_OK);
    assert_int_equal(managed_write(&managed, &list), ST_OK);
    return list;
}

static void assert_compared(struct fixture *f, const struct created *created, const char *text)
{
    AUTO(buf_fini) struct buf expected = {0};
    struct json_node *object = tree(f, text), *list, *other = compared(f, created, object);
    assert_int_equal(created_list(created, object, &list), ST_OK);
    if (other)
        assert_int_equal(json_tree_write(other, &expected), ST_OK);
    assert_int_equal(buf_append(&expected, slice_of("", 1)), ST_OK);
    assert_tree(list, (const char *)expected.ptr);
}

static void the_walk_finds_what_a_comparison_finds(void **state)
{
    static const struct {
        const char *version, *kind, *object;
    } rows[] = {
        {"v1", "Pod", POD},
        {"v1", "Pod", "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"containers\":[]}}"},
        {"v1", "Pod", "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"containers\":null}}"},
        {"v1", "ConfigMap", "{\"metadata\":{\"name\":\"c\",\"uid\":\"u\"}}"},
        {"v1", "ConfigMap", "{\"metadata\":{\"name\":\"c\"},\"data\":{\"b\":\"\",\"a\":\"x\"}}"},
        {"v1", "ConfigMap", "{\"metadata\":{\"name\":\"c\",\"finalizers\":[\"b\",\"a\"]}}"},
        {"v1", "Secret", "{\"metadata\":{\"name\":\"s\"}}"},
        {"apps/v1", "Deployment",
         "{\"metadata\":{\"name\":\"d\"},\"spec\":{\"replicas\":0,\"selector\":{\"matchLabels\":{"
         "\"a\":\"b\"}},\"strategy\":{},\"template\":{\"metadata\":{\"labels\":{\"a\":\"b\"}},"
         "\"spec\":{\"containers\":[{\"name\":\"c\"}]}}},\"status\":{}}"},
        {"v1", "Service",
         "{\"metadata\":{\"name\":\"s\"},\"spec\":{\"ports\":[{\"port\":80,\"targetPort\":0},"
         "{\"port\":80,\"protocol\":\"UDP\",\"targetPort\":\"x\"}]},\"status\":{\"loadBalancer\":{}"
         "}}"},
        {"rbac.authorization.k8s.io/v1", "Role", "{\"metadata\":{\"name\":\"r\"},\"rules\":[]}"},
        /* Names out of order, and with what JSON and Go escape. */
        {"v1", "Pod",
         "{\"metadata\":{\"name\":\"p\",\"labels\":{\"\\\"\":\"1\",\"<\":\"2\",\"\\u00e9\":\"3\"}},"
         "\"spec\":{\"containers\":[{\"name\":\"c\",\"env\":[{\"name\":\"b\"},{\"name\":\"a\"}]}]}"
         "}"},
        {"v1", "Pod", "{\"spec\":{\"containers\":[{\"name\":\"a\\\"b\"},{\"name\":\"c\"}]}}"},
        {"v1", "Pod", "{\"spec\":{\"containers\":[{\"name\":\"a\\tb\"},{\"name\":\"c\"}]}}"},
        {"v1", "Pod", "{\"spec\":{\"containers\":[{\"name\":\"a<b\"},{\"name\":\"c\"}]}}"},
        {"v1", "Pod", "{\"spec\":{\"containers\":[{\"name\":\"a>b\"},{\"name\":\"c\"}]}}"},
        {"v1", "Pod", "{\"spec\":{\"containers\":[{\"name\":\"a&b\"},{\"name\":\"c\"}]}}"},
        {"v1", "Pod", "{\"spec\":{\"containers\":[{\"name\":\"\\u00e9\"},{\"name\":\"c\"}]}}"},
        {"v1", "Pod", "{\"spec\":{\"containers\":[{\"name\":\"\"},{\"name\":\"c\"}]}}"},
        /* Items with the same members, and with others. */
        {"v1", "Pod",
         "{\"spec\":{\"containers\":[{\"name\":\"c\",\"env\":[{\"name\":\"a\",\"value\":\"1\"},"
         "{\"name\":\"b\",\"value\":\"\"},{\"name\":\"c\",\"value\":null},{\"name\":\"d\"},"
         "{\"name\":\"e\"},{\"value\":\"1\",\"name\":\"f\"},{\"name\":\"g\",\"value\":\"1\"},"
         "{\"name\":\"h\",\"valueFrom\":{\"fieldRef\":{}}},{\"name\":\"i\",\"valueFrom\":{}},"
         "{\"name\":\"j\",\"valueFrom\":{}},{\"name\":\"k\",\"x\":1},{\"name\":\"l\",\"x\":2}]}]}"
         "}"},
        /* As many members under other names. */
        {"v1", "Pod",
         "{\"spec\":{\"containers\":[{\"name\":\"a\",\"image\":\"i\"},{\"name\":\"b\","
         "\"tty\":true},{\"name\":\"c\",\"tty\":false},{\"name\":\"d\",\"image\":\"i\"}]}}"},
        {"v1", "Pod", "{\"spec\":{\"containers\":[{\"name\":null},{\"name\":\"c\"}]}}"},
        {"v1", "Pod", "{\"spec\":{\"containers\":[{\"name\":5},{\"name\":\"c\"}]}}"},
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        for (unsigned resets = 0; resets < 2; resets++) {
            struct created created = created_of(f, rows[i].version, rows[i].kind, resets);
            assert_compared(f, &created, rows[i].object);
        }
    }
}

static void a_type_that_is_not_known_is_deduced(void **state)
{
    struct fixture *f = *state;
    struct created created = created_of(f, "v1", "Pod", true);
    created.type = (struct apply_type){.kind = APPLY_TYPE_DEDUCED};
    assert_compared(f, &created,
                    "{\"kind\":\"X\",\"metadata\":{\"name\":\"x\",\"labels\":{\"a\":\"b\"}},"
                    "\"spec\":{\"list\":[{\"a\":1}],\"map\":{},\"n\":null},\"status\":{\"a\":1}}");
}

static void the_list_has_one_update(void **state)
{
    struct fixture *f = *state;
    struct created created = created_of(f, "v1", "Pod", true);
    struct json_node *list;
    assert_int_equal(created_list(&created, tree(f, POD), &list), ST_OK);
    assert_tree(
        list,
        "[{\"manager\":\"m\",\"operation\":\"Update\",\"apiVersion\":\"v1\",\"time\":"
        "\"2026-11-15T06:00:00Z\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{\"f:metadata\":{"
        "\"f:labels\":{\".\":{},\"f:a\":{},\"f:b\":{}},\"f:ownerReferences\":{\".\":{},"
        "\"k:{\\\"uid\\\":\\\"u\\\"}\":{}}},\"f:spec\":{\"f:containers\":{\"k:{\\\"name\\\":"
        "\\\"x\\\"}\":{\".\":{},\"f:image\":{},\"f:name\":{}},\"k:{\\\"name\\\":\\\"y\\\"}\":{"
        "\".\":{},\"f:args\":{},\"f:env\":{\".\":{},\"k:{\\\"name\\\":\\\"E\\\"}\":{\".\":{},"
        "\"f:name\":{}}},\"f:image\":{},\"f:name\":{},\"f:ports\":{\".\":{},"
        "\"k:{\\\"containerPort\\\":80,\\\"protocol\\\":\\\"TCP\\\"}\":{\".\":{},"
        "\"f:containerPort\":{}},\"k:{\\\"containerPort\\\":80,\\\"protocol\\\":\\\"UDP\\\"}\":{"
        "\".\":{},\"f:containerPort\":{},\"f:protocol\":{}}},\"f:resources\":{},"
        "\"f:securityContext\":{}}},\"f:nodeSelector\":{},\"f:restartPolicy\":{},"
        "\"f:tolerations\":{}}}}]");
    /* A configuration without fields has no manager. */
    assert_int_equal(created_list(&created, tree(f, "{\"metadata\":{\"name\":\"p\"}}"), &list),
                     ST_OK);
    assert_null(list);
}

/* Before that, what is owned is only a text. */
static void the_fields_become_a_tree_on_demand(void **state)
{
    struct fixture *f = *state;
    struct created created = created_of(f, "v1", "Pod", true);
    struct json_node *object = tree(f, POD), *list, *text, *entry;
    assert_int_equal(created_list(&created, object, &list), ST_OK);
    assert_int_equal(
        json_node_put(&f->arena, json_node_named(object, "metadata"), "managedFields", list),
        ST_OK);
    text = json_node_copy(&f->arena, object);
    const struct json_node *labels =
        json_node_path(json_node_item(list, 0), "fieldsV1.f:metadata.f:labels");
    assert_null(labels);
    assert_int_equal(created_expand(&f->arena, object), ST_OK);
    labels = json_node_path(json_node_item(list, 0), "fieldsV1.f:metadata.f:labels");
    assert_int_equal(labels->count, 3);
    AUTO(buf_fini) struct buf before = {0};
    assert_int_equal(json_tree_write(text, &before), ST_OK);
    assert_int_equal(buf_append(&before, slice_of("", 1)), ST_OK);
    assert_tree(object, (const char *)before.ptr);
    /* Again, and of an object without managers. */
    entry = json_node_item(list, 0);
    assert_int_equal(created_expand(&f->arena, object), ST_OK);
    assert_ptr_equal(json_node_item(list, 0), entry);
    assert_int_equal(created_expand(&f->arena, tree(f, "{}")), ST_OK);
}

static void items_that_are_the_same_need_a_comparison(void **state)
{
    struct fixture *f = *state;
    struct created created = created_of(f, "v1", "Pod", true);
    struct json_node *list;
    assert_int_equal(
        created_list(&created,
                     tree(f, "{\"spec\":{\"containers\":[{\"name\":\"c\",\"env\":[{\"name\":"
                             "\"E\"},{\"name\":\"E\"}]}]}}"),
                     &list),
        ST_NOT_FOUND);
    assert_int_equal(created_list(&created, tree(f, "{\"spec\":{\"containers\":[null]}}"), &list),
                     ST_NOT_FOUND);
}

static void a_small_arena_is_not_enough(void **state)
{
    struct fixture *f = *state;
    struct created created = created_of(f, "v1", "Pod", true);
    struct json_node *list, *object = tree(f, POD);
    for (size_t bytes = 16; bytes < 4096; bytes *= 2) {
        AUTO(arena_fini) struct arena small;
        arena_init(&small, NULL, 0, bytes);
        created.arena = &small;
        assert_int_equal(created_list(&created, object, &list), ST_NOMEM);
    }
}

static void objects_of_the_server_are_its_own(void **state)
{
    struct fixture *f = *state;
    const struct kube_kind *kind =
        kube_builtin_find(SLICE_EMPTY, SLICE_LITERAL("v1"), SLICE_LITERAL("namespaces"));
    struct json_node *object =
        tree(f, "{\"metadata\":{\"name\":\"n\",\"labels\":{\"a\":\"n\"}},\"status\":{\"x\":1}}");
    assert_int_equal(created_by_server(&f->arena, kind, 0, object), ST_OK);
    assert_tree(json_node_path(object, "metadata.managedFields"),
                "[{\"manager\":\"kube-apiserver\",\"operation\":\"Update\",\"apiVersion\":\"v1\","
                "\"time\":\"1970-01-01T00:00:00Z\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{"
                "\"f:metadata\":{\"f:labels\":{\".\":{},\"f:a\":{}}}}}]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_walk_finds_what_a_comparison_finds),
        cmocka_unit_test(a_type_that_is_not_known_is_deduced),
        cmocka_unit_test(the_list_has_one_update),
        cmocka_unit_test(the_fields_become_a_tree_on_demand),
        cmocka_unit_test(items_that_are_the_same_need_a_comparison),
        cmocka_unit_test(a_small_arena_is_not_enough),
        cmocka_unit_test(objects_of_the_server_are_its_own),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
