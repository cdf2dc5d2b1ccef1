/*
 * Input: an expression, which is parsed and checked with variables of many types. Its tree may have
 * CEL_EXPR_HEIGHT_MAX levels, which take stack, and short patterns may be large.
 */
#include "cost.h"

#include "cel/check/checker.h"
#include "cel/library/objects.h"
#include "cel/syntax/parser.h"
#include "codec/utf8.h"

enum { ARENA_BYTES_MAX = 32 << 20 };

static enum status find_field(const struct cel_object *object, struct slice name,
                              struct arena *arena, const struct cel_type **ret_type);

static const struct cel_object fields = {.field = find_field};
static const struct cel_type object = {.kind = CEL_TYPE_OBJECT, .name = "T", .object = &fields};

/* Fields that are named after their types, and "o", which is such an object itself. */
static enum status find_field(const struct cel_object *of, struct slice name, struct arena *arena,
                              const struct cel_type **ret_type)
{
    static const struct cel_variable types[] = {
        {SLICE_LITERAL("i"), &cel_type_INT},    {SLICE_LITERAL("s"), &cel_type_STRING},
        {SLICE_LITERAL("b"), &cel_type_BOOL},   {SLICE_LITERAL("t"), &cel_type_TIMESTAMP},
        {SLICE_LITERAL("d"), &cel_type_DYN},    {SLICE_LITERAL("l"), &cel_type_LIST_STRING},
        {SLICE_LITERAL("f"), &cel_type_DOUBLE}, {SLICE_LITERAL("o"), &object},
    };
    (void)of;
    (void)arena;
    for (size_t i = 0; i < COUNT_OF(types); i++)
        if (slice_equal(types[i].name, name))
            *ret_type = types[i].type;
    return ST_OK;
}

static const struct cel_variable variables[] = {
    {SLICE_LITERAL("self"), &object},
    {SLICE_LITERAL("x"), &cel_type_INT},
    {SLICE_LITERAL("a"), &cel_type_LIST_INT},
    {SLICE_LITERAL("d"), &cel_type_DYN},
    {SLICE_LITERAL("v.w"), &cel_type_UINT},
    {SLICE_LITERAL("u"), &cel_type_DURATION},
    {SLICE_LITERAL("o"), &cel_type_OPTIONAL_TYPE_LIST_STRING},
};

static enum status find_object(const struct cel_objects *of, struct slice name, struct arena *arena,
                               const struct cel_type **ret_type)
{
    *ret_type = &object;
    return slice_is(name, "T") ? ST_OK : cel_mutation_objects.find(of, name, arena, ret_type);
}

static const struct cel_objects objects = {.find = find_object};

FUZZ_INPUT(.steps_per_byte = 20000, .stack_bytes = 2 << 20, .memory_bytes = 4 * ARENA_BYTES_MAX)
{
    struct arena arena;
    struct cel_errors errors;
    struct cel_expr *root;
    AUTO(buf_fini) struct buf shown = {0};
    struct slice source = slice_of(data, size);
    if (!utf8_valid(source))
        return 0;
    arena_init(&arena, NULL, 0, ARENA_BYTES_MAX);
    cel_errors_init(&errors, &arena, source);
    struct cel_env env = {.variables = variables,
                          .variable_count = COUNT_OF(variables),
                          .objects = &objects,
                          .has_patches = true};
    enum status status = cel_parse(&errors, &root);
    if (status == ST_OK)
        status = cel_check(&env, &errors, root);
    assert((status == ST_INVALID) == cel_errors_any(&errors) || status == ST_NOMEM);
    if (status == ST_OK)
        assert(cel_type_write(root->type, &shown) == ST_OK);
    else
        assert(cel_errors_display(&errors, &shown) == ST_OK);
    arena_fini(&arena);
    return 0;
}
