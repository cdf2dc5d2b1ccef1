/* What is read from the mirror, and what is passed on. */
#include "tier/read/ask.h"

#include "tier/mirror/collection.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define TEXT(text) SLICE_LITERAL(text)
#define PROTOBUF "application/vnd.kubernetes.protobuf"
#define METADATA "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
#define METADATA_LIST "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
#define TABLE "application/json;as=Table;g=meta.k8s.io;v=v1"
#define TABLE_BETA TABLE "beta1"
#define TOKEN \
    "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6NzcsInN0YXJ0IjoibnMvYVx1MDAwMCJ9" /* rv 77, ns/a\0 */

static const struct row {
    const char *path, *query, *accept;
    bool passed_on;
    enum tier_verb verb;
    enum tier_freshness freshness;
    uint64_t version;
    enum tier_encoding encoding;
    bool initial, is_table;
    int64_t limit;
} rows[] = {
    /* gets */
    {"/api/v1/namespaces/n/pods/a", "", "", .freshness = TIER_CURRENT},
    {"/api/v1/namespaces/n/pods/a", "resourceVersion=0", "", .freshness = TIER_ANY},
    {"/api/v1/namespaces/n/pods/a", "resourceVersion=9", "", .freshness = TIER_NOT_OLDER,
     .version = 9},
    {"/api/v1/namespaces/n", "resourceVersion=0", "", .freshness = TIER_ANY},
    {"/apis/example.com/v1/things/a", "resourceVersion=0", "", .freshness = TIER_ANY},
    /* lists */
    {"/api/v1/pods", "", "", .verb = TIER_LIST, .freshness = TIER_CURRENT},
    {"/api/v1/pods", "limit=5", "", .verb = TIER_LIST, .freshness = TIER_CURRENT, .limit = 5},
    {"/api/v1/pods", "resourceVersion=0&limit=5", "", .verb = TIER_LIST, .freshness = TIER_ANY},
    {"/api/v1/pods", "resourceVersion=7", "", .verb = TIER_LIST, .freshness = TIER_NOT_OLDER,
     .version = 7},
    {"/api/v1/pods", "resourceVersion=7&limit=2", "", .verb = TIER_LIST, .freshness = TIER_EXACT,
     .version = 7, .limit = 2},
    {"/api/v1/pods", "resourceVersion=7&resourceVersionMatch=Exact", "", .verb = TIER_LIST,
     .freshness = TIER_EXACT, .version = 7},
    {"/api/v1/pods", "resourceVersion=7&limit=2&resourceVersionMatch=NotOlderThan", "",
     .verb = TIER_LIST, .freshness = TIER_NOT_OLDER, .version = 7, .limit = 2},
    {"/api/v1/pods", "continue=" TOKEN "&limit=2", "", .verb = TIER_LIST, .freshness = TIER_EXACT,
     .version = 77, .limit = 2},
    {"/api/v1/pods", "limit=-1", "", .verb = TIER_LIST, .freshness = TIER_CURRENT}, /* no limit */
    /* watches */
    {"/api/v1/pods", "watch=1", "", .verb = TIER_WATCH, .freshness = TIER_CURRENT, .initial = true},
    {"/api/v1/watch/pods", "", "", .verb = TIER_WATCH, .freshness = TIER_CURRENT, .initial = true},
    {"/api/v1/pods", "watch=1&resourceVersion=0", "", .verb = TIER_WATCH, .freshness = TIER_ANY,
     .initial = true},
    {"/api/v1/pods", "watch=1&resourceVersion=5", "", .verb = TIER_WATCH, .freshness = TIER_AFTER,
     .version = 5},
    {"/api/v1/pods",
     "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
     "", .verb = TIER_WATCH, .freshness = TIER_CURRENT, .initial = true},
    {"/api/v1/pods",
     "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=5", "",
     .verb = TIER_WATCH, .freshness = TIER_NOT_OLDER, .version = 5, .initial = true},
    {"/api/v1/pods", "watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan", "",
     .verb = TIER_WATCH, .freshness = TIER_CURRENT},
    /* encodings */
    {"/api/v1/pods", "", PROTOBUF ",application/json", .verb = TIER_LIST, .freshness = TIER_CURRENT,
     .encoding = TIER_PROTOBUF},
    {"/apis/example.com/v1/things", "", PROTOBUF ",application/json", .verb = TIER_LIST,
     .freshness = TIER_CURRENT, .encoding = TIER_JSON},
    {"/api/v1/pods", "", METADATA_LIST, .verb = TIER_LIST, .freshness = TIER_CURRENT,
     .encoding = TIER_METADATA_JSON},
    {"/api/v1/pods", "watch=1&resourceVersion=0", METADATA, .verb = TIER_WATCH,
     .freshness = TIER_ANY, .encoding = TIER_METADATA_JSON, .initial = true},
    {"/api/v1/pods", "", "application/cbor, application/json", .verb = TIER_LIST,
     .freshness = TIER_CURRENT},
    /* Tables */
    {"/api/v1/pods", "limit=500", TABLE "," TABLE_BETA ",application/json", .verb = TIER_LIST,
     .freshness = TIER_CURRENT, .limit = 500, .is_table = true},
    {"/api/v1/pods", "watch=1&resourceVersion=5&includeObject=None", TABLE, .verb = TIER_WATCH,
     .freshness = TIER_AFTER, .version = 5, .is_table = true},
    {"/apis/example.com/v1/things", "", TABLE, .passed_on = true},
    {"/api/v1/namespaces/n/pods/a", "", TABLE, .passed_on = true},
    {"/api/v1/pods", "", TABLE_BETA, .passed_on = true},
    {"/api/v1/pods", "includeObject=Object", TABLE, .passed_on = true},
    {"/api/v1/pods", "watch=1&allowWatchBookmarks=true", TABLE, .passed_on = true},
    {"/api/v1/pods", "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", TABLE,
     .passed_on = true},
    /* passed on */
    {"/api/v1/pods", "", "application/yaml", .passed_on = true},
    {"/api/v1/pods", "", PROTOBUF ";as=Table", .passed_on = true},
    {"/apis/example.com/v1/things", "", PROTOBUF, .passed_on = true},
    {"/api/v1/pods", "", METADATA, .passed_on = true}, /* a list needs …List */
    {"/api/v1/pods", "pretty=true", "", .passed_on = true},
    {"/api/v1/pods", "resourceVersion=x", "", .passed_on = true},
    {"/api/v1/pods", "resourceVersion=99999999999999999999", "", .passed_on = true},
    {"/api/v1/pods", "resourceVersionMatch=Exact", "", .passed_on = true},
    {"/api/v1/pods", "resourceVersion=0&resourceVersionMatch=Exact", "", .passed_on = true},
    {"/api/v1/pods", "resourceVersion=5&resourceVersionMatch=Bad", "", .passed_on = true},
    {"/api/v1/pods", "sendInitialEvents=true", "", .passed_on = true},
    {"/api/v1/pods", "continue=x", "", .passed_on = true},
    {"/api/v1/pods", "continue=" TOKEN "&resourceVersion=3", "", .passed_on = true},
    {"/api/v1/pods", "watch=1&sendInitialEvents=true", "", .passed_on = true},
    {"/api/v1/pods", "watch=1&resourceVersionMatch=NotOlderThan", "", .passed_on = true},
    {"/api/v1/pods", "watch=1&timeoutSeconds=-1", "", .passed_on = true},
    {"/api/v1/namespaces/n/pods/a/status", "", "", .passed_on = true},
    {"/api/v1/namespaces/n/pods/a", "watch=1", "", .passed_on = true},
    {"/api/v1/watch/namespaces/n/pods/a", "", "", .passed_on = true},
    {"/api/v1/pods/a", "", "", .passed_on = true},             /* pods have a namespace */
    {"/api/v1/namespaces/n/nodes", "", "", .passed_on = true}, /* nodes have none */
    {"/api/v1", "", "", .passed_on = true},
    {"/api", "", "", .passed_on = true},
    {"/healthz", "", "", .passed_on = true},
    {"/apis/authorization.k8s.io/v1/subjectaccessreviews", "", "", .passed_on = true},
    {"/api/v1/componentstatuses", "", "", .passed_on = true},
    /* names and options that the kube-apiserver reads by rules of its own */
    {"/api/v1//pods", "", "", .passed_on = true},
    {"//api/v1/pods", "", "", .passed_on = true},
    {"/api/v1/namespaces//pods", "", "", .passed_on = true},
    {"/api/v1/namespaces/n/pods/%61", "", "", .passed_on = true},
    {"/api/v1/namespaces/n/pods/..", "", "", .passed_on = true},
    {"/api/v1/namespaces/../pods", "", "", .passed_on = true},
    {"/api/v1/namespaces/N/pods", "", "", .passed_on = true},
    {"/apis/example.com/v1/Things", "", "", .passed_on = true},
    {"/apis/example.com/v1/a:b", "", "", .passed_on = true},
    {"/api/v1/pods", "resourceVersion=0&resourceVersion=0", "", .passed_on = true},
    {"/api/v1/pods", "resourceVersion=0&shardSelector=x", "", .passed_on = true},
    {"/api/v1/pods", "resourceVersion=0&%77atch=1", "", .passed_on = true},
    {"/api/v1/pods", "resourceVersion=0;watch=1", "", .passed_on = true},
    {"/api/v1/pods", "resourceVersion=0&timeout=x", "", .passed_on = true},
    {"/api/v1/pods", "resourceVersion=0&timeout=1m", "", .verb = TIER_LIST, .freshness = TIER_ANY},
    {"/api/v1/pods/", "resourceVersion=0", "", .verb = TIER_LIST, .freshness = TIER_ANY},
};

