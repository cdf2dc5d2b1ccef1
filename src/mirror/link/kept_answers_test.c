#include "mirror/link/kept_answers.h"

#include "base/clock.h"
#include "base/slice.h"
#include "simulated/sim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum { MIB = 1 << 20, ALL = 4 };

struct kept {
    struct kept_answer answer;
    unsigned overdue;
    bool stubborn; /* does not release */
};

static struct {
    struct sim *sim;
    struct loop *loop;
    struct receive_budget budget;
    struct kept_answers answers;
    struct receive_share shares[ALL];
    struct kept kept[ALL];
    unsigned released;
} f;

static void on_released(struct kept_answers *answers)
{
    assert_ptr_equal(answers, &f.answers);
    f.released++;
}

static void on_overdue(struct kept_answer *answer)
{
    struct kept *kept = CONTAINER_OF(answer, struct kept, answer);
    kept->overdue++;
    if (!kept->stubborn)
        kept_answer_release(answer);
}

static int set_up(void **state)
{
    (void)state;
    memset(&f, 0, sizeof(f));
    f.sim = sim_new(&SIM_OPTIONS_DEFAULT);
    assert_int_equal(network_loop_new(sim_network(f.sim), &f.loop), ST_OK);
    receive_budget_init(&f.budget);
    kept_answers_init(&f.answers, f.loop, &f.budget, on_released);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (size_t i = 0; i < ALL; i++) {
        kept_answer_release(&f.kept[i].answer);
        receive_budget_release(&f.budget, &f.shares[i]);
    }
    for (size_t i = 0; i < RECEIVE_KINDS; i++)
        assert_int_equal(f.budget.held[i], 0);
    kept_answers_fini(&f.answers);
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
static bool receive(size_t i, size_t bytes, bool keeps)
{
    assert_true(receive_budget_take(&f.budget, &f.shares[i], bytes, keeps, false));
    if (receive_share_is_stalled(&f.shares[i])) {
        kept_answers_watch(&f.answers);
        return false;
    }
    f.kept[i].answer.overdue = on_overdue;
    kept_answer_take(&f.answers, &f.kept[i].answer, &f.shares[i]);
    return true;
}

static void what_is_kept_takes_room(void **state)
{
    (void)state;
    assert_true(receive(0, 40 * MIB, true));
    assert_int_equal(f.shares[0].kind, RECEIVE_NONE); /* the call has none any more */
    assert_false(receive(1, 40 * MIB, true));
    assert_null(receive_budget_next(&f.budget));
    kept_answer_release(&f.kept[0].answer);
    kept_answer_release(&f.kept[0].answer);
    assert_int_equal(f.released, 1);
    assert_ptr_equal(receive_budget_next(&f.budget), &f.shares[1]);
}

/* A client that does not read keeps others from long answers only for some time. */
static void the_oldest_makes_room_for_those_that_wait(void **state)
{
    (void)state;
    assert_true(receive(0, 30 * MIB, true));
    run_ns(NS_PER_S);
    assert_true(receive(1, 30 * MIB, true));
    run_ns(10 * KEPT_ANSWER_NS);
    assert_int_equal(f.kept[0].overdue + f.kept[1].overdue, 0); /* no other waits */
    assert_false(receive(2, 30 * MIB, true));
    run_ns(1);
    assert_int_equal(f.kept[0].overdue, 1);
    assert_int_equal(f.kept[1].overdue, 0);
    assert_non_null(receive_budget_next(&f.budget));
    run_ns(10 * KEPT_ANSWER_NS);
    assert_int_equal(f.kept[1].overdue, 0); /* that was enough */
}

static void one_that_cannot_release_now_is_called_again_later(void **state)
{
    (void)state;
    f.kept[0].stubborn = true;
    assert_true(receive(0, 40 * MIB, true));
    assert_false(receive(1, 40 * MIB, true));
    run_ns(KEPT_ANSWER_NS - 1);
    assert_int_equal(f.kept[0].overdue, 0);
    run_ns(1);
    assert_int_equal(f.kept[0].overdue, 1);
    f.kept[0].stubborn = false;
    run_ns(KEPT_ANSWER_NS);
    assert_int_equal(f.kept[0].overdue, 2);
    assert_non_null(receive_budget_next(&f.budget));
}

/* Messages that are not kept have a line of their own, and short ones are not counted here. */
static void others_are_not_concerned(void **state)
{
    (void)state;
    assert_true(receive(0, 60 * MIB, true));
    assert_false(receive(1, 60 * MIB, true));
    assert_true(receive(2, 60 * MIB, false));
    assert_null(f.kept[2].answer.answers);
    assert_true(receive(3, 1024, true));
    assert_null(f.kept[3].answer.answers);
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
