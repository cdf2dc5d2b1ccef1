#include "mirror/link/kept_answers.h"

#include "base/clock.h"
#include "base/slice.h"
#include "io/sim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum { MIB = 1 << 20, ALL = 4 };

struct kept {
    struct upstream_hold hold;
    unsigned overdue;
    bool stubborn; /* does not release */
};

static struct {
    struct sim *sim;
    struct loop *loop;
    struct upstream_room room;
    struct upstream_holds holds;
    struct upstream_claim claims[ALL];
    struct kept kept[ALL];
    unsigned released;
} f;

static void on_released(struct upstream_holds *holds)
{
    assert_ptr_equal(holds, &f.holds);
    f.released++;
}

static void on_overdue(struct upstream_hold *hold)
{
    struct kept *kept = CONTAINER_OF(hold, struct kept, hold);
    kept->overdue++;
    if (!kept->stubborn)
        upstream_hold_release(hold);
}

static int set_up(void **state)
{
    (void)state;
    memset(&f, 0, sizeof(f));
    f.sim = sim_new(&SIM_OPTIONS_DEFAULT);
    assert_int_equal(network_loop_new(sim_network(f.sim), &f.loop), ST_OK);
    upstream_room_init(&f.room);
    upstream_holds_init(&f.holds, f.loop, &f.room, on_released);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (size_t i = 0; i < ALL; i++) {
        upstream_hold_release(&f.kept[i].hold);
        upstream_room_release(&f.room, &f.claims[i]);
    }
    for (size_t i = 0; i < UPSTREAM_ROOM_KINDS; i++)
        assert_int_equal(f.room.held[i], 0);
    upstream_holds_fini(&f.holds);
    loop_free(f.loop);
    sim_free(f.sim);
    return 0;
}

static void run_ns(int64_t ns)
{
    sim_run_until(f.sim, clock_mono_ns(sim_clock(f.sim)) + ns);
    loop_turn(f.loop, 0);
}

/* True: it is received and kept; false: it waits. */
static bool receive(size_t i, size_t bytes, bool holds)
{
    assert_true(upstream_room_claim(&f.room, &f.claims[i], bytes, holds, false));
    if (upstream_claim_is_stalled(&f.claims[i])) {
        upstream_holds_watch(&f.holds);
        return false;
    }
    f.kept[i].hold.overdue = on_overdue;
    upstream_hold_take(&f.holds, &f.kept[i].hold, &f.claims[i]);
    return true;
}

static void what_is_kept_takes_room(void **state)
{
    (void)state;
    assert_true(receive(0, 40 * MIB, true));
    assert_int_equal(f.claims[0].kind, UPSTREAM_ROOM_NONE); /* the call has none any more */
    assert_false(receive(1, 40 * MIB, true));
    assert_null(upstream_room_grant(&f.room));
    upstream_hold_release(&f.kept[0].hold);
    upstream_hold_release(&f.kept[0].hold);
    assert_int_equal(f.released, 1);
    assert_ptr_equal(upstream_room_grant(&f.room), &f.claims[1]);
}

/* A client that does not read keeps others from long answers only for some time. */
static void the_oldest_makes_room_for_those_that_wait(void **state)
{
    (void)state;
    assert_true(receive(0, 30 * MIB, true));
    run_ns(NS_PER_S);
    assert_true(receive(1, 30 * MIB, true));
    run_ns(10 * UPSTREAM_HOLD_NS);
    assert_int_equal(f.kept[0].overdue + f.kept[1].overdue, 0); /* no other waits */
    assert_false(receive(2, 30 * MIB, true));
    run_ns(1);
    assert_int_equal(f.kept[0].overdue, 1);
    assert_int_equal(f.kept[1].overdue, 0);
    assert_non_null(upstream_room_grant(&f.room));
    run_ns(10 * UPSTREAM_HOLD_NS);
    assert_int_equal(f.kept[1].overdue, 0); /* that was enough */
}

static void one_that_cannot_release_now_is_called_again_later(void **state)
{
    (void)state;
    f.kept[0].stubborn = true;
    assert_true(receive(0, 40 * MIB, true));
    assert_false(receive(1, 40 * MIB, true));
    run_ns(UPSTREAM_HOLD_NS - 1);
    assert_int_equal(f.kept[0].overdue, 0);
    run_ns(1);
    assert_int_equal(f.kept[0].overdue, 1);
    f.kept[0].stubborn = false;
    run_ns(UPSTREAM_HOLD_NS);
    assert_int_equal(f.kept[0].overdue, 2);
    assert_non_null(upstream_room_grant(&f.room));
}

/* Messages that are not kept have a line of their own, and short ones are not counted here. */
static void others_are_not_concerned(void **state)
{
    (void)state;
    assert_true(receive(0, 60 * MIB, true));
    assert_false(receive(1, 60 * MIB, true));
    assert_true(receive(2, 60 * MIB, false));
    assert_null(f.kept[2].hold.holds);
    assert_true(receive(3, 1024, true));
    assert_null(f.kept[3].hold.holds);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_kept_takes_room),
        TEST(the_oldest_makes_room_for_those_that_wait),
        TEST(one_that_cannot_release_now_is_called_again_later),
        TEST(others_are_not_concerned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
