#include "kube/custom/rules/evaluate.h"

#include "kube/custom/rules/field_path.h"
#include "kube/custom/schema/correlate.h"
#include "kube/custom/schema/patterns.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

/* tests/kube/rules_test.py compares texts and costs with Kubernetes' own code. */

struct fixture {
    struct arena arena;
    const struct schema *schema;
    const struct rule_node *rules;
    struct kube_field_errors errors, warnings;
};

static const struct json_node *read_json(struct fixture *f, const char *text)
{
    struct json_node *node;
    struct error error;
    assert_int_equal(json_tree_read(&f->arena, slice_from_text(text), &node, &error), ST_OK);
    return node;
}

static void begin(struct fixture *f, const char *schema)
{
    struct patterns patterns;
    struct schema_traits traits = {0};
    struct error error;
    *f = (struct fixture){0};
    arena_init(&f->arena, NULL, 0, 16 << 20);
    patterns_init(&patterns, &f->arena);
    assert_int_equal(
        schema_compile(&f->arena, &patterns, read_json(f, schema), &f->schema, &traits, &error),
        ST_OK);
    patterns_fini(&patterns);
    assert_int_equal(rule_tree_new(&f->arena, f->schema, false, &f->rules), ST_OK);
}

/* Returns what is left of the budget. */
static int64_t evaluate(struct fixture *f, const char *value, const char *old, int64_t budget)
{
    f->errors = f->warnings = (struct kube_field_errors){.arena = &f->arena};
    struct rule_evaluation evaluation = {.arena = &f->arena,
                                         .errors = &f->errors,
                                         .warnings = old ? &f->warnings : NULL,
                                         .call_max = RULE_CALL_COST_MAX,
                                         .budget = budget};
    rules_evaluate(f->rules, read_json(f, value), old ? read_json(f, old) : NULL,
                   SLICE_LITERAL("spec"), &evaluation);
    return evaluation.budget;
}

static void assert_error(const struct kube_field_error *error, const char *field,
                         const char *message)
{
    assert_non_null(error);
    assert_true(slice_is(error->field, field));
    assert_true(slice_is(error->message, message));
}

#define RULES(text) "\"x-kubernetes-validations\":[{\"rule\":\"" text "\"}]"
#define LIST                                                                                    \
    "{\"type\":\"array\",\"x-kubernetes-list-type\":\"map\",\"x-kubernetes-list-map-keys\":["   \
    "\"n\"],\"items\":{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"string\"},\"v\":{" \
    "\"type\":\"integer\"," RULES("self >= oldSelf") "}}," RULES("self.v != 3") "}}"

static void rules_of_a_value_come_before_those_below_it(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f, "{\"type\":\"object\",\"properties\":{\"b\":{\"type\":\"integer\"," RULES(
                  "self > 1") "},\"a\":{\"type\":\"object\",\"additionalProperties\":{\"type\":"
                              "\"string\"," RULES("self == ''") "}}}," RULES("self.b > 2") "}");
    (void)evaluate(&f, "{\"b\":1,\"a\":{\"y\":\"1\",\"x\":\"2\"}}", NULL, RULE_WRITE_COST_MAX);
    assert_int_equal(f.errors.count, 4);
    const struct kube_field_error *error = f.errors.first;
    assert_error(error, "spec", "Invalid value: failed rule: self.b > 2");
    assert_error(error->next, "spec.a[x]", "Invalid value: \"2\": failed rule: self == ''");
    assert_error(error->next->next, "spec.a[y]", "Invalid value: \"1\": failed rule: self == ''");
    assert_error(f.errors.last, "spec.b", "Invalid value: 1: failed rule: self > 1");
    arena_fini(&f.arena);
}

static void items_correlate_by_their_keys(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f, LIST);
    const char *old = "[{\"n\":\"p\",\"v\":3},{\"n\":\"q\",\"v\":5}]";
    (void)evaluate(&f, "[{\"n\":\"q\",\"v\":4},{\"n\":\"p\",\"v\":3},{\"n\":\"r\",\"v\":3}]", old,
                   RULE_WRITE_COST_MAX);
    assert_int_equal(f.errors.count, 2);
    assert_error(f.errors.first, "spec[0].v", "Invalid value: 4: failed rule: self >= oldSelf");
    assert_error(f.errors.last, "spec[2]", "Invalid value: failed rule: self.v != 3");
    assert_int_equal(f.warnings.count, 1); /* unchanged */
    assert_error(f.warnings.first, "spec[1]", "Invalid value: failed rule: self.v != 3");
    arena_fini(&f.arena);
}

static void nothing_runs_beyond_the_budget(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f, LIST);
    const char *value = "[{\"n\":\"q\",\"v\":4},{\"n\":\"p\",\"v\":3}]";
    int64_t cost = 1000 - evaluate(&f, value, NULL, 1000);
    assert_int_equal(f.errors.count, 1);
    assert_int_equal(evaluate(&f, value, NULL, cost + 1), 1);
    assert_int_equal(f.errors.count, 1);
    assert_int_equal(evaluate(&f, value, NULL, cost - 1), -1);
    assert_int_equal(f.errors.count, 1);
    assert_error(f.errors.first, "spec[1]",
                 "Invalid value: \"object\": validation failed due to running out of cost budget, "
                 "no further validation rules will be run");
    arena_fini(&f.arena);
}

static void a_schema_without_rules_has_no_nodes(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f, "{\"type\":\"object\",\"properties\":{\"b\":{\"type\":\"integer\"}}}");
    assert_null(f.rules);
    arena_fini(&f.arena);
}

