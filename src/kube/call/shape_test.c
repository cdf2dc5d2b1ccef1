#include "kube/server/bed_test.h"

#include "kube/call/shape.h"

/* Reads everything that the answer has now. */
static void pull(struct peer *peer)
{
    uint8_t bytes[512];
    run();
    engine_shard_turn_begin(bed->shard);
    while (http_exchange_flows(&peer->x)) {
        size_t n = http_exchange_fill(&peer->x, bytes, sizeof(bytes));
        assert_int_equal(buf_append(&peer->answer, slice_of(bytes, n)), ST_OK);
    }
    engine_shard_turn_end(bed->shard);
}

static void a_watch_of_tables_shows_the_age_of_later_objects(void **state)
{
    (void)state;
    begin(1, 100);
    struct peer *watch = send_with("GET", CMS "?watch=1", "accept",
                                   "application/json;as=Table;v=v1;g=meta.k8s.io", "");
    pull(watch);
    bed->clock.real_offset_ns += 600 * NS_PER_S;
    struct peer *made = send_json("POST", CMS, "{\"metadata\":{\"name\":\"a\"}}");
    pull(watch);
    assert_answer(made, 201, NULL);
    assert_answer(watch, 200, "\"cells\":[\"a\",0,\"0s\"]");
    end();
}

static void the_longest_group_name_is_not_cut(void **state)
{
    char group[246], path[512], text[4096], part[512];
    (void)state;
    for (size_t i = 0; i < sizeof(group) - 1; i++)
        group[i] = i % 50 == 49 ? '.' : 'g';
    group[sizeof(group) - 1] = '\0';
    begin(1, 100);
    snprintf(text, sizeof(text),
             "{\"metadata\":{\"name\":\"things.%s\"},\"spec\":{\"group\":\"%s\",\"scope\":"
             "\"Cluster\",\"names\":{\"plural\":\"things\",\"kind\":\"Thing\"},\"versions\":[{"
             "\"name\":\"v1\",\"served\":true,\"storage\":true,\"schema\":{\"openAPIV3Schema\":{"
             "\"type\":\"object\"}}}]}}",
             group, group);
    struct peer *made =
        send_json("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", text);
    run();
    assert_answer(made, 201, NULL);
    snprintf(path, sizeof(path), "/apis/%s/v1/things", group);
    snprintf(part, sizeof(part), "\"apiVersion\":\"%s/v1\"", group);
    struct peer *list = send_json("GET", path, "");
    pull(list);
    assert_answer(list, 200, part);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_watch_of_tables_shows_the_age_of_later_objects),
        cmocka_unit_test(the_longest_group_name_is_not_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
