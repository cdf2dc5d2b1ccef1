#include "kube/request/selection.h"

#include "base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const char *const pod_fields[] = {"spec.nodeName"};
static const struct kube_kind of_pods = {.group = "", .kind = "Pod", .fields = {pod_fields, 1}};
static const struct kube_kind of_others = {.group = "", .kind = "Other"};

static struct kube_selection *get(struct kube_selections *selections, const char *labels,
                                  const char *fields, const struct kube_kind *kind)
{
    struct kube_selection *selection = NULL;
    struct error error;
    (void)!kube_selection_get(selections, slice_from_text(labels), slice_from_text(fields), kind,
                              &selection, &error);
    return selection;
}

static void selections_with_the_same_text_are_shared_until_the_last_reference(void **state)
{
    (void)state;
    struct kube_selections selections;
    kube_selections_init(&selections, 1);
    struct kube_selection *a = get(&selections, "app=web", "spec.nodeName=n1", &of_pods);
    struct kube_selection *b = get(&selections, "app=web", "spec.nodeName=n1", &of_pods);
    struct kube_selection *other = get(&selections, "app=web", "spec.nodeName=n2", &of_pods);
    struct kube_selection *all = get(&selections, "", "", &of_others);
    assert_ptr_equal(a, b);
    assert_ptr_not_equal(a, other);
    assert_true(a->selects);
    assert_false(all->selects);
    kube_selection_unref(a);
    assert_int_equal(selections.freed, 0);
    kube_selection_unref(b);
    assert_int_equal(selections.freed, 1);
    kube_selection_unref(other);
    kube_selection_unref(all);
    assert_int_equal(selections.freed, 3);
    kube_selections_fini(&selections);
}

static void a_known_text_can_be_invalid_for_another_kind(void **state)
{
    (void)state;
    struct kube_selections selections;
    kube_selections_init(&selections, 1);
    struct kube_selection *pods = get(&selections, "", "spec.nodeName=n1", &of_pods);
    assert_non_null(pods);
    assert_null(get(&selections, "", "spec.nodeName=n1", &of_others));
    assert_null(get(&selections, "app in", "", &of_pods));
    assert_int_equal(pods->refs, 1);
    kube_selection_unref(pods);
    kube_selections_fini(&selections);
}

static void long_selectors_need_more_than_the_first_bytes(void **state)
{
    (void)state;
    struct kube_selections selections;
    struct buf text = {0};
    kube_selections_init(&selections, 1);
    for (int i = 0; i < 200; i++)
        assert_int_equal(buf_append_format(&text, "%skey%d in (a,b,c)", i ? "," : "", i), ST_OK);
    assert_int_equal(buf_append(&text, slice_of("", 1)), ST_OK);
    struct kube_selection *s = get(&selections, (const char *)text.ptr, "", &of_pods);
    struct kube_object object = {0};
    assert_non_null(s);
    assert_false(kube_selection_matches(s, &object));
    kube_selection_unref(s);
    kube_selections_fini(&selections);
    buf_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(selections_with_the_same_text_are_shared_until_the_last_reference),
        cmocka_unit_test(a_known_text_can_be_invalid_for_another_kind),
        cmocka_unit_test(long_selectors_need_more_than_the_first_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
