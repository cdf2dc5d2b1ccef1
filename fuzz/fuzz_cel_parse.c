/* Input: an expression, which is parsed, checked and evaluated with a few variables. */
#include "cost.h"

#include "cel/eval/program.h"
#include "cel/syntax/parser.h"
#include "cel/value/container.h"
#include "codec/utf8.h"

enum { ARENA_BYTES_MAX = 32 << 20, COST_MAX = 10000 };

static const struct cel_variable variables[] = {
    {SLICE_LITERAL("x"), &cel_type_INT},
    {SLICE_LITERAL("a"), &cel_type_LIST_INT},
    {SLICE_LITERAL("self"), &cel_type_DYN},
};

static void evaluate(const struct cel_program *program)
{
    struct arena arena;
    struct cel_budget budget = {.cost_max = COST_MAX};
    struct cel_value values[] = {cel_of_int(7), cel_of_none(), {.kind = CEL_NULL}};
    struct cel_work work = {.steps_left = COST_MAX};
    arena_init(&arena, NULL, 0, ARENA_BYTES_MAX);
    work.arena = &arena;
    values[1] = cel_list_append(&work, cel_list_new(&work, 0), cel_of_int(1));
    struct cel_value value = cel_eval(program, values, &arena, &budget);
    assert(cel_is_error(value) || budget.cost <= COST_MAX);
    arena_fini(&arena);
}

FUZZ_INPUT(.memory_bytes = 2 * ARENA_BYTES_MAX)
{
    struct arena arena;
    struct cel_errors errors;
    struct cel_expr *root;
    const struct cel_program *program;
    AUTO(buf_fini) struct buf shown = {0};
    struct slice source = slice_of(data, size);
    if (!utf8_valid(source))
        return 0;
    arena_init(&arena, NULL, 0, ARENA_BYTES_MAX);
    cel_errors_init(&errors, &arena, source);
    struct cel_env env = {.variables = variables, .variable_count = COUNT_OF(variables)};
    enum status status = cel_parse(&errors, &root);
    if (status == ST_OK)
        status = cel_check(&env, &errors, root);
    if (status == ST_OK)
        status = cel_program_new(&env, &errors, root, &program);
    assert((status == ST_INVALID) == cel_errors_any(&errors) || status == ST_NOMEM);
    if (status == ST_OK)
        evaluate(program);
    else
        assert(cel_errors_display(&errors, &shown) == ST_OK);
    arena_fini(&arena);
    return 0;
}
