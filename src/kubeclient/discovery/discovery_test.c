/* The table of resources: documents, limits, names. */
#include "kubeclient/discovery/discovery.h"

#include "base/failing_memory_test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static const char core[] =
    "{\"kind\":\"APIGroupDiscoveryList\",\"apiVersion\":\"apidiscovery.k8s.io/v2\",\"items\":[{"
    "\"metadata\":{\"creationTimestamp\":null},\"versions\":[{\"version\":\"v1\",\"resources\":["
    "{\"resource\":\"pods\",\"responseKind\":{\"group\":\"\",\"version\":\"v1\",\"kind\":\"Pod\"},"
    "\"scope\":\"Namespaced\",\"singularResource\":\"pod\",\"verbs\":[\"get\",\"list\",\"watch\"],"
    "\"shortNames\":[\"po\"],\"categories\":[\"all\"],\"subresources\":[{\"subresource\":\"log\"}]}"
    ",{\"resource\":\"nodes\",\"responseKind\":{\"kind\":\"Node\"},\"scope\":\"Cluster\","
    "\"singularResource\":\"node\",\"verbs\":[\"deletecollection\",\"other\"]},"
    "{\"resource\":\"events\",\"responseKind\":{\"kind\":\"Event\"},\"scope\":\"Namespaced\","
    "\"singularResource\":\"event\",\"shortNames\":[\"ev\",\"evt\"],\"verbs\":[]}]}]}]}";
static const char others[] =
    "{\"kind\":\"APIGroupDiscoveryList\",\"items\":[{\"metadata\":{\"name\":\"apps\"},\"versions\":"
    "[{\"version\":\"v1\",\"resources\":[{\"resource\":\"deployments\",\"responseKind\":{\"kind\":"
    "\"Deployment\"},\"scope\":\"Namespaced\",\"singularResource\":\"deployment\",\"verbs\":["
    "\"get\",\"create\",\"update\",\"patch\",\"delete\"],\"shortNames\":[\"deploy\"]}]},"
    "{\"version\":\"v1beta1\",\"resources\":[{\"resource\":\"deployments\",\"responseKind\":"
    "{\"kind\":\"Deployment\"},\"scope\":\"Namespaced\",\"singularResource\":\"deployment\","
    "\"verbs\":[]},{\"resource\":\"old\",\"responseKind\":{\"kind\":\"Old\"},\"scope\":\"Cluster\","
    "\"singularResource\":\"\",\"verbs\":[]}]}]},{\"metadata\":{\"name\":\"events.k8s.io\"},"
    "\"versions\":[{\"version\":\"v1\",\"resources\":[{\"resource\":\"events\",\"responseKind\":"
    "{\"kind\":\"Event\"},\"scope\":\"Namespaced\",\"singularResource\":\"event\",\"verbs\":[],"
    "\"shortNames\":[\"po\"]}]}]}]}";

static void paths_fini(struct discovery_paths *paths)
{
    buf_fini(&paths->texts);
}

/* The status of the first document that cannot be read. */
static enum status read_all(const char *const *documents, size_t count,
                            struct discovery **ret_discovery)
{
    AUTO(discovery_table_freep) struct discovery_table *table = NULL;
    AUTO(paths_fini) struct discovery_paths paths = {.count = 0};
    struct error error = {0};
    TRY(discovery_table_new(&table));
    for (size_t i = 0; i < count; i++) {
        enum status status =
            discovery_table_read(table, slice_from_text(documents[i]), &paths, &error);
        if (status != ST_OK) {
            assert_true(error.text[0] != 0);
            return status;
        }
    }
    TRY(discovery_new(ret_discovery));
    discovery_publish(*ret_discovery, TAKE(table));
    return ST_OK;
}

static void expect(struct discovery *d, const char *name, const char *group, const char *version,
                   const char *resource)
{
    vigil_kube_resource found;
    assert_int_equal(discovery_find(d, name, &found), VIGIL_OK);
    assert_string_equal(found.group, group);
    assert_string_equal(found.version, version);
    assert_string_equal(found.resource, resource);
}

