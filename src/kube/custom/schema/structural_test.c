#include "kube/custom/schema/structural.h"

#include "kube/custom/schema/patterns.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

struct schema_fixture {
    struct arena arena;
    const struct schema *schema;
    struct schema_traits traits;
};

static struct json_node *read_json(struct schema_fixture *b, const char *text)
{
    struct json_node *node = NULL;
    struct error error = {0};
    assert_int_equal(json_tree_read(&b->arena, slice_from_text(text), &node, &error), ST_OK);
    return node;
}

static void set_up(struct schema_fixture *b, const char *schema)
{
    struct error error = {0};
    *b = (struct schema_fixture){0};
    arena_init(&b->arena, NULL, 0, 32 << 20);
    struct patterns patterns;
    patterns_init(&patterns, &b->arena);
    assert_int_equal(
        schema_compile(&b->arena, &patterns, read_json(b, schema), &b->schema, &b->traits, &error),
        ST_OK);
    patterns_fini(&patterns);
}

/* "field: message" of the only error, or "" if there is none. */
static const char *error_of(const char *schema, const char *value, char text[512])
{
    struct schema_fixture b;
    set_up(&b, schema);
    struct kube_field_errors errors = {.arena = &b.arena};
    struct json_node *node = read_json(&b, value);
    schema_validate(b.schema, node, NULL, SLICE_EMPTY, &b.arena, &errors);
    schema_validate_embedded(b.schema, node, &b.arena, &errors);
    schema_validate_lists(b.schema, node, &b.arena, &errors);
    assert_false(errors.no_memory);
    assert_true(errors.count <= 1);
    text[0] = '\0';
    if (errors.count)
        snprintf(text, 512, "%.*s: %.*s", SLICE_ARGS(errors.first->field),
                 SLICE_ARGS(errors.first->message));
    arena_fini(&b.arena);
    return text;
}

#define OF(a) "{\"type\":\"object\",\"properties\":{\"a\":" a "}}"

