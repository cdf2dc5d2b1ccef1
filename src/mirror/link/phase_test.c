/* The phases of the engine, and how they are explained. */
#include "mirror/link/phase.h"

#include "base/slice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct mirror_state shown;
static const struct mirror_options options = {.upstream.endpoints = "http://a:1,http://b:2",
                                              .lag_max_revisions = 10};

static int set_up(void **state)
{
    (void)state;
    memset(&shown, 0, sizeof(shown));
    follow_failure_init(&shown.follow_failure);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    follow_failure_fini(&shown.follow_failure);
    return 0;
}

static void expect(enum mirror_phase phase, const char *text)
{
    char explained[MIRROR_PHASE_BYTES];
    assert_int_equal(mirror_phase_get(&shown, &options), phase);
    assert_int_equal(mirror_phase_explain(&shown, &options, explained), phase);
    assert_string_equal(explained, text);
}

static void a_start_passes_through_the_phases(void **state)
{
    (void)state;
    expect(MIRROR_UNREACHED,
           "no member of the cluster can be followed yet (http://a:1,http://b:2)");
    follow_failure_set(&shown.follow_failure, "cannot connect to b:2: connection refused");
    expect(MIRROR_UNREACHED,
           "no member of the cluster can be followed yet (http://a:1,http://b:2): "
           "cannot connect to b:2: connection refused");
    follow_failure_clear(&shown.follow_failure);
    atomic_store(&shown.reached, true);
    expect(MIRROR_LOADING, "the mirror of the cluster is not complete yet");
    atomic_store(&shown.synced, true);
    atomic_store(&shown.connected, true);
    expect(MIRROR_FOLLOWING, "");
}

static void a_mirror_that_was_complete_stays_in_use(void **state)
{
    (void)state;
    atomic_store(&shown.reached, true);
    atomic_store(&shown.synced, true);
    follow_failure_set(&shown.follow_failure, "lost the connection to a:1: EOF");
    expect(MIRROR_CUT_OFF, "no member of the cluster can be followed (http://a:1,http://b:2): "
                           "lost the connection to a:1: EOF");
    follow_failure_clear(&shown.follow_failure);
    atomic_store(&shown.connected, true);
    mirror_state_mirrored(&shown, 5);
    mirror_state_heard(&shown, 15);
    expect(MIRROR_FOLLOWING, "");
    mirror_state_heard(&shown, 16);
    expect(MIRROR_BEHIND, "the mirror is too far behind the cluster");
    atomic_store(&shown.connected, false);
    expect(MIRROR_CUT_OFF, "no member of the cluster can be followed (http://a:1,http://b:2)");
}

static void a_member_that_says_nothing_is_not_followed(void **state)
{
    (void)state;
    int64_t now_ns = clock_mono_ns(clock_system());
    atomic_store(&shown.reached, true);
    atomic_store(&shown.synced, true);
    atomic_store(&shown.connected, true);
    mirror_state_answered(&shown, now_ns);
    expect(MIRROR_FOLLOWING, "");
    mirror_state_answered(&shown, now_ns - MIRROR_SILENT_NS - 1);
    expect(MIRROR_SILENT, "the member of the cluster that is followed does not answer "
                          "(http://a:1,http://b:2)");
    mirror_state_answered(&shown, clock_mono_ns(clock_system()));
    expect(MIRROR_FOLLOWING, "");
}

static void a_reason_that_no_longer_holds_is_not_shown(void **state)
{
    (void)state;
    atomic_store(&shown.reached, true);
    atomic_store(&shown.synced, true);
    atomic_store(&shown.connected, true);
    follow_failure_set(&shown.follow_failure, "old");
    expect(MIRROR_FOLLOWING, "");
}

static void long_texts_are_cut(void **state)
{
    (void)state;
    char reason[2 * FOLLOW_FAILURE_BYTES], endpoints[2 * MIRROR_PHASE_BYTES],
        text[MIRROR_PHASE_BYTES];
    memset(reason, 'r', sizeof(reason) - 1);
    reason[sizeof(reason) - 1] = '\0';
    memset(endpoints, 'e', sizeof(endpoints) - 1);
    endpoints[sizeof(endpoints) - 1] = '\0';
    follow_failure_set(&shown.follow_failure, reason);
    assert_int_equal(strlen(shown.follow_failure.text), FOLLOW_FAILURE_BYTES - 1);
    struct mirror_options many = {.upstream.endpoints = endpoints};
    mirror_phase_explain(&shown, &many, text);
    assert_int_equal(strlen(text), MIRROR_PHASE_BYTES - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_start_passes_through_the_phases, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_mirror_that_was_complete_stays_in_use, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_member_that_says_nothing_is_not_followed, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_reason_that_no_longer_holds_is_not_shown, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(long_texts_are_cut, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