static void resources_are_found_by_all_their_names(void **state)
{
    (void)state;
    static const char *const documents[] = {core, others};
    static const char *const unknown[] = {
        "", ".", "x", "pods.apps", "pods.v2", "deployments.v2.apps", "p", "deployments.", "po,"};
    struct discovery *d;
    vigil_kube_resource found;
    assert_int_equal(read_all(documents, 2, &d), ST_OK);
    expect(d, "pods", "", "v1", "pods");
    expect(d, "Pod", "", "v1", "pods");
    expect(d, "po", "", "v1", "pods");
    expect(d, "PODS", "", "v1", "pods");
    expect(d, "pods.v1", "", "v1", "pods");
    expect(d, "pods.v1.", "", "v1", "pods");
    expect(d, "nodes", "", "v1", "nodes");
    expect(d, "events", "", "v1", "events");
    expect(d, "evt", "", "v1", "events");
    expect(d, "events.events.k8s.io", "events.k8s.io", "v1", "events");
    expect(d, "events.v1.events.k8s.io", "events.k8s.io", "v1", "events");
    expect(d, "deploy", "apps", "v1", "deployments");
    expect(d, "Deployment", "apps", "v1", "deployments");
    expect(d, "deployments.apps", "apps", "v1", "deployments");
    expect(d, "deployments.v1beta1.apps", "apps", "v1beta1", "deployments");
    expect(d, "old", "apps", "v1beta1", "old");
    for (size_t i = 0; i < COUNT_OF(unknown); i++)
        assert_int_equal(discovery_find(d, unknown[i], &found), VIGIL_ERROR_SERVER);
    discovery_free(d);
}

static void resource_says_what_it_can_do(void **state)
{
    (void)state;
    static const char *const documents[] = {core, others};
    struct discovery *d;
    vigil_kube_resource found;
    assert_int_equal(read_all(documents, 2, &d), ST_OK);
    assert_int_equal(discovery_find(d, "pods", &found), VIGIL_OK);
    assert_int_equal(found.verbs,
                     VIGIL_KUBE_VERB_GET | VIGIL_KUBE_VERB_LIST | VIGIL_KUBE_VERB_WATCH);
    assert_true(found.namespaced);
    assert_string_equal(found.singular, "pod");
    assert_string_equal(found.kind, "Pod");
    assert_string_equal(found.short_names, "po");
    vigil_kube_target target = vigil_kube_resource_target(&found, "ns");
    assert_string_equal(target.name_space, "ns");
    assert_int_equal(discovery_find(d, "nodes", &found), VIGIL_OK);
    assert_int_equal(found.verbs, VIGIL_KUBE_VERB_DELETE_COLLECTION);
    assert_false(found.namespaced);
    target = vigil_kube_resource_target(&found, "ns");
    assert_null(target.name_space);
    assert_int_equal(discovery_find(d, "events", &found), VIGIL_OK);
    assert_string_equal(found.short_names, "ev,evt");
    discovery_free(d);
}

static void without_a_table_nothing_is_known(void **state)
{
    (void)state;
    struct discovery *d;
    vigil_kube_resource found;
    assert_int_equal(discovery_new(&d), ST_OK);
    assert_int_equal(discovery_find(d, "pods", &found), VIGIL_ERROR_UNAVAILABLE);
    discovery_free(d);
    discovery_free(NULL);
}

static void documents_of_one_version_are_read(void **state)
{
    (void)state;
    static const char *const documents[] = {
        "{\"kind\":\"APIResourceList\",\"groupVersion\":\"v1\",\"resources\":[{\"name\":\"pods\","
        "\"singularName\":\"pod\",\"namespaced\":true,\"kind\":\"Pod\",\"verbs\":[\"get\"],"
        "\"shortNames\":[\"po\"]},{\"name\":\"pods/log\",\"kind\":\"Pod\"}]}",
        "{\"kind\":\"APIResourceList\",\"groupVersion\":\"apps/v1\",\"resources\":[{\"name\":"
        "\"deployments\",\"namespaced\":true,\"kind\":\"Deployment\",\"verbs\":[]}]}"};
    struct discovery *d;
    vigil_kube_resource found;
    assert_int_equal(read_all(documents, 2, &d), ST_OK);
    expect(d, "po", "", "v1", "pods");
    expect(d, "deployment", "apps", "v1", "deployments");
    assert_int_equal(discovery_find(d, "log", &found), VIGIL_ERROR_SERVER);
    discovery_free(d);
}

static void paths_of_versions_begin_with_the_preferred(void **state)
{
    (void)state;
    static const char expected[] = "/api/v1\0/apis/apps/v1\0/apis/apps/v1beta1";
    AUTO(discovery_table_freep) struct discovery_table *table = NULL;
    AUTO(paths_fini) struct discovery_paths paths = {.count = 0};
    struct error error = {0};
    assert_int_equal(discovery_table_new(&table), ST_OK);
    assert_int_equal(discovery_table_read(
                         table, SLICE_LITERAL("{\"kind\":\"APIVersions\",\"versions\":[\"v1\",7]}"),
                         &paths, &error),
                     ST_OK);
    assert_int_equal(
        discovery_table_read(
            table,
            SLICE_LITERAL("{\"kind\":\"APIGroupList\",\"groups\":[{\"name\":\"apps\",\"versions\":["
                          "{\"groupVersion\":\"apps/v1beta1\"},{\"groupVersion\":\"apps/v1\"},"
                          "{\"groupVersion\":\"a b\"},{\"groupVersion\":\"a?b\"}],"
                          "\"preferredVersion\":{\"groupVersion\":\"apps/v1\"}}]}"),
            &paths, &error),
        ST_OK);
    assert_int_equal(paths.count, 3);
    assert_int_equal(paths.texts.len, sizeof(expected));
    assert_memory_equal(paths.texts.ptr, expected, sizeof(expected));
}

