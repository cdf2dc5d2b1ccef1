/* The rights that running watches need. */
#include "tier/rights/rights.h"

#include "tier/rights/rights_fixture_test.h"

/* A right that is denied is lost when a second review has denied it, too: at the latest then. */
#define DOUBT_NS (2 * NS_PER_S + 100 * NS_PER_MS)

static void right_is_reviewed_every_minute(void **state)
{
    (void)state;
    struct rights_world w;
    struct test_watch t;
    rights_world_init(&w);
    struct tier_user *user = user_of(&w, "jane");
    w.script.tokens = w.script.accesses = 0;
    assert_int_equal(watch_pods(&w, &t, user, "n"), ST_OK);
    rights_run(&w, 660 * NS_PER_S);
    assert_int_equal(t.losses, 0);
    /* Every 60 to 66 seconds, after a first time that comes earlier; once because nothing was
     * known. */
    assert_in_range(w.script.accesses, 10, 12);
    assert_in_range(w.script.tokens, 10, 11);
    assert_non_null(strstr(w.script.last_access, "\"verb\":\"watch\""));
    assert_string_equal(w.script.last_token,
                        "{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"TokenReview\","
                        "\"spec\":{\"token\":\"jane\"}}");
    tier_standing_remove(&t.standing);
    tier_standing_remove(&t.standing);
    w.script.tokens = w.script.accesses = 0;
    rights_run(&w, 300 * NS_PER_S);
    assert_int_equal(w.script.tokens + w.script.accesses, 0);
    tier_user_unref(user);
    rights_world_fini(&w);
}

static void equal_rights_share_reviews(void **state)
{
    (void)state;
    enum { MANY = 1000 };
    static struct test_watch t[MANY];
    struct rights_world w;
    rights_world_init(&w);
    struct tier_user *user = user_of(&w, "jane");
    for (int i = 0; i < MANY; i++)
        assert_int_equal(watch_pods(&w, &t[i], user, "n"), ST_OK);
    tier_user_unref(user);
    w.script.tokens = w.script.accesses = 0;
    rights_run(&w, 600 * NS_PER_S);
    assert_in_range(w.script.accesses, 9, 11);
    assert_in_range(w.script.tokens, 9, 11);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(t[i].losses, 0);
        tier_standing_remove(&t[i].standing);
    }
    rights_world_fini(&w);
}

/* 1,000 users with 10 watches each. */
static void steady_reviews_are_few(void **state)
{
    (void)state;
    enum { USERS = 1000, EACH = 10 };
    static struct test_watch t[USERS][EACH];
    struct rights_world w;
    rights_world_init(&w);
    rights_checked = NULL; /* there are many turns */
    for (int i = 0; i < USERS; i++) {
        char name[32];
        snprintf(name, sizeof(name), "u%d", i);
        struct test_question q = {0};
        char field[64];
        snprintf(field, sizeof(field), "Bearer %s", name);
        identify(&w, &q, field);
        while (!q.ends)
            sim_step(w.base.sim);
        for (int k = 0; k < EACH; k++) {
            struct test_wait may_watch = {.ends = 0};
            struct tier_access access;
            snprintf(name, sizeof(name), "n%d", k);
            access = list_pods(name);
            access.verb = "watch";
            may_access(&w, &may_watch, q.user, &access);
            while (!may_watch.ends)
                sim_step(w.base.sim);
            assert_int_equal(watch_pods(&w, &t[i][k], q.user, name), ST_OK);
        }
        question_fini(&q);
    }
    rights_run(&w, 70 * NS_PER_S);
    w.script.tokens = w.script.accesses = 0;
    enum { SECONDS = 130 };
    unsigned most = 0, before = 0;
    for (int s = 0; s < SECONDS; s++) {
        rights_run(&w, NS_PER_S);
        unsigned all = w.script.tokens + w.script.accesses;
        most = all - before > most ? all - before : most;
        before = all;
    }
    assert_in_range((w.script.tokens + w.script.accesses) / SECONDS, 150, 185);
    assert_true(most < 400);
    for (int i = 0; i < USERS; i++) {
        for (int k = 0; k < EACH; k++) {
            assert_int_equal(t[i][k].losses, 0);
            tier_standing_remove(&t[i][k].standing);
        }
    }
    rights_world_fini(&w);
}

