#include "kube/server/bed_test.h"

#define QUOTAS "/api/v1/namespaces/default/resourcequotas"
#define PODS "/api/v1/namespaces/default/pods"
#define LEASES "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
#define MANAGER LEASES "/kube-controller-manager"

static void counts_quotas(struct engine *engine)
{
    (void)engine;
    bed->config.counts_quotas = true;
}

static int setup(void **state)
{
    (void)state;
    bed_alter = counts_quotas;
    return 0;
}

static void pass(int64_t seconds)
{
    bed->clock.mono_ns += seconds * NS_PER_S;
    run();
}

static void make_quota(const char *name, const char *hard)
{
    char body[512];
    snprintf(body, sizeof(body), "{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"hard\":{%s}}}", name,
             hard);
    ask("POST", QUOTAS, body, 201);
    run();
}

static bool shows(const char *name, const char *used)
{
    char path[128];
    snprintf(path, sizeof(path), QUOTAS "/%s", name);
    return said(ask("GET", path, "", 200), used);
}

static void make_maps(int from, int to)
{
    for (int i = from; i < to; i++) {
        char body[64];
        snprintf(body, sizeof(body), "{\"metadata\":{\"name\":\"c%d\"}}", i);
        send_json("POST", CMS, body);
        run();
    }
}

static int64_t version_of(const char *name)
{
    char path[128];
    snprintf(path, sizeof(path), QUOTAS "/%s", name);
    struct peer *peer = ask("GET", path, "", 200);
    const char *text = memmem(peer->answer.ptr, peer->answer.len, "\"resourceVersion\":\"", 19);
    assert_non_null(text);
    return strtoll(text + 19, NULL, 10);
}

static void a_new_quota_is_counted_at_once_and_later_after_events(void)
{
    make_maps(0, 3);
    make_quota("q", "\"count/configmaps\":\"10\",\"pods\":\"2\"");
    assert_true(shows("q", "\"used\":{\"count/configmaps\":\"3\",\"pods\":\"0\"}"));
    ask("DELETE", CMS "/c0", "", 200);
    assert_true(shows("q", "\"used\":{\"count/configmaps\":\"3\""));
    pass(1);
    assert_true(shows("q", "\"used\":{\"count/configmaps\":\"2\""));
    send_patch(QUOTAS "/q", "{\"spec\":{\"hard\":{\"pods\":null,\"secrets\":\"1\"}}}");
    run();
    pass(1);
    assert_true(shows("q", "\"status\":{\"hard\":{\"count/configmaps\":\"10\",\"secrets\":\"1\"},"
                           "\"used\":{\"count/configmaps\":\"2\",\"secrets\":\"0\"}}"));
}

static void many_events_cause_one_write(void)
{
    make_quota("q", "\"count/configmaps\":\"100\"");
    int64_t before = version_of("q");
    make_maps(0, 40);
    assert_int_equal(version_of("q"), before);
    pass(1);
    assert_true(shows("q", "\"used\":{\"count/configmaps\":\"40\"}"));
    before = version_of("q");
    pass(3600);
    ask("POST", "/api/v1/namespaces/default/secrets", "{\"metadata\":{\"name\":\"s\"}}", 201);
    pass(1);
    assert_int_equal(version_of("q"), before); /* nothing has changed */
}

static void store_pod(int number, const char *phase)
{
    char key[64], value[256];
    snprintf(key, sizeof(key), "/registry/pods/default/p%03d", number);
    snprintf(value, sizeof(value),
             "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"p%03d\","
             "\"namespace\":\"default\"},\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{"
             "\"requests\":{\"cpu\":\"100m\"}}}]},\"status\":{\"phase\":\"%s\"}}",
             number, phase);
    store(key, slice_from_text(value));
}

/* More objects than a page has, and more quotas than are counted together. */
static void pages_and_batches_are_complete(void)
{
    char name[16];
    ask("GET", PODS, "", 200);
    for (int i = 0; i < 230; i++)
        store_pod(i, i % 10 ? "Running" : "Failed");
    for (int i = 0; i < 11; i++) {
        snprintf(name, sizeof(name), "q%02d", i);
        make_quota(name, "\"count/pods\":\"1k\",\"pods\":\"1k\",\"requests.cpu\":\"100\"");
    }
    pass(60);
    for (int i = 0; i < 11; i++) {
        snprintf(name, sizeof(name), "q%02d", i);
        assert_true(shows(name, "\"used\":{\"count/pods\":\"230\",\"pods\":\"207\","
                                "\"requests.cpu\":\"20700m\"}"));
    }
}

/* The watched resource appears: its kind was not known before. */
static void a_kind_is_counted_when_it_is_defined(void)
{
    make_quota("q", "\"count/caps.example.com\":\"3\"");
    assert_true(shows("q", "\"used\":{}") || !shows("q", "\"used\""));
    ask("POST", CRDS,
        "{\"metadata\":{\"name\":\"caps.example.com\"},\"spec\":{\"group\":\"example.com\","
        "\"scope\":\"Namespaced\",\"names\":{\"plural\":\"caps\",\"kind\":\"Cap\"},\"versions\":[{"
        "\"name\":\"v1\",\"served\":true,\"storage\":true,\"schema\":{\"openAPIV3Schema\":{"
        "\"type\":\"object\"}}}]}}",
        201);
    pass(2);
    assert_true(shows("q", "\"used\":{\"count/caps.example.com\":\"0\"}"));
}

