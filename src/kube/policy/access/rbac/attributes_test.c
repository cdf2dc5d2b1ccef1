#include "kube/policy/access/rbac/attributes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

/* What Kubernetes' parser of field selectors makes of these, for spec.nodeName=one. */
static void a_field_selector_requires_a_value_or_not(void **state)
{
    static const struct {
        const char *selector;
        bool required;
    } rows[] = {
        {"", false},
        {"spec.nodeName=one", true},
        {"spec.nodeName==one", true},
        {"spec.nodeName!=one", false},
        {"spec.nodeName=two", false},
        {"spec.nodeName=", false},
        {"spec.nodeName=on", false},
        {"spec.nodeName=onee", false},
        {"spec.nodeName===one", false},
        {",spec.nodeName=one,", true},
        {"a=b,spec.nodeName=one", true},
        {"spec.nodeName=two,spec.nodeName=one", true},
        {"spec.nodeName=one,unknown=x", true},
        {"spec.nodeName=one,x", false},
        {"x,spec.nodeName=one", false},
        {"spec.nodeName=o\\ne", false},
        {"spec.nodeName=one,a=b\\", false},
        {"spec.nodeName=one,a=b=c", false},
        {"spec.nodeName=one,a=b\\=c\\,d\\\\", true},
        {"a=b\\,spec.nodeName=one", false},
        {"xspec.nodeName=one", false},
        {"SPEC.nodeName=one", false},
        {" spec.nodeName=one", false},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const struct kube_attributes a = {.field_selector = slice_from_text(rows[i].selector)};
        if (kube_attributes_select(&a, SLICE_LITERAL("spec.nodeName"), SLICE_LITERAL("one")) !=
            rows[i].required)
            fail_msg("%s", rows[i].selector);
    }
    const struct kube_attributes comma = {.field_selector = SLICE_LITERAL("a=b\\,c")};
    assert_true(kube_attributes_select(&comma, SLICE_LITERAL("a"), SLICE_LITERAL("b,c")));
    assert_false(kube_attributes_select(&comma, SLICE_LITERAL("a"), SLICE_LITERAL("b")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_field_selector_requires_a_value_or_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
