#include "kube/merge/apply/apply.h"

#include "kube/merge/apply/conflict.h"
#include "kube/merge/apply/fixture_test.h"

static bool version_known(const struct apply_request *apply, struct slice api_version)
{
    (void)apply;
    return slice_is(api_version, "v1");
}

static struct apply_request apply_of(struct fixture *f, const char *manager, bool applied)
{
    return (struct apply_request){
        .typed = {.arena = &f->arena, .why = &f->error},
        .type = {.kind = APPLY_TYPE_MESSAGE,
                 .of = kube_type_find(SLICE_LITERAL("v1"), SLICE_LITERAL("ConfigMap"))},
        .manager = {.name = slice_from_text(manager),
                    .api_version = SLICE_LITERAL("v1"),
                    .applied = applied},
        .now = SLICE_LITERAL("2026-11-15T06:00:00Z"),
        .version_known = version_known,
    };
}

/* Applies to *live and replaces it by the result. */
static enum status apply_as(struct fixture *f, const char *manager, struct json_node **live,
                            const char *config, struct managed *managed,
                            struct apply_conflicts *conflicts)
{
    struct apply_request apply = apply_of(f, manager, true);
    struct json_node *object = NULL;
    enum status status = apply_config(&apply, *live, tree(f, config), managed, &object, conflicts);
    if (status == ST_OK && object)
        *live = object;
    return status;
}

static void assert_owned(struct fixture *f, const struct managed *managed, const char *manager,
                         bool applied, const char *expected)
{
    struct slice id;
    struct field_manager identity = apply_of(f, manager, applied).manager;
    assert_int_equal(managed_id(&f->arena, &identity, &id), ST_OK);
    struct managed_entry *entry = managed_find(managed, id);
    assert_set(f, entry ? entry->set : NULL, expected);
}

static void fields_no_longer_applied_are_removed(void **state)
{
    struct fixture *f = *state;
    struct managed managed = {.arena = &f->arena};
    struct apply_conflicts conflicts;
    struct json_node *live = tree(f, "{}");
    assert_int_equal(
        apply_as(f, "a", &live, "{\"data\":{\"k\":\"1\",\"l\":\"1\"}}", &managed, &conflicts),
        ST_OK);
    assert_int_equal(apply_as(f, "b", &live, "{\"data\":{\"l\":\"1\"}}", &managed, &conflicts),
                     ST_OK);
    assert_int_equal(apply_as(f, "a", &live, "{\"data\":{}}", &managed, &conflicts), ST_OK);
    assert_tree(live, "{\"data\":{\"l\":\"1\"}}");
    assert_owned(f, &managed, "a", true, "{\"f:data\":{}}");
    assert_owned(f, &managed, "b", true, "{\"f:data\":{\"f:l\":{}}}");
}

static void fields_of_others_are_conflicts(void **state)
{
    struct fixture *f = *state;
    struct managed managed = {.arena = &f->arena};
    struct apply_conflicts conflicts;
    struct kube_status status = {0};
    struct json_node *live = tree(f, "{}");
    assert_int_equal(apply_as(f, "a", &live, "{\"data\":{\"k\":\"1\"}}", &managed, &conflicts),
                     ST_OK);
    assert_int_equal(apply_as(f, "b", &live, "{\"data\":{\"k\":\"2\"}}", &managed, &conflicts),
                     ST_EXISTS);
    assert_false(kube_fail_apply_conflict(&status, &f->arena, &conflicts));
    assert_int_equal(status.reason, KUBE_CONFLICT);
    assert_true(slice_is(status.long_message, "Apply failed with 1 conflict: conflict with \"a\": "
                                              ".data.k"));
}

static void force_takes_fields_of_others(void **state)
{
    struct fixture *f = *state;
    struct managed managed = {.arena = &f->arena};
    struct apply_conflicts conflicts;
    struct apply_request apply = apply_of(f, "b", true);
    struct json_node *live = tree(f, "{}"), *object;
    assert_int_equal(apply_as(f, "a", &live, "{\"data\":{\"k\":\"1\"}}", &managed, &conflicts),
                     ST_OK);
    apply.force = true;
    assert_int_equal(apply_config(&apply, live, tree(f, "{\"data\":{\"k\":\"2\"}}"), &managed,
                                  &object, &conflicts),
                     ST_OK);
    assert_tree(object, "{\"data\":{\"k\":\"2\"}}");
    assert_owned(f, &managed, "a", true, "{}");
    assert_owned(f, &managed, "b", true, "{\"f:data\":{\"f:k\":{}}}");
}

