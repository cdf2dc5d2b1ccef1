#include "yaml/yaml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* expected: the JSON, or "!" followed by the error. */
static void assert_becomes(const char *text, const char *expected)
{
    struct arena arena;
    struct json_node *root;
    struct error error = {0};
    struct buf json = {0};
    arena_init(&arena, NULL, 0, 4 << 20);
    enum status status = yaml_tree_read(&arena, slice_from_text(text), &root, &error);
    if (status == ST_OK)
        assert_int_equal(json_tree_write(root, &json), ST_OK);
    else
        assert_int_equal(
            buf_append_format(&json, "!%s",
                              status == ST_MALFORMED ? error.text : status_name(status)),
            ST_OK);
    assert_int_equal(buf_append(&json, slice_of("", 1)), ST_OK);
    assert_string_equal((const char *)json.ptr, expected);
    buf_fini(&json);
    arena_fini(&arena);
}

static void scalars_have_the_types_of_yaml_1_1(void **state)
{
    (void)state;
    assert_becomes("[yes, No, on, OFF, true, y]", "[true,false,true,false,true,true]");
    assert_becomes("['yes', \"1\", !!str 2]", "[\"yes\",\"1\",\"2\"]");
    assert_becomes("[~, null, '', ]", "[null,null,\"\"]");
    assert_becomes("[1, -2, +3, 0x1f, 0b11, 0o17, 017, 1_000]", "[1,-2,3,31,3,15,15,1000]");
    assert_becomes("[1.5, .5, 1e3, -0.25, 1.2.3, 1-2]", "[1.5,0.5,1000,-0.25,\"1.2.3\",\"1-2\"]");
    assert_becomes("[1e999, 18446744073709551615, 18446744073709551616]",
                   "[\"1e999\",18446744073709551615,1.8446744073709552e+19]");
    assert_becomes("[-9223372036854775808, -9223372036854775809]",
                   "[-9223372036854775808,-9.223372036854776e+18]");
    assert_becomes("a: .inf", "!json: unsupported value: +Inf");
    assert_becomes("a: -.Inf", "!json: unsupported value: -Inf");
    assert_becomes("a: .nan", "!json: unsupported value: NaN");
    assert_becomes("2026-01-01T00:00:00Z", "\"2026-01-01T00:00:00Z\"");
}

static void plain_keys_are_written_as_their_values(void **state)
{
    (void)state;
    assert_becomes("{yes: 1, 0x1F: 2, 1_0: 3, '0x1F': 4}",
                   "{\"true\":1,\"31\":2,\"10\":3,\"0x1F\":4}");
    assert_becomes("{1.50: 1, .inf: 2, 100000.0: 3, 1e6: 4, 0.00001: 5, 123456.7: 6}",
                   "{\"1.5\":1,\".inf\":2,\"100000\":3,\"1e+06\":4,\"1e-05\":5,\"123456.7\":6}");
    assert_becomes("~: 1", "!yaml: line 1: unsupported map key of type: nil");
}

static void empty_values_are_null(void **state)
{
    (void)state;
    struct arena arena;
    struct json_node *root;
    struct error error = {0};
    arena_init(&arena, NULL, 0, 4 << 20);
    assert_int_equal(yaml_tree_read(&arena, SLICE_EMPTY, &root, &error), ST_OK);
    assert_int_equal(root->type, JSON_TYPE_NULL);
    arena_fini(&arena);
    assert_becomes("", "null");
    assert_becomes("# nothing\n", "null");
}

static void objects_and_lists_nest(void **state)
{
    (void)state;
    assert_becomes(
        "a:\n  b: [1, {c: d}]\n  e: |\n    x\n    y\n1: z\nyes: q\n",
        "{\"a\":{\"b\":[1,{\"c\":\"d\"}],\"e\":\"x\\ny\\n\"},\"1\":\"z\",\"true\":\"q\"}");
    assert_becomes("a: 1\na: 2\n", "{\"a\":2}");
    assert_becomes("a: 1\n---\nb: 2\n", "{\"a\":1}");
    assert_becomes("", "null");
}