/* -- Losses -- */

static void lost_right_ends_the_watch(void **state)
{
    (void)state;
    struct rights_world w;
    struct test_watch t, other;
    rights_world_init(&w);
    struct tier_user *user = user_of(&w, "jane");
    assert_int_equal(watch_pods(&w, &t, user, "n"), ST_OK);
    assert_int_equal(watch_pods(&w, &other, user, "m"), ST_OK);
    rights_run(&w, 10 * NS_PER_S);
    w.script.never = "\"namespace\":\"n\"";
    w.script.reason = "gone";
    int64_t begin_ns = rights_now(&w);
    rights_run(&w, 70 * NS_PER_S);
    assert_int_equal(t.losses, 1);
    assert_int_equal(t.verdict, TIER_DENIED);
    assert_int_equal(t.code, 403);
    assert_string_equal(t.message, "pods is forbidden: User \"jane\" cannot watch resource "
                                   "\"pods\" in API group \"\" in the namespace \"n\": gone");
    assert_in_range(t.lost_ns - begin_ns, NS_PER_S, 69 * NS_PER_S);
    assert_int_equal(other.losses, 0);
    tier_standing_remove(&t.standing);
    tier_standing_remove(&other.standing);
    tier_user_unref(user);
    rights_world_fini(&w);
}

/* After a second review. */
static void changed_role_is_noticed_within_two_seconds(void **state)
{
    (void)state;
    struct rights_world w;
    struct test_watch t;
    rights_world_init(&w);
    struct tier_user *user = user_of(&w, "jane");
    assert_int_equal(watch_pods(&w, &t, user, "n"), ST_OK);
    rights_run(&w, 10 * NS_PER_S);
    w.script.never = "jane";
    w.script.accesses = 0;
    tier_rights_changed(w.rights);
    rights_run(&w, 900 * NS_PER_MS);
    assert_int_equal(w.script.accesses, 1);
    assert_int_equal(t.losses, 0);
    rights_run(&w, 1200 * NS_PER_MS);
    assert_int_equal(w.script.accesses, 2);
    assert_int_equal(t.losses, 1);
    assert_int_equal(t.verdict, TIER_DENIED);
    /* Without watches a change asks for nothing. */
    unsigned before = w.script.accesses;
    tier_rights_changed(w.rights);
    rights_run(&w, 20 * NS_PER_S);
    assert_int_equal(w.script.accesses, before);
    tier_user_unref(user);
    rights_world_fini(&w);
}

/* Another kube-apiserver may have been asked, which has not heard of the change yet. */
static void change_is_reviewed_a_second_time(void **state)
{
    (void)state;
    struct rights_world w;
    struct test_watch t;
    rights_world_init(&w);
    struct tier_user *user = user_of(&w, "jane");
    assert_int_equal(watch_pods(&w, &t, user, "n"), ST_OK);
    rights_run(&w, 2 * NS_PER_S);
    tier_rights_changed(w.rights);
    rights_run(&w, NS_PER_S);
    w.script.never = "jane";
    rights_run(&w, 3 * NS_PER_S);
    assert_int_equal(t.losses, 0);
    rights_run(&w, 4 * NS_PER_S);
    assert_int_equal(t.losses, 1);
    tier_user_unref(user);
    rights_world_fini(&w);
}