static void field_paths_name_fields_and_entries(void **state)
{
    static const char *const cases[][2] = {
        {".a.b", "a.b"},
        {".m['k.\\'']", "m[k.']"},
        {"['x y']", "x y"},
        {".a.c", "does not refer to a valid field"},
        {".m[k]", "expected single quoted string but got k"},
        {"a", "expected [ or . but got: a"},
        {".m['\\q']", "invalid string literal: invalid escape char \\q"},
    };
    struct fixture f;
    char why[RULE_PATH_WHY_BYTES];
    (void)state;
    begin(&f, "{\"type\":\"object\",\"properties\":{\"x y\":{\"type\":\"string\"},\"a\":{\"type\":"
              "\"object\",\"properties\":{\"b\":{\"type\":\"string\"}}},\"m\":{\"type\":\"object\","
              "\"additionalProperties\":{\"type\":\"string\"}}}}");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        AUTO(buf_fini) struct buf text = {0};
        enum status status = rule_field_path(f.schema, slice_from_text(cases[i][0]), &text, why);
        if (status == ST_OK)
            assert_true(slice_is(buf_slice(&text), cases[i][1]));
        else
            assert_string_equal(why, cases[i][1]);
    }
    arena_fini(&f.arena);
}

#define SET_OF(format)                                                                             \
    "{\"type\":\"array\",\"x-kubernetes-list-type\":\"set\",\"items\":{\"type\":\"string\"" format \
    "}}"
#define SHAPED(rule)                                                                               \
    "{\"type\":\"object\",\"properties\":{\"a-b\":" SET_OF("") ",\"b\":" SET_OF(                   \
        ",\"format\":\"byte\"") ",\"t\":" SET_OF(",\"format\":\"duration\"") ",\"n\":{\"type\":"   \
                                                                             "\"array\","          \
                                                                             "\"items\":{"         \
                                                                             "\"type\":"           \
                                                                             "\"string\","         \
                                                                             "\"nullable\":true}}" \
                                                                             "},"                  \
                                                                             "\"x-kubernetes-"     \
                                                                             "validations\":["     \
                                                                             "{" rule "}]}"
#define OPTIONAL_OLD "\"optionalOldSelf\":true,\"rule\":"

/* What cel-go forgets about values, and where it panics. */
static void rules_fail_as_those_of_cel_go(void **state)
{
    static const struct {
        const char *schema, *message; /* NULL: no error */
        int64_t cost;
    } cases[] = {
        {SHAPED("\"rule\":\"oldSelf.a__dash__b == ['y', 'x']\""), NULL, 3},
        {SHAPED(OPTIONAL_OLD "\"dyn(oldSelf.value())['a-b'] == ['y', 'x']\""),
         "Invalid value: failed rule: dyn(oldSelf.value())['a-b'] == ['y', 'x']", 6},
        {SHAPED(OPTIONAL_OLD "\"oldSelf.value().a__dash__b.size() == 2\""),
         "Invalid value: \"object\": no such key: a__dash__b evaluating rule: "
         "oldSelf.value().a__dash__b.size() == 2",
         6},
        {SHAPED(OPTIONAL_OLD "\"false && oldSelf.hasValue()\",\"messageExpression\":"
                             "\"oldSelf.orValue(self).a__dash__b[0]\""),
         "Invalid value: x", 4},
        {SHAPED("\"rule\":\"self.b + self.b == self.b || true\""),
         "Invalid value: \"object\": internal error: runtime error: hash of unhashable type "
         "[]uint8 evaluating rule: self.b + self.b == self.b || true",
         4},
        {SHAPED("\"rule\":\"self.t + self.t == self.t + self.t\""),
         "Invalid value: failed rule: self.t + self.t == self.t + self.t", 11},
        {SHAPED("\"rule\":\"type(self.n) == list && type(self) != map\""),
         "Invalid value: failed rule: type(self.n) == list && type(self) != map", 7},
        {SHAPED("\"rule\":\"optional.of(self.n).optMap(v, self.n).hasValue()\""), NULL, 8},
        {SHAPED("\"rule\":\"optional.of(self.n).optMap(v, v).hasValue()\""), NULL, 11},
        {SHAPED("\"rule\":\"true || dyn(b'a') in [1, 2]\""), NULL, 0},
        {SHAPED("\"rule\":\"dyn(b'a') in [1, 2] || true\""),
         "Invalid value: \"object\": internal error: runtime error: hash of unhashable type "
         "types.Bytes evaluating rule: dyn(b'a') in [1, 2] || true",
         0},
        {SHAPED("\"rule\":\"self.b != self.b\""),
         "Invalid value: \"object\": internal error: runtime error: hash of unhashable type "
         "[]uint8 evaluating rule: self.b != self.b",
         4},
        {SHAPED("\"rule\":\"(self.n + self.n)[1] == 'x'\""),
         "Invalid value: \"object\": invalid data, expected string, got structpb.NullValue "
         "evaluating rule: (self.n + self.n)[1] == 'x'",
         8},
    };
    static const char value[] = "{\"a-b\":[\"x\",\"y\"],\"b\":[\"YQ==\"],\"n\":[null],"
                                "\"t\":[\"1h\"]}";
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct fixture f;
        begin(&f, cases[i].schema);
        assert_int_equal(1000 - evaluate(&f, value, value, 1000), cases[i].cost);
        const struct kube_field_error *error = f.errors.first ? f.errors.first : f.warnings.first;
        if (cases[i].message)
            assert_error(error, "spec", cases[i].message);
        else
            assert_null(error);
        arena_fini(&f.arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_of_a_value_come_before_those_below_it),
        cmocka_unit_test(items_correlate_by_their_keys),
        cmocka_unit_test(nothing_runs_beyond_the_budget),
        cmocka_unit_test(rules_fail_as_those_of_cel_go),
        cmocka_unit_test(a_schema_without_rules_has_no_nodes),
        cmocka_unit_test(field_paths_name_fields_and_entries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
