#include "kube/request/request.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static int setup(void **state)
{
    struct arena *arena = calloc(1, sizeof(*arena));
    arena_init(arena, NULL, 0, 1 << 20);
    *state = arena;
    return 0;
}

static int teardown(void **state)
{
    arena_fini(*state);
    free(*state);
    return 0;
}

static void assert_slice(struct slice slice, const char *text)
{
    assert_int_equal(slice.len, strlen(text));
    if (slice.len)
        assert_memory_equal(slice.ptr, text, slice.len);
}

static void paths_lead_to_resources(void **state)
{
    static const struct {
        const char *path, *group, *version, *namespace, *resource, *name, *subresource;
        bool watch;
    } cases[] = {
        {"/api/v1", "", "v1", "", "", "", "", false},
        {"/api/v1/pods", "", "v1", "", "pods", "", "", false},
        {"/api/v1/namespaces", "", "v1", "", "namespaces", "", "", false},
        {"/api/v1/namespaces/a", "", "v1", "", "namespaces", "a", "", false},
        {"/api/v1/namespaces/a/status", "", "v1", "", "namespaces", "a", "status", false},
        {"/api/v1/namespaces/a/finalize", "", "v1", "", "namespaces", "a", "finalize", false},
        {"/api/v1/namespaces/a/pods", "", "v1", "a", "pods", "", "", false},
        {"/api/v1/namespaces/a/pods/b", "", "v1", "a", "pods", "b", "", false},
        {"/apis/apps/v1/namespaces/a/deployments/b/scale", "apps", "v1", "a", "deployments", "b",
         "scale", false},
        {"/apis/x.io/v1/things/a%20b", "x.io", "v1", "", "things", "a b", "", false},
        {"/api/v1/watch/namespaces/a/pods", "", "v1", "a", "pods", "", "", true},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct kube_path path;
        assert_int_equal(kube_path_parse(*state, slice_from_text(cases[i].path), &path), ST_OK);
        assert_slice(path.group, cases[i].group);
        assert_slice(path.version, cases[i].version);
        assert_slice(path.namespace, cases[i].namespace);
        assert_slice(path.resource, cases[i].resource);
        assert_slice(path.name, cases[i].name);
        assert_slice(path.subresource, cases[i].subresource);
        assert_int_equal(path.watch, cases[i].watch);
    }
}

static void paths_to_nowhere_are_not_found(void **state)
{
    static const char *const paths[] = {
        "",
        "/",
        "/api",
        "/apis",
        "/apis/apps",
        "/other/v1/pods",
        "/api/v1/pods/a/b/c",
        "/api/v1/%2",
        "/api/v1/pods/a%2Fb",
        "/1/2/3/4/5/6/7/8/9/10/11",
    };
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        struct kube_path path;
        assert_int_equal(kube_path_parse(*state, slice_from_text(paths[i]), &path), ST_NOT_FOUND);
    }
}

static void options_of_a_query_are_read(void **state)
{
    struct kube_query query;
    struct kube_status status;
    assert_true(kube_query_parse(
        *state,
        SLICE_LITERAL(
            "watch=true&labelSelector=app%3Dweb%2Ctier+in+(a)&resourceVersion=12&limit=500"
            "&resourceVersionMatch=NotOlderThan&sendInitialEvents=false&unknown=1&x"
            "&timeoutSeconds=30&allowWatchBookmarks=1&dryRun=All&gracePeriodSeconds=0"),
        &query, &status));
    assert_true(query.watch);
    assert_slice(query.label_selector, "app=web,tier in (a)");
    assert_slice(query.resource_version, "12");
    assert_int_equal(query.limit, 500);
    assert_int_equal(query.match, KUBE_MATCH_NOT_OLDER);
    assert_true(query.send_initial_events_given);
    assert_false(query.send_initial_events);
    assert_int_equal(query.timeout_s, 30);
    assert_true(query.allow_bookmarks);
    assert_true(query.dry_run);
    assert_int_equal(query.grace_period_s, 0);
    assert_true(kube_query_parse(*state, SLICE_LITERAL("limit=-1&resourceVersionMatch=Maybe"),
                                 &query, &status));
    assert_int_equal(query.limit, 0);
    assert_int_equal(query.match, KUBE_MATCH_OTHER);
}

static void truth_is_read_as_in_kubernetes(void **state)
{
    static const struct {
        const char *query;
        bool watch, pretty, pretty_given;
    } rows[] = {
        {"watch", true, false, false},        {"watch=f", true, false, false},
        {"watch=no", true, false, false},     {"watch=0", false, false, false},
        {"watch=FaLSe", false, false, false}, {"pretty", false, false, false},
        {"pretty=t", false, true, true},      {"pretty=TRUE", false, true, true},
        {"pretty=yes", false, false, true},   {"pretty=f", false, false, true},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct kube_query query;
        struct kube_status status;
        assert_true(kube_query_parse(*state, slice_from_text(rows[i].query), &query, &status));
        assert_int_equal(query.watch, rows[i].watch);
        assert_int_equal(query.pretty, rows[i].pretty);
        assert_int_equal(query.pretty_given, rows[i].pretty_given);
    }
}

static void wrong_options_are_refused_with_a_message(void **state)
{
    static const struct {
        const char *query;
        unsigned code;
    } cases[] = {
        {"limit=x", 400},
        {"timeoutSeconds=1.5", 400},
        {"limit=99999999999999999999999999999999999999", 400},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct kube_query query;
        struct kube_status status;
        assert_false(kube_query_parse(*state, slice_from_text(cases[i].query), &query, &status));
        assert_int_equal(kube_status_code(&status), cases[i].code);
        assert_true(status.message[0]);
    }
}

static void the_first_value_of_a_name_counts(void **state)
{
    static const struct {
        const char *query, *value;
    } rows[] = {{"", ""},
                {"timeout", ""},
                {"a=b&timeout=5s&timeout=6s", "5s"},
                {"%74imeout=+5s", " 5s"},
                {"timeout=%zz&timeout=1s", "1s"},
                {"%zz=1&timeouts=2", ""}};
    struct arena arena;
    struct slice value;
    (void)state;
    arena_init(&arena, NULL, 0, 1 << 20);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_int_equal(kube_query_get(&arena, slice_from_text(rows[i].query), "timeout", &value),
                         ST_OK);
        assert_true(slice_is(value, rows[i].value));
    }
    arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_value_of_a_name_counts),
        cmocka_unit_test_setup_teardown(paths_lead_to_resources, setup, teardown),
        cmocka_unit_test_setup_teardown(paths_to_nowhere_are_not_found, setup, teardown),
        cmocka_unit_test_setup_teardown(options_of_a_query_are_read, setup, teardown),
        cmocka_unit_test_setup_teardown(truth_is_read_as_in_kubernetes, setup, teardown),
        cmocka_unit_test_setup_teardown(wrong_options_are_refused_with_a_message, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
