/* Waits for a current collection of a simulated kube-apiserver, and the fences that end them. */
#include "tier/mirror/world_sim_test.h"

static void current_reads_share_a_list_of_metadata(void **state)
{
    struct tier_test_wait waits[20];
    (void)state;
    tier_serve();
    api_other(&api);
    for (size_t i = 0; i < COUNT_OF(waits); i++)
        tier_wait_begin(&waits[i], TIER_WAIT_CURRENT, 0, 10 * NS_PER_S);
    TIER_RUN_UNTIL(waits[COUNT_OF(waits) - 1].done);
    for (size_t i = 0; i < COUNT_OF(waits); i++) {
        assert_true(waits[i].done);
        assert_int_equal(waits[i].status, ST_OK);
        tier_check_current(&waits[i]);
    }
    assert_int_equal(api.metadata_lists, 1);
    assert_non_null(strstr(api.last_accept,
                           "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList"));
    assert_null(strstr(api.last_target, "resourceVersion"));
    /* The version of the list is not taken for one that was delivered. */
    assert_int_equal(tier_view().newest, 5);
    tier_end();
}

/* Those that come while a fence is under way need the next one. */
static void a_later_read_needs_another_list(void **state)
{
    struct tier_test_wait first, second, third;
    (void)state;
    tier_serve();
    tier_wait_begin(&first, TIER_WAIT_CURRENT, 0, 10 * NS_PER_S);
    TIER_RUN_UNTIL(api.metadata_lists == 1);
    tier_wait_begin(&second, TIER_WAIT_CURRENT, 0, 10 * NS_PER_S);
    tier_wait_begin(&third, TIER_WAIT_CURRENT, 0, 10 * NS_PER_S);
    TIER_RUN_UNTIL(first.done);
    assert_false(second.done);
    TIER_RUN_UNTIL(third.done);
    assert_true(second.done);
    assert_int_equal(api.metadata_lists, 2);
    assert_int_equal(second.status, ST_OK);
    tier_end();
}

/* -- Several encodings of a resource -- */

static enum tier_fence_state fence_state(const struct tier_collection *collection)
{
    return ((const struct tier_follow *)collection)->currency.fence.state;
}

static void each_encoding_lists_in_its_turn(void **state)
{
    struct tier_name name = tier_pods(TIER_METADATA_JSON);
    struct tier_test_wait whole, reduced;
    (void)state;
    tier_begin(NULL);
    api.has_metadata = true;
    tier_start();
    tier_open();
    TIER_RUN_UNTIL(tier_serves());
    struct tier_collection *first = tier.collection;
    struct tier_collection *second = tier_mirror_open(tier.mirror, &name);
    tier.collection = second;
    TIER_RUN_UNTIL(tier_serves());
    assert_true(tier_serves());
    assert_int_equal(api.metadata_lists, 0);
    for (int fails = 0; fails < 2; fails++) {
        enum status expected = fails ? ST_UNAVAILABLE : ST_OK;
        api.refuses_metadata = fails ? 503 : 0;
        api.metadata_lists = 0;
        tier.collection = first;
        tier_wait_begin(&whole, TIER_WAIT_CURRENT, 0, 10 * NS_PER_S);
        tier.collection = second;
        tier_wait_begin(&reduced, TIER_WAIT_CURRENT, 0, 10 * NS_PER_S);
        /* The second one begins when the first one has its answer. */
        TIER_RUN_UNTIL(api.metadata_lists == 2);
        assert_int_equal(api.metadata_lists, 2);
        assert_int_not_equal(fence_state(first), TIER_FENCE_LISTING);
        assert_int_equal(fence_state(second), TIER_FENCE_LISTING);
        TIER_RUN_UNTIL(whole.done && reduced.done);
        assert_int_equal(whole.status, expected);
        assert_int_equal(reduced.status, expected);
    }
    /* One that is not served any more leaves its turn to the others. */
    api.refuses_metadata = 0;
    api.metadata_lists = 0;
    tier.collection = first;
    tier_wait_begin(&whole, TIER_WAIT_CURRENT, 0, 10 * NS_PER_S);
    tier.collection = second;
    tier_wait_begin(&reduced, TIER_WAIT_CURRENT, 0, 10 * NS_PER_S);
    TIER_RUN_UNTIL(fence_state(first) == TIER_FENCE_LISTING);
    currency_serve(&((struct tier_follow *)first)->currency, false);
    TIER_RUN_UNTIL(reduced.done);
    assert_int_equal(reduced.status, ST_OK);
    tier_wait_cancel(&whole.wait);
    currency_serve(&((struct tier_follow *)first)->currency, true);
    tier_collection_close(first);
    tier_end();
}

