/* The kinds that an API knows with the maximum number of definitions. */
#include "codec/json/tree.h"
#include "io/blocked_worker_test.h"
#include "kube/server/bed_test.h"

#include <sched.h>

static const char value[] =
    "{\"metadata\":{\"name\":\"k%04d.example.com\"},\"spec\":{\"group\":\"example.com\",\"scope\":"
    "\"Cluster\",\"names\":{\"plural\":\"k%04d\",\"kind\":\"K\"},\"versions\":[{\"name\":\"%s\","
    "\"served\":true,\"storage\":true}]},\"status\":{\"acceptedNames\":{\"kind\":\"K\"},"
    "\"conditions\":[{\"type\":\"Established\",\"status\":\"True\"}]}}";

struct row {
    char key[128], value[512], name[64];
    struct kube_kv kv;
};

static struct row row_of(int number, const char *version, int64_t revision)
{
    struct row row;
    snprintf(row.name, sizeof(row.name), "k%04d.example.com", number);
    snprintf(row.key, sizeof(row.key), "%s%s", KUBE_DEFINITIONS_PREFIX, row.name);
    snprintf(row.value, sizeof(row.value), value, number, number, version);
    row.kv = (struct kube_kv){.mod_revision = revision};
    return row;
}

static void take(struct row *row)
{
    if (row->kv.mod_revision) {
        row->kv.key = slice_from_text(row->key);
        row->kv.value = slice_from_text(row->value);
    }
    struct kube_registry_wait wait = {0};
    assert_true(kube_registry_take(bed->api->registry, slice_from_text(row->name), row->kv, &wait));
    assert_int_equal(wait.status, ST_OK);
}

static void put(int number)
{
    struct row row = row_of(number, "v1", 0);
    store(row.key, slice_from_text(row.value));
}

static void on_read(struct kube_registry_wait *wait)
{
    wait->go = NULL;
}

static bool serves(const char *plural, const char *version)
{
    return kube_kinds_find(kube_registry_kinds(bed->api->registry), SLICE_LITERAL("example.com"),
                           slice_from_text(version), slice_from_text(plural));
}

static void the_last_definition_that_fits_can_change_and_disappear(void **state)
{
    struct kube_registry_wait wait = {.go = on_read};
    (void)state;
    begin(1, 100);
    for (int i = 0; i < KUBE_DEFINITIONS_MAX; i++)
        put(i);
    kube_registry_read(bed->api->registry, &wait);
    run();
    assert_null(wait.go);
    assert_true(serves("k1999", "v1"));

    struct row more = row_of(KUBE_DEFINITIONS_MAX, "v1", 100000);
    struct row changed = row_of(5, "v2", 100001), gone = row_of(6, "v1", 0);
    take(&more);
    assert_false(serves("k2000", "v1"));
    take(&changed);
    assert_false(serves("k0005", "v1"));
    assert_true(serves("k0005", "v2"));
    take(&gone);
    assert_false(serves("k0006", "v1"));
    take(&more);
    assert_true(serves("k2000", "v1"));
    end();
}

/* It would take the place of another one. One that exists can still be changed. */
static void a_definition_that_could_not_be_served_is_refused(void **state)
{
    static const char path[] = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    static const char body[] =
        "{\"apiVersion\":\"apiextensions.k8s.io/v1\",\"kind\":\"CustomResourceDefinition\","
        "\"metadata\":{\"name\":\"as.example.com\"},\"spec\":{\"group\":\"example.com\","
        "\"scope\":\"Namespaced\",\"names\":{\"plural\":\"as\",\"kind\":\"A\"},\"versions\":[{"
        "\"name\":\"v1\",\"served\":true,\"storage\":true,\"schema\":{\"openAPIV3Schema\":{"
        "\"type\":\"object\"}}}]}}";
    (void)state;
    begin(1, 100);
    for (int i = 0; i < KUBE_DEFINITIONS_MAX; i++)
        put(i);
    struct peer *peer = send_json("POST", path, body);
    run();
    assert_answer(peer, 403, "at most 2000 definitions of custom resources");
    end();
    begin(1, 100);
    for (int i = 0; i < KUBE_DEFINITIONS_MAX - 1; i++)
        put(i);
    peer = send_json("POST", path, body);
    run();
    assert_answer(peer, 201, NULL);
    end();
}

