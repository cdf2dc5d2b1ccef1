#include "cel/eval/program.h"
#include "cel/syntax/parser.h"
#include "cel/value/container.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

/* tests/cel_oracle.py compares the values and costs of many expressions with cel-go's. */

enum { ARENA_BYTES_MAX = 64 << 20 };

static const struct cel_variable variables[] = {
    {SLICE_LITERAL("x"), &cel_type_INT},
    {SLICE_LITERAL("a"), &cel_type_LIST_INT},
    {SLICE_LITERAL("d"), &cel_type_DYN},
};
static const struct cel_env env = {.variables = variables, .variable_count = COUNT_OF(variables)};

struct fixture {
    struct arena arena, evaluation;
    const struct cel_program *program;
    struct cel_value values[COUNT_OF(variables)];
};

static enum status start(struct fixture *f, const char *text, size_t arena_bytes)
{
    struct cel_errors errors;
    struct cel_expr *root;
    arena_init(&f->arena, NULL, 0, arena_bytes);
    cel_errors_init(&errors, &f->arena, slice_from_text(text));
    enum status status = cel_parse(&errors, &root);
    if (status == ST_OK)
        status = cel_check(&env, &errors, root);
    if (status == ST_OK)
        status = cel_program_new(&env, &errors, root, &f->program);
    return status;
}

static struct cel_value run(struct fixture *f, size_t arena_bytes, struct cel_budget *budget)
{
    static const char json[] =
        "{\"a\": [1, 2, 3], \"d\": {\"k\": [\"\\u0061b\", null], \"m\": {\"n\": 1}}}";
    struct json_node *root;
    struct error error;
    assert_int_equal(json_tree_read(&f->arena, slice_from_text(json), &root, &error), ST_OK);
    arena_init(&f->evaluation, NULL, 0, arena_bytes);
    struct cel_work work = {.arena = &f->evaluation, .steps_left = 1000};
    f->values[0] = cel_of_int(7);
    f->values[1] = cel_of_json(&work, json_node_named(root, "a"));
    f->values[2] = cel_of_json(&work, json_node_named(root, "d"));
    return cel_eval(f->program, f->values, &f->evaluation, budget);
}

static void end(struct fixture *f)
{
    arena_fini(&f->arena);
    arena_fini(&f->evaluation);
}

static void assert_fails(const char *text, uint64_t cost_max, const char *expected)
{
    struct fixture f;
    struct cel_budget budget = {.cost_max = cost_max};
    assert_int_equal(start(&f, text, ARENA_BYTES_MAX), ST_OK);
    struct cel_value value = run(&f, ARENA_BYTES_MAX, &budget);
    assert_int_equal(value.kind, CEL_ERROR);
    assert_true(slice_equal(cel_text(value), slice_from_text(expected)));
    end(&f);
}

static void evaluation_ends_with_its_budget(void **state)
{
    (void)state;
    const char *ended = "operation cancelled: actual cost limit exceeded";
    assert_fails("a.all(i, a.all(j, a.all(k, i + j + k > 0)))", 20, ended);
    /* A condition that decides does not hide it. */
    assert_fails("a.all(i, i > 0) || true", 0, ended);
}

/* Comparing a list with itself costs a tenth of its length, but is as much work as all its parts.
 */
static void work_that_has_no_cost_is_limited(void **state)
{
    (void)state;
    assert_fails("[a, a, a, a, a, a, a, a].map(i, [i, i, i, i, i, i, i, i])"
                 ".map(i, [i, i, i, i, i, i, i, i]).map(i, [i, i, i, i, i, i, i, i])"
                 ".map(l, [l, l, l, l, l, l, l, l]) == [] || [[a]].map(l, [l, l]).size() < 0 || "
                 "[[a, a, a, a]].map(i, [i, i, i, i]).map(i, [i, i, i, i]).map(i, [i, i, i, i])"
                 ".map(i, [i, i, i, i]).map(i, [i, i, i, i]).map(i, [i, i, i, i])"
                 ".map(i, [i, i, i, i]).map(i, [i, i, i, i]).map(i, [i, i, i, i])"
                 ".map(i, i == i && i == i).all(t, t)",
                 3000, "operation cancelled: actual cost limit exceeded");
}

static void costs_of_several_evaluations_add_up(void **state)
{
    (void)state;
    struct fixture f;
    struct cel_budget budget = {.cost_max = 7};
    assert_int_equal(start(&f, "x + 1", ARENA_BYTES_MAX), ST_OK);
    for (uint64_t i = 1; i <= 3; i++) {
        assert_int_equal(run(&f, ARENA_BYTES_MAX, &budget).kind, CEL_INT);
        assert_int_equal(budget.cost, 2 * i);
        arena_fini(&f.evaluation);
    }
    assert_int_equal(run(&f, ARENA_BYTES_MAX, &budget).kind, CEL_ERROR);
    end(&f);
}