/* Schema, value, error. */
static const char *const keyword_rows[][3] = {
    {OF("{\"type\":\"integer\"}"), "{\"a\":1}", ""},
    {OF("{\"type\":\"integer\"}"), "{\"a\":1.0}", ""},
    {OF("{\"type\":\"number\"}"), "{\"a\":1}", ""},
    {OF("{\"type\":\"string\"}"), "{\"a\":1}",
     "a: Invalid value: \"integer\": a in body must be of type string: \"integer\""},
    {OF("{\"type\":\"string\"}"), "{\"a\":null}",
     "a: Invalid value: \"null\": a in body must be of type string: \"null\""},
    {OF("{\"type\":\"string\",\"nullable\":true}"), "{\"a\":null}", ""},
    {OF("{\"x-kubernetes-int-or-string\":true}"), "{\"a\":true}",
     "a: Invalid value: \"boolean\": a in body must be of type integer,string: \"boolean\""},
    {OF("{\"type\":\"integer\",\"minimum\":2}"), "{\"a\":1}",
     "a: Invalid value: 1: a in body should be greater than or equal to 2"},
    {OF("{\"type\":\"number\",\"maximum\":2.5,\"exclusiveMaximum\":true}"), "{\"a\":2.5}",
     "a: Invalid value: 2.5: a in body should be less than 2.5"},
    {OF("{\"type\":\"integer\",\"multipleOf\":3}"), "{\"a\":4}",
     "a: Invalid value: 4: a in body should be a multiple of 3"},
    {OF("{\"type\":\"string\",\"maxLength\":2}"), "{\"a\":\"\xc3\xa4\xc3\xb6\"}", ""},
    {OF("{\"type\":\"string\",\"maxLength\":1}"), "{\"a\":\"ab\"}",
     "a: Too long: may not be more than 1 byte"},
    {OF("{\"type\":\"string\",\"minLength\":1}"), "{\"a\":\"\"}",
     "a: Invalid value: \"\": a in body should be at least 1 chars long"},
    {OF("{\"type\":\"string\",\"pattern\":\"^b$\"}"), "{\"a\":\"x\\n\"}",
     "a: Invalid value: \"x\\n\": a in body should match '^b$'"},
    {OF("{\"type\":\"string\",\"pattern\":\"^\\\\p{L}$\"}"), "{\"a\":\"\xc3\xa4\"}", ""},
    {OF("{\"type\":\"string\",\"pattern\":\"\\\\p{L}\"}"), "{\"a\":\"1\"}",
     "a: Invalid value: \"1\": a in body should match '\\p{L}'"},
    {OF("{\"type\":\"string\",\"enum\":[\"x\",\"y\"]}"), "{\"a\":\"z\"}",
     "a: Unsupported value: \"z\": supported values: \"x\", \"y\""},
    {OF("{\"type\":\"string\",\"nullable\":true,\"enum\":[\"x\",null]}"), "{\"a\":null}",
     "a: Unsupported value: null: supported values: \"x\", \"null\""},
    {OF("{\"type\":\"string\",\"format\":\"byte\"}"), "{\"a\":\"YQ==\"}", ""},
    {OF("{\"type\":\"string\",\"format\":\"byte\"}"), "{\"a\":\"YQ===\"}",
     "a: Invalid value: \"YQ===\": a in body must be of type byte: \"YQ===\""},
    {OF("{\"type\":\"string\",\"format\":\"byte\"}"), "{\"a\":\"\"}",
     "a: Invalid value: \"\": a in body must be of type byte: \"\""},
    {OF("{\"type\":\"string\",\"format\":\"date\"}"), "{\"a\":\"2026-02-29\"}",
     "a: Invalid value: \"2026-02-29\": a in body must be of type date: \"2026-02-29\""},
    {OF("{\"type\":\"string\",\"format\":\"date\"}"), "{\"a\":\"2024-02-29\"}", ""},
    {OF("{\"type\":\"string\",\"format\":\"ipv6\"}"), "{\"a\":\"::1\"}", ""},
    {OF("{\"type\":\"string\",\"format\":\"cidr\"}"), "{\"a\":\"10.0.0.0/33\"}",
     "a: Invalid value: \"10.0.0.0/33\": a in body must be of type cidr: \"10.0.0.0/33\""},
    {OF("{\"type\":\"string\",\"format\":\"unheard-of\"}"), "{\"a\":\"x\"}", ""},
    {OF("{\"type\":\"array\",\"maxItems\":1,\"items\":{\"type\":\"integer\"}}"), "{\"a\":[1,2]}",
     "a: Too many: 2: must have at most 1 item"},
    {OF("{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}"), "{\"a\":[1,\"x\"]}",
     "a[1]: Invalid value: \"string\": a[1] in body must be of type integer: \"string\""},
    {"{\"type\":\"object\",\"required\":[\"b\"]}", "{}", "b: Required value"},
    {OF("{\"type\":\"object\",\"minProperties\":1}"), "{\"a\":{}}",
     "a: Invalid value: 0: a in body should have at least 1 properties"},
    {OF("{\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"}}"),
     "{\"a\":{\"k\":1}}",
     "a.k: Invalid value: \"integer\": a.k in body must be of type string: \"integer\""},
    {"{\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"}}", "{\"k\":1}",
     "k: Invalid value: \"integer\": .k in body must be of type string: \"integer\""},
    {OF("{\"type\":\"object\",\"not\":{\"required\":[\"x\"]}}"), "{\"a\":{\"x\":1}}",
     "<nil>: Invalid value: \"\": \"a\" must not validate the schema (not)"},
    {OF("{\"type\":\"integer\",\"oneOf\":[{\"minimum\":1},{\"minimum\":2}]}"), "{\"a\":3}",
     "<nil>: Invalid value: \"\": \"a\" must validate one and only one schema (oneOf). Found 2 "
     "valid alternatives"},
    {OF("{\"type\":\"integer\",\"anyOf\":[{\"minimum\":9},{\"maximum\":2}]}"), "{\"a\":1}", ""},
    {OF("{\"type\":\"array\",\"x-kubernetes-list-type\":\"set\",\"items\":{\"type\":\"string\"}"
        "}"),
     "{\"a\":[\"x\",\"y\",\"x\",\"x\"]}", "a[2]: Duplicate value: \"x\""},
    {OF("{\"type\":\"array\",\"x-kubernetes-list-type\":\"map\",\"x-kubernetes-list-map-keys\":"
        "[\"k\"],\"items\":{\"type\":\"object\"}}"),
     "{\"a\":[{\"k\":1},{\"k\":2},{\"k\":1,\"v\":3}]}", "a[2]: Duplicate value: {\"k\":1}"},
};