/* More than one turn reads: definitions that requests read meanwhile are newer and are kept. */
static void definitions_are_read_in_turns_and_newer_ones_are_kept(void **state)
{
    struct kube_registry_wait wait = {.go = on_read};
    struct row known = row_of(6, "v1", 1), gone = row_of(6, "v1", 0);
    struct row changed = row_of(5, "v2", 100000), added = row_of(1900, "v1", 100001);
    (void)state;
    begin(1, 100);
    for (int i = 0; i < 1800; i++)
        put(i);
    take(&known);
    kube_registry_read(bed->api->registry, &wait);
    assert_non_null(wait.go);
    take(&changed);
    take(&added);
    take(&gone);
    int turns = 0;
    for (; wait.go && turns < 100; turns++)
        loop_turn(bed->loop, 0);
    assert_in_range(turns, 2, 50);
    assert_true(serves("k0005", "v2") && !serves("k0005", "v1"));
    assert_true(serves("k1900", "v1") && serves("k0000", "v1") && serves("k1799", "v1"));
    assert_false(serves("k0006", "v1"));
    end();
}

/* -- Long definitions -- */

static struct blocked_worker blocked;

static void begin_with_worker(void)
{
    blocked_worker_init(&blocked);
    bed_worker = blocked.worker;
    begin(1, 100);
}

static void run_all(void)
{
    do {
        run();
        sched_yield();
    } while (kube_api_busy(bed->api) || kube_api_busy(bed->other));
    run();
}

static void end_with_worker(void)
{
    run_all();
    end();
    bed_worker = NULL;
    blocked_worker_fini(&blocked);
}

/* With so many versions that it is long; 0 or more than KUBE_VERSIONS_MAX: it cannot be used. */
static void put_versions(int number, int versions)
{
    AUTO(buf_fini) struct buf text = {0};
    struct row row = row_of(number, "v1", 0);
    assert_int_equal(buf_append_format(&text,
                                       "{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"group\":"
                                       "\"example.com\",\"scope\":\"Cluster\",\"names\":{"
                                       "\"plural\":\"k%04d\",\"kind\":\"K\"},\"versions\":[",
                                       row.name, number),
                     ST_OK);
    for (int i = 0; i < versions; i++)
        assert_int_equal(buf_append_format(&text,
                                           "%s{\"name\":\"v%d\",\"served\":true,\"storage\":%s,"
                                           "\"schema\":{\"openAPIV3Schema\":{\"type\":\"object\","
                                           "\"description\":\"%02000d\"}}}",
                                           i ? "," : "", i + 1, i ? "false" : "true", i),
                         ST_OK);
    assert_int_equal(
        buf_append_text(&text, "]},\"status\":{\"acceptedNames\":{\"kind\":\"K\"},\"conditions\":"
                               "[{\"type\":\"Established\",\"status\":\"True\"}]}}"),
        ST_OK);
    store(row.key, buf_slice(&text));
}

static void long_definitions_are_read_by_the_worker(void **state)
{
    struct peer *first[3], *other, *broken, *gone;
    (void)state;
    begin_with_worker();
    put(0);
    put_versions(1, KUBE_VERSIONS_MAX);
    put_versions(2, KUBE_VERSIONS_MAX);
    put_versions(3, KUBE_VERSIONS_MAX + 1);
    blocked_worker_block(&blocked, 0);
    for (size_t i = 0; i < COUNT_OF(first); i++)
        first[i] = send_json("GET", "/apis/example.com/v32/k0001", "");
    other = send_json("GET", "/apis/example.com/v1/k0002", "");
    broken = send_json("GET", "/apis/example.com/v1/k0003", "");
    gone = send_json("GET", "/apis/example.com/v1/k0002", "");
    struct peer *all = send_json("GET", "/apis", "");
    run();
    leave(gone);
    /* The others do not wait for them. */
    ask("GET", "/apis/example.com/v1/k0000", "", 200);
    for (size_t i = 0; i < COUNT_OF(first); i++)
        assert_int_equal(first[i]->code, 0);
    assert_int_equal(other->code, 0);
    assert_int_equal(all->code, 0);
    blocked_worker_release(&blocked);
    run_all();
    for (size_t i = 0; i < COUNT_OF(first); i++)
        assert_answer(first[i], 200, "\"items\":[]");
    assert_answer(other, 200, "\"items\":[]");
    assert_answer(broken, 404, NULL);
    assert_answer(all, 200, "\"example.com/v32\"");
    /* They are known now. */
    blocked_worker_block(&blocked, 0);
    ask("GET", "/apis/example.com/v2/k0002", "", 200);
    blocked_worker_release(&blocked);
    end_with_worker();
}

