#include "kube/custom/rule_check.h"

#include "kube/custom/definition_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { TEXT_MAX = 8192 };

#define PREFIX "spec.validation.openAPIV3Schema"
#define DEFINITION                                                                                \
    "{\"metadata\":{\"name\":\"as.example.com\"},\"spec\":{\"group\":\"example.com\",\"scope\":"  \
    "\"Namespaced\",\"names\":{\"plural\":\"as\",\"singular\":\"a\",\"kind\":\"A\",\"listKind\":" \
    "\"AList\"},\"versions\":[{\"name\":\"v1\",\"served\":true,\"storage\":true,\"schema\":{"     \
    "\"openAPIV3Schema\":%s}}]},\"status\":{\"storedVersions\":[\"v1\"]}}"

/* "field: message" in lines, without the path of the schema. */
static void errors_of(const char *schema, const char *old_schema, char text[TEXT_MAX])
{
    AUTO(buf_fini) struct buf warning = {0};
    struct arena arena;
    struct error error;
    struct json_node *object, *old = NULL;
    char json[TEXT_MAX], old_json[TEXT_MAX];
    size_t len = 0;
    arena_init(&arena, NULL, 0, 64 << 20);
    snprintf(json, sizeof(json), DEFINITION, schema);
    assert_int_equal(json_tree_read(&arena, slice_from_text(json), &object, &error), ST_OK);
    if (old_schema) {
        snprintf(old_json, sizeof(old_json), DEFINITION, old_schema);
        assert_int_equal(json_tree_read(&arena, slice_from_text(old_json), &old, &error), ST_OK);
    }
    struct kube_field_errors errors = {.arena = &arena};
    kube_definition_validate(&arena, object, old, &errors, &warning);
    assert_false(errors.no_memory);
    text[0] = '\0';
    for (const struct kube_field_error *e = errors.first; e; e = e->next) {
        struct slice field = e->field;
        if (slice_has_prefix(field, SLICE_LITERAL(PREFIX)))
            field = slice_sub(field, strlen(PREFIX), field.len - strlen(PREFIX));
        len += (size_t)snprintf(text + len, TEXT_MAX - len, "%.*s: %.*s\n", SLICE_ARGS(field),
                                SLICE_ARGS(e->message));
        assert_true(len < TEXT_MAX);
    }
    arena_fini(&arena);
}

static void assert_errors(const char *schema, const char *expected)
{
    char text[TEXT_MAX];
    errors_of(schema, NULL, text);
    assert_string_equal(text, expected);
}

#define RULES(rules) "\"x-kubernetes-validations\":[" rules "]"
#define OBJECT(fields, rules) "{\"type\":\"object\",\"properties\":{" fields "}," rules "}"
#define TEXT "\"a\":{\"type\":\"string\",\"maxLength\":5}"
#define RULE ".x-kubernetes-validations[0]"

static void rules_need_certain_texts(void **state)
{
    (void)state;
    assert_errors(OBJECT(TEXT, RULES("{\"rule\":\"self.a == 'b'\",\"message\":\"m\"}")), "");
    assert_errors(OBJECT(TEXT, RULES("{\"rule\":\" \"}")),
                  RULE ".rule: Required value: rule is not specified\n");
    assert_errors(OBJECT(TEXT, RULES("{\"rule\":\"true\",\"message\":\" \"}")),
                  RULE ".message: Invalid value: \" \": must be non-empty if specified\n");
    assert_errors(OBJECT(TEXT, RULES("{\"rule\":\"true\",\"message\":\"a\\nb\"}")),
                  RULE ".message: Invalid value: \"a\\nb\": must not contain line breaks\n");
    assert_errors(OBJECT(TEXT, RULES("{\"rule\":\"true\\n\\n&& true\"}")),
                  RULE ".message: Required value: message must be specified if rule contains line "
                       "breaks\n");
    assert_errors(OBJECT(TEXT, RULES("{\"rule\":\"true\",\"messageExpression\":\" \",\"reason\":"
                                     "\"Bad\",\"fieldPath\":\" \"}")),
                  RULE ".messageExpression: Required value: messageExpression must be non-empty if "
                       "specified\n" RULE ".reason: Unsupported value: \"Bad\": supported values: "
                       "\"FieldValueDuplicate\", \"FieldValueForbidden\", \"FieldValueInvalid\", "
                       "\"FieldValueRequired\"\n" RULE
                       ".fieldPath: Invalid value: \" \": must be non-empty if specified\n" RULE
                       ".fieldPath: Invalid value: \" \": must be a valid path\n");
}

