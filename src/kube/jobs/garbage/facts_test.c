#include "kube/jobs/garbage/bodies.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static struct arena arena;

static int begin(void **state)
{
    (void)state;
    arena_init(&arena, NULL, 0, 1 << 16);
    return 0;
}

static int end(void **state)
{
    (void)state;
    arena_fini(&arena);
    return 0;
}

static struct garbage_facts read(const char *metadata)
{
    struct garbage_facts facts;
    char json[2048];
    snprintf(json, sizeof(json), "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":%s}",
             metadata);
    struct slice copy;
    assert_int_equal(arena_dup(&arena, slice_from_text(json), &copy), ST_OK);
    assert_int_equal(garbage_facts_read(&arena, copy, &facts), ST_OK);
    return facts;
}

static void assert_text(struct slice text, const char *wanted)
{
    if (!slice_is(text, wanted))
        fail_msg("%.*s", SLICE_ARGS(text));
}

#define OWNERS                                                                                  \
    "\"ownerReferences\":[{\"apiVersion\":\"apps/v1\",\"kind\":\"ReplicaSet\",\"name\":\"r\","  \
    "\"uid\":\"1\",\"blockOwnerDeletion\":true},{\"uid\":\"\\u0032\",\"x\":{\"uid\":\"3\"}},7," \
    "{\"name\":\"without\"}]"

static void owners_and_finalizers_are_read(void **state)
{
    (void)state;
    struct garbage_facts facts =
        read("{\"name\":\"a\",\"namespace\":\"n\",\"uid\":\"u\\/1\",\"finalizers\":[\"x\","
             "\"foregroundDeletion\"],\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"," OWNERS "}");
    assert_text(facts.uid, "u/1");
    assert_text(facts.uid_json, "\"u\\/1\"");
    assert_text(facts.namespace, "n");
    assert_true(facts.deleting && facts.foreground && !facts.orphans);
    assert_int_equal(facts.owner_count, 2);
    assert_text(facts.owners[0].kind, "ReplicaSet");
    assert_true(facts.owners[0].blocks);
    assert_text(facts.owners[1].uid, "2");
    assert_false(facts.owners[1].blocks);
}

static void values_of_other_types_are_not_read(void **state)
{
    (void)state;
    struct garbage_facts facts = read("{\"uid\":\"u\",\"finalizers\":{},\"ownerReferences\":null,"
                                      "\"deletionTimestamp\":null}");
    assert_true(!facts.owner_count && !facts.deleting && !facts.finalizers.len);
}

static void what_is_not_an_object_is_refused(void **state)
{
    static const char *const texts[] = {
        "",
        "k8s\0",
        "{}",
        "{\"metadata\":{}}",
        "{\"metadata\":{\"uid\":7}}",
        "{\"metadata\":{\"uid\":\"u\"",
        "{\"metadata\":{\"uid\":\"u\",\"ownerReferences\":[{\"uid\":\"\\ud800\"}]}}",
    };
    struct garbage_facts facts;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        assert_int_equal(garbage_facts_read(&arena, slice_from_text(texts[i]), &facts),
                         ST_MALFORMED);
}

static void an_object_with_too_many_references_is_refused(void **state)
{
    struct buf json = {0};
    struct garbage_facts facts;
    (void)state;
    assert_int_equal(buf_append_text(&json, "{\"metadata\":{\"uid\":\"u\",\"ownerReferences\":[{}"),
                     ST_OK);
    for (int i = 0; i < 10000; i++)
        assert_int_equal(buf_append_text(&json, ",{}"), ST_OK);
    assert_int_equal(buf_append_text(&json, "]}}"), ST_OK);
    assert_int_equal(garbage_facts_read(&arena, buf_slice(&json), &facts), ST_NOMEM);
    buf_fini(&json);
}

static void requests_have_conditions(void **state)
{
    struct buf text = {0};
    static const uint8_t classes[] = {GARBAGE_GONE, GARBAGE_SOLID};
    (void)state;
    struct garbage_facts facts =
        read("{\"uid\":\"u\",\"finalizers\":[\"orphan\",\"x\"]," OWNERS "}");
    assert_int_equal(garbage_write_delete(&facts, 7, "Orphan", &text), ST_OK);
    assert_text(buf_slice(&text), "{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\","
                                  "\"preconditions\":{\"uid\":\"u\",\"resourceVersion\":\"7\"},"
                                  "\"propagationPolicy\":\"Orphan\"}");
    text.len = 0;
    assert_int_equal(garbage_write_refs(&facts, 7, classes, 1u << GARBAGE_GONE, &text), ST_OK);
    assert_text(buf_slice(&text), "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"7\","
                                  "\"ownerReferences\":[{\"uid\":\"\\u0032\",\"x\":{\"uid\":"
                                  "\"3\"}}]}}");
    text.len = 0;
    assert_int_equal(garbage_write_unblocked(&facts, 7, &text), ST_OK);
    assert_text(buf_slice(&text),
                "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"7\",\"ownerReferences\":[{"
                "\"blockOwnerDeletion\":false,\"apiVersion\":\"apps/v1\",\"kind\":\"ReplicaSet\","
                "\"name\":\"r\",\"uid\":\"1\"},{\"uid\":\"\\u0032\",\"x\":{\"uid\":\"3\"}}]}}");
    text.len = 0;
    assert_int_equal(garbage_write_finalizers(&facts, 7, SLICE_LITERAL("orphan"), &text), ST_OK);
    assert_text(buf_slice(&text), "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"7\","
                                  "\"finalizers\":[\"x\"]}}");
    buf_fini(&text);
}

static void empty_lists_are_removed(void **state)
{
    struct buf text = {0};
    (void)state;
    struct garbage_facts facts = read("{\"uid\":\"u\",\"finalizers\":[\"orphan\"]}");
    assert_int_equal(garbage_write_finalizers(&facts, 7, SLICE_LITERAL("orphan"), &text), ST_OK);
    assert_text(buf_slice(&text), "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"7\","
                                  "\"finalizers\":null}}");
    buf_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
        TEST(owners_and_finalizers_are_read),   TEST(values_of_other_types_are_not_read),
        TEST(what_is_not_an_object_is_refused), TEST(an_object_with_too_many_references_is_refused),
        TEST(requests_have_conditions),         TEST(empty_lists_are_removed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
