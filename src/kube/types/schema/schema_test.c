#include "kube/types/schema/schema.h"

#include "kube/types/kind.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static const struct kube_type *find(const char *api_version, const char *kind)
{
    return kube_type_find(slice_from_text(api_version), slice_from_text(kind));
}

static const struct kube_field *field(const struct kube_type *type, const char *name)
{
    const struct kube_field *found = kube_type_field(type, slice_from_text(name));
    assert_non_null(found);
    return found;
}

static void every_builtin_kind_has_a_type(void **state)
{
    (void)state;
    size_t count;
    const struct kube_kind *kinds = kube_builtin_kinds(&count);
    for (size_t i = 0; i < count; i++) {
        char version[128];
        snprintf(version, sizeof(version), "%s%s%s", kinds[i].group, kinds[i].group[0] ? "/" : "",
                 kinds[i].version);
        assert_non_null(find(version, kinds[i].kind));
        if (!(kinds[i].flags & KUBE_CREATE_ONLY))
            assert_non_null(find(version, kinds[i].list_kind));
    }
}

static void fields_are_found_by_name_and_number(void **state)
{
    (void)state;
    const struct kube_type *pod = find("v1", "Pod");
    const struct kube_field *spec = field(pod, "spec");
    assert_int_equal(spec->number, 2);
    assert_ptr_equal(kube_type_number(pod, 2), spec);
    assert_string_equal(kube_type_name(kube_field_type(spec)), "PodSpec");
    const struct kube_field *containers = field(kube_field_type(spec), "containers");
    assert_int_equal(containers->shape, KUBE_SHAPE_LIST);
    assert_true(containers->flags & KUBE_FIELD_MERGE);
    assert_true(containers->flags & KUBE_FIELD_REQUIRED);
    assert_string_equal((const char *)kube_field_merge_key(containers).ptr, "name");
    assert_null(kube_type_field(pod, SLICE_LITERAL("nothing")));
    assert_null(kube_type_number(pod, 0));
    assert_null(kube_type_number(pod, 77));
}

static void inlined_members_are_found_in_the_enclosing_type(void **state)
{
    (void)state;
    const struct kube_type *spec = kube_field_type(field(find("v1", "Pod"), "spec"));
    const struct kube_type *volume = kube_field_type(field(spec, "volumes"));
    assert_string_equal(kube_type_name(kube_field_type(field(volume, "configMap"))),
                        "ConfigMapVolumeSource");
    assert_int_equal(field(find("v1", "Pod"), "kind")->value, KUBE_VALUE_STRING);
}

static void delete_options_are_found_in_every_version(void **state)
{
    (void)state;
    assert_ptr_equal(find("apps/v1", "DeleteOptions"), find("v1", "DeleteOptions"));
    assert_null(find("apps/v1", "Pod"));
    assert_null(find("", ""));
}

/* Checks the properties that users of the table rely on. */
static void the_table_is_consistent(void **state)
{
    (void)state;
    for (size_t i = 0; i < kube_type_count(); i++) {
        const struct kube_type *type = kube_type_at(i);
        assert_int_equal(kube_type_index(type), i);
        assert_in_range(type->field_count, 0, KUBE_TYPE_FIELDS_MAX);
        for (size_t f = 0; f < type->field_count; f++) {
            const struct kube_field *one = &kube_type_fields(type)[f];
            assert_true(one->value == KUBE_VALUE_MESSAGE || !(one->flags & KUBE_FIELD_INLINE));
            assert_true(one->shape == KUBE_SHAPE_ONE || !(one->flags & KUBE_FIELD_INLINE));
            if (!(one->flags & KUBE_FIELD_INLINE))
                assert_ptr_equal(kube_type_field(type, kube_field_name(one)), one);
            if (one->number)
                assert_ptr_equal(kube_type_number(type, one->number), one);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_builtin_kind_has_a_type),
        cmocka_unit_test(fields_are_found_by_name_and_number),
        cmocka_unit_test(inlined_members_are_found_in_the_enclosing_type),
        cmocka_unit_test(delete_options_are_found_in_every_version),
        cmocka_unit_test(the_table_is_consistent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
