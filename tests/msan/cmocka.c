/* cmocka, as the memory sanitizer has to see it: what it passes to tests and fixtures is defined.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <sanitizer/msan_interface.h>

/* Names that the linker makes from cmocka's. */
#define REAL(name) __real_##name
#define WRAP(name) __wrap_##name
/* For functions that cmocka calls: the arguments of their callers are taken for defined. */
#define NOT_INSTRUMENTED __attribute__((no_sanitize("memory")))

int REAL(_cmocka_run_group_tests)(const char *name, const struct CMUnitTest *tests, size_t count,
                                  CMFixtureFunction setup, CMFixtureFunction teardown);
int WRAP(_cmocka_run_group_tests)(const char *name, const struct CMUnitTest *tests, size_t count,
                                  CMFixtureFunction setup, CMFixtureFunction teardown);

/* A test, which cmocka has as the state of another one. */
struct inner {
    struct CMUnitTest test;
    void *state;
};

NOT_INSTRUMENTED static int set_up(void **state)
{
    struct inner *inner = *state;
    return inner->test.setup_func(&inner->state);
}

NOT_INSTRUMENTED static void run(void **state)
{
    struct inner *inner = *state;
    inner->test.test_func(&inner->state);
}

NOT_INSTRUMENTED static int tear_down(void **state)
{
    struct inner *inner = *state;
    return inner->test.teardown_func(&inner->state);
}

int WRAP(_cmocka_run_group_tests)(const char *name, const struct CMUnitTest *tests, size_t count,
                                  CMFixtureFunction setup, CMFixtureFunction teardown)
{
    void *group = NULL;
    if (setup && setup(&group) != 0)
        return 1;
    struct inner *inner = calloc(count, sizeof(*inner));
    struct CMUnitTest *outer = calloc(count, sizeof(*outer));
    if (!inner || !outer)
        abort();
    for (size_t i = 0; i < count; i++) {
        inner[i] =
            (struct inner){tests[i], tests[i].initial_state ? tests[i].initial_state : group};
        outer[i] = (struct CMUnitTest){
            .name = tests[i].name,
            .test_func = run,
            .setup_func = tests[i].setup_func ? set_up : NULL,
            .teardown_func = tests[i].teardown_func ? tear_down : NULL,
            .initial_state = &inner[i],
        };
    }
    int failed = REAL(_cmocka_run_group_tests)(name, outer, count, NULL, NULL);
    free(outer);
    free(inner);
    return teardown && teardown(&group) != 0 ? failed + 1 : failed;
}
