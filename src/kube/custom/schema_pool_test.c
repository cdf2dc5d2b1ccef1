#include "kube/custom/schema_pool.h"

#include "kube/custom/kinds.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { UPDATES = 1000, THREADS = 4 };

static void append(struct buf *to, const char *text)
{
    assert_int_equal(buf_append_text(to, text), ST_OK);
}

/* A schema of forty fields; each value of `change` gives another text. */
static void write_schema(struct buf *to, int change)
{
    enum status status = buf_append_format(
        to, "{\"type\":\"object\",\"properties\":{\"changes%d\":{\"type\":\"string\"}", change);
    for (int i = 0; i < 40 && status == ST_OK; i++)
        status = buf_append_format(
            to,
            ",\"field%d\":{\"description\":\"what it is for\",\"type\":\"object\",\"properties\":"
            "{\"name\":{\"type\":\"string\",\"pattern\":\"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$\"},"
            "\"size\":{\"type\":\"integer\",\"format\":\"int32\",\"default\":3},"
            "\"on\":{\"type\":\"boolean\"},\"words\":{\"type\":\"array\",\"items\":"
            "{\"type\":\"string\"}}},\"required\":[\"name\"]}",
            i);
    assert_int_equal(status, ST_OK);
    append(to, "}}");
}

static struct kube_definition *make_definition(struct schema_pool *pool, int change)
{
    AUTO(buf_fini) struct buf text = {0};
    struct kube_definition *made = NULL;
    append(&text, "{\"metadata\":{\"name\":\"as.example.com\"},\"spec\":{\"group\":\"example.com\","
                  "\"names\":{\"plural\":\"as\"},\"versions\":[");
    for (int i = 1; i <= 2; i++) {
        append(&text, i == 1 ? "{\"name\":\"v1\",\"served\":true,\"storage\":true,"
                             : ",{\"name\":\"v2\",\"served\":true,\"storage\":false,");
        append(&text, "\"schema\":{\"openAPIV3Schema\":");
        write_schema(&text, i == 1 ? change : 0); /* the schema of v2 does not change */
        append(&text, "}}");
    }
    append(&text, "]},\"status\":{\"acceptedNames\":{\"kind\":\"A\"},\"conditions\":[{\"type\":"
                  "\"Established\",\"status\":\"True\"}]}}");
    assert_int_equal(kube_definition_new(pool, buf_slice(&text), change + 1, &made), ST_OK);
    return made;
}

/*
 * A thousand updates, each followed by a compilation; at any time a slow user still holds one older
 * set of kinds, as a watch does until it is notified of the change.
 */
static void frequent_changes_of_a_definition_leak_no_schemas(void **state)
{
    struct schema_pool *pool = schema_pool_new();
    struct kube_kinds *held = NULL, *kinds = NULL;
    size_t most_schemas = 0, most_bytes = 0;
    (void)state;
    for (int i = 1; i <= UPDATES; i++) {
        struct kube_definition *definition = make_definition(pool, i);
        kube_kinds_unref(held);
        held = kinds;
        kinds = kube_kinds_new(&definition, 1);
        kube_definition_unref(definition);
        for (size_t v = 0; v < 2; v++)
            assert_non_null(kube_custom_schema(&definition->versions[v]));
        schema_pool_check(pool);
        struct schema_pool_stats stats = schema_pool_stats(pool);
        most_schemas = size_max(most_schemas, stats.compiled);
        most_bytes = size_max(most_bytes, stats.text_bytes + stats.compiled_bytes);
    }
    assert_int_equal(most_schemas, 3); /* two of v1, and one of v2, which never changes */
    assert_in_range(most_bytes, 1, 64 << 10);
    kube_kinds_unref(kinds);
    kube_kinds_unref(held);
    struct schema_pool_stats stats = schema_pool_stats(pool);
    assert_int_equal(stats.schemas + stats.text_bytes + stats.compiled_bytes, 0);
    schema_pool_check(pool);
    schema_pool_free(pool);
}