/* What was sent before a change does not confirm a right after it. */
static void review_under_way_does_not_hide_a_change(void **state)
{
    (void)state;
    struct rights_world w;
    struct test_watch t;
    rights_world_init(&w);
    struct tier_user *user = user_of(&w, "jane");
    assert_int_equal(watch_pods(&w, &t, user, "n"), ST_OK);
    rights_run(&w, 10 * NS_PER_S);
    w.script.holds = true;
    tier_rights_changed(w.rights);
    rights_run(&w, 2 * NS_PER_S);
    tier_rights_changed(w.rights);
    rights_run(&w, NS_PER_S);
    w.script.holds = false;
    rights_world_answer(&w);
    w.script.never = "jane";
    rights_run(&w, 3 * NS_PER_S);
    assert_int_equal(t.losses, 1);
    tier_user_unref(user);
    rights_world_fini(&w);
}

static void roles_that_change_all_the_time_cause_few_reviews(void **state)
{
    (void)state;
    enum { MANY = 1000 };
    static struct test_watch t[MANY];
    struct rights_world w;
    rights_world_init(&w);
    struct tier_user *user = user_of(&w, "jane");
    for (int i = 0; i < MANY; i++) {
        char namespace[32];
        snprintf(namespace, sizeof(namespace), "n%d", i);
        assert_int_equal(watch_pods(&w, &t[i], user, namespace), ST_OK);
    }
    rights_run(&w, 60 * NS_PER_S);
    w.script.accesses = 0;
    for (int i = 0; i < 600; i++) {
        tier_rights_changed(w.rights);
        rights_run(&w, 100 * NS_PER_MS);
    }
    /* 200 per second. */
    assert_in_range(w.script.accesses, 60 * 150, 60 * 220);
    for (int i = 0; i < MANY; i++)
        tier_standing_remove(&t[i].standing);
    tier_user_unref(user);
    rights_world_fini(&w);
}

/* A role of a namespace says nothing about others, and a watch of all namespaces has no use for it.
 */
static void change_in_a_namespace_concerns_its_rights(void **state)
{
    static const char *const namespaces[] = {"n", "n", "m", ""};
    (void)state;
    struct rights_world w;
    struct test_watch t[COUNT_OF(namespaces)];
    rights_world_init(&w);
    struct tier_user *user = user_of(&w, "jane"), *john = user_of(&w, "john");
    for (size_t i = 0; i < COUNT_OF(namespaces); i++)
        assert_int_equal(watch_pods(&w, &t[i], i == 1 ? john : user, namespaces[i]), ST_OK);
    rights_run(&w, 2 * NS_PER_S);
    w.script.accesses = 0;
    tier_rights_changed_in(w.rights, SLICE_LITERAL("other"));
    rights_run(&w, 100 * NS_PER_MS);
    assert_int_equal(w.script.accesses, 0);
    w.script.never = "jane";
    tier_rights_changed_in(w.rights, SLICE_LITERAL("n"));
    rights_run(&w, 100 * NS_PER_MS);
    assert_int_equal(w.script.accesses, 2);
    assert_int_equal(t[0].losses, 0);
    rights_run(&w, DOUBT_NS); /* until the denial is confirmed */
    assert_int_equal(w.script.accesses, 2 + 1);
    assert_int_equal(t[0].losses, 1);
    assert_int_equal(t[1].losses + t[2].losses + t[3].losses, 0);
    tier_rights_changed(w.rights);
    rights_run(&w, 100 * NS_PER_MS);
    assert_int_equal(w.script.accesses, 3 + 3);
    rights_run(&w, DOUBT_NS);
    assert_int_equal(w.script.accesses, 6 + 2);
    assert_int_equal(t[2].losses + t[3].losses, 2);
    assert_int_equal(t[1].losses, 0);
    tier_standing_remove(&t[1].standing);
    tier_user_unref(user);
    tier_user_unref(john);
    rights_world_fini(&w);
}