static void anchors_are_copied_and_merged(void **state)
{
    (void)state;
    assert_becomes("a: &x {b: 1}\nc: *x\nd: {<<: *x, e: 2}\n",
                   "{\"a\":{\"b\":1},\"c\":{\"b\":1},\"d\":{\"b\":1,\"e\":2}}");
    assert_becomes("{a: c, <<: {a: b, d: 1}}", "{\"a\":\"b\",\"d\":1}");
    assert_becomes("{<<: {a: b}, a: c}", "{\"a\":\"c\"}");
    assert_becomes("<<: [{a: 1, b: 2}, {a: 3, c: 4}]", "{\"a\":1,\"c\":4,\"b\":2}");
    assert_becomes("'<<': {a: b}", "{\"<<\":{\"a\":\"b\"}}");
    assert_becomes("a: *no\n", "!yaml: line 1: unknown anchor referenced");
    assert_becomes("a: &x [*x]\n", "!yaml: line 1: an anchor contains itself");
    assert_becomes("d: {<<: 3}\n",
                   "!yaml: line 1: map merge requires map or sequence of maps as the value");
}

static void assert_repeats(const char *text, const char *expected)
{
    struct arena arena;
    struct json_node *root;
    struct error error = {0};
    struct buf repeats = {0};
    arena_init(&arena, NULL, 0, 4 << 20);
    assert_int_equal(yaml_tree_read_strict(&arena, slice_from_text(text), &root, &repeats, &error),
                     ST_OK);
    assert_int_equal(buf_append(&repeats, slice_of("", 1)), ST_OK);
    assert_string_equal((const char *)repeats.ptr, expected);
    buf_fini(&repeats);
    arena_fini(&arena);
}

/* As go-yaml, with the line where the value begins. */
static void keys_that_are_set_again_are_listed(void **state)
{
    (void)state;
    assert_repeats("a: 1\nb: {a: 1}\n", "");
    assert_repeats("a: 1\nb: 2\na: 3\n", "line 3: key \"a\" already set in map");
    assert_repeats("a:\n  b: 1\na:\n  b: 2\n  b: 3\n",
                   "line 5: key \"b\" already set in map\nline 4: key \"a\" already set in map");
    assert_repeats("- {a: 1, a: 2}\n- a:\n  a: |\n    x\n",
                   "line 1: key \"a\" already set in map\nline 3: key \"a\" already set in map");
    assert_repeats(
        "{1: a, 1: b, yes: c, true: d, 1.5: e, 1.50: f, \"x\\\"\\n\": g, \"x\\\"\\n\": h}",
        "line 1: key 1 already set in map\nline 1: key true already set in map\n"
        "line 1: key 1.5 already set in map\n"
        "line 1: key \"x\\\"\\n\" already set in map");
    assert_repeats("<<: {a: 1}\na: 2\n", "line 2: key \"a\" already set in map");
    assert_repeats("a: 2\n<<: {a: 1}\n", "line 2: key \"a\" already set in map");
}

static void a_list_of_repeated_keys_is_bounded(void **state)
{
    struct arena arena;
    struct json_node *root;
    struct error error = {0};
    struct buf text = {0}, repeats = {0};
    (void)state;
    for (int i = 0; i < 10000; i++)
        assert_int_equal(buf_append_format(&text, "a: %d\n", i), ST_OK);
    for (int i = 0; i < 2; i++)
        assert_int_equal(buf_append_format(&text, "%0*d: 1\n", 900, i * 0), ST_OK);
    arena_init(&arena, NULL, 0, 16 << 20);
    assert_int_equal(yaml_tree_read_strict(&arena, buf_slice(&text), &root, &repeats, &error),
                     ST_OK);
    assert_in_range(repeats.len, YAML_REPEATS_BYTES_MAX / 2, YAML_REPEATS_BYTES_MAX + 128);
    buf_fini(&repeats);
    buf_fini(&text);
    arena_fini(&arena);
}