static bool read_row(const struct row *row, struct arena *arena, struct tier_ask *ask)
{
    static struct http_field fields[1];
    fields[0] = (struct http_field){TEXT("accept"), slice_from_text(row->accept)};
    static struct http_request request;
    request = (struct http_request){.method = TEXT("GET"),
                                    .target = slice_from_text(row->path),
                                    .path = slice_from_text(row->path),
                                    .query = slice_from_text(row->query),
                                    .fields = fields,
                                    .field_count = *row->accept != 0};
    return tier_ask_read(arena, &request, ask);
}

static void reads_what_it_knows(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const struct row *row = &rows[i];
        struct arena arena;
        struct tier_ask ask;
        arena_init(&arena, NULL, 0, 1 << 20);
        bool read = read_row(row, &arena, &ask);
        if (read == row->passed_on)
            fail_msg("%s?%s %s: read %d", row->path, row->query, row->accept, read);
        if (read && (ask.verb != row->verb || ask.freshness != row->freshness ||
                     ask.version != row->version || ask.encoding != row->encoding ||
                     ask.initial_events != row->initial || ask.limit != row->limit ||
                     tier_ask_is_table(&ask) != row->is_table))
            fail_msg(
                "%s?%s %s: verb %d freshness %d version %llu encoding %d initial %d limit %lld",
                row->path, row->query, row->accept, (int)ask.verb, (int)ask.freshness,
                (unsigned long long)ask.version, (int)ask.encoding, ask.initial_events,
                (long long)ask.limit);
        arena_fini(&arena);
    }
}

