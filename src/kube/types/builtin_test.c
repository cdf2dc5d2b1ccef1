#include "kube/types/kind.h"

#include "base/macros.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void every_kind_is_found_by_its_path(void **state)
{
    (void)state;
    size_t count;
    const struct kube_kind *kinds = kube_builtin_kinds(&count);
    assert_true(count > 50);
    for (size_t i = 0; i < count; i++)
        assert_ptr_equal(kube_builtin_find(slice_from_text(kinds[i].group),
                                           slice_from_text(kinds[i].version),
                                           slice_from_text(kinds[i].plural)),
                         &kinds[i]);
    assert_null(kube_builtin_find(SLICE_EMPTY, SLICE_LITERAL("v1"), SLICE_LITERAL("gods")));
    assert_null(kube_builtin_find(SLICE_LITERAL("apps"), SLICE_LITERAL("v2"),
                                  SLICE_LITERAL("deployments")));
}

static void only_versions_of_one_kind_share_a_storage_prefix(void **state)
{
    (void)state;
    size_t count;
    const struct kube_kind *kinds = kube_builtin_kinds(&count);
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < i; j++) {
            if (strcmp(kinds[i].storage_prefix, kinds[j].storage_prefix) != 0)
                continue;
            /* The same kind in two groups or versions. */
            assert_string_equal(kinds[i].plural, kinds[j].plural);
        }
    }
}

static void pods_have_their_usual_names_and_flags(void **state)
{
    (void)state;
    const struct kube_kind *pods =
        kube_builtin_find(SLICE_EMPTY, SLICE_LITERAL("v1"), SLICE_LITERAL("pods"));
    assert_string_equal(pods->kind, "Pod");
    assert_string_equal(pods->storage_prefix, "/registry/pods/");
    assert_string_equal(pods->indexed_field, "spec.nodeName");
    assert_string_equal(pods->short_names.names[0], "po");
    assert_string_equal(pods->categories.names[0], "all");
    assert_int_equal(pods->flags, KUBE_NAMESPACED | KUBE_HAS_STATUS | KUBE_HAS_GENERATION);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_is_found_by_its_path),
        cmocka_unit_test(only_versions_of_one_kind_share_a_storage_prefix),
        cmocka_unit_test(pods_have_their_usual_names_and_flags),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
