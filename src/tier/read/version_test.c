/* Whether the kube-apiserver is of our version. */
#include "tier/read/version.h"

#include "tier/link/link_fixture_test.h"

struct answer {
    unsigned code;
    const char *body;
};

static void answer(struct sim_reply *reply, const struct sim_request *request, void *ctx)
{
    const struct answer *wanted = ctx;
    assert_string_equal(request->method, "GET");
    sim_reply_json(reply, wanted->code, wanted->body);
}

/* Time passes for the loop as well, which reads the clock in its turns. */
static void pass_time(struct link_world *w, int64_t ns)
{
    link_world_run(w, ns);
    loop_turn(w->loop, 0);
}

/* The result when the answer to a request has come. */
static bool asked(struct link_world *w, struct tier_version *version)
{
    (void)tier_version_is_ours(version);
    link_world_run(w, NS_PER_S);
    return tier_version_is_ours(version);
}

static void it_is_compared_with_ours(void **state)
{
    static const struct {
        struct answer answer;
        bool is_ours;
    } rows[] = {
        {{200, "{\"major\":\"1\",\"minor\":\"36\",\"gitVersion\":\"v1.36.2\"}"}, true},
        {{200, "{\"major\":\"1\",\"minor\":\"36+\"}"}, true},
        {{200, "{\"major\":\"1\",\"minor\":\"35\"}"}, false},
        {{200, "{\"major\":\"1\",\"minor\":\"360\"}"}, false},
        {{200, "{\"major\":\"2\",\"minor\":\"36\"}"}, false},
        {{200, "{\"minor\":\"36\"}"}, false},
        {{200, "[]"}, false},
        {{200, "1.36"}, false},
        {{403, "{\"major\":\"1\",\"minor\":\"36\"}"}, false},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct link_world w;
        struct tier_version version;
        struct answer wanted = rows[i].answer;
        link_world_init(&w, SIM_HTTP1, NULL);
        kube_server_route(&w.server, NULL, "/version", answer, &wanted);
        assert_int_equal(link_world_start(&w), ST_OK);
        tier_version_init(&version, w.link, w.loop);
        assert_false(tier_version_is_ours(&version));
        assert_int_equal(asked(&w, &version), rows[i].is_ours);
        tier_version_fini(&version);
        link_world_fini(&w);
    }
}

static void it_is_requested_again_after_a_minute(void **state)
{
    struct link_world w;
    struct tier_version version;
    struct answer wanted = {200, "{\"major\":\"1\",\"minor\":\"36\"}"};
    (void)state;
    link_world_init(&w, SIM_HTTP1, NULL);
    kube_server_route(&w.server, NULL, "/version", answer, &wanted);
    assert_int_equal(link_world_start(&w), ST_OK);
    tier_version_init(&version, w.link, w.loop);
    assert_true(asked(&w, &version));
    /* It is replaced by a newer one. What is known is used until the answer is there. */
    wanted.body = "{\"major\":\"1\",\"minor\":\"37\"}";
    pass_time(&w, 50 * NS_PER_S);
    assert_true(asked(&w, &version));
    pass_time(&w, 15 * NS_PER_S);
    assert_true(tier_version_is_ours(&version));
    assert_false(asked(&w, &version));
    /* Without an answer, nothing is known. */
    wanted.body = "{\"major\":\"1\",\"minor\":\"36\"}";
    pass_time(&w, 61 * NS_PER_S);
    assert_true(asked(&w, &version));
    wanted.code = 500;
    pass_time(&w, 61 * NS_PER_S);
    assert_false(asked(&w, &version));
    /* One that is under way is ended with its owner. */
    pass_time(&w, 61 * NS_PER_S);
    (void)tier_version_is_ours(&version);
    tier_version_fini(&version);
    link_world_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_compared_with_ours),
        cmocka_unit_test(it_is_requested_again_after_a_minute),
    };
    return cmocka_run_group_tests_name("tier/read/version", tests, NULL, NULL);
}