/* Requests in the name of another user, and writes, are the kube-apiserver's. */
static void passes_writes_and_impersonation_on(void **state)
{
    static const char *const methods[] = {"HEAD", "POST", "PUT", "PATCH", "DELETE", "get"};
    static const char *const names[] = {"Impersonate-User", "impersonate-extra-x"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(methods) + COUNT_OF(names); i++) {
        struct arena arena;
        struct tier_ask ask;
        struct http_field field = {TEXT("x"), TEXT("y")};
        struct http_request request = {.method = TEXT("GET"),
                                       .target = TEXT("/api/v1/pods"),
                                       .path = TEXT("/api/v1/pods"),
                                       .query = TEXT("resourceVersion=0"),
                                       .fields = &field,
                                       .field_count = 1};
        if (i < COUNT_OF(methods))
            request.method = slice_from_text(methods[i]);
        else
            field.name = slice_from_text(names[i - COUNT_OF(methods)]);
        arena_init(&arena, NULL, 0, 1 << 20);
        assert_false(tier_ask_read(&arena, &request, &ask));
        arena_fini(&arena);
    }
}

static void assert_range(const char *path, const char *query, const char *key, const char *end,
                         size_t key_len)
{
    struct arena arena;
    struct tier_ask ask;
    struct tier_range range;
    uint8_t prefix[TIER_PREFIX_BYTES] = {0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0xff};
    arena_init(&arena, NULL, 0, 1 << 20);
    assert_true(read_row(&(struct row){.path = path, .query = query, .accept = ""}, &arena, &ask));
    assert_int_equal(tier_ask_range(&arena, &ask, slice_of(prefix, sizeof(prefix)), &range), ST_OK);
    assert_memory_equal(range.key.ptr, prefix, sizeof(prefix));
    assert_int_equal(range.key.len, sizeof(prefix) + key_len);
    assert_memory_equal(range.key.ptr + sizeof(prefix), key, key_len);
    if (!end) {
        assert_int_equal(range.range_end.len, 0);
    } else if (!*end) { /* the end of the prefix itself, whose last byte is 0xff */
        const uint8_t after[] = {0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1};
        assert_int_equal(range.range_end.len, sizeof(after));
        assert_memory_equal(range.range_end.ptr, after, sizeof(after));
    } else {
        assert_memory_equal(range.range_end.ptr, prefix, sizeof(prefix));
        assert_int_equal(range.range_end.len, sizeof(prefix) + strlen(end));
        assert_memory_equal(range.range_end.ptr + sizeof(prefix), end, strlen(end));
    }
    arena_fini(&arena);
}

