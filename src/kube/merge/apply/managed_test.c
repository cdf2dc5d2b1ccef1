#include "kube/merge/apply/managed.h"

#include "kube/merge/apply/fixture_test.h"

static struct managed managed_of(struct fixture *f, const char *text)
{
    struct managed managed = {.arena = &f->arena};
    assert_int_equal(managed_read(&managed, tree(f, text)), ST_OK);
    return managed;
}

static void entries_are_read_and_written(void **state)
{
    struct fixture *f = *state;
    struct json_node *list;
    struct managed managed = managed_of(
        f, "[{\"manager\":\"b\",\"operation\":\"Update\",\"apiVersion\":\"v1\",\"time\":"
           "\"2026-11-15T07:00:00+01:00\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{\"f:a\":{}},"
           "\"subresource\":\"status\"},"
           "{\"manager\":\"a\",\"operation\":\"Apply\",\"apiVersion\":\"v1\",\"fieldsType\":"
           "\"FieldsV1\",\"fieldsV1\":{\"f:b\":{}}}]");
    assert_int_equal(managed_write(&managed, &list), ST_OK);
    assert_tree(list, "[{\"manager\":\"a\",\"operation\":\"Apply\",\"apiVersion\":\"v1\","
                      "\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{\"f:b\":{}}},"
                      "{\"manager\":\"b\",\"operation\":\"Update\",\"apiVersion\":\"v1\",\"time\":"
                      "\"2026-11-15T06:00:00Z\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{\"f:a\":{"
                      "}},\"subresource\":\"status\"}]");
}

static void without_entries_there_is_no_list(void **state)
{
    struct fixture *f = *state;
    struct json_node *list;
    struct managed managed = managed_of(f, "[]");
    assert_int_equal(managed_write(&managed, &list), ST_OK);
    assert_null(list);
}

#define RIGHT "\"operation\":\"Apply\",\"apiVersion\":\"v1\",\"fieldsType\":\"FieldsV1\""

static void malformed_entries_are_refused(void **state)
{
    struct fixture *f = *state;
    static const char *const texts[] = {
        "{}",
        "[1]",
        "[{}]",
        "[{\"operation\":\"Apply\",\"apiVersion\":\"v1\"}]",
        "[{\"operation\":\"Apply\",\"apiVersion\":\"v1\",\"fieldsType\":\"x\"}]",
        "[{\"operation\":\"Apply\",\"fieldsType\":\"FieldsV1\"}]",
        "[{\"operation\":\"x\",\"apiVersion\":\"v1\",\"fieldsType\":\"FieldsV1\"}]",
        "[{\"operation\":1,\"apiVersion\":\"v1\",\"fieldsType\":\"FieldsV1\"}]",
        ("[{" RIGHT ",\"time\":\"x\"}]"),
        ("[{" RIGHT ",\"fieldsV1\":[]}]"),
    };
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        struct managed managed = {.arena = &f->arena};
        assert_int_equal(managed_read(&managed, tree(f, texts[i])), ST_MALFORMED);
    }
}

static void resets_are_recognized(void **state)
{
    struct fixture *f = *state;
    assert_true(managed_is_reset(tree(f, "[]")));
    assert_true(managed_is_reset(tree(f, "[{}]")));
    assert_false(managed_is_reset(tree(f, "[{},{}]")));
    assert_false(managed_is_reset(tree(f, "[{\"manager\":\"a\"}]")));
    assert_false(managed_is_reset(NULL));
}

static enum status add(struct fixture *f, struct managed *managed, size_t n, bool applied)
{
    struct buf name = {0};
    struct field_manager manager = {.api_version = SLICE_LITERAL("v1"), .applied = applied};
    struct managed_entry *entry;
    assert_int_equal(buf_append_format(&name, "m%04zu", n), ST_OK);
    assert_int_equal(arena_dup(&f->arena, buf_slice(&name), &manager.name), ST_OK);
    buf_reset(&name, SIZE_MAX);
    assert_int_equal(buf_append_format(&name, "{\"f:f%zu\":{}}", n), ST_OK);
    assert_int_equal(buf_append(&name, slice_of("", 1)), ST_OK);
    struct slice text;
    assert_int_equal(arena_dup(&f->arena, buf_slice(&name), &text), ST_OK);
    enum status status = managed_set(managed, &manager, set_of(f, (const char *)text.ptr), &entry);
    buf_fini(&name);
    return status;
}

static void the_oldest_updates_beyond_ten_are_merged(void **state)
{
    struct fixture *f = *state;
    struct managed managed = {.arena = &f->arena};
    for (size_t i = 0; i < MANAGED_UPDATES_MAX + 2; i++)
        assert_int_equal(add(f, &managed, i, false), ST_OK);
    assert_int_equal(add(f, &managed, 99, true), ST_OK);
    assert_int_equal(managed_cap(&managed), ST_OK);
    assert_int_equal(managed.count, MANAGED_UPDATES_MAX + 1);
    struct field_manager manager = {.name = SLICE_LITERAL("ancient-changes"),
                                    .api_version = SLICE_LITERAL("v1")};
    struct slice id;
    assert_int_equal(managed_id(&f->arena, &manager, &id), ST_OK);
    struct managed_entry *bucket = managed_find(&managed, id);
    assert_non_null(bucket);
    assert_set(f, bucket->set, "{\"f:f0\":{},\"f:f1\":{},\"f:f2\":{}}");
}

static void too_many_managers_are_refused(void **state)
{
    struct fixture *f = *state;
    struct managed managed = {.arena = &f->arena}, again = {.arena = &f->arena};
    struct json_node *list;
    for (size_t i = 0; i < MANAGED_ENTRIES_MAX; i++)
        assert_int_equal(add(f, &managed, i, true), ST_OK);
    assert_int_equal(add(f, &managed, MANAGED_ENTRIES_MAX, true), ST_LIMIT);
    assert_int_equal(managed_write(&managed, &list), ST_OK);
    assert_int_equal(managed_read(&again, list), ST_OK);
    assert_int_equal(json_node_insert(list, NULL, tree(f, "{}")), ST_OK);
    again.count = 0;
    assert_int_equal(managed_read(&again, list), ST_LIMIT);
}

static void an_entry_without_fields_is_removed(void **state)
{
    struct fixture *f = *state;
    struct managed managed = {.arena = &f->arena};
    struct managed_entry *entry;
    assert_int_equal(add(f, &managed, 1, true), ST_OK);
    assert_int_equal(managed_set(&managed, &managed.entries[0].manager, NULL, &entry), ST_OK);
    assert_null(entry);
    assert_int_equal(managed.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_are_read_and_written),
        cmocka_unit_test(without_entries_there_is_no_list),
        cmocka_unit_test(malformed_entries_are_refused),
        cmocka_unit_test(resets_are_recognized),
        cmocka_unit_test(the_oldest_updates_beyond_ten_are_merged),
        cmocka_unit_test(too_many_managers_are_refused),
        cmocka_unit_test(an_entry_without_fields_is_removed),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
