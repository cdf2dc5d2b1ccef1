/* Which conversion webhooks fail, and when the status of their definition is to be changed. */
#include "kube/call/converter_states.h"

#include "base/clock.h"
#include "kube/custom/definition.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define PAUSE_NS (KUBE_CONVERTER_PAUSE_S * NS_PER_S)

static struct kube_converter_states *states;
static int64_t now;

static int set_up(void **state)
{
    (void)state;
    states = kube_converter_states_new();
    now = NS_PER_S;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    kube_converter_states_free(states);
    return 0;
}

static void note(const char *name, enum conversion_failure failure)
{
    kube_converter_states_note(states, slice_from_text(name), "v1", "v2", failure);
}

static bool differs(const char *name, bool says, struct kube_converter_state *ret_state)
{
    const struct kube_definition definition = {.name = slice_from_text(name),
                                               .conversion_failing = says};
    return kube_converter_states_differ(states, &definition, now, ret_state);
}

static void failures_are_reported_once_until_calls_succeed(void **state)
{
    (void)state;
    struct kube_converter_state got = {.fails = false};
    assert_false(kube_converter_states_have_news(states, now));
    note("a", CONVERSION_PARTIAL);
    note("a", CONVERSION_FINE); /* other calls succeed */
    assert_true(kube_converter_states_have_news(states, now));
    assert_false(differs("b", false, &got));
    assert_true(differs("a", false, &got));
    assert_true(got.fails);
    assert_int_equal(got.failure, CONVERSION_PARTIAL);
    assert_string_equal(got.from, "v1");
    assert_string_equal(got.to, "v2");
    /* The status says so now. */
    now += PAUSE_NS;
    assert_true(kube_converter_states_have_news(states, now));
    assert_false(differs("a", true, &got));
    note("a", CONVERSION_CALL_FAILED);
    note("a", CONVERSION_FINE);
    assert_false(kube_converter_states_have_news(states, now));
    assert_false(kube_converter_states_have_news(states, now)); /* without calls it is still so */
    note("a", CONVERSION_FINE);
    assert_true(kube_converter_states_have_news(states, now));
    assert_true(differs("a", true, &got));
    assert_false(got.fails);
    now += PAUSE_NS;
    assert_false(differs("a", false, &got));
    assert_int_equal(kube_converter_states_count(states), 0);
}

static void a_status_that_could_not_be_changed_is_changed_later(void **state)
{
    (void)state;
    struct kube_converter_state got;
    note("a", CONVERSION_CALL_FAILED);
    assert_true(differs("a", false, &got));
    now += PAUSE_NS - 1;
    assert_false(kube_converter_states_have_news(states, now));
    assert_false(differs("a", false, &got));
    now++;
    assert_true(kube_converter_states_have_news(states, now));
    assert_true(differs("a", false, &got));
    assert_true(got.fails);
}

/* So that it is not known yet what the status says. */
static void recovery_within_the_pause_is_reported_after_it(void **state)
{
    (void)state;
    struct kube_converter_state got;
    note("a", CONVERSION_CALL_FAILED);
    assert_true(kube_converter_states_have_news(states, now));
    assert_true(differs("a", false, &got));
    note("a", CONVERSION_FINE);
    assert_false(kube_converter_states_have_news(states, now));
    now += PAUSE_NS;
    assert_true(kube_converter_states_have_news(states, now));
    assert_true(differs("a", true, &got));
    assert_false(got.fails);
}

static void a_failure_that_was_never_reported_leaves_nothing(void **state)
{
    (void)state;
    note("a", CONVERSION_CALL_FAILED);
    assert_true(kube_converter_states_have_news(states, now));
    note("a", CONVERSION_FINE);
    assert_false(kube_converter_states_have_news(states, now));
    assert_int_equal(kube_converter_states_count(states), 0);
}

static void a_webhook_that_comes_and_goes_changes_the_status_rarely(void **state)
{
    (void)state;
    enum { ROUNDS = 1000 };
    struct kube_converter_state got;
    bool says = false;
    int64_t begun = now;
    unsigned changes = 0;
    for (unsigned i = 0; i < ROUNDS; i++, now += NS_PER_S) {
        note("a", i % 2 ? CONVERSION_FINE : CONVERSION_CALL_FAILED);
        if (!differs("a", says, &got))
            continue;
        says = got.fails;
        changes++;
    }
    assert_in_range(changes, 2, (uintmax_t)((now - begun) / PAUSE_NS) + 1);
}

/* As after a restart of the server, or when another server has changed it. */
static void a_status_from_before_is_corrected_by_the_first_call(void **state)
{
    (void)state;
    struct kube_converter_state got;
    note("a", CONVERSION_FINE);
    assert_int_equal(kube_converter_states_count(states), 0);
    assert_false(differs("a", true, &got));
    assert_false(kube_converter_states_have_news(states, now));
    note("a", CONVERSION_FINE);
    assert_true(kube_converter_states_have_news(states, now));
    assert_true(differs("a", true, &got));
    assert_false(got.fails);
}

static void rows_are_limited_and_those_of_removed_definitions_are_dropped(void **state)
{
    (void)state;
    struct kube_converter_state got;
    char name[32], long_name[300];
    for (int i = 0; i <= KUBE_CONVERTER_STATES_MAX; i++) {
        snprintf(name, sizeof(name), "%d", i);
        note(name, CONVERSION_CALL_FAILED);
    }
    assert_int_equal(kube_converter_states_count(states), KUBE_CONVERTER_STATES_MAX);
    assert_false(differs(name, false, &got));
    assert_false(differs(name, true, &got));
    for (int round = 0; round < 10; round++) {
        (void)differs("7", round > 0, &got);
        kube_converter_states_prune(states);
    }
    assert_int_equal(kube_converter_states_count(states), 1);
    note("7", CONVERSION_FINE);
    now += PAUSE_NS;
    assert_true(differs("7", true, &got));
    memset(long_name, 'x', sizeof(long_name) - 1);
    long_name[sizeof(long_name) - 1] = 0;
    note(long_name, CONVERSION_CALL_FAILED);
    assert_int_equal(kube_converter_states_count(states), 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(failures_are_reported_once_until_calls_succeed),
        TEST(a_status_that_could_not_be_changed_is_changed_later),
        TEST(recovery_within_the_pause_is_reported_after_it),
        TEST(a_failure_that_was_never_reported_leaves_nothing),
        TEST(a_webhook_that_comes_and_goes_changes_the_status_rarely),
        TEST(a_status_from_before_is_corrected_by_the_first_call),
        TEST(rows_are_limited_and_those_of_removed_definitions_are_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
