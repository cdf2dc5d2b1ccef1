/* Who sends a request. */
#include "tier/rights/rights.h"

#include "tier/rights/rights_fixture_test.h"

static void valid_token_gives_the_user(void **state)
{
    (void)state;
    struct rights_world w;
    rights_world_init(&w);
    struct test_question q = {0};
    identify(&w, &q, "Bearer jane");
    assert_int_equal(q.ends, 0);
    rights_run(&w, NS_PER_S);
    assert_int_equal(q.ends, 1);
    assert_non_null(q.user);
    assert_true(slice_is(q.user->name, "jane"));
    assert_true(slice_is(q.user->uid, "u-jane"));
    assert_int_equal(q.user->group_count, 2);
    assert_true(slice_is(q.user->groups[0], "g"));
    assert_true(slice_is(q.user->groups[1], "system:authenticated"));
    assert_true(slice_is(q.user->extra, "{\"a\":[\"1\"],\"b\":[\"2\",\"3\"]}"));
    assert_false(q.user->by_certificate || q.user->anonymous);
    assert_string_equal(w.script.last_token,
                        "{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"TokenReview\","
                        "\"spec\":{\"token\":\"jane\"}}");
    question_fini(&q);
    rights_world_fini(&w);
}

static void token_that_is_not_valid_is_refused(void **state)
{
    (void)state;
    struct rights_world w;
    rights_world_init(&w);
    w.script.bad_token = "wrong";
    for (int i = 0; i < 3; i++) {
        struct test_question q = {0};
        identify(&w, &q, "Bearer wrong");
        rights_run(&w, NS_PER_S);
        assert_int_equal(q.ends, 1);
        assert_null(q.user);
        assert_int_equal(q.code, 401);
        assert_string_equal(q.message, "Unauthorized");
    }
    assert_int_equal(w.script.tokens, 1);
    rights_run(&w, 10 * NS_PER_S);
    w.script.bad_token = NULL;
    struct tier_user *user = user_of(&w, "wrong");
    assert_non_null(user);
    tier_user_unref(user);
    rights_world_fini(&w);
}

/* As kube-apiserver reads the field. */
static void authorization_field_is_read_as_in_kubernetes(void **state)
{
    (void)state;
    static const struct {
        const char *field, *name;
    } rows[] = {
        {NULL, "system:anonymous"},
        {"", "system:anonymous"},
        {"Bearer", "system:anonymous"},
        {"Bearer  jane", "system:anonymous"},
        {"Basic amFuZTpq", "system:anonymous"},
        {"Bearerjane", "system:anonymous"},
        {"bEARER jane", "jane"},
        {"  Bearer jane \t", "jane"},
        {"Bearer jane doe x", "jane"},
    };
    struct rights_world w;
    rights_world_init(&w);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct test_question q = {0};
        identify(&w, &q, rows[i].field);
        rights_run(&w, NS_PER_S);
        assert_int_equal(q.ends, 1);
        assert_non_null(q.user);
        assert_true(slice_is(q.user->name, rows[i].name));
        assert_int_equal(q.user->anonymous, strcmp(rows[i].name, "jane") != 0);
        if (q.user->anonymous) {
            assert_int_equal(q.user->group_count, 1);
            assert_true(slice_is(q.user->groups[0], "system:unauthenticated"));
        }
        question_fini(&q);
    }
    assert_int_equal(w.script.tokens, 1);
    rights_world_fini(&w);
}

static void impossible_tokens_are_refused_without_a_review(void **state)
{
    (void)state;
    struct rights_world w;
    rights_world_init(&w);
    char *field = malloc(TIER_TOKEN_BYTES_MAX + 16);
    assert_non_null(field);
    for (int over = 0; over < 2; over++) {
        struct test_question q = {0};
        size_t len = (size_t)sprintf(field, "Bearer ");
        memset(field + len, 'x', TIER_TOKEN_BYTES_MAX + (size_t)over);
        field[len + TIER_TOKEN_BYTES_MAX + (size_t)over] = 0;
        identify(&w, &q, field);
        assert_int_equal(q.ends, (unsigned)over);
        rights_run(&w, NS_PER_S);
        assert_int_equal(q.code, over ? 401 : 200);
        question_fini(&q);
    }
    free(field);
    struct test_question q = {0};
    identify(&w, &q, "Bearer \xff");
    assert_int_equal(q.ends, 1);
    assert_int_equal(q.code, 401);
    assert_int_equal(w.script.tokens, 1);
    rights_world_fini(&w);
}

