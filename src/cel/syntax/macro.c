#include "cel/syntax/macro.h"

#include "cel/syntax/builder.h"

/* A call of a macro while it is expanded. */
struct expansion {
    struct arena *arena;
    struct cel_errors *errors;
    uint32_t offset; /* the place of the call, and so of everything it becomes */
    struct cel_expr *target;
    struct cel_exprs args;
    uint32_t *copies; /* how many nodes may still be copied */
    struct slice first, second;
    struct cel_expr *filter, *body; /* the arguments behind the variables; filter may be NULL */
};

typedef struct cel_expr *expand_fn(struct expansion *x);

static struct cel_expr *accumulator(struct expansion *x)
{
    return cel_make_ident(x->arena, x->offset, CEL_ACCUMULATOR);
}

static struct cel_expr *function(struct expansion *x, const char *name, struct cel_expr *a,
                                 struct cel_expr *b, struct cel_expr *c)
{
    return cel_make_function(x->arena, x->offset, name, a, b, c);
}

static struct cel_expr *fold(struct expansion *x, struct cel_expr *initial,
                             struct cel_expr *condition, struct cel_expr *step,
                             struct cel_expr *result)
{
    return cel_make_comprehension(x->arena, x->offset,
                                  &(struct cel_comprehension){.range = x->target,
                                                              .first = x->first,
                                                              .second = x->second,
                                                              .accumulator = CEL_ACCUMULATOR,
                                                              .initial = initial,
                                                              .condition = condition,
                                                              .step = step,
                                                              .result = result});
}

/* A comprehension over nothing, which binds a variable to a value within the result. */
static struct cel_expr *bind(struct expansion *x, struct slice name, struct cel_expr *value,
                             struct cel_expr *result)
{
    return cel_make_comprehension(
        x->arena, x->offset,
        &(struct cel_comprehension){.range = cel_make_list_of(x->arena, x->offset, NULL),
                                    .first = SLICE_LITERAL("#unused"),
                                    .accumulator = name,
                                    .initial = value,
                                    .condition = cel_make_bool(x->arena, x->offset, false),
                                    .step = cel_make_ident(x->arena, x->offset, name),
                                    .result = result});
}

static struct cel_expr *fail(struct expansion *x, uint32_t offset, const char *text)
{
    cel_error_add(x->errors, offset, "%s", text);
    return cel_make_invalid(x->arena, offset);
}

static struct cel_expr *expand_has(struct expansion *x)
{
    struct cel_expr *arg = x->args.at[0];
    if (arg->kind != CEL_EXPR_SELECT)
        return fail(x, arg->offset, "invalid argument to has() macro");
    struct cel_select test = arg->select;
    test.is_test = true;
    return cel_make_select(x->arena, x->offset, &test);
}

static struct cel_expr *expand_all(struct expansion *x)
{
    return fold(x, cel_make_bool(x->arena, x->offset, true),
                function(x, "@not_strictly_false", accumulator(x), NULL, NULL),
                function(x, "_&&_", accumulator(x), x->body, NULL), accumulator(x));
}

static struct cel_expr *expand_exists(struct expansion *x)
{
    struct cel_expr *unfound = function(x, "!_", accumulator(x), NULL, NULL);
    return fold(x, cel_make_bool(x->arena, x->offset, false),
                function(x, "@not_strictly_false", unfound, NULL, NULL),
                function(x, "_||_", accumulator(x), x->body, NULL), accumulator(x));
}

static struct cel_expr *expand_exists_one(struct expansion *x)
{
    struct cel_expr *more =
        function(x, "_+_", accumulator(x), cel_make_int(x->arena, x->offset, 1), NULL);
    struct cel_expr *step = function(x, "_?_:_", x->body, more, accumulator(x));
    struct cel_expr *is_one =
        function(x, "_==_", accumulator(x), cel_make_int(x->arena, x->offset, 1), NULL);
    return fold(x, cel_make_int(x->arena, x->offset, 0), cel_make_bool(x->arena, x->offset, true),
                step, is_one);
}

/* accumulator = step, or filter ? step : accumulator */
static struct cel_expr *fold_filtered(struct expansion *x, struct cel_expr *initial,
                                      struct cel_expr *step)
{
    if (x->filter)
        step = function(x, "_?_:_", x->filter, step, accumulator(x));
    return fold(x, initial, cel_make_bool(x->arena, x->offset, true), step, accumulator(x));
}