static void changes_elsewhere_delay_a_revocation_only_shortly(void **state)
{
    enum { MANY = 3000 }; /* 5 ms each are more than the longest pause */
    static struct test_watch t[MANY];
    (void)state;
    for (int everywhere = 0; everywhere < 2; everywhere++) {
        struct rights_world w;
        rights_world_init(&w);
        rights_checked = NULL; /* there are many turns */
        struct tier_user *user = user_of(&w, "jane"), *john = user_of(&w, "john");
        for (int i = 0; i < MANY; i++) {
            char namespace[32];
            snprintf(namespace, sizeof(namespace), i ? "noisy%d" : "quiet", i);
            assert_int_equal(watch_pods(&w, &t[i], i ? john : user, namespace), ST_OK);
        }
        rights_run(&w, 20 * NS_PER_S);
        int64_t begin_ns = 0;
        for (int k = 0; k < 200; k++) {
            tier_rights_changed(w.rights);
            if (k == 30) { /* amid a pause */
                w.script.never = "jane";
                begin_ns = rights_now(&w);
                if (!everywhere)
                    tier_rights_changed_in(w.rights, SLICE_LITERAL("quiet"));
            }
            rights_run(&w, 100 * NS_PER_MS);
        }
        assert_int_equal(t[0].losses, 1);
        assert_true(t[0].lost_ns - begin_ns <= (everywhere ? 11 : 1) * NS_PER_S + DOUBT_NS);
        for (int i = 1; i < MANY; i++)
            tier_standing_remove(&t[i].standing);
        tier_user_unref(user);
        tier_user_unref(john);
        rights_world_fini(&w);
    }
}

static void note_stands(void *ctx, bool any)
{
    int *calls = ctx;
    *calls += any ? 1 : 100;
}

/* So that roles are only followed for the sake of running watches. */
static void first_and_last_watch_are_reported(void **state)
{
    (void)state;
    struct rights_world w;
    struct test_watch t[3];
    int calls = 0;
    rights_world_init(&w);
    tier_rights_free(w.rights);
    w.options.stands = note_stands;
    w.options.ctx = &calls;
    rights_world_make(&w);
    struct tier_user *user = user_of(&w, "jane");
    struct test_wait wait;
    assert_int_equal(decide(&w, &wait, user, "n"), TIER_ALLOWED);
    assert_int_equal(calls, 0);
    for (size_t i = 0; i < COUNT_OF(t); i++)
        assert_int_equal(watch_pods(&w, &t[i], user, i ? "n" : "m"), ST_OK);
    assert_int_equal(calls, 1);
    tier_standing_remove(&t[0].standing);
    rights_run(&w, 10 * NS_PER_S);
    assert_int_equal(calls, 1);
    w.script.never = "jane";
    tier_rights_changed(w.rights);
    rights_run(&w, NS_PER_S + DOUBT_NS);
    assert_int_equal(t[1].losses + t[2].losses, 2);
    assert_int_equal(calls, 101);
    tier_user_unref(user);
    rights_world_fini(&w);
}

static void revoked_user_loses_all_watches(void **state)
{
    (void)state;
    enum { MANY = 1000 };
    static struct test_watch t[MANY];
    struct rights_world w;
    rights_world_init(&w);
    struct tier_user *user = user_of(&w, "jane");
    for (int i = 0; i < MANY; i++) {
        char namespace[32];
        snprintf(namespace, sizeof(namespace), "n%d", i % 100);
        assert_int_equal(watch_pods(&w, &t[i], user, namespace), ST_OK);
    }
    rights_run(&w, 5 * NS_PER_S);
    w.script.never = "jane";
    tier_rights_changed(w.rights);
    rights_run(&w, 2500 * NS_PER_MS);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(t[i].losses, 1);
        assert_int_equal(t[i].code, 403);
    }
    tier_user_unref(user);
    rights_world_fini(&w);
}

/* -- Tokens -- */

