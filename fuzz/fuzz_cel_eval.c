/*
 * Input: an expression, which is parsed, checked and evaluated with a few variables. Its tree may
 * have CEL_EXPR_HEIGHT_MAX levels, which take stack, and short patterns may be large.
 */
#include "cost.h"

#include "cel/eval/program.h"
#include "cel/library/objects.h"
#include "cel/syntax/parser.h"
#include "cel/value/container.h"
#include "codec/utf8.h"

enum { ARENA_BYTES_MAX = 32 << 20, COST_MAX = 10000 };

static const struct cel_variable variables[] = {
    {SLICE_LITERAL("x"), &cel_type_INT},    {SLICE_LITERAL("a"), &cel_type_LIST_INT},
    {SLICE_LITERAL("y"), &cel_type_STRING}, {SLICE_LITERAL("n"), &cel_type_DYN},
    {SLICE_LITERAL("self"), &cel_type_DYN},
};
static const char self_json[] =
    "{\"spec\":{\"replicas\":3,\"names\":[\"a\",\"\\u00e9\",\"b\"],\"ratio\":2.5,\"on\":true,"
    "\"none\":null,\"limits\":{\"cpu\":\"100m\",\"memory\":\"1Gi\"}},\"k\":[[1,2],[],[3]]}";

static void evaluate(const struct cel_program *program)
{
    struct arena arena;
    struct cel_budget budget = {.cost_max = COST_MAX};
    struct cel_value values[COUNT_OF(variables)];
    struct cel_work work = {.arena = &arena, .steps_left = COST_MAX};
    struct json_node *self;
    struct error error;
    arena_init(&arena, NULL, 0, ARENA_BYTES_MAX);
    enum status status = json_tree_read(&arena, slice_from_text(self_json), &self, &error);
    assert(status == ST_OK);
    values[0] = cel_of_int(7);
    values[1] = cel_list_append(&work, cel_list_new(&work, 0), cel_of_int(1));
    values[2] = cel_of_string(SLICE_LITERAL("h\xc3\xa9llo, 10.0.0.1"));
    values[3] = (struct cel_value){.kind = CEL_NULL};
    values[4] = cel_of_json(&work, self);
    struct cel_value value = cel_eval(program, values, &arena, &budget);
    assert(cel_is_error(value) || budget.cost <= COST_MAX);
    arena_fini(&arena);
}

FUZZ_INPUT(.steps_per_byte = 20000, .stack_bytes = 2 << 20, .memory_bytes = 4 * ARENA_BYTES_MAX)
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
    struct cel_env env = {.variables = variables,
                          .variable_count = COUNT_OF(variables),
                          .objects = &cel_mutation_objects,
                          .has_patches = true};
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
