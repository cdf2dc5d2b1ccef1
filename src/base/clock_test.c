#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void system_clock_does_not_go_back(void **state)
{
    (void)state;
    struct clock *clock = clock_system();
    int64_t last = clock_mono_ns(clock);
    for (int i = 0; i < 1000; i++) {
        int64_t now = clock_mono_ns(clock);
        assert_true(now >= last);
        last = now;
    }
    assert_true(clock_real_ns(clock) > INT64_C(1600000000) * NS_PER_S);
}

static void simulated_clock_advances_only_on_request(void **state)
{
    (void)state;
    struct clock_sim sim;
    clock_sim_init(&sim, 5 * NS_PER_S);
    int64_t start = clock_mono_ns(&sim.clock);
    assert_int_equal(clock_real_ns(&sim.clock), 5 * NS_PER_S);

    clock_sim_advance(&sim, 7);
    assert_int_equal(clock_mono_ns(&sim.clock), start + 7);
    assert_int_equal(clock_real_ns(&sim.clock), 5 * NS_PER_S + 7);
    clock_sim_advance_to(&sim, start);
    assert_int_equal(clock_mono_ns(&sim.clock), start + 7);
}

static void real_time_may_step_back_alone(void **state)
{
    (void)state;
    struct clock_sim sim;
    clock_sim_init(&sim, 5 * NS_PER_S);
    int64_t mono = clock_mono_ns(&sim.clock);
    sim.real_offset_ns -= NS_PER_S;
    assert_int_equal(clock_real_ns(&sim.clock), 4 * NS_PER_S);
    assert_int_equal(clock_mono_ns(&sim.clock), mono);
}

static void overflowing_sums_are_never(void **state)
{
    (void)state;
    assert_int_equal(clock_add(1, 2), 3);
    assert_int_equal(clock_add(1, CLOCK_NEVER), CLOCK_NEVER);
    assert_int_equal(clock_add(INT64_MAX - 1, 2), CLOCK_NEVER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(system_clock_does_not_go_back),
        cmocka_unit_test(simulated_clock_advances_only_on_request),
        cmocka_unit_test(real_time_may_step_back_alone),
        cmocka_unit_test(overflowing_sums_are_never),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
