/* Deletions that wait for somebody's finalizers, and are asked for again. */
#include "kube/api/bed_test.h"

#include "base/clock.h"

#define CRDS "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
#define HATS "/apis/example.com/v1/hats"

enum { SEEDS = 10, HATS_KEPT = 3 };

static void ask(const char *method, const char *path, const char *body, unsigned code)
{
    struct peer *peer = send_json(method, path, body);
    run();
    assert_answer(peer, code, NULL);
}

static void set_up(uint64_t seed)
{
    begin(seed, 0);
    ask("POST", CRDS,
        "{\"metadata\":{\"name\":\"hats.example.com\"},\"spec\":{\"group\":\"example.com\","
        "\"scope\":\"Cluster\",\"names\":{\"plural\":\"hats\",\"kind\":\"Hat\"},\"versions\":[{"
        "\"name\":\"v1\",\"served\":true,\"storage\":true,\"schema\":{\"openAPIV3Schema\":{"
        "\"type\":\"object\"}}}]}}",
        201);
    for (int i = 0; i < HATS_KEPT; i++) {
        char hat[256];
        snprintf(hat, sizeof(hat),
                 "{\"apiVersion\":\"example.com/v1\",\"kind\":\"Hat\",\"metadata\":{\"name\":"
                 "\"h%d\",\"finalizers\":[\"example.com/a\"]}}",
                 i);
        ask("POST", HATS, hat, 201);
    }
    ask("DELETE", CRDS "/hats.example.com", "", 200);
}

/* Time passes while operations are under way. */
static void turn(int64_t ns)
{
    clock_sim_advance(&bed->clock, ns);
    fake_set_now(bed->engine, bed->clock.mono_ns);
    loop_turn(bed->loop, 0);
    (void)fake_step(bed->engine);
}

static void one_that_is_asked_for_again_does_one_thing_at_a_time(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        set_up(seed);
        for (int i = 0; i < HATS_KEPT; i++) {
            char path[64];
            snprintf(path, sizeof(path), HATS "/h%d", i);
            (void)send_patch(path, "{\"metadata\":{\"finalizers\":null}}");
            (void)send_json("DELETE", CRDS "/hats.example.com", "");
            for (int n = 0; n < 60; n++)
                turn(300 * NS_PER_MS);
        }
        for (int i = 0; i < 40; i++) {
            run();
            turn(NS_PER_S);
        }
        run();
        ask("GET", CRDS "/hats.example.com", "", 404);
        end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_is_asked_for_again_does_one_thing_at_a_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