static void certificate_goes_before_a_token(void **state)
{
    (void)state;
    struct rights_world w;
    rights_world_init(&w);
    union {
        struct http_certificate certificate;
        char bytes[256];
    } c = {.certificate = {.id = "X509SHA256=12", .groups_bytes = 8, .uid_bytes = 3}};
    memcpy(c.certificate.groups, "one\0two\0u-1", 11);
    struct http_field field = {SLICE_LITERAL("authorization"), SLICE_LITERAL("Bearer jane")};
    struct http_request request = {
        .fields = &field, .field_count = 1, .peer_name = "kubelet", .certificate = &c.certificate};
    struct test_question q = {.question.done = on_identified};
    tier_identify(w.rights, &q.question, &request);
    assert_int_equal(q.ends, 1);
    assert_true(slice_is(q.user->name, "kubelet"));
    assert_true(q.user->by_certificate);
    assert_int_equal(q.user->group_count, 3);
    assert_true(slice_is(q.user->groups[1], "two"));
    assert_true(slice_is(q.user->groups[2], "system:authenticated"));
    assert_true(slice_is(q.user->extra,
                         "{\"authentication.kubernetes.io/credential-id\":[\"X509SHA256=12\"]}"));
    assert_true(slice_is(q.user->uid, "u-1"));
    assert_int_equal(w.script.tokens, 0);
    /* One with a uid that is not valid identifies no user. */
    c.certificate.has_bad_uid = true;
    tier_identify(w.rights, &q.question, &request);
    assert_int_equal(q.code, 401);
    assert_null(q.user);
    c.certificate.has_bad_uid = false;
    /* A certificate without a name does not count. */
    request.peer_name = "";
    tier_identify(w.rights, &q.question, &request);
    rights_run(&w, NS_PER_S);
    assert_true(slice_is(q.user->name, "jane"));
    question_fini(&q);
    rights_world_fini(&w);
}

/* -- Sharing and time -- */

static void equal_questions_share_a_review(void **state)
{
    (void)state;
    struct rights_world w;
    rights_world_init(&w);
    struct test_question q[5] = {{.ends = 0}};
    for (int i = 0; i < 5; i++)
        identify(&w, &q[i], "Bearer jane");
    tier_question_cancel(&q[2].question);
    rights_run(&w, NS_PER_S);
    assert_int_equal(w.script.tokens, 1);
    for (int i = 0; i < 5; i++)
        assert_int_equal(q[i].ends, i != 2);
    /* The last one that leaves takes its question with it. */
    identify(&w, &q[2], "Bearer john");
    question_fini(&q[2]);
    rights_run(&w, NS_PER_S);
    assert_int_equal(w.script.tokens, 1);
    for (int i = 0; i < 5; i++)
        question_fini(&q[i]);
    rights_world_fini(&w);
}

static void answer_is_used_for_its_time_from_the_question_on(void **state)
{
    (void)state;
    struct rights_world w;
    rights_world_init(&w);
    w.script.delay_ns = 4 * NS_PER_S;
    struct test_question q = {0};
    int64_t begin_ns = rights_now(&w);
    identify(&w, &q, "Bearer jane");
    rights_run(&w, 5 * NS_PER_S);
    assert_int_equal(q.ends, 1);
    rights_run_until(&w, begin_ns + 9900 * NS_PER_MS);
    identify(&w, &q, "Bearer jane");
    assert_int_equal(q.ends, 2);
    rights_run_until(&w, begin_ns + 10100 * NS_PER_MS);
    identify(&w, &q, "Bearer jane");
    assert_int_equal(q.ends, 2);
    rights_run(&w, 5 * NS_PER_S);
    assert_int_equal(q.ends, 3);
    assert_int_equal(w.script.tokens, 2);
    question_fini(&q);
    rights_world_fini(&w);
}

/* -- Failures -- */

static void expect_failure(unsigned code, const char *body, unsigned want, const char *message)
{
    struct rights_world w;
    rights_world_init(&w);
    w.script.code = code;
    w.script.body = body;
    struct test_question q = {0};
    identify(&w, &q, "Bearer jane");
    rights_run(&w, 12 * NS_PER_S);
    assert_int_equal(q.ends, 1);
    assert_null(q.user);
    assert_int_equal(q.code, want);
    if (!strstr(q.message, message))
        fail_msg("%s", q.message);
    rights_world_fini(&w);
}

#define REVIEW "\"kind\":\"TokenReview\",\"apiVersion\":\"authentication.k8s.io/v1\","

