/* Planted faults, each of which must be found (cost.h). This file is compiled so that its steps
 * count in every build. */
#include "cost.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

__attribute__((weak)) int __sanitizer_install_malloc_and_free_hooks(
    void (*allocated)(const volatile void *, size_t), void (*freed)(const volatile void *));

static volatile unsigned sink;

static int linear(const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < size; i++)
        sink += data[i];
    return 0;
}

/* Compares each byte with all before it. */
static int quadratic(const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < size; i++)
        for (size_t j = 0; j < i; j++)
            sink += data[i] == data[j];
    return 0;
}

/* The same in a library, where no steps are counted. */
static int quadratic_elsewhere(const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < size; i += 4)
        for (int again = 0; again < 4; again++)
            sink += memchr(data + i, 0xff, size - i) != NULL;
    return 0;
}

/* Quadratic until a limit of its own. */
static int quadratic_with_a_limit(const uint8_t *data, size_t size)
{
    return quadratic(data, size < 2048 ? size : 2048);
}

static int deep(const uint8_t *data, size_t size)
{
    volatile char here[64] = {0};
    if (size)
        sink += (unsigned)deep(data, size - 1) + (unsigned)here[size % 64];
    return 0;
}

static int large(const uint8_t *data, size_t size)
{
    void *volatile memory = malloc(size * 4096 + (8 << 20)); /* or the compiler leaves it out */
    sink += memory && data;
    free(memory);
    return 0;
}

/* How a process ends that gives this input to a function: 0, or by which signal. */
static int fate(cost_input *input, size_t size, bool pumped)
{
    static const struct cost_limits limits = {0};
    uint8_t *data = calloc(1, size);
    pid_t child = fork();
    if (child == 0) {
        (void)!freopen("/dev/null", "w", stderr);
        if (pumped)
            cost_pump(input, &limits, data, size);
        else
            (void)cost_run(input, &limits, data, size);
        _exit(0);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    free(data);
    return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

static void work_that_grows_with_its_input_is_fine(void **state)
{
    (void)state;
    assert_int_equal(fate(linear, 100000, false), 0);
    assert_int_equal(fate(linear, 100, true), 0);
    assert_int_equal(fate(quadratic_with_a_limit, 100, true), 0);
    assert_int_equal(fate(deep, 100, false), 0);
}

static void work_that_grows_faster_is_found(void **state)
{
    (void)state;
    assert_int_equal(fate(quadratic, 100, true), SIGABRT);
    if (COST_IS_TIMED)
        assert_int_equal(fate(quadratic_elsewhere, 100, true), SIGABRT);
    assert_int_equal(fate(quadratic, 8000, false), SIGABRT);
}

static void depth_is_found(void **state)
{
    (void)state;
    assert_int_equal(fate(deep, 10000, false), SIGABRT);
}

static void memory_is_found(void **state)
{
    (void)state;
    /* Only sanitizers count it. */
    bool counted = __sanitizer_install_malloc_and_free_hooks;
    assert_int_equal(fate(large, 100, false), counted ? SIGABRT : 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_that_grows_with_its_input_is_fine),
        cmocka_unit_test(work_that_grows_faster_is_found),
        cmocka_unit_test(depth_is_found),
        cmocka_unit_test(memory_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Declared for harnesses; this program has none. */
const struct cost_limits fuzz_limits;

int fuzz_input(const uint8_t *data, size_t size)
{
    return linear(data, size);
}