static void a_deleted_quota_is_forgotten(void)
{
    make_quota("q", "\"count/configmaps\":\"9\"");
    ask("DELETE", QUOTAS "/q", "", 200);
    make_maps(0, 1);
    pass(1);
    make_quota("q", "\"count/configmaps\":\"9\"");
    pass(1);
    assert_true(shows("q", "\"used\":{\"count/configmaps\":\"1\"}"));
}

static void the_controller_manager_goes_first(void)
{
    make_quota("before", "\"count/configmaps\":\"9\"");
    ask("POST", LEASES,
        "{\"metadata\":{\"name\":\"kube-controller-manager\"},\"spec\":{\"holderIdentity\":\"m\","
        "\"leaseDurationSeconds\":15,\"renewTime\":\"2023-11-14T22:13:20.000000Z\"}}",
        201);
    make_quota("q", "\"count/configmaps\":\"9\"");
    make_maps(0, 2);
    pass(13);
    assert_false(shows("q", "\"used\""));
    assert_true(shows("before", "\"used\":{\"count/configmaps\":\"0\"}"));
    pass(4);
    assert_true(shows("q", "\"used\":{\"count/configmaps\":\"2\"}"));
    assert_true(shows("before", "\"used\":{\"count/configmaps\":\"2\"}"));
}

/* Another writer changes the quota while its namespace is counted: it is counted once more. */
static void a_count_never_overwrites_another_writer(void)
{
    make_quota("q", "\"count/configmaps\":\"9\"");
    for (int i = 0; i < 10; i++) {
        make_maps(i, i + 1);
        bed->clock.mono_ns += NS_PER_S;
        for (uint64_t turns = 0; turns < bed->seed % 10; turns++) {
            turn_once();
            fake_step(bed->engine);
        }
        char body[128];
        snprintf(body, sizeof(body), "{\"metadata\":{\"labels\":{\"a\":\"%d\"}}}", i);
        struct peer *peer = send_patch(QUOTAS "/q", body);
        run();
        assert_answer(peer, 200, NULL);
    }
    pass(2);
    assert_true(shows("q", "\"used\":{\"count/configmaps\":\"10\"}"));
    assert_true(shows("q", "\"labels\":{\"a\":\"9\"}"));
}

/* How often the quota was written. */
static int64_t writes_of_quota(void)
{
    struct arena arena;
    struct slice field;
    arena_init(&arena, NULL, 0, 1 << 20);
    struct pb_range_request request = {.key = SLICE_LITERAL("/registry/resourcequotas/default/q")};
    struct engine_range range = {
        .op = {.done = on_told, .arena = &arena, .principal = ENGINE_SERVER}};
    engine_range_start(bed->shard, &range, &request);
    run();
    assert_true(engine_range_next(&range, &field));
    int64_t version = kube_kv_of(field).version;
    engine_range_close(&range);
    arena_fini(&arena);
    return version;
}

/* Each turn takes a second, so that a count takes some, and each brings an event. */
static void a_long_count_is_followed_by_a_long_pause(void)
{
    make_quota("q", "\"count/configmaps\":\"999\"");
    for (int i = 0; i < 120; i++) {
        char body[64];
        snprintf(body, sizeof(body), "{\"metadata\":{\"name\":\"c%d\"}}", i);
        send_json("POST", CMS, body);
        bed->clock.mono_ns += NS_PER_S;
        turn_once();
        fake_step(bed->engine);
    }
    /* A count takes at least two seconds, and the pause nine times as long. */
    assert_in_range(writes_of_quota(), 2, 2 + 120 / 20);
    pass(60);
    pass(60);
    assert_true(shows("q", "\"used\":{\"count/configmaps\":\"120\"}"));
}

static void two_servers_count_together(void)
{
    kube_api_start_jobs(bed->other);
    run();
    a_new_quota_is_counted_at_once_and_later_after_events();
}

static void it_stops_in_the_middle(void)
{
    make_maps(0, 3);
    make_quota("other", "\"pods\":\"9\"");
    send_json("POST", QUOTAS,
              "{\"metadata\":{\"name\":\"q\"},\"spec\":{\"hard\":{\"pods\":\"1\",\"services\":"
              "\"1\",\"count/caps.example.com\":\"1\",\"count/configmaps\":\"1\"}}}");
    store_pod(1, "Running");
    bed->clock.mono_ns += NS_PER_S;
    for (uint64_t i = 0; i < bed->seed; i++) {
        turn_once();
        fake_step(bed->engine);
    }
}

#define TEST(name)                    \
    static void test_##name(void **s) \
    {                                 \
        (void)s;                      \
        for_each_seed(name);          \
    }
TEST(a_new_quota_is_counted_at_once_and_later_after_events)
TEST(many_events_cause_one_write)
TEST(pages_and_batches_are_complete)
TEST(a_kind_is_counted_when_it_is_defined)
TEST(a_deleted_quota_is_forgotten)
TEST(the_controller_manager_goes_first)
TEST(a_count_never_overwrites_another_writer)
TEST(a_long_count_is_followed_by_a_long_pause)
TEST(two_servers_count_together)
TEST(it_stops_in_the_middle)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_new_quota_is_counted_at_once_and_later_after_events),
        cmocka_unit_test(test_many_events_cause_one_write),
        cmocka_unit_test(test_pages_and_batches_are_complete),
        cmocka_unit_test(test_a_kind_is_counted_when_it_is_defined),
        cmocka_unit_test(test_a_deleted_quota_is_forgotten),
        cmocka_unit_test(test_the_controller_manager_goes_first),
        cmocka_unit_test(test_a_count_never_overwrites_another_writer),
        cmocka_unit_test(test_a_long_count_is_followed_by_a_long_pause),
        cmocka_unit_test(test_two_servers_count_together),
        cmocka_unit_test(test_it_stops_in_the_middle),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