static void expired_token_ends_its_watches(void **state)
{
    (void)state;
    enum { MANY = 300 };
    static struct test_watch t[MANY];
    struct test_watch other;
    struct rights_world w;
    rights_world_init(&w);
    struct tier_user *user = user_of(&w, "jane"), *john = user_of(&w, "john");
    for (int i = 0; i < MANY; i++)
        assert_int_equal(watch_pods(&w, &t[i], user, "n"), ST_OK);
    assert_int_equal(watch_pods(&w, &other, john, "n"), ST_OK);
    rights_run(&w, 10 * NS_PER_S);
    w.script.bad_token = "jane";
    int64_t begin_ns = rights_now(&w);
    rights_run(&w, 80 * NS_PER_S);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(t[i].losses, 1);
        assert_true(i < 200 || t[i].turn > t[i - 200].turn);
        assert_int_equal(t[i].verdict, TIER_DENIED);
        assert_int_equal(t[i].code, 401);
        assert_in_range(t[i].lost_ns - begin_ns, 0, 75 * NS_PER_S);
    }
    assert_int_equal(other.losses, 0);
    tier_standing_remove(&other.standing);
    tier_user_unref(user);
    tier_user_unref(john);
    rights_world_fini(&w);
}

static void one_refusal_of_a_token_ends_no_watch(void **state)
{
    (void)state;
    struct rights_world w;
    struct test_watch t;
    rights_world_init(&w);
    struct tier_user *user = user_of(&w, "jane");
    assert_int_equal(watch_pods(&w, &t, user, "n"), ST_OK);
    w.script.bad_token = "jane";
    w.script.tokens = 0;
    while (!w.script.tokens)
        rights_run(&w, NS_PER_S);
    rights_run(&w, NS_PER_S);
    w.script.bad_token = NULL;
    rights_run(&w, 10 * NS_PER_S);
    assert_int_equal(w.script.tokens, 2);
    rights_run(&w, 300 * NS_PER_S);
    assert_int_equal(t.losses, 0);
    tier_standing_remove(&t.standing);
    tier_user_unref(user);
    rights_world_fini(&w);
}

static void other_groups_end_the_watches_of_a_token(void **state)
{
    (void)state;
    struct rights_world w;
    struct test_watch t;
    rights_world_init(&w);
    struct tier_user *user = user_of(&w, "jane");
    assert_int_equal(watch_pods(&w, &t, user, "n"), ST_OK);
    w.script.groups = "[\"other\"]";
    rights_run(&w, 70 * NS_PER_S);
    assert_int_equal(t.losses, 1);
    assert_int_equal(t.verdict, TIER_DENIED);
    assert_int_equal(t.code, 401);
    tier_user_unref(user);
    rights_world_fini(&w);
}

/* -- Servers that are away -- */

static void watches_survive_a_restart_of_the_server(void **state)
{
    (void)state;
    struct rights_world w;
    struct test_watch t;
    rights_world_init(&w);
    struct tier_user *user = user_of(&w, "jane");
    assert_int_equal(watch_pods(&w, &t, user, "n"), ST_OK);
    rights_run(&w, 10 * NS_PER_S);
    for (int i = 0; i < 5; i++) {
        kube_server_stop(&w.base.server);
        rights_run(&w, TIER_PATIENCE_NS - 10 * NS_PER_S);
        kube_server_start(&w.base.server);
        rights_run(&w, 30 * NS_PER_S);
    }
    assert_int_equal(t.losses, 0);
    tier_standing_remove(&t.standing);
    tier_user_unref(user);
    rights_world_fini(&w);
}

static void watches_end_when_nothing_confirms_them(void **state)
{
    (void)state;
    struct rights_world w;
    for (int how = 0; how < 3; how++) {
        struct test_watch t;
        rights_world_init(&w);
        struct tier_user *user = user_of(&w, "jane");
        assert_int_equal(watch_pods(&w, &t, user, "n"), ST_OK);
        rights_run(&w, 10 * NS_PER_S);
        int64_t begin_ns = rights_now(&w);
        if (how == 0)
            kube_server_stop(&w.base.server);
        w.script.holds = how == 1;
        w.script.code = how == 2 ? 500 : 0;
        rights_run(&w, TIER_PATIENCE_NS + 75 * NS_PER_S);
        assert_int_equal(t.losses, 1);
        assert_int_equal(t.verdict, TIER_UNKNOWN);
        assert_int_equal(t.code, 503);
        /* Counted from the next review, which is due within 66 s, and noticed by one that has
         * failed again. */
        assert_in_range(t.lost_ns - begin_ns, TIER_PATIENCE_NS - 5 * NS_PER_S,
                        TIER_PATIENCE_NS + 75 * NS_PER_S);
        tier_user_unref(user);
        rights_world_drop(&w);
        rights_world_fini(&w);
    }
}

