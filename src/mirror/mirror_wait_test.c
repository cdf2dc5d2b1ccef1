#include "mirror/mirror_wait.h"

#include "base/clock.h"
#include "mirror/follow/follower.h"
#include "mirror/link/state.h"
#include "simulated/sim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct {
    struct sim *sim;
    struct loop *loop;
    struct mirror_state state;
    struct mirror_waits waits;
    struct mirror_wait wait;
    unsigned reached, late, progress_requests;
} f;

void follower_request_progress(struct follower *follower)
{
    (void)follower;
    f.progress_requests++;
}

static void on_done(struct mirror_wait *wait, bool reached)
{
    assert_ptr_equal(wait, &f.wait);
    f.reached += reached;
    f.late += !reached;
}

static int set_up(void **state)
{
    (void)state;
    memset(&f, 0, sizeof(f));
    f.sim = sim_new(&SIM_OPTIONS_DEFAULT);
    assert_int_equal(network_loop_new(sim_network(f.sim), &f.loop), ST_OK);
    mirror_waits_init(&f.waits, f.loop, &f.state, NULL);
    f.wait.done = on_done;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    mirror_waits_fini(&f.waits);
    loop_free(f.loop);
    sim_free(f.sim);
    return 0;
}

static void turn(void)
{
    loop_turn(f.loop, 0);
}

static void nothing_was_written_so_nothing_waits(void **state)
{
    (void)state;
    mirror_wait_start(&f.waits, &f.wait);
    assert_int_equal(f.reached, 1);
    assert_int_equal(f.progress_requests, 0);
}

static void watch_waits_for_a_write_that_the_mirror_lacks(void **state)
{
    (void)state;
    mirror_state_wrote(&f.state, 5);
    atomic_store(&f.state.mirrored, 4);
    mirror_wait_start(&f.waits, &f.wait);
    assert_int_equal(f.progress_requests, 1);
    for (int i = 0; i < 10; i++) {
        sim_run_until(f.sim, clock_mono_ns(sim_clock(f.sim)) + NS_PER_MS);
        turn();
    }
    assert_int_equal(f.reached + f.late, 0);
    atomic_store(&f.state.mirrored, 5);
    for (int i = 0; i < 3; i++) {
        sim_run_until(f.sim, clock_mono_ns(sim_clock(f.sim)) + NS_PER_MS);
        turn();
    }
    assert_int_equal(f.reached, 1);
    mirror_wait_start(&f.waits, &f.wait); /* which is known from now on */
    assert_int_equal(f.reached, 2);
}

/* The state that this turn's history shows may be older than what the mirror has now. */
static void what_the_mirror_has_since_this_turn_counts_in_a_later_one(void **state)
{
    (void)state;
    turn();
    mirror_state_wrote(&f.state, 5);
    atomic_store(&f.state.mirrored, 5);
    mirror_wait_start(&f.waits, &f.wait);
    assert_int_equal(f.reached, 0);
    assert_int_equal(f.progress_requests, 0);
    turn(); /* at the same time, so it may be the same turn */
    assert_int_equal(f.reached, 0);
    sim_run_until(f.sim, clock_mono_ns(sim_clock(f.sim)) + 10 * NS_PER_US);
    turn();
    turn();
    assert_int_equal(f.reached, 1);
}

static void mirror_that_stays_behind_ends_the_wait(void **state)
{
    (void)state;
    mirror_state_wrote(&f.state, 5);
    mirror_wait_start(&f.waits, &f.wait);
    sim_run_until(f.sim, clock_mono_ns(sim_clock(f.sim)) + 10 * NS_PER_S - 1);
    turn();
    assert_int_equal(f.late, 0);
    sim_run_until(f.sim, clock_mono_ns(sim_clock(f.sim)) + NS_PER_MS);
    turn();
    assert_int_equal(f.late, 1);
    assert_int_equal(f.reached, 0);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nothing_was_written_so_nothing_waits),
        TEST(watch_waits_for_a_write_that_the_mirror_lacks),
        TEST(what_the_mirror_has_since_this_turn_counts_in_a_later_one),
        TEST(mirror_that_stays_behind_ends_the_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
