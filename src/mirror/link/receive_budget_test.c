#include "mirror/link/receive_budget.h"

#include "base/slice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum { MIB = 1 << 20, CLAIMS = 300 };

static struct upstream_room room;
static struct upstream_claim claims[CLAIMS];

static int set_up(void **state)
{
    (void)state;
    upstream_room_init(&room);
    memset(claims, 0, sizeof(claims));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (size_t i = 0; i < CLAIMS; i++)
        upstream_room_release(&room, &claims[i]);
    for (size_t i = 0; i < UPSTREAM_ROOM_KINDS; i++)
        assert_int_equal(room.held[i], 0);
    assert_true(list_empty(&room.line));
    return 0;
}

static bool claim(size_t i, size_t message)
{
    return upstream_room_claim(&room, &claims[i], message, false, false);
}

static void long_messages_wait_in_line(void **state)
{
    (void)state;
    assert_true(claim(0, 40 * MIB));
    assert_true(claim(1, 40 * MIB));
    assert_true(claim(2, MIB)); /* would fit, but does not overtake */
    assert_false(upstream_claim_is_stalled(&claims[0]));
    assert_true(upstream_claim_is_stalled(&claims[1]));
    assert_true(upstream_claim_is_stalled(&claims[2]));
    assert_int_equal(room.held[UPSTREAM_ROOM_WAITING], 2 * UPSTREAM_WINDOW_BYTES);
    assert_null(upstream_room_grant(&room));
    upstream_room_release(&room, &claims[0]);
    assert_ptr_equal(upstream_room_grant(&room), &claims[1]);
    assert_ptr_equal(upstream_room_grant(&room), &claims[2]);
    assert_null(upstream_room_grant(&room));
    assert_int_equal(room.held[UPSTREAM_ROOM_LONG], 41 * MIB);
    assert_int_equal(room.held[UPSTREAM_ROOM_WAITING], 0);
}

static void messages_that_wait_have_a_limit(void **state)
{
    (void)state;
    size_t waiting = UPSTREAM_STALLED_BYTES_MAX / UPSTREAM_WINDOW_BYTES;
    for (size_t i = 0; i <= waiting; i++)
        assert_true(claim(i, UPSTREAM_LONG_BYTES_MAX));
    assert_false(claim(waiting + 1, UPSTREAM_LONG_BYTES_MAX));
    assert_int_equal(claims[waiting + 1].kind, UPSTREAM_ROOM_NONE);
    assert_true(claim(waiting + 1, 1000)); /* a short one needs not wait */
    assert_false(upstream_claim_is_stalled(&claims[waiting + 1]));
    upstream_room_release(&room, &claims[5]); /* one that waits */
    assert_true(claim(5, UPSTREAM_LONG_BYTES_MAX));
}

static void short_messages_have_a_limit(void **state)
{
    (void)state;
    size_t shorts = UPSTREAM_SHORT_BYTES_MAX / UPSTREAM_WINDOW_BYTES, i;
    for (i = 0; i < shorts; i++)
        assert_true(claim(i, UPSTREAM_WINDOW_BYTES));
    assert_int_equal(room.held[UPSTREAM_ROOM_SHORT], UPSTREAM_SHORT_BYTES_MAX);
    assert_true(claim(i, UPSTREAM_WINDOW_BYTES));
    assert_true(upstream_claim_is_stalled(&claims[i]));
    upstream_room_release(&room, &claims[0]);
    assert_ptr_equal(upstream_room_grant(&room), &claims[i]);
}

static void clients_that_do_not_read_take_no_room_of_others(void **state)
{
    (void)state;
    size_t paused = UPSTREAM_STALLED_BYTES_MAX / UPSTREAM_WINDOW_BYTES;
    for (size_t i = 0; i < paused; i++)
        assert_true(upstream_room_claim(&room, &claims[i], 8 * MIB, false, true));
    assert_false(upstream_room_claim(&room, &claims[paused], 8 * MIB, false, true));
    assert_true(claim(paused, UPSTREAM_LONG_BYTES_MAX));
    assert_false(upstream_claim_is_stalled(&claims[paused]));
    upstream_room_pause(&room, &claims[1], false);
    assert_int_equal(claims[1].kind, UPSTREAM_ROOM_WAITING);
    upstream_room_pause(&room, &claims[1], true);
    assert_int_equal(claims[1].kind, UPSTREAM_ROOM_PAUSED);
    upstream_room_pause(&room, &claims[1], false);
    upstream_room_release(&room, &claims[paused]);
    assert_ptr_equal(upstream_room_grant(&room), &claims[1]);
    upstream_room_pause(&room, &claims[2], false); /* there is room at once */
    assert_int_equal(claims[2].kind, UPSTREAM_ROOM_LONG);
    upstream_room_pause(&room, &claims[2], true); /* all of it may come already */
    assert_int_equal(claims[2].kind, UPSTREAM_ROOM_LONG);
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
