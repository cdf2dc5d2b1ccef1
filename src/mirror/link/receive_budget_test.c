#include "mirror/link/receive_budget.h"

#include "base/slice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum { MIB = 1 << 20, SHARES = 300 };

static struct receive_budget budget;
static struct receive_share shares[SHARES];

static int set_up(void **state)
{
    (void)state;
    receive_budget_init(&budget);
    memset(shares, 0, sizeof(shares));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (size_t i = 0; i < SHARES; i++)
        receive_budget_release(&budget, &shares[i]);
    for (size_t i = 0; i < RECEIVE_KINDS; i++)
        assert_int_equal(budget.held[i], 0);
    assert_true(list_empty(&budget.line));
    return 0;
}

static bool share(size_t i, size_t message)
{
    return receive_budget_take(&budget, &shares[i], message, false, false);
}

static void long_messages_wait_in_line(void **state)
{
    (void)state;
    assert_true(share(0, 40 * MIB));
    assert_true(share(1, 40 * MIB));
    assert_true(share(2, MIB)); /* would fit, but does not overtake */
    assert_false(receive_share_is_stalled(&shares[0]));
    assert_true(receive_share_is_stalled(&shares[1]));
    assert_true(receive_share_is_stalled(&shares[2]));
    assert_int_equal(budget.held[RECEIVE_WAITING], 2 * UPSTREAM_WINDOW_BYTES);
    assert_null(receive_budget_next(&budget));
    receive_budget_release(&budget, &shares[0]);
    assert_ptr_equal(receive_budget_next(&budget), &shares[1]);
    assert_ptr_equal(receive_budget_next(&budget), &shares[2]);
    assert_null(receive_budget_next(&budget));
    assert_int_equal(budget.held[RECEIVE_LONG], 41 * MIB);
    assert_int_equal(budget.held[RECEIVE_WAITING], 0);
}

static void messages_that_wait_have_a_limit(void **state)
{
    (void)state;
    size_t waiting = UPSTREAM_STALLED_BYTES_MAX / UPSTREAM_WINDOW_BYTES;
    for (size_t i = 0; i <= waiting; i++)
        assert_true(share(i, UPSTREAM_LONG_BYTES_MAX));
    assert_false(share(waiting + 1, UPSTREAM_LONG_BYTES_MAX));
    assert_int_equal(shares[waiting + 1].kind, RECEIVE_NONE);
    assert_true(share(waiting + 1, 1000)); /* a short one needs not wait */
    assert_false(receive_share_is_stalled(&shares[waiting + 1]));
    receive_budget_release(&budget, &shares[5]); /* one that waits */
    assert_true(share(5, UPSTREAM_LONG_BYTES_MAX));
}

static void short_messages_have_a_limit(void **state)
{
    (void)state;
    size_t shorts = UPSTREAM_SHORT_BYTES_MAX / UPSTREAM_WINDOW_BYTES, i;
    for (i = 0; i < shorts; i++)
        assert_true(share(i, UPSTREAM_WINDOW_BYTES));
    assert_int_equal(budget.held[RECEIVE_SHORT], UPSTREAM_SHORT_BYTES_MAX);
    assert_true(share(i, UPSTREAM_WINDOW_BYTES));
    assert_true(receive_share_is_stalled(&shares[i]));
    receive_budget_release(&budget, &shares[0]);
    assert_ptr_equal(receive_budget_next(&budget), &shares[i]);
}

static void clients_that_do_not_read_take_no_room_of_others(void **state)
{
    (void)state;
    size_t paused = UPSTREAM_STALLED_BYTES_MAX / UPSTREAM_WINDOW_BYTES;
    for (size_t i = 0; i < paused; i++)
        assert_true(receive_budget_take(&budget, &shares[i], 8 * MIB, false, true));
    assert_false(receive_budget_take(&budget, &shares[paused], 8 * MIB, false, true));
    assert_true(share(paused, UPSTREAM_LONG_BYTES_MAX));
    assert_false(receive_share_is_stalled(&shares[paused]));
    receive_budget_pause(&budget, &shares[1], false);
    assert_int_equal(shares[1].kind, RECEIVE_WAITING);
    receive_budget_pause(&budget, &shares[1], true);
    assert_int_equal(shares[1].kind, RECEIVE_PAUSED);
    receive_budget_pause(&budget, &shares[1], false);
    receive_budget_release(&budget, &shares[paused]);
    assert_ptr_equal(receive_budget_next(&budget), &shares[1]);
    receive_budget_pause(&budget, &shares[2], false); /* there is room at once */
    assert_int_equal(shares[2].kind, RECEIVE_LONG);
    receive_budget_pause(&budget, &shares[2], true); /* all of it may come already */
    assert_int_equal(shares[2].kind, RECEIVE_LONG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(long_messages_wait_in_line, set_up, tear_down),
        cmocka_unit_test_setup_teardown(messages_that_wait_have_a_limit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(short_messages_have_a_limit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(clients_that_do_not_read_take_no_room_of_others, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
