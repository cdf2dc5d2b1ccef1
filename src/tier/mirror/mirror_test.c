/* A mirror of a collection of a simulated kube-apiserver: its start, its life and its end. */
#include "tier/mirror/world_sim_test.h"

static void reads_the_state_and_follows_changes(void **state)
{
    (void)state;
    tier_serve();
    struct tier_view view = tier_view();
    assert_string_equal(view.kind, "Pod");
    assert_string_equal(view.list_kind, "PodList");
    assert_string_equal(view.api_version, "v1");
    assert_int_equal(view.newest, 5);
    assert_int_equal(view.oldest, 5);
    assert_int_equal(api.probes, 1);
    assert_int_equal(api.streams, 1);
    assert_false(view.has_kinds);
    tier_check_state(api_history(&api));
    api_put(&api, 7);
    api_delete(&api, 2);
    api_put(&api, 1);
    TIER_RUN_UNTIL(tier_view().newest == 8);
    assert_int_equal(tier_view().newest, 8);
    tier_check_state(api_history(&api));
    assert_true(tier_is_complete());
    assert_int_equal(tier_check_watch(api_history(&api), 5), 3);
    assert_int_equal(tier_check_watch(api_history(&api), 7), 1);
    assert_int_equal(tier_check_watch(api_history(&api), 8), 0);
    assert_true(tier_view().connected);
    tier_end();
}

static void waits_for_a_state(void **state)
{
    struct tier_test_wait wait;
    (void)state;
    tier_begin(NULL);
    tier_start();
    tier_open();
    tier_wait_begin(&wait, TIER_WAIT_STATE, 0, 10 * NS_PER_S);
    TIER_RUN_UNTIL(wait.done);
    assert_int_equal(wait.status, ST_OK);
    assert_int_equal(wait.wait.revision, tier_view().began);
    tier_end();
}

static void a_current_read_needs_one_list_of_metadata(void **state)
{
    struct tier_test_wait waits[20];
    (void)state;
    tier_serve();
    api_other(&api);
    for (size_t i = 0; i < COUNT_OF(waits); i++)
        tier_wait_begin(&waits[i], TIER_WAIT_CURRENT, 0, 10 * NS_PER_S);
    TIER_RUN_UNTIL(waits[COUNT_OF(waits) - 1].done);
    for (size_t i = 0; i < COUNT_OF(waits); i++) {
        assert_int_equal(waits[i].status, ST_OK);
        tier_check_current(&waits[i]);
    }
    assert_int_equal(api.metadata_lists, 1);
    tier_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_the_state_and_follows_changes),
        cmocka_unit_test(waits_for_a_state),
        cmocka_unit_test(a_current_read_needs_one_list_of_metadata),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
