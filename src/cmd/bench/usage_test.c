#include "cmd/bench/usage.h"

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
    struct bench_usage before, after;
    assert_int_equal(bench_usage_read(getpid(), &before), ST_OK);
    size_t bytes = 32 << 20;
    char *memory = malloc(bytes);
    assert_non_null(memory);
    uint64_t until = bench_usage_own_cpu_ns() + 60000000;
    for (int round = 1; bench_usage_own_cpu_ns() < until; round++)
        memset(memory, round, bytes);
    assert_int_equal(bench_usage_read(getpid(), &after), ST_OK);
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
    assert_int_equal(bench_usage_read(0x3fffffff, &usage), ST_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_and_memory_show_in_the_usage),
        cmocka_unit_test(a_missing_process_is_not_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
