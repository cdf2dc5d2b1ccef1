/* A mirror whose follower runs out of memory: whatever fails is done again, and nothing is lost. */
#include "tier/mirror/world_sim_test.h"

static bool lists;

static void settle(void)
{
    TIER_RUN_UNTIL(tier_serves() && tier_is_complete());
    tier_assert_complete();
}

static void wait_for_current(void)
{
    struct tier_test_wait wait;
    for (int i = 0; i < 10; i++) {
        tier_wait_begin(&wait, TIER_WAIT_CURRENT, 0, 30 * NS_PER_S);
        TIER_RUN_UNTIL(wait.done);
        if (wait.status == ST_OK)
            break;
    }
    assert_int_equal(wait.status, ST_OK);
    tier_check_current(&wait);
}

/* A life in which the nth allocation of the follower fails. Returns whether there were so many. */
static bool run(size_t n)
{
    tier_begin(NULL);
    api.refuses_streams = lists ? 422 : 0;
    api.page_max = 3;
    kube_server_start(&world.server);
    kube_server_url(&world.server, world.url, sizeof(world.url));
    world.options.server = world.url;
    faulty_memory_at = n;
    if (!tier_connect()) {
        assert_true(tier_connect());
        assert_int_equal(faulty_memory_at, 0);
    }
    memory_exempt = true; /* the I/O thread's side ends the process instead */
    tier_open();
    memory_exempt = false;
    settle();
    for (int i = 0; i < 6; i++)
        api_put(&api, i + 3);
    api_delete(&api, 0);
    api_bookmark(&api);
    settle();
    int watched = tier_view().generation == 1 ? tier_check_watch(api_history(&api), 5) : 7;
    assert_int_equal(watched, 7);
    wait_for_current();
    api_end_watches(&api, API_BREAKS);
    api_put(&api, 1);
    settle();
    api.forgotten = api_version(&api);
    api_end_watches(&api, API_FORGETS);
    uint64_t generation = tier_view().generation;
    TIER_RUN_UNTIL(tier_view().generation > generation);
    settle();
    wait_for_current();
    tier_check_state(api_history(&api));
    bool failed = faulty_memory_at == 0;
    faulty_memory_at = 0;
    tier_end();
    return failed;
}

static void each_fails(void)
{
    size_t n = 1;
    while (run(n))
        n++;
    assert_true(n > 100);
}

static void memory_that_fails_while_streaming(void **state)
{
    (void)state;
    lists = false;
    each_fails();
}

static void memory_that_fails_while_listing(void **state)
{
    (void)state;
    lists = true;
    each_fails();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_that_fails_while_streaming),
        cmocka_unit_test(memory_that_fails_while_listing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
