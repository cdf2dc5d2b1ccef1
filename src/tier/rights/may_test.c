/* What users may do. */
#include "tier/rights/rights.h"

#include "tier/rights/rights_fixture_test.h"

static void review_has_everything_that_decides(void **state)
{
    (void)state;
    struct rights_world w;
    struct test_wait t = {.ends = 0};
    rights_world_init(&w);
    struct tier_user *user = user_of(&w, "jane");
    struct tier_access access = {
        .verb = "watch",
        .group = SLICE_LITERAL("apps"),
        .version = SLICE_LITERAL("v1"),
        .resource = SLICE_LITERAL("deployments"),
        .subresource = SLICE_LITERAL("scale"),
        .namespace = SLICE_LITERAL("n"),
        .field_selector = SLICE_LITERAL("metadata.name=x"),
        .label_selector = SLICE_LITERAL("a in (c,b),!d"),
    };
    may_access(&w, &t, user, &access);
    assert_int_equal(t.ends, 0);
    rights_run(&w, NS_PER_S);
    assert_int_equal(t.ends, 1);
    assert_int_equal(t.verdict, TIER_ALLOWED);
    assert_string_equal(
        w.script.last_access,
        "{\"apiVersion\":\"authorization.k8s.io/v1\",\"kind\":\"SubjectAccessReview\",\"spec\":{"
        "\"user\":\"jane\",\"groups\":[\"g\",\"system:authenticated\"],\"uid\":\"u-jane\","
        "\"extra\":{\"a\":[\"1\"],\"b\":[\"2\",\"3\"]},\"resourceAttributes\":{"
        "\"namespace\":\"n\",\"verb\":\"watch\",\"group\":\"apps\",\"version\":\"v1\","
        "\"resource\":\"deployments\",\"subresource\":\"scale\",\"name\":\"x\","
        "\"fieldSelector\":{\"requirements\":[{\"key\":\"metadata.name\",\"operator\":\"In\","
        "\"values\":[\"x\"]}]},"
        "\"labelSelector\":{\"requirements\":[{\"key\":\"a\",\"operator\":\"In\","
        "\"values\":[\"b\",\"c\"]},{\"key\":\"d\",\"operator\":\"DoesNotExist\"}]}}}}");
    tier_user_unref(user);
    rights_world_fini(&w);
}

static void refusal_has_the_words_of_kubernetes(void **state)
{
    (void)state;
    struct rights_world w;
    struct test_wait t;
    rights_world_init(&w);
    w.script.allow = "\"namespace\":\"mine\"";
    struct tier_user *user = user_of(&w, "jane");
    static const char text[] = "pods is forbidden: User \"jane\" cannot list resource \"pods\" in "
                               "API group \"\" in the namespace \"other\"";
    assert_int_equal(decide(&w, &t, user, "mine"), TIER_ALLOWED);
    for (int cached = 0; cached < 2; cached++) {
        assert_int_equal(decide(&w, &t, user, "other"), TIER_DENIED);
        assert_int_equal(t.code, 403);
        assert_string_equal(t.message, text);
        assert_non_null(strstr(t.json, "\"reason\":\"Forbidden\",\"details\":{\"kind\":\"pods\"}"));
    }
    assert_int_equal(w.script.accesses, 2);
    w.script.reason = "RBAC: no";
    assert_int_equal(decide(&w, &t, user, "third"), TIER_DENIED);
    assert_non_null(strstr(t.message, "in the namespace \"third\": RBAC: no"));
    struct tier_access access = list_pods("");
    access.verb = "get";
    access.group = SLICE_LITERAL("apps");
    access.name = SLICE_LITERAL("x");
    t = (struct test_wait){.ends = 0};
    may_access(&w, &t, user, &access);
    rights_run(&w, NS_PER_S);
    assert_string_equal(t.message,
                        "pods.apps \"x\" is forbidden: User \"jane\" cannot get resource \"pods\" "
                        "in API group \"apps\" at the cluster scope: RBAC: no");
    tier_user_unref(user);
    rights_world_fini(&w);
}

/* -- Sharing and time -- */

