#include "kube/custom/rules/compile.h"

#include "kube/custom/rules/types.h"
#include "kube/custom/schema/patterns.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

struct fixture {
    struct arena arena, schema_arena;
    const struct schema *schema;
    const struct rule_set *set;
};

static struct json_node *read_json(struct arena *arena, const char *text)
{
    struct json_node *node = NULL;
    struct error error = {0};
    assert_int_equal(json_tree_read(arena, slice_from_text(text), &node, &error), ST_OK);
    return node;
}

static void set_up(struct fixture *f, const char *schema)
{
    struct error error = {0};
    struct schema_traits traits = {0};
    struct patterns patterns;
    *f = (struct fixture){0};
    arena_init(&f->arena, NULL, 0, 32 << 20);
    arena_init(&f->schema_arena, NULL, 0, 32 << 20);
    patterns_init(&patterns, &f->schema_arena);
    assert_int_equal(schema_compile(&f->schema_arena, &patterns,
                                    read_json(&f->schema_arena, schema), &f->schema, &traits,
                                    &error),
                     ST_OK);
    patterns_fini(&patterns);
    assert_int_equal(rule_set_new(&f->arena, f->schema, &f->set), ST_OK);
}

static void tear_down(struct fixture *f)
{
    arena_fini(&f->arena);
    arena_fini(&f->schema_arena);
}

/* The value of a program of which self and oldSelf are JSON. */
static bool is_true(struct fixture *f, const struct cel_program *program, const char *self,
                    const char *old)
{
    struct cel_work work = {.arena = &f->arena, .steps_left = 1000};
    struct cel_budget budget = {.cost_max = 1000};
    struct cel_value variables[RULE_VARIABLES] = {
        [RULE_SELF] = cel_of_json(&work, read_json(&f->arena, self)),
        [RULE_OLD_SELF] = cel_of_json(&work, read_json(&f->arena, old)),
    };
    return cel_is_true(cel_eval(program, variables, &f->arena, &budget));
}

#define RULES(rules) "\"x-kubernetes-validations\":[" rules "]"
#define OBJECT(fields, more) "{\"type\":\"object\",\"properties\":{" fields "}," more "}"

static void rules_of_every_node_are_compiled_once(void **state)
{
    (void)state;
    struct fixture f;
    set_up(
        &f,
        OBJECT("\"a\":{\"type\":\"integer\"," RULES(
                   "{\"rule\":\"self < 3\"}") "},"
                                              "\"b\":{\"type\":\"array\",\"items\":{\"type\":"
                                              "\"integer\"," RULES(
                                                  "{\"rule\":\"self < 3\"}") "}},"
                                                                             "\"c\":{\"type\":"
                                                                             "\"object\","
                                                                             "\"additionalPropertie"
                                                                             "s\":{\"type\":"
                                                                             "\"string\"," RULES(
                                                                                 "{\"rule\":\"self "
                                                                                 "!= "
                                                                                 "oldSelf\","
                                                                                 "\"messageExpressi"
                                                                                 "on\":\"'no "
                                                                                 "'+self\"}") "}}",
               RULES("{\"rule\":\"self.a > 0\"},{\"rule\":\"size(self.b) < 2\"}")));
    const struct rule_programs *root = rule_set_find(f.set, f.schema);
    const struct schema *a = schema_property(f.schema, SLICE_LITERAL("a"));
    const struct schema *b = schema_property(f.schema, SLICE_LITERAL("b"));
    const struct schema *c = schema_property(f.schema, SLICE_LITERAL("c"));
    assert_int_equal(root->count, 2);
    assert_true(is_true(&f, root->list[0].condition, "{\"a\":1}", "null"));
    assert_false(is_true(&f, root->list[0].condition, "{\"a\":0}", "null"));
    assert_true(is_true(&f, root->list[1].condition, "{\"b\":[1]}", "null"));
    assert_false(root->list[0].uses_old);

    const struct rule_programs *of_a = rule_set_find(f.set, a);
    assert_ptr_equal(of_a, rule_set_find(f.set, b->items));
    assert_true(is_true(&f, of_a->list[0].condition, "2", "null"));
    assert_null(rule_set_find(f.set, b));

    const struct rule_programs *of_c = rule_set_find(f.set, c->additional);
    assert_true(of_c->list[0].uses_old);
    assert_true(is_true(&f, of_c->list[0].condition, "\"x\"", "\"y\""));
    assert_false(is_true(&f, of_c->list[0].condition, "\"x\"", "\"x\""));
    assert_non_null(of_c->list[0].message);
    tear_down(&f);
}

/* The error of the only rule at the root, or the rule's type must be right. */
static void assert_error(const char *fields, const char *rule, const char *expected)
{
    struct fixture f;
    char schema[2048];
    snprintf(schema, sizeof(schema), "{\"type\":\"object\",\"properties\":{%s},%s%s}]}", fields,
             "\"x-kubernetes-validations\":[{\"rule\":\"", rule);
    set_up(&f, schema);
    const struct rule_programs *root = rule_set_find(f.set, f.schema);
    assert_int_equal(root->count, 1);
    const struct rule_program *program = &root->list[0];
    struct slice error = program->error.len ? program->error : program->message_error;
    assert_true(error.len || program->condition || strcmp(rule, " \"") == 0);
    if (!slice_equal(error, slice_from_text(expected)))
        fail_msg("%s: %.*s", rule, SLICE_ARGS(error));
    tear_down(&f);
}