static void answers_without_a_meaning_identify_no_one(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        "",
        "null",
        "[]",
        "{",
        "{" REVIEW "\"status\":null}",
        "{" REVIEW "\"status\":{\"authenticated\":\"true\",\"user\":{\"username\":\"x\"}}}",
        "{" REVIEW "\"status\":{\"authenticated\":1,\"user\":{\"username\":\"x\"}}}",
        "{" REVIEW "\"status\":{\"authenticated\":true}}",
        "{" REVIEW "\"status\":{\"authenticated\":true,\"user\":{\"username\":\"\"}}}",
        "{" REVIEW "\"status\":{\"authenticated\":true,\"user\":{\"username\":7}}}",
        "{" REVIEW "\"status\":{\"authenticated\":true,\"user\":{\"username\":\"x\","
        "\"extra\":[]}}}",
        "{\"kind\":\"Status\",\"apiVersion\":\"authentication.k8s.io/v1\","
        "\"status\":{\"authenticated\":true,\"user\":{\"username\":\"x\"}}}",
        "{\"kind\":\"TokenReview\",\"apiVersion\":\"authentication.k8s.io/v2\","
        "\"status\":{\"authenticated\":true,\"user\":{\"username\":\"x\"}}}",
    };
    for (size_t i = 0; i < COUNT_OF(bodies); i++)
        expect_failure(201, bodies[i], 500, "Internal error occurred: the kube-apiserver's answer");
    expect_failure(201, "{" REVIEW "\"status\":{\"user\":{\"username\":\"x\"}}}", 401,
                   "Unauthorized");
}

static void failures_say_what_to_do(void **state)
{
    (void)state;
    expect_failure(403, "{\"kind\":\"Status\",\"message\":\"cannot create\"}", 500,
                   "bind the ClusterRole system:auth-delegator to its account");
    expect_failure(401, "", 500, "does not accept the credentials of the watch tier");
    expect_failure(404, "", 500, "does not serve TokenReviews");
    expect_failure(422, "", 500, "refuses a TokenReview (422)");
    expect_failure(500, "", 503, "cannot decide a TokenReview at present (500)");
    expect_failure(503, "", 503, "has not answered a TokenReview");
    expect_failure(429, "", 503, "has not answered a TokenReview");
}

static void missing_permission_is_logged_now_and_then(void **state)
{
    (void)state;
    struct rights_world w;
    rights_world_init(&w);
    w.script.code = 403;
    w.script.body = "tokenreviews is forbidden: User \\\"tier\\\"";
    struct test_question q = {0};
    unsigned lines = 0;
    for (int i = 0; i < 50; i++) {
        identify(&w, &q, "Bearer jane");
        rights_run(&w, NS_PER_S);
        assert_int_equal(q.code, 500);
        assert_null(strstr(q.message, "tier\\")); /* the name of the account is not for clients */
    }
    for (const char *at = w.base.log; (at = strstr(at, "system:auth-delegator")); at++)
        lines++;
    assert_int_equal(lines, 1);
    assert_non_null(strstr(w.base.log, "its account: tokenreviews is forbidden"));
    rights_world_fini(&w);
}

static void address_of_one(void *owner, char *text)
{
    (void)owner;
    memcpy(text, "10.0.0.1:5", sizeof("10.0.0.1:5"));
}

static void address_of_other(void *owner, char *text)
{
    (void)owner;
    memcpy(text, "10.0.0.2:5", sizeof("10.0.0.2:5"));
}

/* One client with many tokens that are not known delays neither another one nor users that are. */
static void clients_with_unknown_tokens_take_turns(void **state)
{
    (void)state;
    enum { MANY = TIER_USER_QUESTIONS_MAX + TIER_USER_REVIEWS_MAX + 10 };
    static struct test_question many[MANY];
    struct test_question other = {0}, known = {0};
    struct rights_world w;
    unsigned refused = 0, before;
    rights_world_init(&w);
    identify_from(&w, &known, "Bearer jane", address_of_one);
    rights_run(&w, 11 * NS_PER_S); /* its answer is too old */
    w.script.delay_ns = 100 * NS_PER_MS;
    memset(many, 0, sizeof(many));
    for (int i = 0; i < MANY; i++) {
        char field[64];
        if (i == TIER_USER_REVIEWS_MAX)
            rights_run(&w, NS_PER_MS * 50);
        snprintf(field, sizeof(field), "Bearer t%d", i);
        identify_from(&w, &many[i], field, address_of_one);
        refused += many[i].ends;
        if (many[i].ends)
            assert_int_equal(many[i].code, 429);
    }
    assert_int_equal(refused, 10);
    identify_from(&w, &other, "Bearer other", address_of_other);
    identify_from(&w, &known, "Bearer jane", address_of_one);
    rights_run(&w, 250 * NS_PER_MS);
    before = w.script.tokens;
    assert_int_equal(other.ends, 1);
    assert_int_equal(known.ends, 2);
    assert_true(before < 100);
    rights_run(&w, 20 * NS_PER_S);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(many[i].ends, 1);
        question_fini(&many[i]);
    }
    assert_in_range(w.script.asked_most, TIER_USER_REVIEWS_MAX, TIER_USER_REVIEWS_MAX + 2);
    question_fini(&other);
    question_fini(&known);
    rights_world_fini(&w);
}

