#include "cel/estimate/estimate.h"

#include "cel/check/checker.h"
#include "cel/syntax/parser.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* The cost of an expression whose variable `a` is a list of at most 10 texts with at most 40 bytes.
 */
static struct cel_range cost_of(const char *source)
{
    struct arena arena;
    struct cel_errors errors;
    struct cel_expr *root;
    struct cel_range cost;
    arena_init(&arena, NULL, 0, 64 << 20);
    const struct cel_type *text = cel_type_with_size(&arena, &cel_type_STRING, 40);
    const struct cel_type *list = cel_type_with_size(&arena, cel_type_new_list(&arena, text), 10);
    const struct cel_variable variables[] = {{SLICE_LITERAL("a"), list}};
    struct cel_env env = {.variables = variables, .variable_count = 1};
    cel_errors_init(&errors, &arena, slice_from_text(source));
    assert_int_equal(cel_parse(&errors, &root), ST_OK);
    assert_int_equal(cel_check(&env, &errors, root), ST_OK);
    assert_int_equal(cel_estimate(&arena, list, root, &cost), ST_OK);
    arena_fini(&arena);
    return cost;
}

static void assert_cost(const char *source, uint64_t min, uint64_t max)
{
    struct cel_range cost = cost_of(source);
    if (cost.min != min || cost.max != max)
        fail_msg("%s costs %llu to %llu", source, (unsigned long long)cost.min,
                 (unsigned long long)cost.max);
}

static void sizes_come_from_the_type_of_the_variable(void **state)
{
    (void)state;
    assert_cost("true", 0, 0);
    assert_cost("a.size() < 3", 3, 3);
    assert_cost("a[0] == 'abc'", 3, 3);
    assert_cost("a[0] == a[1]", 5, 8);
    assert_cost("a.all(x, x.startsWith('a'))", 2, 52);
    assert_cost("a.all(x, a.all(y, x + y == y + x))", 2, 3152);
}

static void costs_end_at_the_largest_number(void **state)
{
    (void)state;
    assert_cost("dyn(1).all(x, true)", 5, 5);
    assert_cost("'%s'.format(a).find('%s'.format(a)) == 'b'", 5, UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_come_from_the_type_of_the_variable),
        cmocka_unit_test(costs_end_at_the_largest_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