static void the_path_of_a_field_must_exist(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        bool fine;
    } rows[] = {
        {".a", true},           {"['a']", true}, {".m['x']", true},      {".m.x", true},
        {"['it\\\\'s']", true}, {".b", false},   {"a", false},           {".a.b", false},
        {".", false},           {".a[", false},  {".a[0]", false},       {".m['x'", false},
        {".m[x]", false},       {"..a", false},  {".m['\\\\q']", false},
    };
    char schema[1024], text[TEXT_MAX];
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        snprintf(schema, sizeof(schema),
                 OBJECT(TEXT ",\"it's\":{\"type\":\"string\"},\"m\":{\"type\":\"object\","
                             "\"additionalProperties\":{\"type\":\"string\"}}",
                        RULES("{\"rule\":\"true\",\"fieldPath\":\"%s\"}")),
                 rows[i].path);
        errors_of(schema, NULL, text);
        if ((text[0] == '\0') != rows[i].fine)
            fail_msg("%s: %s", rows[i].path, text);
        if (text[0])
            assert_non_null(strstr(text, "must be a valid path\n"));
    }
}

static void rules_must_compile(void **state)
{
    (void)state;
    assert_errors(OBJECT(TEXT, RULES("{\"rule\":\"self.a\"}")),
                  RULE ".rule: Invalid value: {\"Rule\":\"self.a\",\"Message\":\"\","
                       "\"MessageExpression\":\"\",\"Reason\":null,\"FieldPath\":\"\","
                       "\"OptionalOldSelf\":null}: cel expression must evaluate to a bool\n");
    assert_errors(OBJECT(TEXT, RULES("{\"rule\":\"self.b == 1\"}")),
                  RULE ".rule: Invalid value: {\"Rule\":\"self.b == 1\",\"Message\":\"\","
                       "\"MessageExpression\":\"\",\"Reason\":null,\"FieldPath\":\"\","
                       "\"OptionalOldSelf\":null}: compilation failed: ERROR: <input>:1:5: "
                       "undefined field 'b'\n | self.b == 1\n | ....^\n");
    assert_errors(OBJECT("\"l\":{\"type\":\"array\",\"items\":{\"type\":\"string\"," RULES(
                             "{\"rule\":\"self == oldSelf\"}") "},\"maxItems\":2}",
                         RULES("{\"rule\":\"true\",\"optionalOldSelf\":true}")),
                  ".properties[l].items" RULE
                  ".rule: Invalid value: \"self == oldSelf\": oldSelf cannot be used on the "
                  "uncorrelatable portion of the schema within " PREFIX ".properties[l]\n" RULE
                  ".optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in "
                  "rule\n");
    assert_errors(OBJECT("\"p\":{\"x-kubernetes-preserve-unknown-fields\":true," RULES(
                             "{\"rule\":\"true\"}") "}",
                         RULES("{\"rule\":\"true\"}")),
                  ".properties[p].x-kubernetes-validations: Internal error: internal error: failed "
                  "to construct type information for x-kubernetes-validations rules: unable to "
                  "convert structural schema to CEL declarations\n");
}

#define ADVICE                                                                            \
    " (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where " \
    "arrays, maps, and strings are declared)\n"

static void costs_are_limited(void **state)
{
    (void)state;
    static const char dear[] =
        OBJECT("\"l\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}",
               RULES("{\"rule\":\"self.l.all(x, self.l.all(y, x + y == y + x))\"}"));
    static const char expected[] =
        RULE ".rule: Forbidden: estimated rule cost exceeds budget by factor of more than "
             "100x" ADVICE RULE ".rule: Forbidden: contributed to estimated rule cost total "
             "exceeding cost limit for entire OpenAPIv3 schema\n: Forbidden: "
             "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema "
             "exceeds budget by factor of more than 100x" ADVICE;
    assert_errors(dear, expected);
    /* Only the cost of all rules together counts for a schema that was there before. */
    char text[TEXT_MAX];
    errors_of(dear, dear, text);
    assert_string_equal(text, strchr(expected, '\n') + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_need_certain_texts),
        cmocka_unit_test(the_path_of_a_field_must_exist),
        cmocka_unit_test(rules_must_compile),
        cmocka_unit_test(costs_are_limited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
