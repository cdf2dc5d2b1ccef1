/* The limit of the tier's own calls, with a simulated clock. */
#include "tier/link/rate.h"

#include "base/metric/page.h"
#include "simulated/sim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { LANES_MAX = 4 };

/* A lane whose owner always has more calls to make. */
struct busy_lane {
    struct tier_lane lane;
    unsigned calls, left;
};

static struct {
    struct sim *sim;
    struct loop *loop;
    struct tier_rate *rate;
    struct busy_lane lanes[LANES_MAX];
    struct metric_page page;
} w;

static void make_calls(struct busy_lane *busy)
{
    while (busy->left && tier_lane_take(&busy->lane)) {
        busy->calls++;
        busy->left--;
    }
}

static void on_ready(struct tier_lane *lane)
{
    make_calls(CONTAINER_OF(lane, struct busy_lane, lane));
}

static void world_init(uint32_t per_second)
{
    struct sim_options options = SIM_OPTIONS_DEFAULT;
    memset(&w, 0, sizeof(w));
    w.sim = sim_new(&options);
    assert_int_equal(network_loop_new(sim_network(w.sim), &w.loop), ST_OK);
    loop_turn(w.loop, 0);
    w.rate = tier_rate_new(per_second);
    for (size_t i = 0; i < LANES_MAX; i++)
        tier_lane_init(&w.lanes[i].lane, w.rate, w.loop, on_ready);
}

static void world_fini(void)
{
    for (size_t i = 0; i < LANES_MAX; i++)
        tier_lane_fini(&w.lanes[i].lane);
    tier_rate_free(w.rate);
    metric_page_fini(&w.page);
    loop_free(w.loop);
    sim_free(w.sim);
}

static void run(int64_t ns)
{
    sim_run_until(w.sim, clock_mono_ns(sim_clock(w.sim)) + ns);
    loop_turn(w.loop, 0);
}

static void want(size_t lane, unsigned calls)
{
    w.lanes[lane].left += calls;
    make_calls(&w.lanes[lane]);
}

static void calls_are_made_at_the_rate_after_a_burst(void **state)
{
    (void)state;
    world_init(10);
    want(0, 1000);
    assert_int_equal(w.lanes[0].calls, 20);
    assert_true(tier_lane_waits(&w.lanes[0].lane));
    run(99 * NS_PER_MS);
    assert_int_equal(w.lanes[0].calls, 20);
    run(2 * NS_PER_MS);
    assert_int_equal(w.lanes[0].calls, 21);
    run(10 * NS_PER_S);
    assert_in_range(w.lanes[0].calls, 120, 121);
    /* The bucket does not grow beyond its size while there is nothing to do. */
    w.lanes[0].left = 0;
    run(100 * NS_PER_S);
    w.lanes[0].calls = 0;
    want(0, 1000);
    assert_in_range(w.lanes[0].calls, 20, 21);
    world_fini();
}

/* However many calls one of them has to make, and whichever was first. */
static void lanes_take_turns(void **state)
{
    (void)state;
    world_init(10);
    want(0, 100000);
    for (size_t i = 1; i < LANES_MAX; i++)
        want(i, 1000);
    w.lanes[0].calls = 0;
    run(20 * NS_PER_S);
    for (size_t i = 0; i < LANES_MAX; i++)
        assert_in_range(w.lanes[i].calls, 49, 51);
    /* One that comes later waits for one call of each of the others. */
    for (size_t i = 1; i < LANES_MAX; i++)
        w.lanes[i].left = 0;
    run(10 * NS_PER_S);
    w.lanes[1].calls = 0;
    want(1, 1);
    run(201 * NS_PER_MS);
    assert_int_equal(w.lanes[1].calls, 1);
    world_fini();
}

static void reservation_is_used_by_the_next_call(void **state)
{
    (void)state;
    world_init(1);
    want(0, 3);
    assert_int_equal(w.lanes[0].calls, 2);
    w.lanes[0].left = 0; /* it is not made after all */
    run(3 * NS_PER_S);
    want(0, 4);
    assert_int_equal(w.lanes[0].calls,
                     2 + 3); /* the one that was reserved, and two of the bucket */
    world_fini();
}

static void without_a_limit_calls_are_only_counted(void **state)
{
    (void)state;
    struct tier_lane lane;
    world_init(0);
    want(0, 100000);
    assert_int_equal(w.lanes[0].calls, 100000);
    tier_lane_init(&lane, NULL, w.loop, on_ready);
    assert_true(tier_lane_take(&lane));
    tier_rate_write_metrics(w.rate, &w.page);
    assert_int_equal(buf_append(&w.page.text, slice_of("", 1)), ST_OK);
    const char *text = (const char *)w.page.text.ptr;
    assert_non_null(strstr(text, "\nvigil_tier_upstream_calls_total 100000\n"));
    assert_non_null(strstr(text, "\nvigil_tier_upstream_calls_delayed_total 0\n"));
    world_fini();
}

static void waits_are_counted(void **state)
{
    (void)state;
    world_init(2);
    want(0, 6); /* four at once */
    run(2 * NS_PER_S);
    tier_rate_write_metrics(w.rate, &w.page);
    assert_int_equal(buf_append(&w.page.text, slice_of("", 1)), ST_OK);
    const char *text = (const char *)w.page.text.ptr;
    assert_non_null(strstr(text, "\nvigil_tier_upstream_calls_total 6\n"));
    assert_non_null(strstr(text, "\nvigil_tier_upstream_calls_delayed_total 2\n"));
    const char *seconds = strstr(text, "\nvigil_tier_upstream_delay_seconds_total ");
    assert_non_null(seconds);
    assert_in_range((int)(1000 * strtod(strchr(seconds + 1, ' '), NULL)), 1000, 1010);
    world_fini();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_are_made_at_the_rate_after_a_burst),
        cmocka_unit_test(lanes_take_turns),
        cmocka_unit_test(reservation_is_used_by_the_next_call),
        cmocka_unit_test(without_a_limit_calls_are_only_counted),
        cmocka_unit_test(waits_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