/* map, transformList */
static struct cel_expr *expand_map(struct expansion *x)
{
    struct cel_expr *item = cel_make_list_of(x->arena, x->offset, x->body);
    return fold_filtered(x, cel_make_list_of(x->arena, x->offset, NULL),
                         function(x, "_+_", accumulator(x), item, NULL));
}

static struct cel_expr *expand_filter(struct expansion *x)
{
    x->filter = x->body;
    x->body = x->args.at[0];
    return expand_map(x);
}

static struct cel_expr *expand_transform_map(struct expansion *x)
{
    struct cel_expr *key = cel_make_ident(x->arena, x->offset, x->first);
    return fold_filtered(x, cel_make_entries(x->arena, x->offset, &(struct cel_entries){0}),
                         function(x, "cel.@mapInsert", accumulator(x), key, x->body));
}

static struct cel_expr *expand_transform_map_entry(struct expansion *x)
{
    return fold_filtered(x, cel_make_entries(x->arena, x->offset, &(struct cel_entries){0}),
                         function(x, "cel.@mapInsert", accumulator(x), x->body, NULL));
}

/* target.hasValue() ? (bind name = target.value() in body) : optional.none() */
static struct cel_expr *map_optional(struct expansion *x, bool wrap)
{
    struct cel_expr *copy = cel_copy(x->arena, x->target, x->copies);
    if (!copy)
        return fail(x, x->offset, "expression too large: it copies more than 50000 parts");
    struct cel_expr *value = cel_make_method(x->arena, x->offset, "value", copy, NULL);
    struct cel_expr *mapped = bind(x, x->first, value, x->body);
    if (wrap)
        mapped = function(x, "optional.of", mapped, NULL, NULL);
    return function(x, "_?_:_", cel_make_method(x->arena, x->offset, "hasValue", x->target, NULL),
                    mapped, function(x, "optional.none", NULL, NULL, NULL));
}

static struct cel_expr *expand_opt_map(struct expansion *x)
{
    return map_optional(x, true);
}

static struct cel_expr *expand_opt_flat_map(struct expansion *x)
{
    return map_optional(x, false);
}

/* bind input = target in input.@sortByAssociatedKeys(input.map(name, body)) */
static struct cel_expr *expand_sort_by(struct expansion *x)
{
    struct slice input = SLICE_LITERAL("@__sortBy_input__");
    struct cel_expr *target = x->target;
    if (target->kind == CEL_EXPR_LITERAL || target->kind == CEL_EXPR_MAP ||
        target->kind == CEL_EXPR_STRUCT)
        return fail(x, target->offset,
                    "sortBy can only be applied to a list, identifier, comprehension, call or "
                    "select expression");
    x->target = cel_make_ident(x->arena, x->offset, input);
    struct cel_expr *sorted =
        cel_make_method(x->arena, x->offset, "@sortByAssociatedKeys",
                        cel_make_ident(x->arena, x->offset, input), expand_map(x));
    return bind(x, input, target, sorted);
}

/* -- Which calls are macros -- */

#define SIMPLE_NAME "argument must be a simple name"
#define IDENTIFIER "argument is not an identifier"

enum {
    GLOBAL = 1 << 0,   /* has(x); others are x.macro(…) */
    ANY_NAME = 1 << 1, /* a variable may have the name of the accumulator */
};

