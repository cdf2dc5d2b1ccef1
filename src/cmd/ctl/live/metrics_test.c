#include "cmd/ctl/live/metrics.h"

#include "base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static const char first_page[] =
    "# HELP a_total Something.\n"
    "# TYPE a_total counter\n"
    "a_total{code=\"OK\",method=\"Range\"} 10\n"
    "a_total{code=\"OK\",method=\"Put\"} 5\n"
    "a_total{code=\"Unknown\",method=\"Put\"} 1\n"
    "plain 1.5e+03\n"
    "odd{text=\"a}b\\\"c\"} 7\n"
    "h_bucket{le=\"0.001\"} 0\nh_bucket{le=\"0.002\"} 10\nh_bucket{le=\"+Inf\"} 10\n";
static const char second_page[] =
    "a_total{code=\"OK\",method=\"Range\"} 30\n"
    "a_total{code=\"OK\",method=\"Put\"} 5\n"
    "plain 3\n"
    "h_bucket{le=\"0.001\"} 98\nh_bucket{le=\"0.002\"} 109\nh_bucket{le=\"+Inf\"} 110\n";

static void samples_are_summed_by_name_and_label(void **state)
{
    struct metrics m = {0};
    (void)state;
    metrics_read(&m, slice_from_text(first_page), 1);
    assert_true(metrics_sum(&m, "a_total", NULL) == 16);
    assert_true(metrics_sum(&m, "a_total", "method=\"Put\"") == 6);
    assert_true(metrics_sum(&m, "a_total", "ethod=\"Put\"") == 0);
    assert_true(metrics_sum(&m, "a_tot", NULL) == 0);
    assert_true(metrics_sum(&m, "plain", NULL) == 1500);
    assert_true(metrics_sum(&m, "odd", NULL) == 7);
    assert_true(metrics_has(&m, "odd") && !metrics_has(&m, "even"));
    assert_true(slice_is(metrics_label(&m.samples[0], "method"), "Range"));
    assert_true(slice_equal(metrics_label(&m.samples[0], "none"), SLICE_EMPTY));
    metrics_fini(&m);
}

static void rates_need_two_pages_of_one_run(void **state)
{
    struct metrics a = {0}, b = {0}, none = {0};
    (void)state;
    metrics_read(&a, slice_from_text(first_page), INT64_C(1000000000));
    metrics_read(&b, slice_from_text(second_page), INT64_C(3000000000));
    assert_true(metrics_rate(&a, &b, "a_total", "method=\"Range\"") == 10);
    assert_true(metrics_rate(&a, &b, "plain", NULL) == 0); /* restarted */
    assert_true(metrics_rate(&none, &b, "a_total", NULL) == 0);
    metrics_fini(&a);
    metrics_fini(&b);
}

static void quantiles_are_bounds_of_buckets(void **state)
{
    struct metrics a = {0}, b = {0};
    (void)state;
    metrics_read(&a, slice_from_text(first_page), 1);
    metrics_read(&b, slice_from_text(second_page), 2);
    assert_true(metrics_quantile(NULL, &a, "h", 0.5) == 0.002);
    assert_true(metrics_quantile(&a, &b, "h", 0.5) == 0.001);
    assert_true(metrics_quantile(&a, &b, "h", 0.99) == 0.002);
    assert_true(metrics_quantile(&a, &b, "h", 1) == 0.002); /* the largest known bound */
    assert_true(metrics_quantile(&a, &a, "h", 0.5) == -1);
    assert_true(metrics_quantile(NULL, &a, "none", 0.5) == -1);
    metrics_fini(&a);
    metrics_fini(&b);
}

static void anything_a_server_sends_is_read(void **state)
{
    static const char *const texts[] = {
        "",     "{",     "a{",  "a{b",  "a{b=\"", "a{b=\"\\",       "a{}",
        "a{} ", "a NaN", "a x", "{} 1", " 1",     "a{b=\"c\\\"} 1",
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        struct metrics m = {0};
        metrics_read(&m, slice_from_text(texts[i]), 1);
        assert_int_equal(m.count, 0);
        metrics_fini(&m);
    }
    struct metrics m = {0};
    metrics_read(&m, SLICE_LITERAL("a{le=\"\\"), 1);
    metrics_read(&m, SLICE_LITERAL("a{le=\"x\\\"} 1\na{le=\"} 1"), 1);
    metrics_fini(&m);
}

static void samples_and_bytes_are_bounded(void **state)
{
    AUTO(buf_fini) struct buf page = {0};
    struct metrics m = {0};
    (void)state;
    while (page.len <= METRICS_BYTES_MAX)
        assert_int_equal(buf_append_text(&page, "a_metric_with_a_long_name 1\n"), ST_OK);
    metrics_read(&m, buf_slice(&page), 1);
    assert_int_equal(m.count, METRICS_SAMPLES_MAX);
    metrics_fini(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_are_summed_by_name_and_label),
        cmocka_unit_test(rates_need_two_pages_of_one_run),
        cmocka_unit_test(quantiles_are_bounds_of_buckets),
        cmocka_unit_test(anything_a_server_sends_is_read),
        cmocka_unit_test(samples_and_bytes_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
