/* Reviews of servers that are away or throttle, and the limit of calls per second. */
#include "tier/rights/line.h"

#include "tier/link/rate.h"
#include "tier/rights/rights_fixture_test.h"

/* -- Servers that are away -- */

static void questions_wait_for_a_server_that_restarts(void **state)
{
    (void)state;
    struct rights_world w;
    struct test_wait t = {.ends = 0};
    rights_world_init(&w);
    struct tier_user *user = user_of(&w, "jane");
    w.script.code = 503;
    may(&w, &t, user, "n");
    rights_run(&w, 3 * NS_PER_S);
    assert_int_equal(t.ends, 0);
    w.script.code = 0;
    rights_run(&w, 4 * NS_PER_S);
    assert_int_equal(t.ends, 1);
    assert_int_equal(t.verdict, TIER_ALLOWED);
    tier_user_unref(user);
    rights_world_fini(&w);
}

/* Nothing can be lost by it: the next request finds a server that is back. */
static void questions_fail_at_once_if_no_connection_can_be_made(void **state)
{
    (void)state;
    enum { MANY = 200 };
    static struct test_wait many[MANY];
    struct rights_world w;
    struct test_wait t = {.ends = 0};
    memset(many, 0, sizeof(many));
    rights_world_init(&w);
    struct tier_user *user = user_of(&w, "jane");
    kube_server_stop(&w.base.server);
    rights_run(&w, NS_PER_S);
    size_t before = faults.connects;
    int64_t begin_ns = rights_now(&w);
    for (int i = 0; i < MANY; i++) { /* more than are sent at a time */
        char namespace[16];
        snprintf(namespace, sizeof(namespace), "n%d", i);
        may(&w, &many[i], user, namespace);
    }
    rights_run(&w, 50 * NS_PER_MS);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(many[i].ends, 1);
        assert_int_equal(many[i].verdict, TIER_UNKNOWN);
        assert_int_equal(many[i].code, 503);
        assert_true(many[i].ended_ns - begin_ns < 50 * NS_PER_MS);
    }
    /* The failure is shared: those that follow do not try again. */
    size_t after = faults.connects;
    assert_true(after - before <= 2);
    for (int i = 0; i < 20; i++) {
        t.ends = 0;
        may(&w, &t, user, "n");
        rights_run(&w, NS_PER_MS);
        assert_int_equal(t.ends, 1);
        assert_int_equal(t.code, 503);
    }
    assert_int_equal(faults.connects, after);
    /* Nor for long. */
    kube_server_start(&w.base.server);
    rights_run(&w, NS_PER_S);
    assert_int_equal(decide(&w, &t, user, "n"), TIER_ALLOWED);
    tier_user_unref(user);
    rights_world_fini(&w);
}

/* Those that wait because the server throttles do not wait longer when it disappears. */
static void waiting_questions_fail_when_the_server_disappears(void **state)
{
    (void)state;
    struct rights_world w;
    struct test_wait t = {.ends = 0};
    rights_world_init(&w);
    struct tier_user *user = user_of(&w, "jane");
    w.script.code = 429;
    may(&w, &t, user, "n");
    rights_run(&w, NS_PER_S);
    assert_int_equal(t.ends, 0);
    int64_t begin_ns = rights_now(&w);
    kube_server_stop(&w.base.server);
    rights_run(&w, 4 * NS_PER_S);
    assert_int_equal(t.ends, 1);
    assert_int_equal(t.code, 503);
    assert_true(t.ended_ns - begin_ns <= 3 * NS_PER_S);
    tier_user_unref(user);
    rights_world_fini(&w);
}