static void equal_questions_share_a_review(void **state)
{
    (void)state;
    struct rights_world w;
    struct test_wait t[6];
    memset(t, 0, sizeof(t));
    rights_world_init(&w);
    struct tier_user *user = user_of(&w, "jane"), *other = user_of(&w, "john");
    for (int i = 0; i < 4; i++)
        may(&w, &t[i], user, "n");
    may(&w, &t[4], user, "m");
    may(&w, &t[5], other, "n");
    tier_right_wait_cancel(&t[2].wait);
    rights_run(&w, NS_PER_S);
    for (int i = 0; i < 6; i++)
        assert_int_equal(t[i].ends, i != 2);
    assert_int_equal(w.script.accesses, 3);
    /* The last one that leaves takes its question with it. */
    may(&w, &t[2], user, "new");
    tier_right_wait_cancel(&t[2].wait);
    tier_right_wait_cancel(&t[2].wait);
    rights_run(&w, NS_PER_S);
    assert_int_equal(t[2].ends, 0);
    assert_int_equal(w.script.accesses, 3);
    tier_user_unref(user);
    tier_user_unref(other);
    rights_world_fini(&w);
}

static void answer_is_used_for_its_time_from_the_question_on(void **state)
{
    (void)state;
    struct rights_world w;
    rights_world_init(&w);
    for (int denied = 0; denied < 2; denied++) {
        struct test_wait t = {.ends = 0};
        struct tier_user *user = user_of(&w, denied ? "john" : "jane");
        w.script.never = "john";
        w.script.delay_ns = 4 * NS_PER_S;
        w.script.accesses = 0;
        int64_t begin_ns = rights_now(&w);
        may(&w, &t, user, "n");
        rights_run(&w, 5 * NS_PER_S);
        assert_int_equal(t.ends, 1);
        rights_run_until(&w, begin_ns + 9900 * NS_PER_MS);
        may(&w, &t, user, "n");
        assert_int_equal(t.ends, 2);
        rights_run_until(&w, begin_ns + 10100 * NS_PER_MS);
        may(&w, &t, user, "n");
        assert_int_equal(t.ends, 2);
        rights_run(&w, 5 * NS_PER_S);
        assert_int_equal(t.ends, 3);
        assert_int_equal(w.script.accesses, 2);
        w.script.delay_ns = 0;
        tier_user_unref(user);
    }
    rights_world_fini(&w);
}

/* A request that comes after a change gets an answer to a question that was sent after it, even if
 * a review is under way. */
static void changed_roles_decide_new_requests(void **state)
{
    (void)state;
    struct rights_world w;
    struct test_wait t = {.ends = 0}, before = {.ends = 0}, after = {.ends = 0};
    rights_world_init(&w);
    struct tier_user *user = user_of(&w, "jane");
    assert_int_equal(decide(&w, &t, user, "n"), TIER_ALLOWED);
    w.script.never = "jane";
    assert_int_equal(decide(&w, &t, user, "n"), TIER_ALLOWED);
    tier_rights_changed(w.rights);
    assert_int_equal(decide(&w, &t, user, "n"), TIER_DENIED);

    w.script.holds = true;
    may(&w, &before, user, "m");
    rights_run(&w, NS_PER_S);
    tier_rights_changed(w.rights);
    may(&w, &after, user, "m");
    w.script.never = NULL;
    rights_world_answer(&w);
    w.script.never = "jane";
    w.script.holds = false;
    rights_run(&w, NS_PER_S);
    assert_int_equal(before.ends, 1);
    assert_int_equal(before.verdict, TIER_ALLOWED);
    assert_int_equal(after.ends, 1);
    assert_int_equal(after.verdict, TIER_DENIED);
    tier_user_unref(user);
    rights_world_fini(&w);
}

/* How many reviews it takes to decide about each of these namespaces. */
static unsigned reviews_for(struct rights_world *w, struct tier_user *user,
                            const char *const *namespaces, size_t count)
{
    struct test_wait t;
    unsigned before = w->script.accesses;
    for (size_t i = 0; i < count; i++)
        assert_int_equal(decide(w, &t, user, namespaces[i]), TIER_ALLOWED);
    return w->script.accesses - before;
}

