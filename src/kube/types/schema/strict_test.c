/* Examples and limits; tests/kube_oracle.py compares the texts with Kubernetes. */
#include "kube/types/schema/strict.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static enum status check(struct arena *arena, const char *json, struct buf *unknown,
                         struct error *error, struct json_node **ret_object)
{
    const struct kube_type *pod = kube_type_find(SLICE_LITERAL("v1"), SLICE_LITERAL("Pod"));
    assert_int_equal(json_tree_read(arena, slice_from_text(json), ret_object, error), ST_OK);
    return kube_strict(pod, *ret_object, unknown, error);
}

static void unknown_members_are_reported_and_removed(void **state)
{
    (void)state;
    struct arena arena;
    struct buf unknown = {0}, text = {0};
    struct error error;
    struct json_node *object;
    arena_init(&arena, NULL, 0, 1 << 20);
    assert_int_equal(
        check(&arena,
              "{\"a\":1,\"metadata\":{\"labels\":{\"any\":\"x\"}},\"spec\":{\"containers\":"
              "[{\"name\":\"a\"},{\"name\":\"b\",\"c\":{}}]}}",
              &unknown, &error, &object),
        ST_OK);
    assert_int_equal(buf_append(&unknown, slice_of("", 1)), ST_OK);
    assert_string_equal((const char *)unknown.ptr,
                        "unknown field \"a\", unknown field \"spec.containers[1].c\"");
    assert_int_equal(json_tree_write(object, &text), ST_OK);
    assert_int_equal(buf_append(&text, slice_of("", 1)), ST_OK);
    assert_string_equal(
        (const char *)text.ptr,
        "{\"metadata\":{\"labels\":{\"any\":\"x\"}},\"spec\":{\"containers\":[{\"name\":"
        "\"a\"},{\"name\":\"b\"}]}}");
    buf_fini(&unknown);
    buf_fini(&text);
    arena_fini(&arena);
}

/* Keys are a client's bytes: they are quoted as Go does, and cannot look like another error. */
static void names_of_unknown_members_are_escaped(void **state)
{
    (void)state;
    struct arena arena;
    struct buf unknown = {0};
    struct error error;
    struct json_node *object;
    arena_init(&arena, NULL, 0, 1 << 20);
    assert_int_equal(
        check(&arena,
              "{\"a\\\", unknown field \\\"b\":1,\"spec\":{\"\\r\\n\\u0001\\u007f\\\\\":1}}",
              &unknown, &error, &object),
        ST_OK);
    assert_int_equal(buf_append(&unknown, slice_of("", 1)), ST_OK);
    assert_string_equal((const char *)unknown.ptr, "unknown field \"a\\\", unknown field \\\"b\", "
                                                   "unknown field \"spec.\\r\\n\\x01\\x7f\\\\\"");
    buf_fini(&unknown);
    arena_fini(&arena);
}

static void reported_names_are_limited(void **state)
{
    (void)state;
    struct arena arena;
    struct buf unknown = {0}, text = {0};
    struct error error;
    struct json_node *object;
    arena_init(&arena, NULL, 0, 64 << 20);
    assert_int_equal(buf_append_text(&text, "{\"kind\":\"Pod\""), ST_OK);
    for (int i = 0; i < 100000; i++)
        assert_int_equal(buf_append_format(&text, ",\"a%d\":1", i), ST_OK);
    assert_int_equal(buf_append(&text, slice_of("}", 2)), ST_OK);
    assert_int_equal(check(&arena, (const char *)text.ptr, &unknown, &error, &object), ST_OK);
    assert_int_equal(object->count, 1);
    assert_in_range(unknown.len, 1, 64 * KUBE_STRICT_UNKNOWN_MAX);
    buf_fini(&unknown);
    buf_fini(&text);
    arena_fini(&arena);
}

static void values_of_wrong_types_are_refused(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"{\"spec\":1}",
         "json: cannot unmarshal number into Go struct field Pod.spec of type v1.PodSpec"},
        {"{\"spec\":{\"containers\":{}}}",
         "json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type "
         "[]v1.Container"},
        {"{\"spec\":{\"priority\":3000000000}}",
         "json: cannot unmarshal number 3000000000 into Go struct field PodSpec.spec.priority of "
         "type int32"},
        {"{\"metadata\":{\"labels\":{\"a\":true}}}",
         "json: cannot unmarshal bool into Go struct field ObjectMeta.metadata.labels of type "
         "string"},
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct arena arena;
        struct buf unknown = {0};
        struct error error;
        struct json_node *object;
        arena_init(&arena, NULL, 0, 1 << 20);
        assert_int_equal(check(&arena, bad[i][0], &unknown, &error, &object), ST_INVALID);
        assert_string_equal(error.text, bad[i][1]);
        buf_fini(&unknown);
        arena_fini(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_members_are_reported_and_removed),
        cmocka_unit_test(names_of_unknown_members_are_escaped),
        cmocka_unit_test(reported_names_are_limited),
        cmocka_unit_test(values_of_wrong_types_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
