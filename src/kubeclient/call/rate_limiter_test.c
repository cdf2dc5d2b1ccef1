/* The limit of calls per second, with a simulated clock. */
#include "kubeclient/call/rate_limiter.h"

#include "base/failing_memory_test.h"
#include "io/loop.h"
#include "simulated/sim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

struct test_waiter {
    struct rate_waiter waiter;
    struct loop *loop;
    struct rate_limiter *limiter;
    int64_t at_ns;  /* when it had a token; 0: not yet */
    unsigned again; /* how often it takes another one in ready */
};

struct limiter_world {
    struct sim *sim;
    struct loop *loop;
    struct rate_limiter *limiter;
    int64_t from_ns;
    struct test_waiter waiters[40];
};

static void on_ready(struct rate_waiter *waiter)
{
    struct test_waiter *w = CONTAINER_OF(waiter, struct test_waiter, waiter);
    w->at_ns = loop_now_ns(w->loop);
    if (w->again && w->again--) {
        w->at_ns = 0;
        assert_false(rate_limiter_take(w->limiter, waiter));
    }
}

static void world_init(struct limiter_world *w, uint32_t per_second, uint32_t burst)
{
    struct sim_options options = SIM_OPTIONS_DEFAULT;
    *w = (struct limiter_world){.sim = sim_new(&options)};
    assert_int_equal(network_loop_new(sim_network(w->sim), &w->loop), ST_OK);
    loop_turn(w->loop, 0);
    assert_int_equal(rate_limiter_new(w->loop, per_second, burst, &w->limiter), ST_OK);
    w->from_ns = loop_now_ns(w->loop);
    for (size_t i = 0; i < COUNT_OF(w->waiters); i++)
        w->waiters[i] =
            (struct test_waiter){.waiter.ready = on_ready, .loop = w->loop, .limiter = w->limiter};
}

static void world_fini(struct limiter_world *w)
{
    rate_limiter_check(w->limiter);
    rate_limiter_free(w->limiter);
    loop_free(w->loop);
    sim_free(w->sim);
}

static void world_run(struct limiter_world *w, int64_t ns)
{
    sim_run_until(w->sim, clock_mono_ns(sim_clock(w->sim)) + ns);
    loop_turn(w->loop, 0);
    rate_limiter_check(w->limiter);
}

static bool take(struct limiter_world *w, size_t i)
{
    bool taken = rate_limiter_take(w->limiter, &w->waiters[i].waiter);
    if (taken)
        w->waiters[i].at_ns = loop_now_ns(w->loop);
    rate_limiter_check(w->limiter);
    return taken;
}

/* client-go's defaults. */
static void burst_is_followed_by_an_even_rate(void **state)
{
    (void)state;
    struct limiter_world w;
    world_init(&w, 5, 10);
    for (size_t i = 0; i < 30; i++)
        assert_int_equal(take(&w, i), i < 10);
    world_run(&w, 60 * NS_PER_S);
    for (size_t i = 0; i < 30; i++) {
        int64_t expected = i < 10 ? 0 : (int64_t)(i - 9) * 200 * NS_PER_MS;
        assert_int_equal(w.waiters[i].at_ns - w.from_ns, expected);
    }
    world_fini(&w);
}

static void bucket_refills_to_its_burst_only(void **state)
{
    (void)state;
    struct limiter_world w;
    world_init(&w, 1, 3);
    for (size_t i = 0; i < 3; i++)
        assert_true(take(&w, i));
    world_run(&w, 2 * NS_PER_S);
    assert_true(take(&w, 3));
    assert_true(take(&w, 4));
    assert_false(take(&w, 5));
    rate_waiter_cancel(&w.waiters[5].waiter);
    world_run(&w, 3600 * NS_PER_S);
    for (size_t i = 6; i < 9; i++)
        assert_true(take(&w, i));
    assert_false(take(&w, 9));
    rate_waiter_cancel(&w.waiters[9].waiter);
    world_fini(&w);
}

static void cancelled_waiter_leaves_its_token(void **state)
{
    (void)state;
    struct limiter_world w;
    world_init(&w, 1, 1);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(take(&w, i), i == 0);
    rate_waiter_cancel(&w.waiters[1].waiter);
    rate_waiter_cancel(&w.waiters[1].waiter);
    rate_waiter_cancel(&w.waiters[20].waiter);
    world_run(&w, 10 * NS_PER_S);
    assert_int_equal(w.waiters[1].at_ns, 0);
    assert_int_equal(w.waiters[2].at_ns - w.from_ns, NS_PER_S);
    assert_int_equal(w.waiters[3].at_ns - w.from_ns, 2 * NS_PER_S);
    world_fini(&w);
}

static void new_call_does_not_overtake_those_that_wait(void **state)
{
    (void)state;
    struct limiter_world w;
    world_init(&w, 1, 1);
    w.waiters[1].again = 1;
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(take(&w, i), i == 0);
    world_run(&w, 10 * NS_PER_S);
    assert_int_equal(w.waiters[2].at_ns - w.from_ns, 2 * NS_PER_S);
    assert_int_equal(w.waiters[1].at_ns - w.from_ns, 3 * NS_PER_S);
    world_fini(&w);
}

static void extreme_rates_are_possible(void **state)
{
    (void)state;
    struct limiter_world w;
    world_init(&w, UINT32_MAX, UINT32_MAX);
    for (size_t i = 0; i < COUNT_OF(w.waiters); i++)
        assert_true(take(&w, i));
    world_fini(&w);
    world_init(&w, 1, 0);
    assert_true(take(&w, 0));
    assert_false(take(&w, 1));
    world_run(&w, NS_PER_S);
    assert_true(w.waiters[1].at_ns != 0);
    world_fini(&w);
}

static void missing_memory_is_reported(void **state)
{
    (void)state;
    struct rate_limiter *limiter;
    memory_fail_at = 1;
    assert_int_equal(rate_limiter_new(NULL, 1, 1, &limiter), ST_NOMEM);
    rate_limiter_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(burst_is_followed_by_an_even_rate),
        cmocka_unit_test(bucket_refills_to_its_burst_only),
        cmocka_unit_test(cancelled_waiter_leaves_its_token),
        cmocka_unit_test(new_call_does_not_overtake_those_that_wait),
        cmocka_unit_test(extreme_rates_are_possible),
        cmocka_unit_test(missing_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
