#include "cmd/ctl/decode/decode.h"

#include "kube/types/schema/protobuf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static const char config_map[] =
    "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\"},"
    "\"data\":{\"x\":\"1\"}}";
static const char config_map_yaml[] = "apiVersion: v1\n"
                                      "data:\n"
                                      "  x: \"1\"\n"
                                      "kind: ConfigMap\n"
                                      "metadata:\n"
                                      "  name: a\n";

/* The bytes under which a kube-apiserver stores it. */
static void make_protobuf(struct buf *ret_bytes)
{
    struct arena arena;
    struct json_node *tree;
    struct error error;
    decode_arena_init(&arena);
    assert_int_equal(json_tree_read(&arena, slice_from_text(config_map), &tree, &error), ST_OK);
    assert_int_equal(kube_protobuf_encode(&arena, tree, ret_bytes, &error), ST_OK);
    arena_fini(&arena);
}

static void assert_decoded(enum decode_kind kind, struct slice value, enum decoded_form form,
                           const char *expected)
{
    struct arena arena;
    struct decoded decoded;
    decode_arena_init(&arena);
    decode_value(&arena, kind, value, &decoded);
    assert_int_equal(decoded.form, form);
    assert_int_equal(decoded.tree != NULL, form != DECODED_TEXT);
    assert_int_equal(decoded.text.len, strlen(expected));
    assert_memory_equal(decoded.text.ptr, expected, decoded.text.len);
    arena_fini(&arena);
}

static void objects_of_kubernetes_become_yaml(void **state)
{
    AUTO(buf_fini) struct buf bytes = {0};
    (void)state;
    make_protobuf(&bytes);
    assert_decoded(DECODE_K8S, slice_from_text(config_map), DECODED_YAML, config_map_yaml);
    assert_decoded(DECODE_AUTO, slice_from_text(config_map), DECODED_YAML, config_map_yaml);
    assert_decoded(DECODE_K8S, buf_slice(&bytes), DECODED_YAML, config_map_yaml);
}

static void json_is_indented_and_everything_else_stays(void **state)
{
    (void)state;
    assert_decoded(DECODE_JSON, SLICE_LITERAL(" {\"a\":[1]}"), DECODED_JSON,
                   "{\n  \"a\": [\n    1\n  ]\n}\n");
    assert_decoded(DECODE_K8S, SLICE_LITERAL("[true]"), DECODED_JSON, "[\n  true\n]\n");
    assert_decoded(DECODE_JSON, SLICE_LITERAL("{\"a\":"), DECODED_TEXT, "{\"a\":");
    assert_decoded(DECODE_K8S, SLICE_LITERAL("12"), DECODED_TEXT, "12");
    assert_decoded(DECODE_TEXT, slice_from_text(config_map), DECODED_TEXT, config_map);
    assert_decoded(DECODE_K8S, SLICE_EMPTY, DECODED_TEXT, "");
}

static void auto_depends_on_the_reader(void **state)
{
    (void)state;
    assert_int_equal(decode_resolve(DECODE_AUTO, true), DECODE_K8S);
    assert_int_equal(decode_resolve(DECODE_AUTO, false), DECODE_RAW);
    assert_int_equal(decode_resolve(DECODE_JSON, false), DECODE_JSON);
}

static void assert_put(enum decode_kind kind, struct slice value, const char *expected, size_t len)
{
    char *text;
    size_t text_len;
    FILE *to = open_memstream(&text, &text_len);
    assert_non_null(to);
    decode_put(to, kind, value);
    fclose(to);
    assert_int_equal(text_len, len);
    assert_memory_equal(text, expected, len);
    free(text);
}

/* -- What a server may send -- */

static void decode_and_forget(struct slice value)
{
    struct arena arena;
    struct decoded decoded;
    decode_arena_init(&arena);
    decode_value(&arena, DECODE_K8S, value, &decoded);
    assert_true(arena.held_bytes <= DECODE_ARENA_BYTES_MAX);
    arena_fini(&arena);
}

static void damaged_protobuf_is_shown_as_text_or_decoded(void **state)
{
    AUTO(buf_fini) struct buf bytes = {0};
    (void)state;
    make_protobuf(&bytes);
    for (size_t len = 0; len < bytes.len; len++)
        decode_and_forget(slice_sub(buf_slice(&bytes), 0, len));
    for (size_t i = 0; i < bytes.len * 8; i++) {
        bytes.ptr[i / 8] ^= (uint8_t)(1 << i % 8);
        decode_and_forget(buf_slice(&bytes));
        bytes.ptr[i / 8] ^= (uint8_t)(1 << i % 8);
    }
    assert_put(DECODE_K8S, SLICE_LITERAL("k8s\0\x0a\x02\x0a\x00"), "k8s\\x00\n\\x02\n\\x00", 17);
}