static void alias_bombs_are_refused(void **state)
{
    (void)state;
    char deep[2 * JSON_TREE_DEPTH_MAX + 8];
    memset(deep, '[', sizeof(deep));
    deep[sizeof(deep) - 1] = '\0';
    assert_becomes(deep, "!LIMIT");
    assert_becomes("a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n"
                   "c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n"
                   "e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\n"
                   "g: &g [*f,*f,*f,*f,*f,*f,*f,*f,*f]\n",
                   "!NOMEM");
    struct buf many = {0};
    assert_int_equal(buf_append_text(&many, "a: &a 1\nb: ["), ST_OK);
    for (int i = 0; i <= YAML_ALIASES_MAX; i++)
        assert_int_equal(buf_append_text(&many, "*a ,"), ST_OK);
    assert_int_equal(buf_append(&many, slice_of("]", 2)), ST_OK);
    assert_becomes((const char *)many.ptr, "!yaml: line 2: document contains excessive aliasing");
    buf_fini(&many);
}

/* The limits apply before libyaml's quadratic algorithms run. */
static void many_directives_and_brackets_are_refused(void **state)
{
    (void)state;
    struct buf text = {0};
    for (int i = 0; i < YAML_TAG_LINES_MAX; i++)
        assert_int_equal(buf_append_format(&text, "%%TAG !e%d! tag:e%d,\n", i, i), ST_OK);
    struct buf good = {0};
    assert_int_equal(buf_append(&good, buf_slice(&text)), ST_OK);
    assert_int_equal(buf_append(&good, slice_of("--- a %TAG\n", 12)), ST_OK);
    assert_becomes((const char *)good.ptr, "\"a %TAG\"");
    assert_int_equal(buf_append(&text, slice_of("%TAG !f! tag:f,\n--- a\n", 23)), ST_OK);
    assert_becomes((const char *)text.ptr, "!yaml: more than 64 %TAG directives");
    buf_reset(&text, SIZE_MAX);
    assert_int_equal(
        buf_append_format(&text, "%%TAG !f! tag:%0*d\n--- a\n", YAML_TAG_LINE_BYTES_MAX, 0), ST_OK);
    assert_int_equal(buf_append(&text, slice_of("", 1)), ST_OK);
    assert_becomes((const char *)text.ptr, "!yaml: a %TAG directive longer than 1024 bytes");
    buf_reset(&text, SIZE_MAX);
    for (int i = 0; i < JSON_TREE_DEPTH_MAX; i++)
        assert_int_equal(buf_append_text(&text, "["), ST_OK);
    for (int i = 0; i <= YAML_FLOW_STEPS_MAX / JSON_TREE_DEPTH_MAX; i++)
        assert_int_equal(buf_append_text(&text, "a,"), ST_OK);
    assert_int_equal(buf_append(&text, slice_of("", 1)), ST_OK);
    assert_becomes((const char *)text.ptr, "!LIMIT");
    buf_fini(&text);
    buf_fini(&good);
}

static void a_byte_order_mark_is_skipped(void **state)
{
    (void)state;
    assert_becomes("\xef\xbb\xbf%YAML 1.1\n---\na: 1\nb: 2\n", "{\"a\":1,\"b\":2}");
    assert_becomes("\xff\xfe"
                   "a",
                   "!yaml: invalid leading UTF-8 octet");
}

/* Writes JSON as YAML, and reads that as JSON again. */
static void assert_written(const char *json, const char *expected)
{
    struct arena arena;
    struct json_node *root, *again;
    struct error error = {0};
    struct buf yaml = {0};
    arena_init(&arena, NULL, 0, 4 << 20);
    assert_int_equal(json_tree_read(&arena, slice_from_text(json), &root, &error), ST_OK);
    assert_int_equal(yaml_tree_write(&arena, root, &yaml), ST_OK);
    assert_int_equal(yaml_tree_read(&arena, buf_slice(&yaml), &again, &error), ST_OK);
    assert_true(json_node_equal(root, again));
    assert_int_equal(buf_append(&yaml, slice_of("", 1)), ST_OK);
    assert_string_equal((const char *)yaml.ptr, expected);
    buf_fini(&yaml);
    arena_fini(&arena);
}

