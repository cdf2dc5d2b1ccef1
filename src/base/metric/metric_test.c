#include "base/metric/metric.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { PUTS, BYTES, COUNTERS };

static void *count(void *arg)
{
    struct metric_set *set = arg;
    struct metric_block *block;
    if (metric_set_join(set, &block) != ST_OK)
        return NULL;
    for (int i = 0; i < 10000; i++) {
        metric_add(block, PUTS, 1);
        metric_add(block, BYTES, 3);
    }
    return set;
}

static void sums_include_all_threads(void **state)
{
    (void)state;
    struct metric_set *set;
    assert_int_equal(metric_set_new(COUNTERS, &set), ST_OK);
    assert_int_equal(metric_sum(set, PUTS), 0);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count, set), 0);
    uint64_t last = 0;
    for (int i = 0; i < 1000; i++) {
        uint64_t now = metric_sum(set, PUTS);
        assert_true(now >= last);
        last = now;
    }
    for (int i = 0; i < 4; i++) {
        void *worked = NULL;
        pthread_join(threads[i], &worked);
        assert_non_null(worked);
    }
    assert_int_equal(metric_sum(set, PUTS), 40000);
    assert_int_equal(metric_sum(set, BYTES), 120000);
    metric_set_free(set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_include_all_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