/* The empty one stands for all of them: a binding in a namespace does not grant that. */
static void roles_of_a_namespace_leave_other_answers_usable(void **state)
{
    static const char *const all[] = {"n", "m", ""}, *const n[] = {"n"},
                             *const others[] = {"m", ""};
    (void)state;
    struct rights_world w;
    struct test_wait t = {.ends = 0};
    rights_world_init(&w);
    struct tier_user *user = user_of(&w, "jane");
    assert_int_equal(reviews_for(&w, user, all, COUNT_OF(all)), COUNT_OF(all));
    assert_int_equal(reviews_for(&w, user, all, COUNT_OF(all)), 0);
    for (int i = 0; i < 3; i++)
        tier_rights_changed_in(w.rights, SLICE_LITERAL("n"));
    assert_int_equal(reviews_for(&w, user, others, COUNT_OF(others)), 0);
    assert_int_equal(reviews_for(&w, user, n, COUNT_OF(n)), COUNT_OF(n));
    tier_rights_changed_in(w.rights, SLICE_LITERAL("other"));
    assert_int_equal(reviews_for(&w, user, all, COUNT_OF(all)), 0);
    tier_rights_changed(w.rights);
    assert_int_equal(reviews_for(&w, user, all, COUNT_OF(all)), COUNT_OF(all));
    /* A change while the question is under way: only one of its namespace makes another necessary.
     */
    for (unsigned same = 0; same < 2; same++) {
        const char *namespace = same ? "changed" : "quiet";
        unsigned before = w.script.accesses;
        w.script.holds = true;
        t.ends = 0;
        may(&w, &t, user, namespace);
        rights_run(&w, 100 * NS_PER_MS);
        tier_rights_changed_in(w.rights, SLICE_LITERAL("changed"));
        w.script.holds = false;
        rights_world_answer(&w);
        rights_run(&w, 100 * NS_PER_MS);
        assert_int_equal(t.ends, 1);
        assert_int_equal(w.script.accesses - before, 1);
        assert_int_equal(reviews_for(&w, user, &namespace, 1), same);
    }
    tier_user_unref(user);
    rights_world_fini(&w);
}

/* -- Failures -- */

static void expect_unknown(unsigned code, const char *body, unsigned want, const char *message)
{
    struct rights_world w;
    struct test_wait t = {.ends = 0};
    rights_world_init(&w);
    struct tier_user *user = user_of(&w, "jane");
    w.script.code = code;
    w.script.body = body;
    may(&w, &t, user, "n");
    rights_run(&w, 12 * NS_PER_S);
    assert_int_equal(t.ends, 1);
    if (t.verdict != TIER_UNKNOWN)
        fail_msg("%s is a decision", body);
    assert_int_equal(t.code, want);
    if (!strstr(t.message, message))
        fail_msg("%s", t.message);
    /* It is not kept. */
    w.script.code = 0;
    assert_int_equal(decide(&w, &t, user, "n"), TIER_ALLOWED);
    tier_user_unref(user);
    rights_world_fini(&w);
}

#define REVIEW "\"kind\":\"SubjectAccessReview\",\"apiVersion\":\"authorization.k8s.io/v1\","

static void answers_without_a_meaning_permit_nothing(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        "",
        "true",
        "{",
        "{" REVIEW "\"status\":{}}",
        "{" REVIEW "\"status\":true}",
        "{" REVIEW "\"status\":{\"allowed\":\"true\"}}",
        "{" REVIEW "\"status\":{\"allowed\":1}}",
        "{" REVIEW "\"status\":{\"allowed\":null}}",
        "{" REVIEW "\"status\":{\"Allowed\":true}}",
        "{" REVIEW "\"status\":{\"allowed\":true,\"denied\":\"no\"}}",
        "{" REVIEW "\"spec\":{\"status\":{\"allowed\":true}}}",
        "{" REVIEW "\"status\":{\"allowed\":true}",
        "{" REVIEW "\"status\":{\"allowed\":true}}}",
        "{\"kind\":\"SelfSubjectAccessReview\",\"apiVersion\":\"authorization.k8s.io/v1\","
        "\"status\":{\"allowed\":true}}",
        "{\"kind\":\"SubjectAccessReview\",\"apiVersion\":\"authorization.k8s.io/v1beta1\","
        "\"status\":{\"allowed\":true}}",
        "{\"status\":{\"allowed\":true}}",
    };
    for (size_t i = 0; i < COUNT_OF(bodies); i++)
        expect_unknown(201, bodies[i], 500, "Internal error occurred: the kube-apiserver's answer");
    expect_unknown(201, "{" REVIEW "\"status\":{\"allowed\":false,\"evaluationError\":\"broken\"}}",
                   500, "Internal error occurred: broken");
    expect_unknown(403, "{" REVIEW "\"status\":{\"allowed\":true}}", 500,
                   "may not create SubjectAccessReviews: bind the ClusterRole");
    expect_unknown(302, "{" REVIEW "\"status\":{\"allowed\":true}}", 500, "refuses");
    expect_unknown(500, "{" REVIEW "\"status\":{\"allowed\":true}}", 503, "at present (500)");
    expect_unknown(503, "{" REVIEW "\"status\":{\"allowed\":true}}", 503, "has not answered");
    expect_unknown(429, "{" REVIEW "\"status\":{\"allowed\":true}}", 503, "has not answered");
}