/* -- The limit of calls per second -- */

static void calls_of_the_mirror_keep_to_the_limit(void **state)
{
    struct tier_test_wait waits[4];
    struct tier_rate *rate = tier_rate_new(1);
    (void)state;
    tier_begin(NULL);
    tier.options.rate = rate; /* two calls at once: the probe, and the watch with the state */
    tier_start();
    tier_open();
    TIER_RUN_UNTIL(tier_serves());
    for (size_t i = 0; i < COUNT_OF(waits); i++) {
        tier_wait_begin(&waits[i], TIER_WAIT_CURRENT, 0, 10 * NS_PER_S);
        tier_run(200 * NS_PER_MS);
        assert_int_equal(api.metadata_lists, 0);
    }
    TIER_RUN_UNTIL(waits[0].done);
    assert_int_equal(waits[0].status, ST_OK);
    assert_int_equal(api.metadata_lists, 1);
    TIER_RUN_UNTIL(waits[3].done); /* those that came after the first one share the second list */
    assert_int_equal(waits[3].status, ST_OK);
    assert_int_equal(api.metadata_lists, 2);
    /* What is cancelled while it waits is not made. */
    tier_wait_begin(&waits[0], TIER_WAIT_CURRENT, 0, 10 * NS_PER_S);
    tier_run(100 * NS_PER_MS);
    api_end_watches(&api, API_ENDS);
    tier_run(100 * NS_PER_MS);
    tier_wait_cancel(&waits[0].wait);
    tier_end();
    assert_int_equal(api.metadata_lists, 2);
    tier_rate_free(rate);
}

static void fence_that_waits_too_long_for_its_call_fails(void **state)
{
    struct tier_test_wait wait;
    struct tier_rate *rate = tier_rate_new(1);
    struct tier_lane other;
    (void)state;
    tier_begin(NULL);
    tier.options.rate = rate;
    tier_start();
    tier_open();
    TIER_RUN_UNTIL(tier_serves());
    /* Others have reserved what comes next. */
    for (int i = 0; i < 5; i++) {
        tier_lane_init(&other, rate, tier.io, NULL);
        assert_false(tier_lane_take(&other));
        tier_lane_fini(&other);
    }
    tier_wait_begin(&wait, TIER_WAIT_CURRENT, 0, 10 * NS_PER_S);
    tier_run(4 * NS_PER_S);
    assert_true(wait.done);
    assert_int_not_equal(wait.status, ST_OK);
    assert_int_equal(api.metadata_lists, 0);
    tier_end();
    tier_rate_free(rate);
}

/* -- What a list is matched with -- */

/* Waits with a server whose watches are behind by some changes. */
static void assert_waits_for(void (*change)(void))
{
    struct tier_test_wait wait;
    tier_serve();
    int before = api_version(&api);
    api.lag = 100;
    change();
    tier_wait_begin(&wait, TIER_WAIT_CURRENT, 0, 10 * NS_PER_S);
    TIER_RUN_UNTIL(api.metadata_lists == 1);
    tier_run(NS_PER_S);
    assert_false(wait.done);
    /* One change after the other arrives: it ends with the last one that matters, and not before.
     */
    while (!wait.done) {
        assert_true(before < api_version(&api));
        before++;
        api.lag = api_version(&api) - before;
        api_send_changes(&api);
        tier_run(100 * NS_PER_MS);
    }
    assert_int_equal(wait.status, ST_OK);
    tier_check_current(&wait);
    assert_true(tier_is_complete());
    assert_int_equal(api.metadata_lists, 1);
    tier_end();
}

static void change_one(void)
{
    api_put(&api, 1);
}

static void create_one(void)
{
    api_put(&api, 9);
}

static void delete_one(void)
{
    api_delete(&api, 1);
}

static void change_many(void)
{
    api_put(&api, 1);
    api_delete(&api, 2);
    api_put(&api, 9);
    api_other(&api);
    api_put(&api, 2);
    api_delete(&api, 3);
    api_put(&api, 1);
    api_delete(&api, 9);
}

static void create_and_delete_others(void)
{
    api_put(&api, 9);
    api_put(&api, 10);
    api_delete(&api, 9);
    api_delete(&api, 1);
    api_delete(&api, 10);
}

