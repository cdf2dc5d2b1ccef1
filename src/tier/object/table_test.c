/* Tables of objects in JSON. */
#include "tier/object/table.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define MAP                                                                                     \
    "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\",\"namespace\":" \
    "\"n\","                                                                                    \
    "\"resourceVersion\":\"7\"},\"data\":{\"k\":\"v\"},\"newer\":[1]}"
#define PARTIAL                                                                            \
    "{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{" \
    "\"name\":\"a\",\"namespace\":\"n\",\"resourceVersion\":\"7\"}}"
#define ROW "{\"cells\":[\"a\",1,\"<unknown>\"],\"object\":" PARTIAL "}"

static struct kube_shaping shaping(enum kube_include include)
{
    const struct kube_kind *kind =
        kube_builtin_find(SLICE_LITERAL(""), SLICE_LITERAL("v1"), SLICE_LITERAL("configmaps"));
    assert_non_null(kind);
    return (struct kube_shaping){
        .kind = kind, .shape = KUBE_TABLE, .include = include, .clock = clock_system()};
}

static void assert_text(const struct buf *buf, const char *expected)
{
    if (!slice_is(buf_slice(buf), expected))
        fail_msg("%.*s\nis not %s", SLICE_ARGS(buf_slice(buf)), expected);
}

static bool contains(const struct buf *buf, const char *text)
{
    return memmem(buf->ptr, buf->len, text, strlen(text)) != NULL;
}

static void rows(void **state)
{
    AUTO(buf_fini) struct buf made = {0};
    struct kube_shaping metadata = shaping(KUBE_INCLUDE_METADATA),
                        none = shaping(KUBE_INCLUDE_NONE);
    (void)state;
    assert_int_equal(tier_append_row(&metadata, SLICE_LITERAL(MAP), &made), ST_OK);
    assert_text(&made, ROW);
    made.len = 0;
    assert_int_equal(tier_append_row(&none, SLICE_LITERAL(MAP), &made), ST_OK);
    assert_text(&made, "{\"cells\":[\"a\",1,\"<unknown>\"],\"object\":null}");
    assert_int_equal(tier_append_row(&none, SLICE_LITERAL("[]"), &made), ST_MALFORMED);
}

static void heads_of_lists(void **state)
{
    AUTO(buf_fini) struct buf made = {0};
    struct kube_shaping s = shaping(KUBE_INCLUDE_METADATA);
    struct tier_list_meta meta = {
        .version = 9, .continue_token = SLICE_LITERAL("abc"), .remaining = 3};
    (void)state;
    assert_int_equal(tier_append_table_head(&s, &meta, &made), ST_OK);
    assert_true(contains(&made,
                         "{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{"
                         "\"resourceVersion\":\"9\",\"continue\":\"abc\","
                         "\"remainingItemCount\":3},\"columnDefinitions\":[{\"name\":\"Name\""));
    assert_memory_equal(made.ptr + made.len - 10, "],\"rows\":[", 10);
}

static void events(void **state)
{
    AUTO(buf_fini) struct buf made = {0};
    struct kube_shaping s = shaping(KUBE_INCLUDE_METADATA);
    (void)state;
    assert_int_equal(
        tier_append_table_event(&s, TIER_EVENT_MODIFIED, SLICE_LITERAL(MAP), false, &made), ST_OK);
    assert_text(
        &made, "{\"type\":\"MODIFIED\",\"object\":{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/"
               "v1\",\"metadata\":{\"resourceVersion\":\"7\"},\"columnDefinitions\":null,"
               "\"rows\":[" ROW "]}}\n");
    made.len = 0;
    assert_int_equal(tier_append_table_event(&s, TIER_EVENT_ADDED, SLICE_LITERAL(MAP), true, &made),
                     ST_OK);
    assert_true(contains(&made, "\"columnDefinitions\":[{\"name\":\"Name\""));
    assert_int_equal(tier_append_table_event(
                         &s, TIER_EVENT_ADDED,
                         SLICE_LITERAL("{\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\"}}"),
                         false, &made),
                     ST_MALFORMED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows),
        cmocka_unit_test(heads_of_lists),
        cmocka_unit_test(events),
    };
    return cmocka_run_group_tests_name("tier/object/table", tests, NULL, NULL);
}
