/* The kinds that an API knows with the maximum number of definitions. */
#include "kube/server/bed_test.h"

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
    assert_int_equal(kube_registry_take(bed->api->registry, slice_from_text(row->name), row->kv),
                     ST_OK);
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
    assert_in_range(turns, 1, 10);
    assert_true(serves("k0005", "v2") && !serves("k0005", "v1"));
    assert_true(serves("k1900", "v1") && serves("k0000", "v1") && serves("k1799", "v1"));
    assert_false(serves("k0006", "v1"));
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_definition_that_fits_can_change_and_disappear),
        cmocka_unit_test(definitions_are_read_in_turns_and_newer_ones_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