static void an_update_owns_what_it_changes(void **state)
{
    struct fixture *f = *state;
    struct managed managed = {.arena = &f->arena};
    struct apply_conflicts conflicts;
    struct apply_request update = apply_of(f, "u", false);
    struct json_node *live = tree(f, "{}");
    assert_int_equal(
        apply_as(f, "a", &live, "{\"data\":{\"k\":\"1\",\"l\":\"1\"}}", &managed, &conflicts),
        ST_OK);
    assert_int_equal(apply_update(&update, live,
                                  tree(f, "{\"kind\":\"ConfigMap\",\"data\":{\"k\":\"2\"}}"),
                                  &managed),
                     ST_OK);
    assert_owned(f, &managed, "a", true, "{}");
    assert_owned(f, &managed, "u", false, "{\"f:data\":{\"f:k\":{}}}");
}

static void applying_the_same_again_changes_nothing(void **state)
{
    struct fixture *f = *state;
    struct managed managed = {.arena = &f->arena};
    struct apply_conflicts conflicts;
    struct apply_request apply = apply_of(f, "a", true);
    struct json_node *live = tree(f, "{}"), *object;
    const char *config = "{\"data\":{\"k\":\"1\"}}";
    assert_int_equal(apply_as(f, "a", &live, config, &managed, &conflicts), ST_OK);
    apply.now = SLICE_LITERAL("2027-01-01T00:00:00Z");
    assert_int_equal(apply_config(&apply, live, tree(f, config), &managed, &object, &conflicts),
                     ST_OK);
    assert_null(object);
    assert_true(slice_is(managed.entries[0].time, "2026-11-15T06:00:00Z"));
}

static void managers_of_removed_versions_are_dropped(void **state)
{
    struct fixture *f = *state;
    struct managed managed = {.arena = &f->arena};
    struct field_manager manager = {.name = SLICE_LITERAL("old"),
                                    .api_version = SLICE_LITERAL("v0")};
    struct managed_entry *entry;
    struct apply_request update = apply_of(f, "u", false);
    assert_int_equal(managed_set(&managed, &manager, set_of(f, "{\"f:data\":{}}"), &entry), ST_OK);
    assert_int_equal(apply_update(&update, tree(f, "{}"), tree(f, "{}"), &managed), ST_OK);
    assert_int_equal(managed.count, 0);
}

static void reported_conflicts_are_limited(void **state)
{
    struct fixture *f = *state;
    struct buf text = {0};
    struct kube_status status = {0};
    enum { FIELDS = APPLY_CONFLICTS_LISTED_MAX + 7 };
    assert_int_equal(buf_append_text(&text, "{"), ST_OK);
    for (size_t i = 0; i < FIELDS; i++)
        assert_int_equal(buf_append_format(&text, "%s\"f:%zu\":{}", i ? "," : "", i), ST_OK);
    assert_int_equal(buf_append(&text, slice_of("}", 2)), ST_OK);
    struct apply_conflict one = {.manager = {.name = SLICE_LITERAL("m"), .applied = true},
                                 .set = set_of(f, (const char *)text.ptr)};
    struct apply_conflicts conflicts = {.list = &one, .count = 1, .fields = FIELDS};
    assert_false(kube_fail_apply_conflict(&status, &f->arena, &conflicts));
    size_t lines = 0;
    for (size_t i = 0; i < status.long_message.len; i++)
        lines += status.long_message.ptr[i] == '\n';
    assert_int_equal(lines, APPLY_CONFLICTS_LISTED_MAX);
    assert_true(slice_has_prefix(status.long_message,
                                 SLICE_LITERAL("Apply failed with 1007 conflicts: conflicts with "
                                               "\"m\":\n- .0\n- .1\n")));
    buf_fini(&text);
}

/* -- Versions: v2 has in "binaryData" what v1 has in "data", and says so in "immutable" -- */

static unsigned conversions;
static bool is_unknown;

static enum status in_version(const struct apply_request *apply, const struct json_node *object,
                              struct slice to, struct apply_type *ret_type,
                              struct json_node **ret_object)
{
    const char *from = slice_is(to, "v2") ? "data" : "binaryData";
    const char *name = slice_is(to, "v2") ? "binaryData" : "data";
    struct arena *arena = apply->typed.arena;
    struct json_node *copy = json_node_copy(arena, object), *map = json_node_named(copy, from);
    if (is_unknown)
        return ST_AGAIN;
    conversions++;
    if (map) {
        json_node_remove(copy, map);
        assert_int_equal(json_node_put(arena, copy, name, map), ST_OK);
    }
    *ret_type = apply->type;
    *ret_object = copy;
    return ST_OK;
}