static void waits_for_what_the_list_shows(void **state)
{
    (void)state;
    assert_waits_for(change_one);
    assert_waits_for(create_one);
    assert_waits_for(delete_one);
    assert_waits_for(change_many);
    assert_waits_for(create_and_delete_others);
}

/* What is created and deleted while the watch is behind leaves the state as it is; the watch
 * delivers both changes all the same. */
static void changes_that_cancel_out_are_not_awaited_and_not_lost(void **state)
{
    struct tier_test_wait wait, version;
    int64_t revision;
    (void)state;
    tier_serve();
    api.lag = 100;
    api_put(&api, 9);
    api_delete(&api, 9);
    tier_wait_begin(&wait, TIER_WAIT_CURRENT, 0, 10 * NS_PER_S);
    TIER_RUN_UNTIL(wait.done);
    assert_int_equal(wait.status, ST_OK);
    assert_int_equal(tier_view().newest, 5);
    /* A client may know their versions. */
    tier_wait_begin(&version, TIER_WAIT_VERSION, 7, 10 * NS_PER_S);
    TIER_RUN_UNTIL(version.done);
    assert_int_equal(version.status, ST_OK);
    assert_int_equal(api.metadata_lists, 1);
    assert_true(tier_collection_revision(tier.collection, tier_view().generation, 7, &revision));
    api.lag = 0;
    api_send_changes(&api);
    TIER_RUN_UNTIL(tier_view().newest == 7);
    assert_int_equal(tier_check_watch(api_history(&api), 5), 2);
    tier_end();
}

/* -- Versions -- */

static void a_version_that_arrives_needs_no_list(void **state)
{
    struct tier_test_wait wait, old;
    (void)state;
    tier_serve();
    tier_wait_begin(&wait, TIER_WAIT_VERSION, 6, 10 * NS_PER_S);
    tier_wait_begin(&old, TIER_WAIT_VERSION, 3, 10 * NS_PER_S);
    TIER_RUN_UNTIL(old.done);
    assert_int_equal(old.status, ST_OK);
    assert_false(wait.done);
    api_put(&api, 9);
    TIER_RUN_UNTIL(wait.done);
    assert_int_equal(wait.status, ST_OK);
    uint64_t version;
    assert_true(tier_collection_version(tier.collection, 1, wait.wait.revision, &version));
    assert_int_equal(version, 6);
    assert_int_equal(api.metadata_lists, 0);
    tier_end();
}

static void a_version_of_another_resource_is_shown_by_a_list(void **state)
{
    struct tier_test_wait wait, again;
    (void)state;
    tier_serve();
    api_other(&api);
    api_other(&api);
    tier_wait_begin(&wait, TIER_WAIT_VERSION, 7, 10 * NS_PER_S);
    tier_run(90 * NS_PER_MS);
    assert_int_equal(api.metadata_lists, 0);
    TIER_RUN_UNTIL(wait.done);
    assert_int_equal(wait.status, ST_OK);
    assert_int_equal(api.metadata_lists, 1);
    tier_wait_begin(&again, TIER_WAIT_VERSION, 6, 10 * NS_PER_S);
    TIER_RUN_UNTIL(again.done);
    assert_int_equal(api.metadata_lists, 1); /* it was shown */
    tier_end();
}

static void a_version_of_the_future_is_not_reached(void **state)
{
    struct tier_test_wait wait;
    (void)state;
    tier_serve();
    int64_t before_ns = kube_world_now(&world);
    tier_wait_begin(&wait, TIER_WAIT_VERSION, 1000, 3 * NS_PER_S);
    TIER_RUN_UNTIL(wait.done);
    assert_int_equal(wait.status, ST_TIMEOUT);
    assert_in_range(kube_world_now(&world) - before_ns, 3 * NS_PER_S, 3 * NS_PER_S + NS_PER_MS);
    assert_int_equal(api.metadata_lists, 1);
    tier_end();
}

/* -- States -- */