/* -- As many kinds as there can be -- */

static size_t pull(struct peer *peer)
{
    uint8_t bytes[4096];
    size_t fills = 0;
    for (; http_exchange_flows(&peer->x); fills++) {
        size_t n = http_exchange_fill(&peer->x, bytes, sizeof(bytes));
        assert_int_equal(buf_append(&peer->answer, slice_of(bytes, n)), ST_OK);
    }
    return fills;
}

static size_t count_of(const struct peer *peer, const char *part)
{
    size_t count = 0, at = 0;
    const uint8_t *found;
    while ((found = memmem(peer->answer.ptr + at, peer->answer.len - at, part, strlen(part)))) {
        at = (size_t)(found - peer->answer.ptr) + 1;
        count++;
    }
    return count;
}

static void versions_above_the_limit_are_not_served_and_discovery_is_sent_in_pieces(void **state)
{
    enum { FIT = KUBE_KINDS_MAX / KUBE_VERSIONS_MAX };
    struct json_node *root;
    struct error error;
    struct arena arena;
    (void)state;
    begin(1, 100);
    for (int i = 0; i < FIT + 2; i++)
        put_versions(i, KUBE_VERSIONS_MAX);
    struct peer *peer =
        send_with("GET", "/apis", "accept",
                  "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", "");
    struct peer *gone = send_with("GET", "/apis/example.com/v7", "accept", "application/yaml", "");
    run();
    assert_answer(peer, 200, NULL);
    assert_int_equal(peer->answer.len, 0); /* it is made while it is sent */
    leave(gone);
    assert_true(pull(peer) > 150);
    arena_init(&arena, NULL, 0, 256 << 20);
    assert_int_equal(json_tree_read(&arena, buf_slice(&peer->answer), &root, &error), ST_OK);
    arena_fini(&arena);
    assert_int_equal(count_of(peer, "\"resource\":\"k0"), KUBE_KINDS_MAX);
    assert_int_equal(count_of(peer, "\"version\":\"v32\",\"resources\""), 1);
    assert_true(said(peer, "{\"version\":\"v32\",\"resources\":[{\"resource\":\"k0000\""));
    ask("GET", "/apis/example.com/v32/k0124", "", 200);
    ask("GET", "/apis/example.com/v32/k0125", "", 404);
    kube_kinds_check(kube_registry_kinds(bed->api->registry));
    end();
}

/* -- Uses -- */

enum { USES = 10000 };
static struct kube_registry_use *uses[USES];

static void on_changed(void *ctx)
{
    struct kube_registry_use **use = ctx;
    kube_registry_use_free(*use);
    *use = NULL;
}

static size_t count_uses(void)
{
    size_t count = 0;
    for (size_t i = 0; i < USES; i++)
        count += uses[i] != NULL;
    return count;
}

/* A change ends many watches: some in each turn. */
static void uses_of_a_changed_definition_end_in_turns(void **state)
{
    (void)state;
    begin(1, 100);
    struct row first = row_of(1, "v1", 100), other = row_of(2, "v1", 101);
    struct row changed = row_of(1, "v2", 102);
    take(&first);
    take(&other);
    for (size_t i = 0; i < USES; i++) {
        const struct kube_kind *kind = kube_kinds_find(
            kube_registry_kinds(bed->api->registry), SLICE_LITERAL("example.com"),
            SLICE_LITERAL("v1"), i % 2 ? SLICE_LITERAL("k0001") : SLICE_LITERAL("k0002"));
        uses[i] =
            kube_registry_use_new(bed->api->registry, kube_custom_of(kind), on_changed, &uses[i]);
    }
    take(&changed);
    size_t turns = 0, left = USES;
    while (count_uses() > USES / 2) {
        loop_turn(bed->loop, 0);
        assert_true(left - count_uses() < 1000);
        left = count_uses();
        assert_true(++turns < 1000);
    }
    assert_true(turns > 10);
    for (size_t i = 0; i < USES; i++)
        kube_registry_use_free(uses[i]);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_definition_that_fits_can_change_and_disappear),
        cmocka_unit_test(a_definition_that_could_not_be_served_is_refused),
        cmocka_unit_test(definitions_are_read_in_turns_and_newer_ones_are_kept),
        cmocka_unit_test(long_definitions_are_read_by_the_worker),
        cmocka_unit_test(versions_above_the_limit_are_not_served_and_discovery_is_sent_in_pieces),
        cmocka_unit_test(uses_of_a_changed_definition_end_in_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
