#include "io/timer.h"

#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void nothing(struct timer *timer)
{
    (void)timer;
}

static void due_timers_come_in_order_of_time(void **state)
{
    (void)state;
    struct timers timers = {0};
    struct timer t[5];
    const int64_t at[5] = {50, 10, 40, 20, 30};
    for (int i = 0; i < 5; i++) {
        t[i] = (struct timer){.fn = nothing};
        timers_set(&timers, &t[i], at[i]);
    }
    assert_int_equal(timers_next_ns(&timers), 10);
    assert_null(timers_pop_due(&timers, 9));
    for (int64_t due = 10; due <= 50; due += 10) {
        struct timer *popped = timers_pop_due(&timers, due);
        assert_non_null(popped);
        assert_int_equal(popped->at_ns, due);
        assert_false(popped->set);
    }
    assert_int_equal(timers_next_ns(&timers), CLOCK_NEVER);
}

static void cancelled_and_moved_timers_fire_as_requested(void **state)
{
    (void)state;
    struct timers timers = {0};
    struct timer a = {.fn = nothing}, b = {.fn = nothing};
    timers_set(&timers, &a, 10);
    timers_set(&timers, &b, 20);
    timers_set(&timers, &a, 30);
    assert_ptr_equal(timers_pop_due(&timers, 100), &b);
    timers_cancel(&timers, &a);
    timers_cancel(&timers, &a);
    assert_null(timers_pop_due(&timers, 100));
}

/* The same random changes go to the heap and to a plain array. */
static void random_changes_match_a_plain_array(void **state)
{
    (void)state;
    enum { COUNT = 200 };
    static struct timer t[COUNT];
    struct timers timers = {0};
    struct random random;
    random_init(&random, 7);
    for (int i = 0; i < COUNT; i++)
        t[i].fn = nothing;

    int64_t now = 0;
    for (int step = 0; step < 20000; step++) {
        struct timer *one = &t[random_below(&random, COUNT)];
        switch (random_below(&random, 4)) {
        case 0:
        case 1:
            timers_set(&timers, one, now + random_between(&random, 0, 100));
            break;
        case 2:
            timers_cancel(&timers, one);
            break;
        default:
            now += random_between(&random, 0, 3);
            while ((one = timers_pop_due(&timers, now)))
                assert_true(one->at_ns <= now);
        }
        if (step % 50 == 0)
            timers_check(&timers);
        int64_t earliest = CLOCK_NEVER;
        for (int i = 0; i < COUNT; i++)
            if (t[i].set && t[i].at_ns < earliest)
                earliest = t[i].at_ns;
        assert_int_equal(timers_next_ns(&timers), earliest);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(due_timers_come_in_order_of_time),
        cmocka_unit_test(cancelled_and_moved_timers_fire_as_requested),
        cmocka_unit_test(random_changes_match_a_plain_array),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