static void written_trees_are_read_back_unchanged(void **state)
{
    (void)state;
    assert_written(
        "{\"b\":{\"y\":[],\"x\":{}},\"a\":[{\"n\":1,\"m\":null},[\"q\",[true]],2.5]}",
        "a:\n- m: null\n  \"n\": 1\n- - q\n  - - true\n- 2.5\nb:\n  x: {}\n  \"y\": []\n");
    assert_written(
        "[\"yes\",\"12\",\"\",\"a b\",\"l\\n\\tm\",\"-\",\"/etc/x\",\"a: b\",\"#\",\"Null\"]",
        "- \"yes\"\n- \"12\"\n- \"\"\n- \"a b\"\n- \"l\\n\\tm\"\n- \"-\"\n- /etc/x\n"
        "- \"a: b\"\n- \"#\"\n- \"Null\"\n");
    assert_written("\"\\ud83d\\ude00\\u0001\"", "\"\xf0\x9f\x98\x80\\u0001\"\n");
    assert_written("{}", "{}\n");
    assert_written("[\"a\\u0085b\",\"\xc2\x85\xc2\x9f\xc2\xa0\",\"\x7f\","
                   "\"\\u2028\\u2029\\ufeff\\uffff\\uffef\"]",
                   "- \"a\\u0085b\"\n- \"\\u0085\\u009f\xc2\xa0\"\n- \"\\u007f\"\n"
                   "- \"\\u2028\\u2029\\ufeff\\uffff\xef\xbf\xaf\"\n");
}

static void long_keys_are_written_with_a_question_mark(void **state)
{
    (void)state;
    char json[8192], yaml[8192];
    snprintf(json, sizeof(json),
             "{\"a\":{\"p%01100d\":{\"b\":1,\"c\":[2]},\"q%01100d\":[3,4],\"r%0128d\":5,"
             "\"s%0127d\":6}}",
             0, 0, 0, 0);
    snprintf(yaml, sizeof(yaml),
             "a:\n  ? p%01100d\n  : b: 1\n    c:\n    - 2\n  ? q%01100d\n  : - 3\n    - 4\n"
             "  ? r%0128d\n  : 5\n  s%0127d: 6\n",
             0, 0, 0, 0);
    assert_written(json, yaml);
}

/* A list within 250 others: each of its items is indented by 500 spaces. */
static void trees_with_too_much_indentation_are_refused(void **state)
{
    enum { LEVELS = 250, ITEMS = 40000 };
    (void)state;
    struct arena arena;
    struct json_node *root;
    struct error error = {0};
    struct buf json = {0}, yaml = {0};
    for (int i = 0; i < LEVELS; i++)
        assert_int_equal(buf_append_text(&json, "["), ST_OK);
    for (int i = 0; i < ITEMS; i++)
        assert_int_equal(buf_append_text(&json, "1,"), ST_OK);
    assert_int_equal(buf_append_text(&json, "1"), ST_OK);
    for (int i = 0; i < LEVELS; i++)
        assert_int_equal(buf_append_text(&json, "]"), ST_OK);
    arena_init(&arena, NULL, 0, 64 << 20);
    assert_int_equal(json_tree_read(&arena, buf_slice(&json), &root, &error), ST_OK);
    assert_int_equal(yaml_tree_write(&arena, root, &yaml), ST_LIMIT);
    assert_true(yaml.len < YAML_BYTES_MAX + 1024);
    buf_fini(&json);
    buf_fini(&yaml);
    arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scalars_have_the_types_of_yaml_1_1),
        cmocka_unit_test(plain_keys_are_written_as_their_values),
        cmocka_unit_test(empty_values_are_null),
        cmocka_unit_test(objects_and_lists_nest),
        cmocka_unit_test(anchors_are_copied_and_merged),
        cmocka_unit_test(keys_that_are_set_again_are_listed),
        cmocka_unit_test(a_list_of_repeated_keys_is_bounded),
        cmocka_unit_test(alias_bombs_are_refused),
        cmocka_unit_test(many_directives_and_brackets_are_refused),
        cmocka_unit_test(a_byte_order_mark_is_skipped),
        cmocka_unit_test(written_trees_are_read_back_unchanged),
        cmocka_unit_test(long_keys_are_written_with_a_question_mark),
        cmocka_unit_test(trees_with_too_much_indentation_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
