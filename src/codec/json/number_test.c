#include "codec/json/number.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void integers_are_read_in_any_notation(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t number;
    } rows[] = {
        {"0", 0},
        {"-0", 0},
        {"12", 12},
        {"-12", -12},
        {"1.0", 1},
        {"1e2", 100},
        {"1.25E+2", 125},
        {"100e-2", 1},
        {"0e999999999", 0},
        {"0.0", 0},
        {"0.05e2", 5},
        {"9223372036854775807", INT64_MAX},
        {"-9223372036854775808", INT64_MIN},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        int64_t got;
        struct slice text = slice_from_text(rows[i].text);
        assert_true(json_number_valid(text));
        assert_true(json_number_i64(text, &got));
        assert_int_equal(got, rows[i].number);
    }
    uint64_t most;
    assert_true(json_number_u64(SLICE_LITERAL("18446744073709551615"), &most));
    assert_true(most == UINT64_MAX);
}

static void other_numbers_and_too_large_ones_are_refused(void **state)
{
    (void)state;
    static const char *const rows[] = {"1.5",
                                       "1e-1",
                                       "15e-1",
                                       "0.1",
                                       "9223372036854775808",
                                       "1e19",
                                       "1e99999999999999999999",
                                       "-9223372036854775809"};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        int64_t got = 7;
        assert_false(json_number_i64(slice_from_text(rows[i]), &got));
        assert_int_equal(got, 7);
    }
    uint64_t got;
    assert_false(json_number_u64(SLICE_LITERAL("-1"), &got));
    assert_false(json_number_u64(SLICE_LITERAL("18446744073709551616"), &got));
}

static void only_whole_numbers_of_json_are_valid(void **state)
{
    (void)state;
    static const char *const rows[] = {"", " 1", "1 ", "+1", "01", "1.", ".5", "0x1", "1e", "a"};
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_false(json_number_valid(slice_from_text(rows[i])));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_are_read_in_any_notation),
        cmocka_unit_test(other_numbers_and_too_large_ones_are_refused),
        cmocka_unit_test(only_whole_numbers_of_json_are_valid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