static void huge_and_deep_answers_permit_nothing(void **state)
{
    (void)state;
    enum { BYTES = TIER_CALL_BYTES_MAX + 1024 };
    static char body[BYTES + 256];
    int len = sprintf(body, "{" REVIEW "\"status\":{\"allowed\":true},\"x\":\"");
    memset(body + len, 'x', BYTES);
    memcpy(body + len + BYTES, "\"}", sizeof("\"}"));
    expect_unknown(201, body, 503, "has not answered");
    /* The brackets are not closed, either; the answer is refused before that is known. */
    len = sprintf(body, "{" REVIEW "\"status\":{\"allowed\":true},\"x\":");
    memset(body + len, '[', 100000);
    memset(body + len + 100000, ']', 100000);
    memcpy(body + len + 200000, "}", sizeof("}"));
    expect_unknown(201, body, 500, "cannot be understood");
}

static void both_allowed_and_denied_is_denied(void **state)
{
    (void)state;
    struct rights_world w;
    struct test_wait t;
    rights_world_init(&w);
    struct tier_user *user = user_of(&w, "jane");
    w.script.code = 201;
    w.script.body =
        "{" REVIEW "\"status\":{\"allowed\":true,\"denied\":true,\"reason\":\"because\"}}";
    assert_int_equal(decide(&w, &t, user, "n"), TIER_DENIED);
    assert_non_null(strstr(t.message, ": because"));
    tier_user_unref(user);
    rights_world_fini(&w);
}

/* -- Limits and fairness -- */

enum { USERS = 8, EACH = 40 };

static void users_take_turns(void **state)
{
    (void)state;
    static struct test_wait many[1000];
    struct rights_world w;
    struct test_wait one = {.ends = 0};
    rights_world_init(&w);
    memset(many, 0, sizeof(many));
    struct tier_user *greedy = user_of(&w, "greedy"), *modest = user_of(&w, "modest");
    w.script.delay_ns = 100 * NS_PER_MS;
    for (int i = 0; i < 1000; i++) {
        char namespace[32];
        snprintf(namespace, sizeof(namespace), "n%d", i);
        may(&w, &many[i], greedy, namespace);
    }
    rights_run(&w, 50 * NS_PER_MS);
    may(&w, &one, modest, "n");
    rights_run(&w, 150 * NS_PER_MS);
    assert_int_equal(one.ends, 1);
    rights_run(&w, 60 * NS_PER_S);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(many[i].ends, 1);
    assert_in_range(w.script.asked_most, TIER_USER_REVIEWS_MAX, TIER_USER_REVIEWS_MAX + 1);
    tier_user_unref(greedy);
    tier_user_unref(modest);
    rights_world_fini(&w);
}

static void reviews_under_way_are_limited(void **state)
{
    (void)state;
    static struct test_wait many[USERS][EACH];
    struct tier_user *users[USERS];
    struct rights_world w;
    rights_world_init(&w);
    memset(many, 0, sizeof(many));
    for (int i = 0; i < USERS; i++) {
        char name[16];
        snprintf(name, sizeof(name), "u%d", i);
        users[i] = user_of(&w, name);
    }
    w.script.delay_ns = 100 * NS_PER_MS;
    for (int i = 0; i < USERS; i++) {
        for (int k = 0; k < EACH; k++) {
            char namespace[32];
            snprintf(namespace, sizeof(namespace), "n%d", k);
            may(&w, &many[i][k], users[i], namespace);
        }
    }
    rights_run(&w, 60 * NS_PER_S);
    for (int i = 0; i < USERS; i++) {
        for (int k = 0; k < EACH; k++)
            assert_int_equal(many[i][k].verdict, TIER_ALLOWED);
        tier_user_unref(users[i]);
    }
    assert_int_equal(w.script.asked_most, TIER_REVIEWS_MAX);
    assert_memory_equal(w.script.order, "u0 u1 u2 u3 u4 u5 u6 u7 u0 u1", 29);
    rights_world_fini(&w);
}

