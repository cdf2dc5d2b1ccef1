#include "kube/handlers/write/eviction.h"

#include "kube/server/bed_test.h"
#include "kube/types/object/label_match.h"

#define PODS "/api/v1/namespaces/default/pods"
#define BUDGETS "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
#define EVICTION \
    "{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\"metadata\":{\"name\":\"a\"}}"

static void make_pod(void)
{
    ask("POST", PODS,
        "{\"metadata\":{\"name\":\"a\",\"labels\":{\"app\":\"web\"}},\"spec\":{\"containers\":[{"
        "\"name\":\"c\",\"image\":\"i\"}]}}",
        201);
    struct peer *peer =
        send_patch(PODS "/a/status", "{\"status\":{\"phase\":\"Running\",\"conditions\":[{\"type\":"
                                     "\"Ready\",\"status\":\"True\"}]}}");
    run();
    assert_answer(peer, 200, NULL);
}

static void make_budget(const char *name, const char *app)
{
    char body[256];
    snprintf(body, sizeof(body),
             "{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"minAvailable\":1,\"selector\":{"
             "\"matchLabels\":{\"app\":\"%s\"}}}}",
             name, app);
    ask("POST", BUDGETS, body, 201);
}

static void allow(int disruptions)
{
    char body[256];
    snprintf(body, sizeof(body),
             "{\"status\":{\"observedGeneration\":1,\"disruptionsAllowed\":%d,\"currentHealthy\":1,"
             "\"desiredHealthy\":1,\"expectedPods\":1}}",
             disruptions);
    struct peer *peer = send_patch(BUDGETS "/b/status", body);
    run();
    assert_answer(peer, 200, NULL);
}

static void a_budget_refuses_and_allows(void)
{
    make_pod();
    make_budget("b", "web");
    assert_true(said(ask("POST", PODS "/a/eviction", EVICTION, 429), "still being processed"));
    allow(0);
    assert_true(said(ask("POST", PODS "/a/eviction", EVICTION, 429), "needs 1 healthy pods"));
    allow(1);
    ask("POST", PODS "/a/eviction", EVICTION, 201);
    struct peer *budget = ask("GET", BUDGETS "/b", "", 200);
    assert_true(said(budget, "\"disruptionsAllowed\":0") && said(budget, "\"a\":\""));
    ask("GET", PODS "/a", "", 404);
}

static void more_than_one_budget_is_refused(void)
{
    make_pod();
    make_budget("b", "web");
    make_budget("c", "web");
    assert_true(said(ask("POST", PODS "/a/eviction", EVICTION, 500), "more than one"));
}

static void too_many_budgets_are_refused(void)
{
    char name[32];
    make_pod();
    for (int i = 0; i < KUBE_EVICTION_BUDGETS_MAX; i++) {
        snprintf(name, sizeof(name), "b%d", i);
        make_budget(name, "other");
    }
    ask("POST", PODS "/a/eviction?dryRun=All", EVICTION, 201);
    make_budget("last", "other");
    assert_true(said(ask("POST", PODS "/a/eviction", EVICTION, 500), "disruption budgets"));
}

static void evictions_of_a_client_that_leaves_end(void)
{
    make_pod();
    make_budget("b", "web");
    allow(1);
    struct peer *peer = send_json("POST", PODS "/a/eviction", EVICTION);
    for (uint64_t i = 0; i < bed->seed; i++) {
        turn_once();
        fake_step(bed->engine);
    }
    leave(peer);
}

static void resizes_of_pods_without_containers_are_harmless(void)
{
    make_pod();
    struct peer *peer = send_patch(PODS "/a/resize", "{\"spec\":{\"containers\":null}}");
    run();
    assert_answer(peer, 422, "may not be added");
    peer = send_patch(PODS "/a/resize", "{\"spec\":7}");
    run();
    assert_true(peer->code >= 400 && peer->code < 500);
}

static bool selects(const char *selector, const char *labels)
{
    struct arena arena;
    struct json_node *a = NULL, *b;
    struct error error;
    arena_init(&arena, NULL, 0, 1 << 16);
    if (selector)
        assert_int_equal(json_tree_read(&arena, slice_from_text(selector), &a, &error), ST_OK);
    assert_int_equal(json_tree_read(&arena, slice_from_text(labels), &b, &error), ST_OK);
    bool result = kube_label_match(a, b);
    arena_fini(&arena);
    return result;
}

#define EXPRESSION(rest) "{\"matchExpressions\":[{\"key\":\"a\",\"operator\":" rest "}]}"

static void selectors_of_objects_select(void **state)
{
    (void)state;
    assert_false(selects(NULL, "{}"));
    assert_true(selects("{}", "{}"));
    assert_true(selects("{\"matchLabels\":{\"a\":\"b\"}}", "{\"a\":\"b\",\"c\":\"d\"}"));
    assert_false(selects("{\"matchLabels\":{\"a\":\"b\"}}", "{\"a\":\"c\"}"));
    assert_true(selects(EXPRESSION("\"In\",\"values\":[\"x\",\"b\"]"), "{\"a\":\"b\"}"));
    assert_false(selects(EXPRESSION("\"In\",\"values\":[\"x\"]"), "{\"a\":\"b\"}"));
    assert_false(selects(EXPRESSION("\"NotIn\",\"values\":[\"b\"]"), "{\"a\":\"b\"}"));
    assert_true(selects(EXPRESSION("\"NotIn\",\"values\":[\"b\"]"), "{}"));
    assert_true(selects(EXPRESSION("\"Exists\""), "{\"a\":\"\"}"));
    assert_false(selects(EXPRESSION("\"Exists\""), "{}"));
    assert_true(selects(EXPRESSION("\"DoesNotExist\""), "{}"));
    assert_false(selects(EXPRESSION("\"Like\""), "{\"a\":\"b\"}"));
}

#define TEST(name)                    \
    static void test_##name(void **s) \
    {                                 \
        (void)s;                      \
        for_each_seed(name);          \
    }
TEST(a_budget_refuses_and_allows)
TEST(more_than_one_budget_is_refused)
TEST(evictions_of_a_client_that_leaves_end)
TEST(resizes_of_pods_without_containers_are_harmless)

static void test_too_many_budgets_are_refused(void **state)
{
    (void)state;
    begin(1, 100);
    too_many_budgets_are_refused();
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_budget_refuses_and_allows),
        cmocka_unit_test(test_more_than_one_budget_is_refused),
        cmocka_unit_test(test_too_many_budgets_are_refused),
        cmocka_unit_test(test_evictions_of_a_client_that_leaves_end),
        cmocka_unit_test(test_resizes_of_pods_without_containers_are_harmless),
        cmocka_unit_test(selectors_of_objects_select),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
