#include "load/usage.h"

#include "base/macros.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void work_and_memory_show_in_the_usage(void **state)
{
    (void)state;
    const struct bench_processes own = {.server = getpid()};
    struct bench_usage before, after;
    assert_int_equal(bench_usage_read(&own, &before), ST_OK);
    size_t bytes = 32 << 20;
    char *memory = malloc(bytes);
    assert_non_null(memory);
    uint64_t until = bench_usage_own_cpu_ns() + 60000000;
    for (int round = 1; bench_usage_own_cpu_ns() < until; round++)
        memset(memory, round, bytes);
    assert_int_equal(bench_usage_read(&own, &after), ST_OK);
    free(memory);

    assert_true(after.cpu_ns - before.cpu_ns >= 60000000);
    assert_true(after.cpu_ticks - before.cpu_ticks >= 4);
    assert_true(after.cpu_ticks - before.cpu_ticks <=
                (after.cpu_ns - before.cpu_ns) / 10000000 + 2);
    assert_true(after.anonymous_kb >= before.anonymous_kb + 31 * 1024);
    assert_true(after.threads >= 1);
}

static void a_missing_process_is_not_found(void **state)
{
    (void)state;
    struct bench_usage usage;
    const struct bench_processes missing[] = {{.server = 0x3fffffff},
                                              {.server = getpid(), .store = 0x3fffffff}};
    for (size_t i = 0; i < COUNT_OF(missing); i++)
        assert_int_equal(bench_usage_read(&missing[i], &usage), ST_NOT_FOUND);
}

static void a_server_and_its_store_are_counted_together(void **state)
{
    (void)state;
    struct bench_usage one, both;
    const struct bench_processes own = {.server = getpid()};
    const struct bench_processes twice = {.server = getpid(), .store = getpid()};
    assert_int_equal(bench_usage_read(&own, &one), ST_OK);
    assert_int_equal(bench_usage_read(&twice, &both), ST_OK);
    assert_int_equal(both.threads, 2 * one.threads);
    assert_true(both.resident_kb >= 2 * one.resident_kb);
    assert_true(both.cpu_ns >= 2 * one.cpu_ns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_and_memory_show_in_the_usage),
        cmocka_unit_test(a_missing_process_is_not_found),
        cmocka_unit_test(a_server_and_its_store_are_counted_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