/* A path is followed at once only if what it costs is there. */
static void a_path_costs_what_its_steps_cost(void **state)
{
    (void)state;
    struct fixture f;
    assert_int_equal(start(&f, "d.k.size()", ARENA_BYTES_MAX), ST_OK);
    for (uint64_t cost_max = 0; cost_max <= 3; cost_max++) {
        struct cel_budget budget = {.cost_max = cost_max};
        bool suffices = run(&f, ARENA_BYTES_MAX, &budget).kind == CEL_INT;
        assert_int_equal(suffices, cost_max == 3);
        assert_int_equal(budget.cost, suffices ? 3 : cost_max + 1);
        arena_fini(&f.evaluation);
    }
    arena_fini(&f.arena);
    assert_fails("d.z", 10, "no such key: z");
    assert_fails("d.k.z", 10, "unsupported index type 'string' in list");
}

static void a_test_of_a_path_costs_no_more_than_its_steps(void **state)
{
    static const struct {
        const char *text;
        bool found;
        uint64_t cost;
    } rows[] = {
        {"has(d.k)", true, 1},       {"has(d.z)", false, 1},     {"has(d.m.n)", true, 2},
        {"has(d.m.z)", false, 2},    {"has(d.m.n.z)", false, 3}, {"has(d['m'].n)", true, 2},
        {"has(d['m'].z)", false, 2},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct fixture f;
        struct cel_budget budget = {.cost_max = 100};
        assert_int_equal(start(&f, rows[i].text, ARENA_BYTES_MAX), ST_OK);
        struct cel_value value = run(&f, ARENA_BYTES_MAX, &budget);
        assert_int_equal(value.kind, CEL_BOOL);
        assert_int_equal(value.truth, rows[i].found);
        assert_int_equal(budget.cost, rows[i].cost);
        end(&f);
    }
    assert_fails("has(d.z.k)", 100, "no such key: z");
    assert_fails("has(d.k.z)", 100, "unsupported index type 'string' in list");
}

static void lists_stay_as_they_are_when_items_are_appended(void **state)
{
    (void)state;
    struct fixture f;
    struct cel_budget budget = {.cost_max = 1000};
    assert_int_equal(start(&f,
                           "[a + [x]].all(l, (l + [x + 1])[4] == 8 && (l + [x + 2])[4] == 9 && "
                           "(l + [x + 3]).size() == 5 && l == [1, 2, 3, 7])",
                           ARENA_BYTES_MAX),
                     ST_OK);
    assert_true(cel_is_true(run(&f, ARENA_BYTES_MAX, &budget)));
    end(&f);
    assert_fails("a + [x / 0]", 1000, "division by zero");
    assert_fails("dyn(x) + [x]", 1000, "no such overload");
    assert_fails("d.z + [x]", 1000, "no such key: z");
}

static void constants_stay_as_they_are(void **state)
{
    (void)state;
    struct fixture f;
    assert_int_equal(start(&f, "([1] + [2] + a).size() + {'k': 1}.transformMap(k, v, v).size()",
                           ARENA_BYTES_MAX),
                     ST_OK);
    for (int i = 0; i < 3; i++) {
        struct cel_budget budget = {.cost_max = 10000};
        struct cel_value value = run(&f, ARENA_BYTES_MAX, &budget);
        assert_int_equal(value.kind, CEL_INT);
        assert_int_equal(value.i64, 6);
        arena_fini(&f.evaluation);
    }
    arena_fini(&f.arena);
}

static void evaluation_survives_the_lack_of_memory(void **state)
{
    (void)state;
    struct fixture f;
    const char *text = "a.map(i, {string(i): [i, x]}).all(m, m.all(k, v, v.size() == 2)) && d.k[0] "
                       "== 'ab' && optional.of(d.?k[1]).hasValue() && size(string(x) + 'abc') > 0";
    for (size_t bytes = 64;; bytes += 64) {
        enum status status = start(&f, text, bytes);
        if (status == ST_OK)
            break;
        assert_int_equal(status, ST_NOMEM);
        assert_true(bytes < ARENA_BYTES_MAX);
        arena_fini(&f.arena);
    }
    arena_fini(&f.arena);
    assert_int_equal(start(&f, text, ARENA_BYTES_MAX), ST_OK);
    struct cel_value value = {.kind = CEL_ERROR};
    for (size_t bytes = 64; value.kind == CEL_ERROR; bytes += 64) {
        struct cel_budget budget = {.cost_max = 10000};
        assert_true(bytes < ARENA_BYTES_MAX);
        value = run(&f, bytes, &budget);
        arena_fini(&f.evaluation);
    }
    assert_true(cel_is_true(value));
    arena_fini(&f.arena);
}

static void an_index_of_a_type_without_keys_is_refused(void **state)
{
    (void)state;
    struct fixture f;
    assert_int_equal(start(&f, "d[b'k']", ARENA_BYTES_MAX), ST_INVALID);
    arena_fini(&f.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(evaluation_ends_with_its_budget),
        cmocka_unit_test(work_that_has_no_cost_is_limited),
        cmocka_unit_test(costs_of_several_evaluations_add_up),
        cmocka_unit_test(a_path_costs_what_its_steps_cost),
        cmocka_unit_test(a_test_of_a_path_costs_no_more_than_its_steps),
        cmocka_unit_test(lists_stay_as_they_are_when_items_are_appended),
        cmocka_unit_test(constants_stay_as_they_are),
        cmocka_unit_test(an_index_of_a_type_without_keys_is_refused),
        cmocka_unit_test(evaluation_survives_the_lack_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
