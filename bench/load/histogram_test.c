#include "load/histogram.h"

#include "base/macros.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void an_empty_histogram_answers_zero(void **state)
{
    (void)state;
    static struct bench_histogram h;
    assert_int_equal(bench_histogram_quantile(&h, 0.5), 0);
    assert_true(bench_histogram_mean(&h) == 0);
}

static void small_values_are_exact(void **state)
{
    (void)state;
    static struct bench_histogram h;
    for (uint64_t v = 0; v < 64; v++)
        bench_histogram_add(&h, v);
    assert_int_equal(bench_histogram_quantile(&h, 0), 0);
    assert_int_equal(bench_histogram_quantile(&h, 0.5), 31);
    assert_int_equal(bench_histogram_quantile(&h, 1), 63);
    assert_int_equal(h.min, 0);
    assert_int_equal(h.max, 63);
}

static void a_quantile_is_never_below_and_at_most_a_sixtyfourth_above(void **state)
{
    (void)state;
    for (unsigned bit = 0; bit < 64; bit++) {
        for (unsigned extra = 0; extra < 3; extra++) {
            static struct bench_histogram h;
            h = (struct bench_histogram){0};
            uint64_t value = (UINT64_C(1) << bit) + extra * ((UINT64_C(1) << bit) / 3);
            bench_histogram_add(&h, value);
            bench_histogram_add(&h, UINT64_MAX);
            uint64_t got = bench_histogram_quantile(&h, 0.5);
            assert_true(got >= value);
            assert_true(got - value <= value / 64);
        }
    }
}

static void merging_is_like_adding_everything_to_one(void **state)
{
    (void)state;
    static struct bench_histogram a, b, both;
    for (uint64_t v = 1; v < 100000; v += 7) {
        bench_histogram_add(v % 2 ? &a : &b, v * 13);
        bench_histogram_add(&both, v * 13);
    }
    static struct bench_histogram empty;
    bench_histogram_merge(&a, &b);
    bench_histogram_merge(&a, &empty);
    assert_memory_equal(&a, &both, sizeof(a));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_histogram_answers_zero),
        cmocka_unit_test(small_values_are_exact),
        cmocka_unit_test(a_quantile_is_never_below_and_at_most_a_sixtyfourth_above),
        cmocka_unit_test(merging_is_like_adding_everything_to_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