/* Requests do not wait for the reviews of watches. */
static void requests_go_before_watches(void **state)
{
    (void)state;
    enum { MANY = 1000 };
    static struct test_watch t[MANY];
    struct test_wait one = {.ends = 0};
    struct rights_world w;
    rights_world_init(&w);
    struct tier_user *user = user_of(&w, "jane");
    for (int i = 0; i < MANY; i++) {
        char namespace[32];
        snprintf(namespace, sizeof(namespace), "n%d", i);
        assert_int_equal(watch_pods(&w, &t[i], user, namespace), ST_OK);
    }
    rights_run(&w, 200 * NS_PER_S);
    w.script.delay_ns = 100 * NS_PER_MS;
    tier_rights_changed(w.rights);
    rights_run(&w, 50 * NS_PER_MS);
    may(&w, &one, user, "n");
    rights_run(&w, 300 * NS_PER_MS);
    assert_int_equal(one.ends, 1);
    /* And watches do not starve. */
    rights_run(&w, 60 * NS_PER_S);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(t[i].losses, 0);
        tier_standing_remove(&t[i].standing);
    }
    tier_user_unref(user);
    rights_world_fini(&w);
}

/* A question of a watch that waits in line becomes urgent with a request for the same. */
static void request_may_join_the_review_of_a_watch(void **state)
{
    (void)state;
    struct rights_world w;
    struct test_watch t;
    struct test_wait one = {.ends = 0};
    rights_world_init(&w);
    struct tier_user *user = user_of(&w, "jane");
    assert_int_equal(watch_pods(&w, &t, user, "n"), ST_OK);
    rights_run(&w, 20 * NS_PER_S);
    w.script.code = 503;
    tier_rights_changed(w.rights);
    rights_run(&w, 20 * NS_PER_S);
    struct tier_access access = list_pods("n");
    access.verb = "watch";
    int64_t begin_ns = rights_now(&w);
    may_access(&w, &one, user, &access);
    rights_run(&w, 20 * NS_PER_S);
    assert_int_equal(one.ends, 1);
    assert_int_equal(one.verdict, TIER_UNKNOWN);
    assert_in_range(one.ended_ns - begin_ns, TIER_ANSWER_NS, TIER_ANSWER_NS + NS_PER_S);
    assert_int_equal(t.losses, 0);
    tier_standing_remove(&t.standing);
    tier_user_unref(user);
    rights_world_fini(&w);
}

/* The same for one that is under way: the request does not wait longer for it than for its own. */
static void request_that_joins_a_review_under_way_ends_in_time(void **state)
{
    (void)state;
    struct rights_world w;
    struct test_watch t;
    struct test_wait one = {.ends = 0};
    rights_world_init(&w);
    struct tier_user *user = user_of(&w, "jane");
    assert_int_equal(watch_pods(&w, &t, user, "n"), ST_OK);
    rights_run(&w, 20 * NS_PER_S);
    w.script.holds = true;
    tier_rights_changed(w.rights);
    rights_run(&w, 8 * NS_PER_S);
    struct tier_access access = list_pods("n");
    access.verb = "watch";
    int64_t begin_ns = rights_now(&w);
    may_access(&w, &one, user, &access);
    w.script.holds = false;
    w.script.code = 503;
    rights_world_answer(&w);
    rights_run(&w, 20 * NS_PER_S);
    assert_int_equal(one.ends, 1);
    assert_int_equal(one.verdict, TIER_UNKNOWN);
    assert_in_range(one.ended_ns - begin_ns, TIER_ANSWER_NS, TIER_ANSWER_NS + NS_PER_S);
    tier_standing_remove(&t.standing);
    tier_user_unref(user);
    rights_world_fini(&w);
}

/* -- Limits -- */