/* With the selection of its field selector. is_one: there is no end of the range. */
static void assert_narrowed(const char *path, const char *accept, const char *query,
                            const char *key, bool is_one)
{
    struct arena arena;
    struct tier_ask ask;
    struct tier_range range;
    struct error ignored;
    struct kube_selection *selection;
    struct kube_selections selections;
    uint8_t prefix[TIER_PREFIX_BYTES] = {0};
    kube_selections_init(&selections, 1);
    arena_init(&arena, NULL, 0, 1 << 20);
    assert_true(
        read_row(&(struct row){.path = path, .query = query, .accept = accept}, &arena, &ask));
    assert_int_equal(kube_selection_get(&selections, ask.query.label_selector,
                                        ask.query.field_selector, ask.kind, &selection, &ignored),
                     ST_OK);
    tier_ask_narrow(&ask, selection);
    assert_int_equal(tier_ask_range(&arena, &ask, slice_of(prefix, sizeof(prefix)), &range), ST_OK);
    struct slice rest = slice_sub(range.key, sizeof(prefix), range.key.len - sizeof(prefix));
    assert_true(slice_equal(rest, slice_from_text(key)));
    assert_int_equal(range.range_end.len == 0, is_one);
    kube_selection_unref(selection);
    kube_selections_fini(&selections);
    arena_fini(&arena);
}

#define NAMED "watch=1&fieldSelector=metadata.name%3Da"
#define METADATA "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

static void reads_only_the_object_that_a_selector_names(void **state)
{
    (void)state;
    assert_narrowed("/api/v1/namespaces/n/configmaps", "", NAMED, "n/a", true);
    assert_narrowed("/api/v1/namespaces/n/configmaps", "", NAMED ",metadata.namespace%3Dm", "n/a",
                    true); /* and the selection refuses it */
    assert_narrowed("/api/v1/configmaps", "", NAMED ",metadata.namespace%3Dm", "m/a", true);
    assert_narrowed("/api/v1/configmaps", "", NAMED, "", false);
    assert_narrowed("/api/v1/configmaps", METADATA, NAMED, "", false);
    assert_narrowed("/api/v1/nodes", "", NAMED, "a", true);
    assert_narrowed("/apis/x.io/v1/things", "", NAMED, "", false); /* they may have namespaces */
    assert_narrowed("/apis/x.io/v1/namespaces/n/things", "", NAMED, "n/a", true);
    assert_narrowed("/api/v1/namespaces/n/configmaps", "",
                    "watch=1&fieldSelector=metadata.name!%3Da", "n/", false);
    assert_narrowed("/api/v1/namespaces/n/configmaps", "", "watch=1&fieldSelector=metadata.name%3D",
                    "n/", false);
}

static void finds_the_keys(void **state)
{
    (void)state;
    assert_range("/api/v1/namespaces/n/pods/a", "resourceVersion=0", "n/a", NULL, 3);
    assert_range("/api/v1/nodes/x", "resourceVersion=0", "x", NULL, 1);
    assert_range("/api/v1/namespaces/n", "resourceVersion=0", "n", NULL, 1);
    assert_range("/api/v1/pods", "", "", "", 0);
    assert_range("/api/v1/namespaces/n/pods", "", "n/", "n0", 2);
    assert_range("/api/v1/pods", "continue=" TOKEN, "ns/a\0", "", 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_it_knows),
        cmocka_unit_test(passes_writes_and_impersonation_on),
        cmocka_unit_test(finds_the_keys),
        cmocka_unit_test(reads_only_the_object_that_a_selector_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