static const struct macro {
    struct slice name;
    uint32_t args;
    uint32_t variables;     /* how many of them are names of variables */
    const char *not_a_name; /* the error if one is not */
    expand_fn *expand;
    unsigned flags;
} macros[] = {
    {SLICE_LITERAL("has"), 1, 0, NULL, expand_has, GLOBAL},
    {SLICE_LITERAL("all"), 2, 1, SIMPLE_NAME, expand_all, 0},
    {SLICE_LITERAL("exists"), 2, 1, SIMPLE_NAME, expand_exists, 0},
    {SLICE_LITERAL("exists_one"), 2, 1, SIMPLE_NAME, expand_exists_one, 0},
    {SLICE_LITERAL("map"), 2, 1, IDENTIFIER, expand_map, 0},
    {SLICE_LITERAL("map"), 3, 1, IDENTIFIER, expand_map, 0},
    {SLICE_LITERAL("filter"), 2, 1, IDENTIFIER, expand_filter, 0},
    {SLICE_LITERAL("all"), 3, 2, SIMPLE_NAME, expand_all, 0},
    {SLICE_LITERAL("exists"), 3, 2, SIMPLE_NAME, expand_exists, 0},
    {SLICE_LITERAL("exists_one"), 3, 2, SIMPLE_NAME, expand_exists_one, 0},
    {SLICE_LITERAL("existsOne"), 3, 2, SIMPLE_NAME, expand_exists_one, 0},
    {SLICE_LITERAL("transformList"), 3, 2, SIMPLE_NAME, expand_map, 0},
    {SLICE_LITERAL("transformList"), 4, 2, SIMPLE_NAME, expand_map, 0},
    {SLICE_LITERAL("transformMap"), 3, 2, SIMPLE_NAME, expand_transform_map, 0},
    {SLICE_LITERAL("transformMap"), 4, 2, SIMPLE_NAME, expand_transform_map, 0},
    {SLICE_LITERAL("transformMapEntry"), 3, 2, SIMPLE_NAME, expand_transform_map_entry, 0},
    {SLICE_LITERAL("transformMapEntry"), 4, 2, SIMPLE_NAME, expand_transform_map_entry, 0},
    {SLICE_LITERAL("optMap"), 2, 1, "optMap() variable name must be a simple identifier",
     expand_opt_map, ANY_NAME},
    {SLICE_LITERAL("optFlatMap"), 2, 1, "optFlatMap() variable name must be a simple identifier",
     expand_opt_flat_map, ANY_NAME},
    {SLICE_LITERAL("sortBy"), 2, 1, IDENTIFIER, expand_sort_by, 0},
};

static const struct macro *find_macro(const struct cel_call *call)
{
    for (size_t i = 0; i < COUNT_OF(macros); i++)
        if (macros[i].args == call->args.count && !(macros[i].flags & GLOBAL) == !!call->target &&
            slice_equal(macros[i].name, call->function))
            return &macros[i];
    return NULL;
}

/* Takes the names of the variables from the arguments. False: one is wrong, and *ret_failed stands
 * for the macro. */
static bool take_variables(struct expansion *x, const struct macro *macro,
                           struct cel_expr **ret_failed)
{
    struct slice *const names[] = {&x->first, &x->second};
    for (uint32_t i = 0; i < macro->variables; i++) {
        const struct cel_expr *arg = x->args.at[i];
        if (arg->kind != CEL_EXPR_IDENT) {
            *ret_failed = fail(x, arg->offset, macro->not_a_name);
            return false;
        }
        *names[i] = arg->ident;
    }
    if (macro->variables == 2 && slice_equal(x->first, x->second)) {
        cel_error_add(x->errors, x->args.at[1]->offset, "duplicate variable name: %.*s",
                      SLICE_ARGS(x->first));
        *ret_failed = cel_make_invalid(x->arena, x->args.at[1]->offset);
        return false;
    }
    /* The accumulator was called __result__ before its name was one that no source can have. */
    for (uint32_t i = 0; i < macro->variables; i++)
        if (!(macro->flags & ANY_NAME) && slice_equal(*names[i], SLICE_LITERAL("__result__"))) {
            *ret_failed = fail(x, x->args.at[i]->offset,
                               "iteration variable overwrites accumulator variable");
            return false;
        }
    return true;
}

bool cel_expand_macro(struct cel_errors *errors, uint32_t offset, const struct cel_call *call,
                      uint32_t *copies, struct cel_expr **ret_expanded)
{
    const struct macro *macro = find_macro(call);
    if (!macro)
        return false;
    struct expansion x = {
        .arena = errors->arena,
        .errors = errors,
        .offset = offset,
        .target = call->target,
        .args = call->args,
    };
    x.copies = copies;
    for (uint32_t i = 0; i < call->args.count; i++)
        if (!call->args.at[i]) {
            *ret_expanded = NULL; /* there was no memory for an argument */
            return true;
        }
    if (!take_variables(&x, macro, ret_expanded))
        return true;
    if (macro->variables) {
        x.body = call->args.at[macro->args - 1];
        x.filter = macro->args - macro->variables == 2 ? call->args.at[macro->variables] : NULL;
    }
    *ret_expanded = macro->expand(&x);
    return true;
}