/* A value of `count` times a text, between two others. */
static void assert_is_text(const char *begin, const char *repeated, size_t count)
{
    AUTO(buf_fini) struct buf value = {0};
    struct arena arena;
    struct decoded decoded;
    assert_int_equal(buf_append_text(&value, begin), ST_OK);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(buf_append_text(&value, repeated), ST_OK);
    assert_int_equal(buf_append_text(&value, "[]]"), ST_OK);
    decode_arena_init(&arena);
    decode_value(&arena, DECODE_JSON, buf_slice(&value), &decoded);
    assert_int_equal(decoded.form, DECODED_TEXT);
    assert_true(slice_equal(decoded.text, buf_slice(&value)));
    assert_true(arena.held_bytes <= DECODE_ARENA_BYTES_MAX);
    arena_fini(&arena);
}

static void values_beyond_the_limits_are_shown_as_text(void **state)
{
    (void)state;
    assert_is_text("[", "[],", (DECODE_VALUE_BYTES_MAX / 3) - 4); /* memory of the tree */
    assert_is_text("[", "[],", DECODE_VALUE_BYTES_MAX / 3);       /* bytes of the value */
    assert_is_text("[", "[", 100 * 1000);                         /* depth */
}

/* One long text: its tree is small, so only the limit of bytes matters. */
static void assert_long_text(size_t len, enum decoded_form form)
{
    struct arena arena;
    struct decoded decoded;
    char *value = malloc(len);
    assert_non_null(value);
    memset(value, 'a', len);
    value[0] = '[';
    value[1] = value[len - 2] = '"';
    value[len - 1] = ']';
    decode_arena_init(&arena);
    decode_value(&arena, DECODE_JSON, slice_of(value, len), &decoded);
    assert_int_equal(decoded.form, form);
    arena_fini(&arena);
    free(value);
}

static void long_values_are_shown_as_text(void **state)
{
    (void)state;
    assert_long_text(DECODE_VALUE_BYTES_MAX, DECODED_JSON);
    assert_long_text(DECODE_VALUE_BYTES_MAX + 1, DECODED_TEXT);
}

/* -- Output -- */

static void only_raw_reaches_the_output_unchanged(void **state)
{
    (void)state;
    assert_put(DECODE_RAW, SLICE_LITERAL("\x1b[2J\0\n"), "\x1b[2J\0\n", 6);
    assert_put(DECODE_TEXT, SLICE_LITERAL("\x1b[2J\n"), "\\x1b[2J\n", 8);
    assert_put(DECODE_JSON, SLICE_LITERAL("{\"a\":\"\\u001b\"}"), "{\n  \"a\": \"\\u001b\"\n}", 19);
    assert_put(DECODE_K8S, SLICE_LITERAL("{\"apiVersion\":\"\\u001b\",\"kind\":\"A\"}"),
               "apiVersion: \"\\u001b\"\nkind: A", 28);
}

static void assert_member(enum decode_kind kind, struct slice value, const char *expected)
{
    AUTO(buf_fini) struct buf out = {0};
    struct json_writer w;
    json_writer_init(&w, &out);
    json_begin_object(&w);
    decode_put_member(&w, "value", kind, value);
    json_end_object(&w);
    assert_int_equal(json_writer_finish(&w), ST_OK);
    assert_int_equal(out.len, strlen(expected));
    assert_memory_equal(out.ptr, expected, out.len);
}

static void members_of_json_are_readable(void **state)
{
    (void)state;
    assert_member(DECODE_AUTO, SLICE_LITERAL("a\n"), "{\"value\":\"a\\n\"}");
    assert_member(DECODE_AUTO, SLICE_LITERAL("{\"a\":1}"), "{\"value\":\"{\\\"a\\\":1}\"}");
    assert_member(DECODE_JSON, SLICE_LITERAL("{\"a\": 1}"), "{\"value\":{\"a\":1}}");
    assert_member(DECODE_K8S, SLICE_LITERAL("{\"a\":1}"), "{\"value\":{\"a\":1}}");
    assert_member(DECODE_JSON, SLICE_LITERAL("\xff"), "{\"valueBase64\":\"/w==\"}");
    assert_member(DECODE_TEXT, SLICE_EMPTY, "{\"value\":\"\"}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_of_kubernetes_become_yaml),
        cmocka_unit_test(json_is_indented_and_everything_else_stays),
        cmocka_unit_test(auto_depends_on_the_reader),
        cmocka_unit_test(damaged_protobuf_is_shown_as_text_or_decoded),
        cmocka_unit_test(values_beyond_the_limits_are_shown_as_text),
        cmocka_unit_test(long_values_are_shown_as_text),
        cmocka_unit_test(only_raw_reaches_the_output_unchanged),
        cmocka_unit_test(members_of_json_are_readable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
