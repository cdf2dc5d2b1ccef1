#include "base/metric/page.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void assert_page(struct metric_page *page, const char *expected)
{
    assert_int_equal(page->status, ST_OK);
    assert_int_equal(buf_append(&page->text, slice_of("", 1)), ST_OK);
    assert_string_equal((const char *)page->text.ptr, expected);
    metric_page_fini(page);
}

static void a_family_is_its_head_and_its_rows(void **state)
{
    (void)state;
    struct metric_page page = {0};
    metric_page_head(&page, "calls_total", METRIC_COUNTER, "Calls that ended.");
    metric_page_row(&page, "calls_total", "code=\"OK\"", UINT64_MAX);
    metric_page_row(&page, "calls_total", "code=\"Internal\"", 0);
    metric_page_gauge(&page, "keys", "Keys there are.", 7);
    assert_page(&page, "# HELP calls_total Calls that ended.\n"
                       "# TYPE calls_total counter\n"
                       "calls_total{code=\"OK\"} 18446744073709551615\n"
                       "calls_total{code=\"Internal\"} 0\n"
                       "# HELP keys Keys there are.\n"
                       "# TYPE keys gauge\n"
                       "keys 7\n");
}

static void real_numbers_have_the_shortest_form(void **state)
{
    (void)state;
    struct metric_page page = {0};
    metric_page_row_real(&page, "x", "", 0.1);
    metric_page_row_real(&page, "x", "", 1794718630.5);
    metric_page_row_real(&page, "x", "", 0);
    metric_page_row_real(&page, "x", "", 10);
    metric_page_row_real(&page, "x", "", 2500);
    assert_page(&page, "x 0.1\nx 1794718630.5\nx 0\nx 10\nx 2500\n");
}

static void buckets_of_a_histogram_cumulate(void **state)
{
    (void)state;
    static const int64_t bounds[] = {1 * NS_PER_MS, 4 * NS_PER_MS};
    static const struct metric_buckets buckets = {bounds, 2, NS_PER_S};
    struct metric_set *set;
    struct metric_block *block;
    assert_int_equal(metric_set_new(METRIC_SLOTS, &set), ST_OK);
    assert_int_equal(metric_set_join(set, &block), ST_OK);
    metric_observe(block, 0, &buckets, 0);
    metric_observe(block, 0, &buckets, 1 * NS_PER_MS); /* within its own bound */
    metric_observe(block, 0, &buckets, 1 * NS_PER_MS + 1);
    metric_observe(block, 0, &buckets, 10 * NS_PER_MS);
    uint64_t slots[METRIC_SLOTS];
    metric_sum_histogram(set, 0, slots);
    struct metric_page page = {0};
    metric_page_row_histogram(&page, "wait_seconds", "op=\"put\"", &buckets, slots);
    metric_page_row_histogram(&page, "bare", "", &buckets, slots);
    assert_page(&page, "wait_seconds_bucket{op=\"put\",le=\"0.001\"} 2\n"
                       "wait_seconds_bucket{op=\"put\",le=\"0.004\"} 3\n"
                       "wait_seconds_bucket{op=\"put\",le=\"+Inf\"} 4\n"
                       "wait_seconds_sum{op=\"put\"} 0.012000001\n"
                       "wait_seconds_count{op=\"put\"} 4\n"
                       "bare_bucket{le=\"0.001\"} 2\n"
                       "bare_bucket{le=\"0.004\"} 3\n"
                       "bare_bucket{le=\"+Inf\"} 4\n"
                       "bare_sum 0.012000001\n"
                       "bare_count 4\n");
    metric_set_free(set);
}

static void bounds_are_printed_in_short_form(void **state)
{
    (void)state;
    struct metric_page page = {0};
    uint64_t slots[METRIC_SLOTS] = {0};
    metric_page_row_histogram(&page, "d", "", &metric_disk_seconds, slots);
    assert_int_equal(buf_append(&page.text, slice_of("", 1)), ST_OK);
    const char *text = (const char *)page.text.ptr;
    assert_non_null(strstr(text, "d_bucket{le=\"0.128\"} 0\n"));
    assert_non_null(strstr(text, "d_bucket{le=\"8.192\"} 0\n"));
    metric_page_fini(&page);
}

static void label_values_are_escaped(void **state)
{
    (void)state;
    char room[32];
    assert_string_equal(metric_page_escape("a\"b\\c\nd", room, sizeof(room)), "a\\\"b\\\\c\\nd");
    char small[6];
    assert_string_equal(metric_page_escape("abc\"\"\"", small, sizeof(small)), "abc\\\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_family_is_its_head_and_its_rows),
        cmocka_unit_test(real_numbers_have_the_shortest_form),
        cmocka_unit_test(buckets_of_a_histogram_cumulate),
        cmocka_unit_test(bounds_are_printed_in_short_form),
        cmocka_unit_test(label_values_are_escaped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