/* A state that was requested after a reader came is as good as a fence. */
static void a_state_ends_waits_that_began_before(void **state)
{
    struct tier_test_wait first, late;
    (void)state;
    tier_begin(NULL);
    tier_start();
    tier_open();
    tier_wait_begin(&first, TIER_WAIT_CURRENT, 0, 10 * NS_PER_S);
    TIER_RUN_UNTIL(api.streams == 1);
    tier_wait_begin(&late, TIER_WAIT_CURRENT, 0, 10 * NS_PER_S);
    TIER_RUN_UNTIL(first.done);
    assert_int_equal(first.status, ST_OK);
    tier_check_current(&first);
    assert_false(late.done);
    TIER_RUN_UNTIL(late.done);
    assert_int_equal(late.status, ST_OK);
    assert_int_equal(api.metadata_lists, 1);
    tier_end();
}

static void a_lost_history_delays_waits_until_the_next_state(void **state)
{
    struct tier_test_wait wait;
    (void)state;
    tier_serve();
    api.lag = 100;
    api_put(&api, 9);
    tier_wait_begin(&wait, TIER_WAIT_CURRENT, 0, 30 * NS_PER_S);
    TIER_RUN_UNTIL(api.metadata_lists == 1);
    api.forgotten = api_version(&api);
    api_end_watches(&api, API_FORGETS);
    TIER_RUN_UNTIL(wait.done);
    assert_int_equal(wait.status, ST_OK);
    assert_true(tier_view().generation > 1);
    tier_check_current(&wait);
    tier_end();
}

/* -- Failures -- */

static void fails_if_the_list_fails(void **state)
{
    struct tier_test_wait wait;
    (void)state;
    tier_serve();
    api.refuses_metadata = 503;
    tier_wait_begin(&wait, TIER_WAIT_CURRENT, 0, 30 * NS_PER_S);
    TIER_RUN_UNTIL(wait.done);
    assert_int_equal(wait.status, ST_UNAVAILABLE);
    api.refuses_metadata = 0;
    tier_wait_begin(&wait, TIER_WAIT_CURRENT, 0, 30 * NS_PER_S);
    TIER_RUN_UNTIL(wait.done);
    assert_int_equal(wait.status, ST_OK);
    tier_end();
}

static void fails_if_the_server_is_gone(void **state)
{
    struct tier_test_wait wait;
    (void)state;
    tier_serve();
    kube_server_stop(&world.server);
    tier_wait_begin(&wait, TIER_WAIT_CURRENT, 0, 30 * NS_PER_S);
    TIER_RUN_UNTIL(wait.done);
    assert_int_equal(wait.status, ST_UNAVAILABLE);
    assert_int_equal(tier_view().phase, TIER_SERVING);
    kube_server_start(&world.server);
    tier_end();
}

static void reads_whole_objects_where_there_is_no_metadata(void **state)
{
    struct tier_test_wait wait;
    (void)state;
    tier_serve();
    api.refuses_metadata = 406;
    for (int i = 0; i < 3; i++) {
        tier_wait_begin(&wait, TIER_WAIT_CURRENT, 0, 30 * NS_PER_S);
        TIER_RUN_UNTIL(wait.done);
        assert_int_equal(wait.status, ST_OK);
    }
    assert_int_equal(api.metadata_lists, 1);
    assert_string_equal(api.last_accept, "application/json");
    tier_end();
}

/* A watch that says nothing, although the server has changes. */
static void makes_a_watch_again_that_delivers_nothing(void **state)
{
    struct tier_test_wait wait;
    (void)state;
    tier_serve();
    api_mute_watches(&api);
    api_put(&api, 9);
    for (int i = 0; i < 3; i++) {
        int64_t before_ns = kube_world_now(&world);
        assert_int_equal(api.watch_requests, 0);
        tier_wait_begin(&wait, TIER_WAIT_CURRENT, 0, 30 * NS_PER_S);
        TIER_RUN_UNTIL(wait.done);
        assert_int_equal(wait.status, ST_UNAVAILABLE);
        /* Half a millisecond for each of its objects. */
        assert_in_range(kube_world_now(&world) - before_ns, 3 * NS_PER_S + 5 * NS_PER_MS / 2,
                        4 * NS_PER_S);
    }
    tier_run(5 * NS_PER_S);
    assert_int_equal(tier_view().newest, 6);
    assert_int_equal(api.watch_requests, 1);
    assert_int_equal(tier_view().generation, 1);
    tier_end();
}

static void a_wait_ends_in_time(void **state)
{
    struct tier_test_wait wait;
    (void)state;
    tier_serve();
    api_mute_watches(&api);
    api_put(&api, 9);
    tier_wait_begin(&wait, TIER_WAIT_CURRENT, 0, NS_PER_S);
    TIER_RUN_UNTIL(wait.done);
    assert_int_equal(wait.status, ST_TIMEOUT);
    tier_wait_begin(&wait, TIER_WAIT_CURRENT, 0, NS_PER_S);
    tier_wait_cancel(&wait.wait);
    tier_wait_cancel(&wait.wait);
    tier_run(10 * NS_PER_S);
    assert_false(wait.done);
    tier_end();
}