/* All clients without credentials are one user. */
static void questions_of_one_user_are_limited(void **state)
{
    (void)state;
    enum { MANY = TIER_USER_QUESTIONS_MAX + 5 };
    static struct test_wait many[MANY];
    struct rights_world w;
    struct test_wait other = {.ends = 0};
    rights_world_init(&w);
    memset(many, 0, sizeof(many));
    struct tier_user *user = user_of(&w, "jane");
    for (int i = 0; i < MANY; i++) {
        struct test_question q = {0};
        char namespace[32];
        identify(&w, &q, NULL);
        snprintf(namespace, sizeof(namespace), "n%d", i);
        may(&w, &many[i], q.user, namespace);
        bool full = i >= TIER_USER_QUESTIONS_MAX;
        assert_int_equal(many[i].ends, full);
        if (full) {
            assert_int_equal(many[i].verdict, TIER_UNKNOWN);
            assert_int_equal(many[i].code, 429);
        }
        question_fini(&q);
    }
    may(&w, &other, user, "n");
    rights_run(&w, 10 * NS_PER_S);
    assert_int_equal(other.verdict, TIER_ALLOWED);
    for (int i = 0; i < TIER_USER_QUESTIONS_MAX; i++)
        assert_int_equal(many[i].verdict, TIER_ALLOWED);
    tier_user_unref(user);
    rights_world_fini(&w);
}

/* Questions are also limited by their bytes. */
static void long_questions_are_limited(void **state)
{
    (void)state;
    enum { MANY = 300 };
    static struct test_wait many[MANY];
    static char selector[60 * 1024];
    struct rights_world w;
    unsigned refused = 0;
    rights_world_init(&w);
    memset(many, 0, sizeof(many));
    struct tier_user *user = user_of(&w, "jane");
    memset(selector, 'x', sizeof(selector));
    for (int i = 0; i < MANY; i++) {
        struct tier_access access = list_pods("n");
        int len = sprintf(selector, "spec.nodeName=%d", i);
        selector[len] = 'x';
        access.field_selector = slice_of(selector, sizeof(selector));
        may_access(&w, &many[i], user, &access);
        refused += many[i].ends;
    }
    size_t taken = (MANY - refused) * sizeof(selector);
    assert_in_range(taken, TIER_USER_QUESTION_BYTES_MAX * 8 / 10, TIER_USER_QUESTION_BYTES_MAX);
    for (int i = 0; i < MANY; i++)
        tier_right_wait_cancel(&many[i].wait);
    tier_user_unref(user);
    rights_world_fini(&w);
}