static void standing_rights_are_limited(void **state)
{
    (void)state;
    enum { MANY = 5000 };
    static struct test_watch t[MANY];
    static char selector[62 * 1024];
    struct rights_world w;
    rights_world_init(&w);
    rights_checked = NULL;
    struct tier_user *user = user_of(&w, "jane");
    int added = 0;
    memset(selector, 'x', sizeof(selector));
    for (; added < MANY; added++) {
        struct tier_access access = list_pods("n");
        int len = sprintf(selector, "spec.nodeName=%d", added);
        selector[len] = 'x';
        access.field_selector = slice_of(selector, sizeof(selector));
        t[added] = (struct test_watch){.standing.lost = on_lost};
        enum status status = tier_standing_add(w.rights, &t[added].standing, user, &access);
        if (status == ST_LIMIT)
            break;
        assert_int_equal(status, ST_OK);
    }
    size_t taken = (size_t)added * sizeof(selector);
    assert_in_range(taken, TIER_STANDING_BYTES_MAX * 8L / 10, TIER_STANDING_BYTES_MAX);
    tier_rights_check(w.rights);
    for (int i = 0; i <= added; i++)
        tier_standing_remove(&t[i].standing);
    tier_user_unref(user);
    rights_world_fini(&w);
}

/* -- Memory -- */

static void missing_memory_ends_no_watch(void **state)
{
    (void)state;
    for (size_t at = 1;; at++) {
        struct rights_world w;
        struct test_watch t[2];
        rights_world_init(&w);
        struct tier_user *user = user_of(&w, "jane");
        faulty_memory_at = at;
        enum status status[2];
        for (int i = 0; i < 2; i++)
            status[i] = watch_pods(&w, &t[i], user, i ? "m" : "n");
        rights_run(&w, 100 * NS_PER_S);
        tier_rights_changed(w.rights);
        rights_run(&w, 100 * NS_PER_S);
        bool failed = faulty_memory_at == 0;
        faulty_memory_at = 0;
        for (int i = 0; i < 2; i++) {
            assert_true(status[i] == ST_OK || (failed && status[i] == ST_NOMEM));
            assert_int_equal(t[i].losses, 0);
        }
        w.script.never = "jane";
        rights_run(&w, 100 * NS_PER_S);
        for (int i = 0; i < 2; i++)
            assert_int_equal(t[i].losses, status[i] == ST_OK);
        tier_user_unref(user);
        rights_world_fini(&w);
        if (!failed)
            break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_is_reviewed_every_minute),
        cmocka_unit_test(equal_rights_share_reviews),
        cmocka_unit_test(steady_reviews_are_few),
        cmocka_unit_test(lost_right_ends_the_watch),
        cmocka_unit_test(changed_role_is_noticed_within_two_seconds),
        cmocka_unit_test(change_is_reviewed_a_second_time),
        cmocka_unit_test(review_under_way_does_not_hide_a_change),
        cmocka_unit_test(roles_that_change_all_the_time_cause_few_reviews),
        cmocka_unit_test(change_in_a_namespace_concerns_its_rights),
        cmocka_unit_test(changes_elsewhere_delay_a_revocation_only_shortly),
        cmocka_unit_test(first_and_last_watch_are_reported),
        cmocka_unit_test(revoked_user_loses_all_watches),
        cmocka_unit_test(expired_token_ends_its_watches),
        cmocka_unit_test(one_refusal_of_a_token_ends_no_watch),
        cmocka_unit_test(other_groups_end_the_watches_of_a_token),
        cmocka_unit_test(watches_survive_a_restart_of_the_server),
        cmocka_unit_test(watches_end_when_nothing_confirms_them),
        cmocka_unit_test(requests_go_before_watches),
        cmocka_unit_test(request_may_join_the_review_of_a_watch),
        cmocka_unit_test(request_that_joins_a_review_under_way_ends_in_time),
        cmocka_unit_test(standing_rights_are_limited),
        cmocka_unit_test(missing_memory_ends_no_watch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