static void errors_of_each_keyword_have_the_texts_of_kubernetes(void **state)
{
    char text[512];
    (void)state;
    for (size_t i = 0; i < COUNT_OF(keyword_rows); i++)
        assert_string_equal(error_of(keyword_rows[i][0], keyword_rows[i][1], text),
                            keyword_rows[i][2]);
}

static void expect_json(struct json_node *node, const char *wanted)
{
    struct buf text = {0};
    assert_int_equal(json_tree_write(node, &text), ST_OK);
    assert_int_equal(buf_append(&text, slice_of("", 1)), ST_OK);
    assert_string_equal((const char *)text.ptr, wanted);
    buf_fini(&text);
}

static void unknown_fields_are_pruned_and_reported(void **state)
{
    struct schema_fixture b;
    AUTO(buf_fini) struct buf unknown = {0};
    (void)state;
    set_up(&b, "{\"type\":\"object\",\"properties\":{"
               "\"known\":{\"type\":\"object\",\"properties\":{\"x\":{\"type\":\"string\"}}},"
               "\"free\":{\"type\":\"object\",\"x-kubernetes-preserve-unknown-fields\":true},"
               "\"list\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}},"
               "\"null\":{\"type\":\"string\"},"
               "\"pod\":{\"type\":\"object\",\"x-kubernetes-embedded-resource\":true}}}");
    struct json_node *value =
        read_json(&b, "{\"kind\":\"A\",\"apiVersion\":\"v\",\"metadata\":{\"a\":1},"
                      "\"known\":{\"x\":\"1\",\"y\":2},\"free\":{\"z\":{\"q\":1}},"
                      "\"list\":[{},{\"m\":1}],\"null\":null,\"zz\":[1],"
                      "\"pod\":{\"kind\":\"Pod\",\"spec\":1}}");
    assert_int_equal(schema_prune(b.schema, value, true, &unknown), ST_OK);
    expect_json(value, "{\"kind\":\"A\",\"apiVersion\":\"v\",\"metadata\":{\"a\":1},"
                       "\"known\":{\"x\":\"1\"},\"free\":{\"z\":{\"q\":1}},\"list\":[{},{}],"
                       "\"pod\":{\"kind\":\"Pod\"}}");
    assert_int_equal(buf_append(&unknown, slice_of("", 1)), ST_OK);
    assert_string_equal((const char *)unknown.ptr,
                        "unknown field \"known.y\", unknown field \"list[1].m\", unknown field "
                        "\"pod.spec\", unknown field \"zz\"");
    arena_fini(&b.arena);
}

static void defaults_are_filled_in_at_any_depth(void **state)
{
    struct schema_fixture b;
    (void)state;
    set_up(&b, "{\"type\":\"object\",\"properties\":{"
               "\"a\":{\"type\":\"integer\",\"default\":1},"
               "\"b\":{\"type\":\"object\",\"default\":{},\"properties\":"
               "{\"c\":{\"type\":\"string\",\"default\":\"d\"}}},"
               "\"l\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":"
               "{\"e\":{\"type\":\"integer\",\"default\":5}}}},"
               "\"n\":{\"type\":\"string\",\"nullable\":true,\"default\":\"x\"},"
               "\"m\":{\"type\":\"string\",\"default\":\"x\"}}}");
    assert_true(b.traits.has_defaults);
    struct json_node *value = read_json(&b, "{\"l\":[{},{\"e\":1}],\"n\":null,\"m\":null}");
    assert_int_equal(schema_default(&b.arena, b.schema, value), ST_OK);
    expect_json(value,
                "{\"l\":[{\"e\":5},{\"e\":1}],\"n\":null,\"m\":\"x\",\"a\":1,\"b\":{\"c\":\"d\"}}");
    arena_fini(&b.arena);
}