static void unreachable_server_permits_nothing(void **state)
{
    (void)state;
    struct rights_world w;
    struct test_wait t = {.ends = 0};
    rights_world_init(&w);
    struct tier_user *user = user_of(&w, "jane");
    assert_int_equal(decide(&w, &t, user, "n"), TIER_ALLOWED);
    kube_server_stop(&w.base.server);
    rights_run(&w, 5 * NS_PER_S);
    assert_int_equal(decide(&w, &t, user, "n"), TIER_ALLOWED); /* its time is not over yet */
    rights_run(&w, 10 * NS_PER_S);
    t.ends = 0;
    int64_t begin_ns = rights_now(&w);
    may(&w, &t, user, "n");
    rights_run(&w, 20 * NS_PER_S);
    assert_int_equal(t.ends, 1);
    assert_int_equal(t.verdict, TIER_UNKNOWN);
    assert_int_equal(t.code, 503);
    assert_in_range(t.ended_ns - begin_ns, 0, NS_PER_S);
    assert_non_null(strstr(w.base.log, "a review was not answered: "));
    /* Attempts become rare. */
    assert_true(faults.connects < 40);
    tier_user_unref(user);
    rights_world_fini(&w);
}

static void silent_server_permits_nothing(void **state)
{
    (void)state;
    struct rights_world w;
    struct test_wait t = {.ends = 0};
    rights_world_init(&w);
    struct tier_user *user = user_of(&w, "jane");
    w.script.holds = true;
    int64_t begin_ns = rights_now(&w);
    may(&w, &t, user, "n");
    rights_run(&w, 20 * NS_PER_S);
    assert_int_equal(t.ends, 1);
    assert_int_equal(t.verdict, TIER_UNKNOWN);
    assert_int_equal(t.code, 503);
    assert_in_range(t.ended_ns - begin_ns, TIER_ANSWER_NS, TIER_ANSWER_NS + NS_PER_S);
    rights_world_drop(&w);
    tier_user_unref(user);
    rights_world_fini(&w);
}

/* -- The limit of calls per second -- */

static void reviews_keep_to_the_limit_of_calls(void **state)
{
    (void)state;
    enum { MANY = 300 };
    static struct test_wait many[MANY];
    struct rights_world w;
    struct test_wait other = {.ends = 0};
    unsigned allowed = 0, unknown = 0;
    memset(many, 0, sizeof(many));
    rights_world_init(&w);
    tier_rights_free(w.rights);
    w.options.rate = tier_rate_new(10);
    rights_world_make(&w);
    struct tier_user *user = user_of(&w, "jane"), *second = user_of(&w, "jim");
    w.script.order[0] = 0;
    for (int i = 0; i < MANY; i++) {
        char namespace[16];
        snprintf(namespace, sizeof(namespace), "n%d", i);
        may(&w, &many[i], user, namespace);
    }
    rights_run(&w, 100 * NS_PER_MS);
    may(&w, &other, second, "n");
    assert_in_range(w.script.accesses, 18, 22);
    rights_run(&w, 900 * NS_PER_MS);
    assert_in_range(w.script.accesses, 27, 31);
    assert_int_equal(other.ends, 1); /* users take turns */
    assert_int_equal(other.verdict, TIER_ALLOWED);
    /* Those for which there is no room in time end like others without an answer. */
    rights_run(&w, 10 * NS_PER_S);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(many[i].ends, 1);
        allowed += many[i].verdict == TIER_ALLOWED;
        unknown += many[i].verdict == TIER_UNKNOWN;
        assert_int_equal(many[i].code, many[i].verdict == TIER_ALLOWED ? 200 : 503);
    }
    assert_non_null(strstr(w.base.log, "--upstream-qps"));
    assert_in_range(allowed, 110, 125);
    assert_int_equal(allowed + unknown, MANY);
    tier_user_unref(user);
    tier_user_unref(second);
    struct tier_rate *rate = w.options.rate;
    rights_world_fini(&w);
    tier_rate_free(rate);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(questions_wait_for_a_server_that_restarts),
        cmocka_unit_test(questions_fail_at_once_if_no_connection_can_be_made),
        cmocka_unit_test(waiting_questions_fail_when_the_server_disappears),
        cmocka_unit_test(unreachable_server_permits_nothing),
        cmocka_unit_test(silent_server_permits_nothing),
        cmocka_unit_test(reviews_keep_to_the_limit_of_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