/* No turn is long, however many requests wait for one answer. */
static void many_waiters_learn_the_answer_in_several_turns(void **state)
{
    (void)state;
    enum { MANY = 1000 };
    static struct test_question questions[MANY];
    static struct test_wait waits[3][MANY];
    static const enum tier_verdict verdicts[] = {TIER_ALLOWED, TIER_DENIED, TIER_UNKNOWN};
    struct rights_world w;
    rights_world_init(&w);
    memset(questions, 0, sizeof(questions));
    memset(waits, 0, sizeof(waits));
    for (int i = 0; i < MANY; i++)
        identify(&w, &questions[i], "Bearer jane");
    tier_question_cancel(&questions[MANY - 1].question);
    rights_run(&w, NS_PER_S);
    struct tier_user *user = questions[0].user;
    for (int i = 0; i < MANY - 1; i++) {
        assert_ptr_equal(questions[i].user, user);
        assert_true(i < 200 || questions[i].turn > questions[i - 200].turn);
    }
    for (int k = 0; k < 3; k++) {
        w.script.never = k == 1 ? "jane" : NULL;
        w.script.code = k == 2 ? 500 : 0;
        for (int i = 0; i < MANY; i++)
            may(&w, &waits[k][i], user, k == 0 ? "a" : k == 1 ? "b" : "c");
        rights_run(&w, NS_PER_S);
        for (int i = 0; i < MANY; i++) {
            assert_int_equal(waits[k][i].ends, 1);
            assert_int_equal(waits[k][i].verdict, verdicts[k]);
            assert_true(i < 200 || waits[k][i].turn > waits[k][i - 200].turn);
        }
        assert_int_equal(waits[k][MANY - 1].code, k == 0 ? 200 : k == 1 ? 403 : 503);
    }
    /* Those that leave in between. */
    w.script.code = 0;
    for (int i = 0; i < MANY; i++)
        may(&w, &waits[0][i], user, "d");
    while (waits[0][0].ends < 2)
        sim_step(w.base.sim);
    for (int i = 0; i < MANY; i++)
        tier_right_wait_cancel(&waits[0][i].wait);
    rights_run(&w, NS_PER_S);
    assert_int_equal(waits[0][MANY - 1].ends, 1);
    for (int i = 0; i < MANY; i++)
        question_fini(&questions[i]);
    rights_world_fini(&w);
}

/* -- From within -- */

static void ask_again(struct test_wait *t)
{
    struct rights_world *w = t->ctx;
    t->then = NULL;
    tier_rights_changed(w->rights);
    struct tier_user *user = tier_user_ref((struct tier_user *)t[1].ctx);
    may(w, t, user, "n");
    tier_right_wait_cancel(&t[1].wait);
    tier_user_unref(user);
}

static void done_may_ask_and_cancel(void **state)
{
    (void)state;
    struct rights_world w;
    struct test_wait t[2];
    memset(t, 0, sizeof(t));
    rights_world_init(&w);
    struct tier_user *user = user_of(&w, "jane");
    t[0].then = ask_again;
    t[0].ctx = &w;
    t[1].ctx = user;
    may(&w, &t[0], user, "n");
    may(&w, &t[1], user, "n");
    rights_run(&w, NS_PER_S);
    assert_int_equal(t[0].ends, 2);
    assert_int_equal(t[1].ends, 0);
    assert_int_equal(w.script.accesses, 2);
    tier_user_unref(user);
    rights_world_fini(&w);
}