static void compiled_schemas_are_about_as_large_as_their_text(void **state)
{
    AUTO(buf_fini) struct buf text = {0};
    struct schema_pool *pool = schema_pool_new();
    (void)state;
    write_schema(&text, 1);
    struct pool_schema *schema = schema_pool_get(pool, buf_slice(&text));
    assert_non_null(pool_schema_compiled(schema));
    struct schema_pool_stats stats = schema_pool_stats(pool);
    assert_int_equal(stats.text_bytes, text.len);
    assert_in_range(stats.compiled_bytes, 1, text.len);
    pool_schema_unref(schema);
    schema_pool_check(pool);
    schema_pool_free(pool);
}

static void schemas_that_do_not_compile_are_null(void **state)
{
    static const char *const rows[] = {"", "{", "{\"pattern\":\"(\"}"};
    struct schema_pool *pool = schema_pool_new();
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct pool_schema *schema = schema_pool_get(pool, slice_from_text(rows[i]));
        assert_null(pool_schema_compiled(schema));
        assert_null(pool_schema_compiled(schema));
        pool_schema_unref(schema);
    }
    schema_pool_check(pool);
    schema_pool_free(pool);
}

static void *use_definitions(void *pool)
{
    for (int i = 0; i < 50; i++) {
        struct kube_definition *definition = make_definition(pool, i % 3);
        const struct schema *schema = kube_custom_schema(&definition->versions[0]);
        assert(schema && schema->property_count == 41);
        kube_definition_unref(definition);
    }
    return NULL;
}

static void threads_share_one_schema_per_text(void **state)
{
    struct schema_pool *pool = schema_pool_new();
    pthread_t threads[THREADS];
    (void)state;
    struct kube_definition *kept = make_definition(pool, 0);
    const struct schema *schema = kube_custom_schema(&kept->versions[0]);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_definitions, pool), 0);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_ptr_equal(kube_custom_schema(&kept->versions[0]), schema);
    assert_ptr_equal(kube_custom_schema(&kept->versions[1]),
                     schema); /* compiled from the same text */
    assert_int_equal(schema_pool_stats(pool).schemas, 1);
    kube_definition_unref(kept);
    schema_pool_check(pool);
    schema_pool_free(pool);
}

static void rules_are_compiled_when_they_are_first_needed(void **state)
{
    (void)state;
    struct schema_pool *pool = schema_pool_new();
    struct pool_schema *with = schema_pool_get(
        pool, SLICE_LITERAL("{\"type\":\"object\",\"x-kubernetes-validations\":[{\"rule\":"
                            "\"self.metadata.name != ''\"}]}"));
    struct pool_schema *without = schema_pool_get(pool, SLICE_LITERAL("{\"type\":\"object\"}"));
    const struct rule_node *set = NULL, *again = NULL, *none = NULL;
    assert_non_null(pool_schema_compiled(with));
    size_t before = schema_pool_stats(pool).compiled_bytes;
    assert_int_equal(pool_schema_rules(with, &set), ST_OK);
    assert_int_equal(pool_schema_rules(with, &again), ST_OK);
    assert_non_null(set);
    assert_ptr_equal(set, again);
    assert_non_null(set->programs->list[0].condition);
    assert_true(schema_pool_stats(pool).compiled_bytes >= before);
    assert_non_null(pool_schema_compiled(without));
    assert_int_equal(pool_schema_rules(without, &none), ST_OK);
    assert_null(none);
    pool_schema_unref(with);
    pool_schema_unref(without);
    assert_int_equal(schema_pool_stats(pool).compiled_bytes, 0);
    schema_pool_free(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frequent_changes_of_a_definition_leak_no_schemas),
        cmocka_unit_test(compiled_schemas_are_about_as_large_as_their_text),
        cmocka_unit_test(schemas_that_do_not_compile_are_null),
        cmocka_unit_test(threads_share_one_schema_per_text),
        cmocka_unit_test(rules_are_compiled_when_they_are_first_needed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