static void unchanged_values_are_not_validated_again(void **state)
{
    struct schema_fixture b;
    (void)state;
    set_up(&b, "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\",\"maximum\":1},"
               "\"b\":{\"type\":\"integer\",\"maximum\":1}}}");
    struct kube_field_errors errors = {.arena = &b.arena};
    struct json_node *old = read_json(&b, "{\"a\":5,\"b\":1}");
    schema_validate(b.schema, read_json(&b, "{\"a\":5,\"b\":0}"), old, SLICE_EMPTY, &b.arena,
                    &errors);
    assert_int_equal(errors.count, 0);
    schema_validate(b.schema, read_json(&b, "{\"a\":6,\"b\":0}"), old, SLICE_EMPTY, &b.arena,
                    &errors);
    assert_int_equal(errors.count, 1);
    arena_fini(&b.arena);
}

/* A schema that needs a hundred million comparisons fails when its steps are used up. */
static void validation_with_a_costly_schema_stops(void **state)
{
    struct schema_fixture b;
    struct buf schema = {0}, value = {0};
    (void)state;
    assert_int_equal(buf_append_text(&schema, "{\"type\":\"array\",\"items\":{\"anyOf\":["), ST_OK);
    assert_int_equal(buf_append_text(&value, "["), ST_OK);
    for (int i = 0; i < 3000; i++) {
        assert_int_equal(buf_append_format(&schema, "%s{\"minimum\":%d}", i ? "," : "", 3000 - i),
                         ST_OK);
        assert_int_equal(buf_append_text(&value, i ? ",1" : "1"), ST_OK);
    }
    assert_int_equal(buf_append(&schema, slice_of("]}}", 4)), ST_OK);
    assert_int_equal(buf_append(&value, slice_of("]", 2)), ST_OK);
    set_up(&b, (const char *)schema.ptr);
    struct kube_field_errors errors = {.arena = &b.arena};
    struct json_node *node = read_json(&b, (const char *)value.ptr);
    struct arena scratch;
    arena_init(&scratch, NULL, 0, 256 << 20);
    schema_validate(b.schema, node, NULL, SLICE_EMPTY, &scratch, &errors);
    assert_int_equal(errors.count, 1);
    assert_non_null(strstr((const char *)errors.first->message.ptr, "too long to check"));
    arena_fini(&scratch);
    arena_fini(&b.arena);
    buf_fini(&schema);
    buf_fini(&value);
}

/* If the steps run out in the very last check, the value counts neither as valid nor as invalid. */
static void running_out_of_steps_in_the_last_check_is_reported(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct schema_fixture b;
        struct arena scratch;
        set_up(&b, i ? "{\"enum\":[1]}" : "{\"type\":\"object\",\"required\":[\"a\"]}");
        /*
         * As many items as there are steps: a schema that has them in JSON is too large for a test.
         */
        struct schema wide = *b.schema;
        wide.required.count *= SCHEMA_STEPS_MAX;
        if (i)
            ((struct json_node *)wide.more->values)->count = SCHEMA_STEPS_MAX;
        arena_init(&scratch, NULL, 0, 1 << 20);
        struct kube_field_errors errors = {.arena = &b.arena};
        schema_validate(&wide, read_json(&b, "{}"), NULL, SLICE_EMPTY, &scratch, &errors);
        assert_int_equal(errors.count, 1);
        assert_non_null(strstr((const char *)errors.first->message.ptr, "too long to check"));
        arena_fini(&scratch);
        arena_fini(&b.arena);
    }
}

/* Compiles 2,000 fields with the same pattern, or with a different one each. */
static enum status compile_patterns(const char *format, size_t *ret_bytes, struct error *error)
{
    AUTO(buf_fini) struct buf text = {0};
    struct arena tree, arena;
    struct json_node *node;
    struct patterns patterns;
    struct schema_traits traits = {0};
    const struct schema *schema;
    assert_int_equal(buf_append_text(&text, "{\"type\":\"object\",\"properties\":{"), ST_OK);
    for (int i = 0; i < 2000; i++)
        assert_int_equal(buf_append_format(&text, "%s\"f%d\":{\"type\":\"string\",\"pattern\":\"",
                                           i ? "," : "", i) == ST_OK &&
                             buf_append_format(&text, format, i) == ST_OK &&
                             buf_append_text(&text, "\"}") == ST_OK,
                         true);
    assert_int_equal(buf_append_text(&text, "}}"), ST_OK);
    arena_init(&tree, NULL, 0, 32 << 20);
    arena_init(&arena, NULL, 0, 32 << 20);
    assert_int_equal(json_tree_read(&tree, buf_slice(&text), &node, error), ST_OK);
    patterns_init(&patterns, &arena);
    enum status status = schema_compile(&arena, &patterns, node, &schema, &traits, error);
    patterns_fini(&patterns);
    arena_fini(&tree); /* the schema does not need the tree */
    if (status == ST_OK)
        assert_non_null(schema_property(schema, SLICE_LITERAL("f1999"))->more->regex);
    *ret_bytes = arena.held_bytes;
    arena_fini(&arena);
    return status;
}