/* Tokens that are not valid do not push out users. */
static void what_is_kept_is_limited(void **state)
{
    (void)state;
    struct rights_world w;
    rights_world_init(&w);
    w.options.ttl_ns = 3600 * NS_PER_S;
    tier_rights_free(w.rights);
    rights_world_make(&w);
    struct tier_user *user = user_of(&w, "jane");
    w.script.code = 201;
    w.script.body = "{" REVIEW "\"status\":{\"authenticated\":false}}";
    rights_checked = NULL; /* checked below: there are many turns */
    for (int i = 0; i < TIER_USERS_MAX / 4 + 100; i++) {
        struct test_question q = {0};
        char field[64];
        snprintf(field, sizeof(field), "Bearer bad%d", i);
        identify(&w, &q, field);
        while (!q.ends)
            sim_step(w.base.sim);
        assert_int_equal(q.code, 401);
    }
    rights_checked = &w;
    rights_run(&w, NS_PER_MS);
    unsigned before = w.script.tokens;
    struct tier_user *again = user_of(&w, "jane");
    assert_ptr_equal(again, user);
    assert_int_equal(w.script.tokens, before);
    tier_user_unref(again);
    tier_user_unref(user);
    rights_world_fini(&w);
}

/* Users are forgotten before their time if they take too much memory. */
static void memory_of_users_is_limited(void **state)
{
    (void)state;
    enum { GROUPS = 60, MANY = 1300 };
    static char body[64 * 1024];
    struct rights_world w;
    rights_world_init(&w);
    w.options.ttl_ns = 3600 * NS_PER_S;
    tier_rights_free(w.rights);
    rights_world_make(&w);
    int len = sprintf(body, "{" REVIEW "\"status\":{\"authenticated\":true,\"user\":{"
                            "\"username\":\"x\",\"groups\":[");
    for (int i = 0; i < GROUPS; i++) {
        len += sprintf(body + len, "%s\"", i ? "," : "");
        memset(body + len, 'x', 500);
        len += 500;
        len += sprintf(body + len, "\"");
    }
    memcpy(body + len, "]}}}", sizeof("]}}}"));
    w.script.code = 201;
    w.script.body = body;
    rights_checked = NULL; /* checked below: there are many turns */
    for (int i = 0; i < MANY; i++) {
        struct test_question q = {0};
        char field[64];
        snprintf(field, sizeof(field), "Bearer t%d", i);
        identify(&w, &q, field);
        while (!q.ends)
            sim_step(w.base.sim);
        assert_non_null(q.user);
        if (i % 100 == 0)
            tier_rights_check(w.rights);
        question_fini(&q);
    }
    tier_rights_check(w.rights);
    unsigned before = w.script.tokens;
    tier_user_unref(user_of(&w, "t1299"));
    assert_int_equal(w.script.tokens, before);
    tier_user_unref(user_of(&w, "t0"));
    assert_int_equal(w.script.tokens, before + 1);
    rights_world_fini(&w);
}

/* -- Memory -- */

static void missing_memory_identifies_no_one(void **state)
{
    (void)state;
    for (size_t at = 1;; at++) {
        struct rights_world w;
        struct test_question q[2] = {{.ends = 0}};
        rights_world_init(&w);
        faulty_memory_at = at;
        for (int i = 0; i < 2; i++) {
            identify(&w, &q[i], "Bearer jane");
            rights_run(&w, 12 * NS_PER_S);
        }
        bool failed = faulty_memory_at == 0;
        faulty_memory_at = 0;
        for (int i = 0; i < 2; i++) {
            assert_int_equal(q[i].ends, 1);
            assert_true(failed || q[i].user);
            assert_true(q[i].user || q[i].code != 401);
            question_fini(&q[i]);
        }
        rights_world_fini(&w);
        if (!failed)
            break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(valid_token_gives_the_user),
        cmocka_unit_test(token_that_is_not_valid_is_refused),
        cmocka_unit_test(authorization_field_is_read_as_in_kubernetes),
        cmocka_unit_test(impossible_tokens_are_refused_without_a_review),
        cmocka_unit_test(certificate_goes_before_a_token),
        cmocka_unit_test(equal_questions_share_a_review),
        cmocka_unit_test(answer_is_used_for_its_time_from_the_question_on),
        cmocka_unit_test(answers_without_a_meaning_identify_no_one),
        cmocka_unit_test(failures_say_what_to_do),
        cmocka_unit_test(missing_permission_is_logged_now_and_then),
        cmocka_unit_test(clients_with_unknown_tokens_take_turns),
        cmocka_unit_test(what_is_kept_is_limited),
        cmocka_unit_test(memory_of_users_is_limited),
        cmocka_unit_test(missing_memory_identifies_no_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
