#include "kube/jobs/follower/agenda.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct kube_agenda_item *add(struct kube_agenda *agenda, const char *name, int64_t at_ns)
{
    struct kube_agenda_item *item = kube_agenda_add(agenda, slice_from_text(name));
    kube_agenda_set(agenda, item, at_ns);
    return item;
}

static void test_items_come_at_their_times(void **state)
{
    (void)state;
    struct kube_agenda agenda;
    kube_agenda_init(&agenda, KUBE_AGENDA_NAMESPACE_BYTES_MAX, 1);
    struct kube_agenda_item *b = add(&agenda, "b", 20), *a = add(&agenda, "a", 10);
    assert_ptr_equal(kube_agenda_add(&agenda, SLICE_LITERAL("b")), b);
    assert_int_equal(kube_agenda_next_ns(&agenda), 10);
    assert_null(kube_agenda_pop(&agenda, 9));
    assert_ptr_equal(kube_agenda_pop(&agenda, 10), a);
    assert_null(kube_agenda_pop(&agenda, 19));
    assert_ptr_equal(kube_agenda_find(&agenda, SLICE_LITERAL("a")), a);
    kube_agenda_remove(&agenda, a);
    assert_null(kube_agenda_find(&agenda, SLICE_LITERAL("a")));
    kube_agenda_remove(&agenda, b);
    assert_int_equal(kube_agenda_next_ns(&agenda), CLOCK_NEVER);
    kube_agenda_fini(&agenda);
}

static void test_the_earlier_time_stays(void **state)
{
    (void)state;
    struct kube_agenda agenda;
    kube_agenda_init(&agenda, KUBE_AGENDA_NAMESPACE_BYTES_MAX, 1);
    struct kube_agenda_item *item = add(&agenda, "n", 20);
    assert_true(kube_agenda_has(&agenda, item, 30) && kube_agenda_has(&agenda, item, 20));
    assert_false(kube_agenda_has(&agenda, item, 19));
    kube_agenda_set(&agenda, item, 30);
    assert_int_equal(kube_agenda_next_ns(&agenda), 20);
    kube_agenda_set(&agenda, item, 5);
    assert_int_equal(kube_agenda_next_ns(&agenda), 5);
    assert_ptr_equal(kube_agenda_pop(&agenda, 5), item);
    kube_agenda_rest(&agenda, item, 100);
    assert_int_equal(kube_agenda_next_ns(&agenda), CLOCK_NEVER);
    kube_agenda_set(&agenda, item, 6);
    assert_int_equal(kube_agenda_next_ns(&agenda), 100);
    assert_true(kube_agenda_has(&agenda, item, 7));
    kube_agenda_rest(&agenda, item, 200); /* which also holds for the time that it has */
    assert_int_equal(kube_agenda_next_ns(&agenda), 200);
    kube_agenda_fini(&agenda);
}

/* Keys that a client of the etcd API has written may have any form. */
static void test_other_names_are_not_taken(void **state)
{
    (void)state;
    struct kube_agenda agenda;
    char name[KUBE_AGENDA_NAMESPACE_BYTES_MAX + 2];
    memset(name, 'n', sizeof(name));
    kube_agenda_init(&agenda, KUBE_AGENDA_NAMESPACE_BYTES_MAX, 1);
    assert_null(kube_agenda_add(&agenda, SLICE_EMPTY));
    assert_null(kube_agenda_add(&agenda, slice_of(name, KUBE_AGENDA_NAMESPACE_BYTES_MAX + 1)));
    assert_non_null(kube_agenda_add(&agenda, slice_of(name, KUBE_AGENDA_NAMESPACE_BYTES_MAX)));
    kube_agenda_fini(&agenda);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_items_come_at_their_times),
        cmocka_unit_test(test_the_earlier_time_stays),
        cmocka_unit_test(test_other_names_are_not_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
