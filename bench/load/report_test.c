#include "load/report.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void texts_of_a_server_cannot_break_the_json(void **state)
{
    (void)state;
    struct bench_report report = {0};
    bench_report_text(&report, "first_error", "a\"b\\c\n\xff");
    bench_report_count(&report, "count", 3);
    bench_report_number(&report, "left_out", NAN);
    bench_report_number(&report, "left_out_too", INFINITY);
    bench_report_number(&report, "half", 0.5);
    assert_true(slice_equal(
        buf_slice(&report.json),
        SLICE_LITERAL("{\"first_error\": \"a\\u0022b\\u005cc\\u000a\\u00ff\", \"count\": 3, "
                      "\"half\": 0.500")));
    assert_false(report.failed);
    bench_report_fini(&report);
}

static void outcome_without_calls_does_not_divide_by_zero(void **state)
{
    (void)state;
    struct bench_report report = {0};
    struct bench_outcome outcome = {.seconds = 1, .has_usage = true};
    outcome.after.at_ns = 1000000000;
    bench_report_outcome(&report, &outcome);
    assert_null(memmem(report.json.ptr, report.json.len, "nan", 3));
    assert_null(memmem(report.json.ptr, report.json.len, "inf", 3));
    bench_report_fini(&report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_of_a_server_cannot_break_the_json),
        cmocka_unit_test(outcome_without_calls_does_not_divide_by_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