static void wrong_rules_have_the_errors_of_kubernetes(void **state)
{
    (void)state;
    static const char fields[] = "\"a\":{\"type\":\"integer\"},\"s\":{\"type\":\"string\"}";
    assert_error(fields, "self.a == 1\"", "");
    assert_error(fields, " \"", "");
    assert_error(fields, "self.a\"", "cel expression must evaluate to a bool");
    assert_error(fields, "self.c == 1\"",
                 "compilation failed: ERROR: <input>:1:5: undefined field 'c'\n"
                 " | self.c == 1\n"
                 " | ....^");
    assert_error(fields, "true\",\"messageExpression\":\"self.s\"", "");
    assert_error(fields, "true\",\"messageExpression\":\"self.a\"",
                 "messageExpression must evaluate to a string");
    assert_error(
        fields, "true\",\"messageExpression\":\"self.\"",
        "messageExpression compilation failed: ERROR: <input>:1:6: Syntax error: no viable "
        "alternative at input '.'\n"
        " | self.\n"
        " | .....^");
    assert_error(fields, "oldSelf.hasValue()\",\"optionalOldSelf\":true", "");
}

static void the_type_of_a_value_follows_from_its_schema(void **state)
{
    (void)state;
#define FIELD(schema) "\"f\":" schema
    static const char *const rows[][2] = {
        {FIELD("{\"type\":\"number\"}"), "self.f == 1.0\""},
        {FIELD("{\"type\":\"boolean\"}"), "self.f\""},
        {FIELD("{\"type\":\"string\"}"), "self.f == 'a'\""},
        {FIELD("{\"type\":\"string\",\"format\":\"byte\"}"), "self.f == b'a'\""},
        {FIELD("{\"type\":\"string\",\"format\":\"date\"}"),
         "self.f == timestamp('2020-01-01T00:00:00Z')\""},
        {FIELD("{\"type\":\"string\",\"format\":\"date-time\"}"),
         "self.f == timestamp('2020-01-01T00:00:00Z')\""},
        {FIELD("{\"type\":\"string\",\"format\":\"duration\"}"), "self.f == duration('1s')\""},
        {FIELD("{\"type\":\"string\",\"format\":\"uuid\"}"), "self.f == 'a'\""},
        {FIELD("{\"x-kubernetes-int-or-string\":true}"), "self.f == 1 || self.f == 'a'\""},
        {FIELD("{\"type\":\"array\",\"items\":{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}"
               "}"),
         "self.f == [[1]]\""},
        {FIELD("{\"type\":\"object\",\"additionalProperties\":{\"type\":\"integer\"}}"),
         "self.f == {'a': 1}\""},
        {FIELD("{\"type\":\"object\",\"x-kubernetes-preserve-unknown-fields\":true}"),
         "has(self.f)\""},
        {FIELD("{\"type\":\"object\",\"x-kubernetes-embedded-resource\":true}"),
         "self.f.kind == 'a' && self.f.metadata.name == self.f.metadata.generateName\""},
        {"\"a-b.c/d__e_f\":{\"type\":\"integer\"}",
         "self.a__dash__b__dot__c__slash__d__underscores__e_f == 1\""},
        {"\"namespace\":{\"type\":\"integer\"}", "self.namespace == self.__namespace__\""},
        {"\"__namespace__\":{\"type\":\"integer\"}",
         "self.__underscores__namespace__underscores__ == 1\""},
        {"\"true\":{\"type\":\"integer\"}", "self.__true__ == 1\""},
        {"\"a\":{\"type\":\"integer\"}", "self.apiVersion + self.kind == self.metadata.name\""},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_error(rows[i][0], rows[i][1], "");
    assert_error("\"9\":{\"type\":\"integer\"}", "has(self.a9)\"",
                 "compilation failed: ERROR: <input>:1:4: undefined field 'a9'\n"
                 " | has(self.a9)\n | ...^");
    assert_error("\"a\":{\"x-kubernetes-preserve-unknown-fields\":true}", "has(self.a)\"",
                 "compilation failed: ERROR: <input>:1:4: undefined field 'a'\n"
                 " | has(self.a)\n | ...^");
    assert_error("\"a\":{\"type\":\"integer\"}", "has(self.metadata.labels)\"",
                 "compilation failed: ERROR: <input>:1:4: undefined field 'labels'\n"
                 " | has(self.metadata.labels)\n | ...^");
}

static void a_rule_takes_less_than_2_kilobytes(void **state)
{
    (void)state;
    struct fixture f;
    struct buf schema = {0};
    enum { RULES_MANY = 100 };
    assert_int_equal(buf_append_text(&schema, "{\"type\":\"object\",\"properties\":{"
                                              "\"min\":{\"type\":\"integer\"},"
                                              "\"max\":{\"type\":\"integer\"},"
                                              "\"names\":{\"type\":\"array\",\"items\":{"
                                              "\"type\":\"string\"}}},"
                                              "\"x-kubernetes-validations\":["),
                     ST_OK);
    for (int i = 0; i < RULES_MANY; i++)
        assert_int_equal(
            buf_append_format(&schema,
                              "%s{\"rule\":\"self.min <= self.max && (!has(self.names) || "
                              "size(self.names) < %d)\"}",
                              i ? "," : "", i),
            ST_OK);
    assert_int_equal(buf_append_text(&schema, "]}"), ST_OK);
    assert_int_equal(buf_append(&schema, slice_of("", 1)), ST_OK);
    set_up(&f, (const char *)schema.ptr);
    assert_in_range(f.arena.held_bytes, 1, RULES_MANY * 2048);
    buf_fini(&schema);
    tear_down(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_of_every_node_are_compiled_once),
        cmocka_unit_test(wrong_rules_have_the_errors_of_kubernetes),
        cmocka_unit_test(the_type_of_a_value_follows_from_its_schema),
        cmocka_unit_test(a_rule_takes_less_than_2_kilobytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