static void metrics_count_reviews(void **state)
{
    (void)state;
    struct rights_world w;
    struct test_wait t;
    struct metric_page page = {0};
    rights_world_init(&w);
    w.script.never = "other";
    struct tier_user *user = user_of(&w, "jane");
    assert_int_equal(decide(&w, &t, user, "n"), TIER_ALLOWED);
    assert_int_equal(decide(&w, &t, user, "n"), TIER_ALLOWED);
    w.script.code = 429;
    t = (struct test_wait){.ends = 0};
    may(&w, &t, user, "other");
    rights_run(&w, 50 * NS_PER_MS);
    w.script.code = 0;
    rights_run(&w, NS_PER_S);
    assert_int_equal(t.verdict, TIER_DENIED);
    w.script.holds = true;
    t = (struct test_wait){.ends = 0};
    may(&w, &t, user, "held");
    rights_run(&w, NS_PER_S);
    tier_rights_write_metrics(w.rights, &page);
    assert_int_equal(page.status, ST_OK);
    assert_int_equal(buf_append(&page.text, slice_of("", 1)), ST_OK);
    static const char *const rows[] = {
        "vigil_tier_reviews_total{kind=\"token\",result=\"allowed\"} 1\n",
        "vigil_tier_reviews_total{kind=\"access\",result=\"allowed\"} 1\n",
        "vigil_tier_reviews_total{kind=\"access\",result=\"denied\"} 1\n",
        "vigil_tier_reviews_total{kind=\"access\",result=\"failed\"} 0\n",
        "vigil_tier_review_cache_hits_total{kind=\"access\"} 1\n",
        "vigil_tier_reviews_in_flight 1\n",
        "vigil_tier_reviews_throttled_total 1\n",
        "vigil_tier_reviews_refused_total 0\n",
        "vigil_tier_reviews_waiting 0\n",
        "vigil_tier_review_duration_seconds_count 4\n",
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (!strstr((const char *)page.text.ptr, rows[i]))
            fail_msg("%s is not in %s", rows[i], (const char *)page.text.ptr);
    metric_page_fini(&page);
    tier_right_wait_cancel(&t.wait);
    tier_user_unref(user);
    rights_world_fini(&w);
}

/* -- Memory and faults -- */

static void missing_memory_permits_nothing(void **state)
{
    (void)state;
    for (size_t at = 1;; at++) {
        struct rights_world w;
        struct test_wait t[2];
        memset(t, 0, sizeof(t));
        rights_world_init(&w);
        struct tier_user *user = user_of(&w, "jane");
        w.script.never = "jane";
        faulty_memory_at = at;
        may(&w, &t[0], user, "n");
        rights_run(&w, 12 * NS_PER_S);
        may(&w, &t[1], user, "m");
        rights_run(&w, 12 * NS_PER_S);
        bool failed = faulty_memory_at == 0;
        faulty_memory_at = 0;
        for (int i = 0; i < 2; i++) {
            assert_int_equal(t[i].ends, 1);
            assert_int_not_equal(t[i].verdict, TIER_ALLOWED);
            assert_true(failed || t[i].verdict == TIER_DENIED);
        }
        tier_user_unref(user);
        rights_world_fini(&w);
        if (!failed)
            break;
    }
}

/* Asks two questions, which are denied, with a fault after this many bytes. Returns those that were
 * received, or sent. */
static size_t be_denied_despite(enum fault_kind kind, size_t at)
{
    struct rights_world w;
    struct test_wait t[2];
    memset(t, 0, sizeof(t));
    rights_world_init(&w);
    struct tier_user *user = user_of(&w, "jane");
    w.script.never = "jane";
    w.script.reason = "true";
    size_t *bytes = kind == FAULT_LOST_WRITING ? &faults.bytes_written : &faults.bytes_read;
    size_t before = *bytes;
    faults.kind = kind;
    faults.at = before + at;
    for (int i = 0; i < 2; i++) {
        may(&w, &t[i], user, i ? "m" : "n");
        rights_run(&w, 11 * NS_PER_S);
        assert_int_equal(t[i].ends, 1);
        assert_int_not_equal(t[i].verdict, TIER_ALLOWED);
        assert_true(kind != FAULT_NONE || t[i].verdict == TIER_DENIED);
    }
    size_t passed = *bytes - before;
    tier_user_unref(user);
    rights_world_fini(&w);
    return passed;
}

static void faults_permit_nothing(void **state)
{
    (void)state;
    static const enum fault_kind kinds[] = {FAULT_LOST_READING, FAULT_END,   FAULT_GARBAGE,
                                            FAULT_LOST_WRITING, FAULT_RESET, FAULT_SILENCE};
    size_t places = be_denied_despite(FAULT_NONE, 0);
    assert_true(places > 300);
    for (size_t k = 0; k < COUNT_OF(kinds); k++)
        for (size_t at = 0; at < places; at += 3)
            (void)be_denied_despite(kinds[k], at);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(review_has_everything_that_decides),
        cmocka_unit_test(refusal_has_the_words_of_kubernetes),
        cmocka_unit_test(equal_questions_share_a_review),
        cmocka_unit_test(answer_is_used_for_its_time_from_the_question_on),
        cmocka_unit_test(changed_roles_decide_new_requests),
        cmocka_unit_test(roles_of_a_namespace_leave_other_answers_usable),
        cmocka_unit_test(answers_without_a_meaning_permit_nothing),
        cmocka_unit_test(huge_and_deep_answers_permit_nothing),
        cmocka_unit_test(both_allowed_and_denied_is_denied),
        cmocka_unit_test(users_take_turns),
        cmocka_unit_test(reviews_under_way_are_limited),
        cmocka_unit_test(questions_of_one_user_are_limited),
        cmocka_unit_test(long_questions_are_limited),
        cmocka_unit_test(many_waiters_learn_the_answer_in_several_turns),
        cmocka_unit_test(done_may_ask_and_cancel),
        cmocka_unit_test(metrics_count_reviews),
        cmocka_unit_test(missing_memory_permits_nothing),
        cmocka_unit_test(faults_permit_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
