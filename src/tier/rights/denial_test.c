/* Which denials end running watches. */
#include "tier/rights/rights.h"

#include "tier/rights/rights_fixture_test.h"

/* A right that is denied is lost when a second review has denied it, too: at the latest then. */
#define DOUBT_NS (2 * NS_PER_S + 100 * NS_PER_MS)

/* A kube-apiserver that starts denies everything until it has loaded its roles. */
static void one_denial_ends_no_watch(void **state)
{
    (void)state;
    struct rights_world w;
    struct test_watch t;
    rights_world_init(&w);
    struct tier_user *user = user_of(&w, "jane");
    assert_int_equal(watch_pods(&w, &t, user, "n"), ST_OK);
    rights_run(&w, 10 * NS_PER_S);
    for (int i = 0; i < 3; i++) {
        w.script.never = "jane";
        w.script.accesses = 0;
        tier_rights_changed(w.rights);
        rights_run(&w, 900 * NS_PER_MS);
        assert_int_equal(w.script.accesses, 1);
        w.script.never = NULL;
        rights_run(&w, 60 * NS_PER_S);
        assert_int_equal(t.losses, 0);
    }
    tier_standing_remove(&t.standing);
    tier_user_unref(user);
    rights_world_fini(&w);
}

/* Roles that a kube-apiserver loads are changes, too: the reviews that they cause come too early to
 * confirm that a right is gone. */
static void reviews_of_one_moment_are_one_denial(void **state)
{
    (void)state;
    struct rights_world w;
    struct test_watch t;
    struct test_wait ask = {.ends = 0};
    rights_world_init(&w);
    struct tier_user *user = user_of(&w, "jane");
    struct tier_access access = list_pods("n");
    access.verb = "watch";
    assert_int_equal(watch_pods(&w, &t, user, "n"), ST_OK);
    rights_run(&w, 10 * NS_PER_S);
    w.script.never = "jane";
    w.script.accesses = 0;
    tier_rights_changed(w.rights);
    rights_run(&w, 100 * NS_PER_MS);
    for (int i = 0; i < 8; i++) {
        tier_rights_changed(w.rights);
        ask.ends = 0;
        may_access(&w, &ask, user, &access);
        rights_run(&w, 100 * NS_PER_MS);
        assert_int_equal(ask.ends, 1);
        assert_int_equal(ask.verdict, TIER_DENIED);
    }
    assert_in_range(w.script.accesses, 9, 20);
    assert_int_equal(t.losses, 0);
    rights_run(&w, 2 * NS_PER_S);
    assert_int_equal(t.losses, 1);
    tier_user_unref(user);
    rights_world_fini(&w);
}

/* It answers for several seconds before it has loaded them. */
static void denials_of_a_server_that_starts_end_no_watch(void **state)
{
    (void)state;
    struct rights_world w;
    struct test_watch t;
    struct test_wait ask;
    rights_world_init(&w);
    struct tier_user *user = user_of(&w, "jane");
    assert_int_equal(watch_pods(&w, &t, user, "n"), ST_OK);
    rights_run(&w, 10 * NS_PER_S);
    assert_int_equal(w.script.readyz, 0); /* while nothing is denied */
    w.script.never = "jane";
    w.script.unready = 500;
    w.script.accesses = 0;
    tier_rights_changed(w.rights);
    rights_run(&w, 25 * NS_PER_S);
    assert_int_equal(t.losses, 0);
    assert_in_range(w.script.accesses, 12, 30);
    assert_in_range(w.script.readyz, 12, w.script.accesses);
    /* Others have no access meanwhile. */
    assert_int_equal(decide(&w, &ask, user, "m"), TIER_DENIED);
    w.script.never = NULL;
    w.script.unready = 0;
    rights_run(&w, 100 * NS_PER_S);
    assert_int_equal(t.losses, 0);
    /* Only what was denied by a server that is ready is lost, and is so as soon as otherwise. */
    w.script.never = "jane";
    w.script.unready = 500;
    tier_rights_changed(w.rights);
    rights_run(&w, 10 * NS_PER_S);
    assert_int_equal(t.losses, 0);
    w.script.unready = 0;
    rights_run(&w, 2 * DOUBT_NS);
    assert_int_equal(t.losses, 1);
    assert_int_equal(t.verdict, TIER_DENIED);
    tier_user_unref(user);
    rights_world_fini(&w);
}

/* Or none that says so. */
static void a_server_that_is_never_ready_ends_the_watch_after_half_a_minute(void **state)
{
    static const unsigned codes[] = {500, 401, 403, 404, 503};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        struct rights_world w;
        struct test_watch t;
        rights_world_init(&w);
        struct tier_user *user = user_of(&w, "jane");
        assert_int_equal(watch_pods(&w, &t, user, "n"), ST_OK);
        rights_run(&w, 10 * NS_PER_S);
        w.script.never = "jane";
        w.script.unready = codes[i];
        int64_t begin_ns = rights_now(&w);
        tier_rights_changed(w.rights);
        rights_run(&w, 40 * NS_PER_S);
        assert_int_equal(t.losses, 1);
        assert_int_equal(t.verdict, TIER_DENIED);
        assert_in_range(t.lost_ns - begin_ns, 30 * NS_PER_S, 30 * NS_PER_S + DOUBT_NS);
        tier_user_unref(user);
        rights_world_fini(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_denial_ends_no_watch),
        cmocka_unit_test(reviews_of_one_moment_are_one_denial),
        cmocka_unit_test(denials_of_a_server_that_starts_end_no_watch),
        cmocka_unit_test(a_server_that_is_never_ready_ends_the_watch_after_half_a_minute),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
