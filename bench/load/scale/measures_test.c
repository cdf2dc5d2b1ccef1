#include "load/scale/measures.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct scale_measures measures;
static struct scale_sample first, second;

static void sample_has_what_was_measured_since_the_last_one(void **state)
{
    (void)state;
    scale_measures_init(&measures);
    scale_measures_add(&measures, SCALE_RENEW, 40);
    scale_measures_add(&measures, SCALE_RENEW, 60);
    scale_measures_count(&measures, SCALE_RELISTS);
    scale_measures_take(&measures, &first);
    scale_measures_add(&measures, SCALE_LIST, 7);
    scale_measures_take(&measures, &second);
    assert_int_equal(first.durations[SCALE_RENEW].count, 2);
    assert_int_equal(first.durations[SCALE_RENEW].max, 60);
    assert_int_equal(first.counts[SCALE_RELISTS], 1);
    assert_int_equal(second.durations[SCALE_RENEW].count, 0);
    assert_int_equal(second.durations[SCALE_LIST].count, 1);
    assert_int_equal(second.counts[SCALE_RELISTS], 0);
    scale_sample_merge(&first, &second);
    assert_int_equal(first.durations[SCALE_RENEW].count, 2);
    assert_int_equal(first.durations[SCALE_LIST].max, 7);
    assert_int_equal(first.counts[SCALE_RELISTS], 1);
    scale_measures_fini(&measures);
}

static void text_of_the_first_error_is_kept(void **state)
{
    (void)state;
    scale_measures_init(&measures);
    memset(&first, 0, sizeof(first));
    scale_measures_error(&measures, "renew", "no answer");
    scale_measures_error(&measures, "list", "another one");
    scale_measures_take(&measures, &first);
    assert_int_equal(first.counts[SCALE_ERRORS], 2);
    char error[SCALE_ERROR_BYTES], end[SCALE_ERROR_BYTES];
    scale_measures_texts(&measures, error, end);
    assert_string_equal(error, "renew: no answer");
    assert_string_equal(end, "");
    scale_measures_end(&measures, "pods", "too slow");
    scale_measures_texts(&measures, error, end);
    assert_string_equal(end, "pods: too slow");
    scale_measures_fini(&measures);
}

static void everything_that_is_reported_has_a_name_of_its_own(void **state)
{
    (void)state;
    for (unsigned i = 0; i < SCALE_MEASURES; i++)
        for (unsigned j = 0; j < i; j++)
            assert_string_not_equal(scale_measure_name(i), scale_measure_name(j));
    for (unsigned i = 0; i < SCALE_COUNTS; i++)
        for (unsigned j = 0; j < i; j++)
            assert_string_not_equal(scale_count_name(i), scale_count_name(j));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sample_has_what_was_measured_since_the_last_one),
        cmocka_unit_test(text_of_the_first_error_is_kept),
        cmocka_unit_test(everything_that_is_reported_has_a_name_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