static bool both_known(const struct apply_request *apply, struct slice api_version)
{
    (void)apply;
    return slice_is(api_version, "v1") || slice_is(api_version, "v2");
}

static enum status apply_in(struct fixture *f, const char *version, const char *manager,
                            struct json_node **live, const char *config, struct managed *managed,
                            struct apply_conflicts *conflicts)
{
    struct apply_request apply = apply_of(f, manager, true);
    struct json_node *object = NULL;
    apply.manager.api_version = slice_from_text(version);
    apply.version_known = both_known;
    apply.in_version = in_version;
    enum status status = apply_config(&apply, *live, tree(f, config), managed, &object, conflicts);
    if (status == ST_OK && object)
        *live = object;
    return status;
}

static void conflicts_are_found_in_the_version_of_the_other_manager(void **state)
{
    struct fixture *f = *state;
    struct managed managed = {.arena = &f->arena};
    struct apply_conflicts conflicts;
    struct json_node *live = tree(f, "{}");
    conversions = 0;
    assert_int_equal(
        apply_in(f, "v2", "a", &live, "{\"binaryData\":{\"k\":\"1\"}}", &managed, &conflicts),
        ST_OK);
    assert_int_equal(conversions, 0); /* no manager has another version */
    live = tree(f, "{\"data\":{\"k\":\"1\"}}");
    assert_int_equal(
        apply_in(f, "v1", "b", &live, "{\"data\":{\"k\":\"2\"}}", &managed, &conflicts), ST_EXISTS);
    assert_int_equal(conflicts.count, 1);
    assert_set(f, conflicts.list[0].set, "{\"f:binaryData\":{\"f:k\":{}}}");
    assert_true(conversions > 0);
}

static void fields_applied_in_another_version_are_removed(void **state)
{
    struct fixture *f = *state;
    struct managed managed = {.arena = &f->arena};
    struct apply_conflicts conflicts;
    struct json_node *live = tree(f, "{}");
    assert_int_equal(apply_in(f, "v2", "a", &live, "{\"binaryData\":{\"k\":\"1\",\"l\":\"1\"}}",
                              &managed, &conflicts),
                     ST_OK);
    assert_int_equal(
        apply_in(f, "v2", "b", &live, "{\"binaryData\":{\"l\":\"1\"}}", &managed, &conflicts),
        ST_OK);
    live = tree(f, "{\"data\":{\"k\":\"1\",\"l\":\"1\"}}");
    assert_int_equal(apply_in(f, "v1", "a", &live, "{\"data\":{}}", &managed, &conflicts), ST_OK);
    assert_tree(live, "{\"data\":{\"l\":\"1\"}}");
}

static void an_object_that_is_not_known_in_a_version_stops_the_comparison(void **state)
{
    struct fixture *f = *state;
    struct managed managed = {.arena = &f->arena};
    struct apply_conflicts conflicts;
    struct json_node *live = tree(f, "{}");
    assert_int_equal(
        apply_in(f, "v2", "a", &live, "{\"binaryData\":{\"k\":\"1\"}}", &managed, &conflicts),
        ST_OK);
    live = tree(f, "{\"data\":{\"k\":\"1\"}}");
    is_unknown = true;
    assert_int_equal(
        apply_in(f, "v1", "b", &live, "{\"data\":{\"k\":\"2\"}}", &managed, &conflicts), ST_AGAIN);
    is_unknown = false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_no_longer_applied_are_removed),
        cmocka_unit_test(fields_of_others_are_conflicts),
        cmocka_unit_test(force_takes_fields_of_others),
        cmocka_unit_test(an_update_owns_what_it_changes),
        cmocka_unit_test(applying_the_same_again_changes_nothing),
        cmocka_unit_test(managers_of_removed_versions_are_dropped),
        cmocka_unit_test(reported_conflicts_are_limited),
        cmocka_unit_test(conflicts_are_found_in_the_version_of_the_other_manager),
        cmocka_unit_test(fields_applied_in_another_version_are_removed),
        cmocka_unit_test(an_object_that_is_not_known_in_a_version_stops_the_comparison),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