static void patterns_are_compiled_once_and_bounded_together(void **state)
{
    struct error error = {0};
    size_t bytes;
    (void)state;
    assert_int_equal(compile_patterns("a{1000}", &bytes, &error), ST_OK);
    assert_in_range(bytes, 1, 2 << 20);
    assert_int_equal(compile_patterns("a{10}%d", &bytes, &error), ST_OK);
    assert_int_equal(compile_patterns("a{1000}%d", &bytes, &error), ST_LIMIT);
    assert_string_equal(error.text, "all patterns together are too large");
    /* Failing patterns also use up steps. */
    struct arena arena;
    const struct regex *regex;
    struct patterns patterns;
    struct slice text;
    arena_init(&arena, NULL, 0, 32 << 20);
    patterns_init(&patterns, &arena);
    assert_int_equal(patterns_get(&patterns, SLICE_LITERAL("[\\pL\\PN]("), &regex, &text, &error),
                     ST_INVALID);
    assert_true(patterns.steps_left <= SCHEMA_PATTERN_STEPS_MAX - 50);
    patterns_fini(&patterns);
    arena_fini(&arena);
}

static void rules_are_kept_as_they_are_written(void **state)
{
    (void)state;
    struct schema_fixture b;
    set_up(&b, OF("{\"type\":\"string\",\"x-kubernetes-validations\":["
                  "{\"rule\":\"self != 'a'\",\"message\":\"not \\u0061\"},"
                  "{\"rule\":\"true\",\"messageExpression\":\"self\",\"fieldPath\":\".b\","
                  "\"reason\":\"FieldValueDuplicate\",\"optionalOldSelf\":true}]}"));
    const struct schema *field = schema_property(b.schema, SLICE_LITERAL("a"));
    assert_true(b.traits.has_rules);
    assert_false(b.schema->has_rules);
    assert_true(field->has_rules);
    assert_int_equal(b.schema->more->rule_count, 0);
    assert_int_equal(field->more->rule_count, 2);
    const struct schema_rule *first = &field->more->rules[0], *second = &field->more->rules[1];
    assert_true(slice_equal(first->rule, SLICE_LITERAL("self != 'a'")));
    assert_true(slice_equal(first->message, SLICE_LITERAL("not a")));
    assert_int_equal(first->message_expression.len, 0);
    assert_int_equal(first->reason, SCHEMA_INVALID);
    assert_false(first->optional_old);
    assert_true(slice_equal(second->rule, SLICE_LITERAL("true")));
    assert_int_equal(second->message.len, 0);
    assert_true(slice_equal(second->message_expression, SLICE_LITERAL("self")));
    assert_true(slice_equal(second->field_path, SLICE_LITERAL(".b")));
    assert_int_equal(second->reason, SCHEMA_DUPLICATE);
    assert_true(second->optional_old);
    arena_fini(&b.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_of_each_keyword_have_the_texts_of_kubernetes),
        cmocka_unit_test(unknown_fields_are_pruned_and_reported),
        cmocka_unit_test(defaults_are_filled_in_at_any_depth),
        cmocka_unit_test(unchanged_values_are_not_validated_again),
        cmocka_unit_test(validation_with_a_costly_schema_stops),
        cmocka_unit_test(running_out_of_steps_in_the_last_check_is_reported),
        cmocka_unit_test(patterns_are_compiled_once_and_bounded_together),
        cmocka_unit_test(rules_are_kept_as_they_are_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
