#include "codec/time_zone.h"

#include "base/macros.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void assert_offset(const char *zone, int64_t seconds, int32_t expected)
{
    int32_t offset;
    assert_true(time_zone_offset(slice_from_text(zone), seconds, &offset));
    assert_int_equal(offset, expected);
}

static void offsets_follow_the_changes_of_a_zone(void **state)
{
    (void)state;
    assert_offset("Europe/Berlin", -3000000000, 3208); /* local mean time */
    assert_offset("Europe/Berlin", 1585443599, 3600);
    assert_offset("Europe/Berlin", 1585443600, 7200); /* March 29, 2020, 1 o'clock */
    assert_offset("Asia/Kathmandu", 0, 19800);
    assert_offset("Asia/Kathmandu", 600000000, 20700);
    assert_offset("Etc/GMT+5", 0, -18000);
    assert_offset("UTC", 0, 0);
}

static void rules_hold_behind_the_last_change(void **state)
{
    (void)state;
    assert_offset("Europe/Berlin", 4750000000, 7200);     /* July 2120 */
    assert_offset("Europe/Berlin", 4733000000, 3600);     /* December 2119 */
    assert_offset("Australia/Sydney", 4733000000, 39600); /* summer in the south */
    assert_offset("Australia/Sydney", 4750000000, 36000);
    assert_offset("Europe/Dublin", 4750000000, 3600); /* whose winter time is the exception */
    assert_offset("Europe/Dublin", 4733000000, 0);
    assert_offset("America/New_York", 253402300799, -18000);
}

static void names_are_known_exactly(void **state)
{
    int32_t offset;
    (void)state;
    assert_true(time_zone_exists(SLICE_LITERAL("America/Argentina/Buenos_Aires")));
    assert_true(time_zone_exists(SLICE_LITERAL("Local")));
    assert_false(time_zone_exists(SLICE_LITERAL("europe/berlin")));
    assert_false(time_zone_exists(SLICE_LITERAL("Europe/Berli")));
    assert_false(time_zone_exists(SLICE_EMPTY));
    assert_false(time_zone_offset(SLICE_LITERAL("Nowhere"), 0, &offset));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(offsets_follow_the_changes_of_a_zone),
        cmocka_unit_test(rules_hold_behind_the_last_change),
        cmocka_unit_test(names_are_known_exactly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