static void other_documents_are_refused(void **state)
{
    (void)state;
    static const char *const documents[] = {"", "{}", "[]", "{\"kind\":\"PodList\"}", "{\"kind\""};
    struct discovery *d;
    for (size_t i = 0; i < COUNT_OF(documents); i++)
        assert_int_equal(read_all(&documents[i], 1, &d), ST_MALFORMED);
}

/* "[x,x,x…]" with this many items. */
static char *repeat(const char *before, const char *item, size_t count, const char *after)
{
    size_t bytes = strlen(before) + count * (strlen(item) + 1) + strlen(after) + 1;
    char *text = malloc(bytes), *at = text;
    assert_non_null(text);
    at = stpcpy(at, before);
    for (size_t i = 0; i < count; i++)
        at = stpcpy(stpcpy(at, i ? "," : ""), item);
    (void)stpcpy(at, after);
    return text;
}

static void limits_are_kept(void **state)
{
    (void)state;
    char *large = malloc((1 << 20) + 100);
    assert_non_null(large);
    snprintf(large, 100, "{\"name\":\"");
    memset(large + 9, 'a', 1 << 20);
    (void)stpcpy(large + 9 + (1 << 20), "\"}");
    static const char version[] =
        "{\"kind\":\"APIResourceList\",\"groupVersion\":\"v1\",\"resources\":[";
    const struct {
        const char *before, *item, *after;
        size_t most;
    } rows[] = {
        {version, "{\"name\":\"a\"}", "]}", DISCOVERY_RESOURCES_MAX},
        {"{\"kind\":\"APIVersions\",\"versions\":[", "\"v1\"", "]}", DISCOVERY_VERSIONS_MAX},
        {version, large, "]}", DISCOVERY_BYTES_MAX / ((1 << 20) + 4096)},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        for (size_t more = 0; more < 2; more++) {
            struct discovery *d = NULL;
            char *text = repeat(rows[i].before, rows[i].item, rows[i].most + more, rows[i].after);
            enum status status = read_all((const char *const *)&text, 1, &d);
            assert_int_equal(status, more ? ST_LIMIT : ST_OK);
            discovery_free(d);
            free(text);
        }
    }
    free(large);
}

static void documents_that_are_cut_anywhere_are_harmless(void **state)
{
    (void)state;
    for (size_t len = 0; len < sizeof(others); len++) {
        AUTO(discovery_table_freep) struct discovery_table *table = NULL;
        AUTO(paths_fini) struct discovery_paths paths = {.count = 0};
        struct error error = {0};
        char *copy = malloc(len ? len : 1);
        assert_non_null(copy);
        memcpy(copy, others, len);
        assert_int_equal(discovery_table_new(&table), ST_OK);
        enum status status = discovery_table_read(table, slice_of(copy, len), &paths, &error);
        assert_true(status == ST_OK || status == ST_MALFORMED);
        assert_true(discovery_table_count(table) <= 4);
        free(copy);
    }
}

static void missing_memory_is_reported(void **state)
{
    (void)state;
    static const char *const documents[] = {
        core, others, "{\"kind\":\"APIVersions\",\"versions\":[\"v1\",\"v2\"]}"};
    enum status status = ST_NOMEM;
    for (size_t at = 1; status != ST_OK; at++) {
        struct discovery *d = NULL;
        memory_fail_at = at;
        status = read_all(documents, COUNT_OF(documents), &d);
        memory_fail_at = 0;
        assert_true(status == ST_OK || status == ST_NOMEM);
        discovery_free(d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resources_are_found_by_all_their_names),
        cmocka_unit_test(resource_says_what_it_can_do),
        cmocka_unit_test(without_a_table_nothing_is_known),
        cmocka_unit_test(documents_of_one_version_are_read),
        cmocka_unit_test(paths_of_versions_begin_with_the_preferred),
        cmocka_unit_test(other_documents_are_refused),
        cmocka_unit_test(limits_are_kept),
        cmocka_unit_test(documents_that_are_cut_anywhere_are_harmless),
        cmocka_unit_test(missing_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
