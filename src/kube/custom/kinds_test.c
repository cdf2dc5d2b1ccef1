#include "kube/custom/kinds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define VERSION(name, served, storage)                                                \
    "{\"name\":\"" name "\",\"served\":" served ",\"storage\":" storage               \
    ",\"schema\":{\"openAPIV3Schema\":{\"type\":\"object\",\"properties\":{\"spec\":" \
    "{\"type\":\"object\"}}}}}"
#define DEFINITION(plural, kind, versions, established)                                            \
    "{\"kind\":\"CustomResourceDefinition\",\"metadata\":{\"name\":\"" plural ".example.com\"},"   \
    "\"spec\":{\"group\":\"example.com\",\"scope\":\"Namespaced\",\"names\":{\"plural\":\"" plural \
    "\"},\"versions\":[" versions "]},\"status\":{\"acceptedNames\":{\"kind\":\"" kind             \
    "\",\"listKind\":\"" kind "List\",\"singular\":\"s\",\"shortNames\":[\"x\",\"y\"]},"           \
    "\"conditions\":[{\"type\":\"Established\",\"status\":\"" established "\"}]}}"

static struct schema_pool *pool;

static struct kube_definition *make(const char *text)
{
    struct kube_definition *d = NULL;
    assert_int_equal(kube_definition_new(pool, slice_from_text(text), 7, &d), ST_OK);
    return d;
}

static const struct kube_kind *find(const struct kube_kinds *kinds, const char *version,
                                    const char *plural)
{
    return kube_kinds_find(kinds, SLICE_LITERAL("example.com"), slice_from_text(version),
                           slice_from_text(plural));
}

static void served_versions_of_established_definitions_are_kinds(void **state)
{
    struct kube_definition *all[] = {
        make(DEFINITION("as", "A",
                        VERSION("v1alpha1", "true", "false") "," VERSION(
                            "v1", "true", "true") "," VERSION("v0", "false", "false"),
                        "True")),
        make(DEFINITION("bs", "B", VERSION("v1", "true", "true"), "False")),
    };
    (void)state;
    struct kube_kinds *kinds = kube_kinds_new(all, 2);
    for (size_t i = 0; i < 2; i++)
        kube_definition_unref(all[i]);
    kube_kinds_check(kinds);
    const struct kube_kind *kind = find(kinds, "v1", "as");
    assert_non_null(kind);
    assert_string_equal(kind->storage_prefix, "/registry/example.com/as/");
    assert_string_equal(kind->kind, "A");
    assert_int_equal(kind->short_names.count, 2);
    assert_non_null(find(kinds, "v1alpha1", "as"));
    assert_null(find(kinds, "v0", "as"));
    assert_null(find(kinds, "v1", "bs"));
    assert_string_equal(kube_custom_of(kind)->definition->api_version, "example.com/v1");
    assert_string_equal(kube_custom_of(kind)->definition->versions[0].kind.version, "v1");
    assert_non_null(kube_custom_schema(kube_custom_of(kind)));
    size_t count, own;
    (void)kube_builtin_kinds(&own);
    const struct kube_kind *const *rows = kube_kinds_rows(kinds, &count);
    assert_int_equal(count, own + 2);
    assert_ptr_equal(rows[count - 2], kind);
    schema_pool_check(pool);
    kube_kinds_unref(kinds);
    schema_pool_check(pool);
}

static void versions_are_ordered_as_in_kubernetes(void **state)
{
    static const char *const order[] = {"v10",     "v2",        "v1",        "v11beta2", "v10beta3",
                                        "v3beta1", "v12alpha1", "v11alpha2", "foo1",     "foo10"};
    (void)state;
    for (size_t i = 0; i + 1 < COUNT_OF(order); i++) {
        assert_true(kube_version_before(order[i], order[i + 1]));
        assert_false(kube_version_before(order[i + 1], order[i]));
    }
}

static void malformed_definitions_are_refused(void **state)
{
    static const char *const rows[] = {
        "{}", "[]", "{\"metadata\":{\"name\":\"a\"}}",
        "{\"metadata\":{\"name\":\"as.example.com\"},\"spec\":{\"group\":\"example.com\",\"names\":"
        "{"
        "\"plural\":\"as\"},\"versions\":{\"v1\":" VERSION("v1", "true", "true") "}}}",
        DEFINITION("as", "A", VERSION("v1", "true", "false"), "True")};
    struct kube_definition *d;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_int_equal(kube_definition_new(pool, slice_from_text(rows[i]), 1, &d), ST_MALFORMED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(served_versions_of_established_definitions_are_kinds),
        cmocka_unit_test(versions_are_ordered_as_in_kubernetes),
        cmocka_unit_test(malformed_definitions_are_refused),
    };
    pool = schema_pool_new();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    schema_pool_free(pool);
    return failed;
}