/* -- Another history -- */

static void a_list_of_a_restored_server_ends_nothing_well(void **state)
{
    struct tier_test_wait wait;
    (void)state;
    tier_serve();
    for (int i = 0; i < 10; i++)
        api_put(&api, i % 5);
    api_other(&api);
    TIER_RUN_UNTIL(tier_view().newest == 15);
    tier_wait_begin(&wait, TIER_WAIT_VERSION, 16, 3 * NS_PER_S);
    TIER_RUN_UNTIL(wait.done);
    assert_int_equal(wait.status, ST_OK);
    kube_server_stop(&world.server);
    tier_run(NS_PER_S);
    api_restore(&api, 8);
    kube_server_start(&world.server);
    for (int i = 0; i < 20 && tier_view().generation == 1; i++) {
        tier_wait_begin(&wait, TIER_WAIT_CURRENT, 0, 3 * NS_PER_S);
        TIER_RUN_UNTIL(wait.done);
        if (tier_view().generation == 1)
            assert_int_not_equal(wait.status, ST_OK);
        tier_run(NS_PER_S);
    }
    TIER_RUN_UNTIL(tier_view().generation > 1 && tier_serves());
    tier_wait_begin(&wait, TIER_WAIT_CURRENT, 0, 3 * NS_PER_S);
    TIER_RUN_UNTIL(wait.done);
    assert_int_equal(wait.status, ST_OK);
    tier_check_current(&wait);
    /* What an old list has shown is not true any more. */
    tier_wait_begin(&wait, TIER_WAIT_VERSION, 16, 3 * NS_PER_S);
    TIER_RUN_UNTIL(wait.done);
    assert_int_equal(wait.status, ST_TIMEOUT);
    tier_end();
}

/* In long silence the server's version is compared; that is cheap, and finds a restored server. */
static void glances_in_silence(void **state)
{
    (void)state;
    tier_serve();
    tier_run(200 * NS_PER_S);
    assert_in_range(api.metadata_lists, 1, 3);
    assert_non_null(strstr(api.last_target, "limit=1"));
    for (int i = 0; i < 3; i++) {
        tier_run(30 * NS_PER_S);
        api_bookmark(&api);
    }
    unsigned lists = api.metadata_lists;
    tier_run(60 * NS_PER_S);
    assert_int_equal(api.metadata_lists, lists); /* it was not silent */
    api_put(&api, 7);
    tier_run(NS_PER_S);
    api_history(&api)->version = 4; /* the watch continues as if nothing had happened */
    TIER_RUN_UNTIL(tier_view().generation > 1 && tier_serves());
    assert_int_equal(tier_view().newest, 4);
    assert_int_equal(tier_view().void_until, 6);
    tier_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(current_reads_share_a_list_of_metadata),
        cmocka_unit_test(each_encoding_lists_in_its_turn),
        cmocka_unit_test(a_later_read_needs_another_list),
        cmocka_unit_test(calls_of_the_mirror_keep_to_the_limit),
        cmocka_unit_test(fence_that_waits_too_long_for_its_call_fails),
        cmocka_unit_test(waits_for_what_the_list_shows),
        cmocka_unit_test(changes_that_cancel_out_are_not_awaited_and_not_lost),
        cmocka_unit_test(a_version_that_arrives_needs_no_list),
        cmocka_unit_test(a_version_of_another_resource_is_shown_by_a_list),
        cmocka_unit_test(a_version_of_the_future_is_not_reached),
        cmocka_unit_test(a_state_ends_waits_that_began_before),
        cmocka_unit_test(a_lost_history_delays_waits_until_the_next_state),
        cmocka_unit_test(fails_if_the_list_fails),
        cmocka_unit_test(fails_if_the_server_is_gone),
        cmocka_unit_test(reads_whole_objects_where_there_is_no_metadata),
        cmocka_unit_test(makes_a_watch_again_that_delivers_nothing),
        cmocka_unit_test(a_wait_ends_in_time),
        cmocka_unit_test(a_list_of_a_restored_server_ends_nothing_well),
        cmocka_unit_test(glances_in_silence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
