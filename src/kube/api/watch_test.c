/* Watches of a kind whose definition goes. */
#include "kube/api/bed_test.h"

#include "base/clock.h"

#define CRDS "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
#define HATS "/apis/example.com/v1/hats"

static struct peer *ask(const char *method, const char *path, const char *body, unsigned code)
{
    struct peer *peer = send_json(method, path, body);
    run();
    assert_answer(peer, code, NULL);
    return peer;
}

static void pass(int64_t ns)
{
    clock_sim_advance(&bed->clock, ns);
    fake_set_now(bed->engine, bed->clock.mono_ns);
    engine_shard_turn_begin(bed->shard);
    engine_shard_turn_end(bed->shard);
    run();
}

static void pull(struct peer *peer)
{
    uint8_t bytes[64];
    engine_shard_turn_begin(bed->shard);
    while (http_exchange_flows(&peer->x)) {
        size_t n = http_exchange_fill(&peer->x, bytes, sizeof(bytes));
        assert_int_equal(buf_append(&peer->answer, slice_of(bytes, n)), ST_OK);
    }
    engine_shard_turn_end(bed->shard);
}

static void what_was_deleted_with_its_definition_is_told_before_the_end(void **state)
{
    (void)state;
    begin(1, 100);
    ask("POST", CRDS,
        "{\"metadata\":{\"name\":\"hats.example.com\"},\"spec\":{\"group\":\"example.com\","
        "\"scope\":\"Cluster\",\"names\":{\"plural\":\"hats\",\"kind\":\"Hat\"},\"versions\":[{"
        "\"name\":\"v1\",\"served\":true,\"storage\":true,\"schema\":{\"openAPIV3Schema\":{"
        "\"type\":\"object\"}}}]}}",
        201);
    ask("POST", HATS,
        "{\"apiVersion\":\"example.com/v1\",\"kind\":\"Hat\",\"metadata\":{\"name\":\"kept\","
        "\"finalizers\":[\"example.com/a\"]}}",
        201);
    ask("DELETE", CRDS "/hats.example.com", "", 200);
    struct peer *watch = send_json("GET", HATS "?watch=1", "");
    run();
    pull(watch);
    assert_answer(watch, 200, "\"type\":\"ADDED\"");
    struct peer *freed = send_patch(HATS "/kept", "{\"metadata\":{\"finalizers\":null}}");
    run();
    assert_answer(freed, 200, NULL);
    for (int i = 0; i < 4; i++)
        pass(10 * NS_PER_S); /* it takes nothing meanwhile, and that not for a minute */
    ask("GET", HATS, "", 404);
    assert_false(said(watch, "\"type\":\"DELETED\""));
    pull(watch);
    assert_answer(watch, 200, "\"type\":\"DELETED\"");
    assert_false(http_exchange_flows(&watch->x));
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_deleted_with_its_definition_is_told_before_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
