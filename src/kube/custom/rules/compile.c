#include "kube/custom/rules/compile.h"

#include "cel/estimate/estimate.h"
#include "cel/syntax/parser.h"
#include "cel/syntax/walk.h"
#include "kube/custom/rules/types.h"

#include <stdlib.h>

/* One expression of a rule. */
struct expression {
    struct arena *arena, *scratch;
    struct cel_env env;
    const struct cel_type *self;
    struct slice text;
    const struct cel_type *wanted; /* the type that it must have */
    /* Results */
    bool uses_old; /* it mentions oldSelf */
    uint64_t cost_max;
};

/* What errors begin with. */
struct expression_errors {
    const char *compilation, *type, *instantiation;
};

static const struct expression_errors rule_errors = {
    "compilation failed: ",
    "cel expression must evaluate to a bool",
    "program instantiation failed: ",
};
static const struct expression_errors message_errors = {
    "messageExpression compilation failed: ",
    "messageExpression must evaluate to a string",
    "messageExpression instantiation failed: ",
};

/* -- Expressions -- */

static enum status keep_error(struct arena *arena, const char *what, struct slice why,
                              struct slice *ret_error)
{
    AUTO(buf_fini) struct buf text = {0};
    TRY(buf_append_text(&text, what));
    TRY(buf_append(&text, why));
    return arena_dup(arena, buf_slice(&text), ret_error);
}

static enum status keep_display(struct arena *arena, const char *what,
                                const struct cel_errors *errors, struct slice *ret_error)
{
    AUTO(buf_fini) struct buf text = {0};
    TRY(cel_errors_display(errors, &text));
    return keep_error(arena, what, buf_slice(&text), ret_error);
}

static bool is_blank(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!text.ptr[i] || !strchr(" \t\n\v\f\r", text.ptr[i]))
            return false;
    return true;
}

static enum status estimate(struct expression *e, struct cel_expr *root)
{
    struct cel_range cost;
    TRY(cel_estimate(e->scratch, e->self, root, &cost));
    e->cost_max = cost.max;
    return ST_OK;
}

/* *ret_program stays NULL if the expression is wrong; then *ret_error says why. */
static enum status compile(struct expression *e, const struct expression_errors *texts,
                           const struct cel_program **ret_program, struct slice *ret_error)
{
    struct cel_errors errors, plan_errors;
    struct cel_expr *root;
    cel_errors_init(&errors, e->scratch, e->text);
    cel_errors_init(&plan_errors, e->arena, e->text);
    enum status status = cel_parse(&errors, &root);
    if (status == ST_OK)
        status = cel_check(&e->env, &errors, root);
    if (status == ST_INVALID)
        return keep_display(e->arena, texts->compilation, &errors, ret_error);
    TRY(status);
    if (!cel_type_equal(root->type, e->wanted))
        return keep_error(e->arena, texts->type, SLICE_EMPTY, ret_error);
    e->uses_old = cel_expr_mentions(root, SLICE_LITERAL("oldSelf"));
    status = cel_program_new(&e->env, &plan_errors, root, ret_program);
    if (status == ST_OK)
        return estimate(e, root);
    if (status != ST_INVALID)
        return status;
    return keep_error(e->arena, texts->instantiation, plan_errors.list[0].text, ret_error);
}

/* -- The rules of a node -- */

static enum status compile_rule(struct expression *e, struct rule_program *program)
{
    const struct schema_rule *rule = program->rule;
    if (is_blank(rule->rule))
        return ST_OK;
    e->text = rule->rule;
    e->wanted = &cel_type_BOOL;
    TRY(compile(e, &rule_errors, &program->condition, &program->error));
    program->uses_old = e->uses_old;
    program->cost_max = e->cost_max;
    if (!program->condition || !rule->message_expression.len)
        return ST_OK;
    e->text = rule->message_expression;
    e->wanted = &cel_type_STRING;
    e->cost_max = 0;
    TRY(compile(e, &message_errors, &program->message, &program->message_error));
    program->message_cost_max = e->cost_max;
    return ST_OK;
}

enum status rules_compile(struct arena *arena, struct arena *scratch, const struct schema *schema,
                          const struct cel_type *type, struct rule_programs *ret_programs)
{
    size_t count = schema->more->rule_count;
    const struct cel_type *optional = cel_type_new_optional(scratch, type);
    struct rule_program *list = arena_calloc(arena, count + 1, sizeof(*list));
    if (!optional || !list)
        return ST_NOMEM;
    for (size_t i = 0; i < count; i++) {
        const struct schema_rule *rule = &schema->more->rules[i];
        const struct cel_variable variables[RULE_VARIABLES] = {
            [RULE_SELF] = {SLICE_LITERAL("self"), type},
            [RULE_OLD_SELF] = {SLICE_LITERAL("oldSelf"), rule->optional_old ? optional : type},
        };
        struct expression e = {.arena = arena,
                               .scratch = scratch,
                               .self = type,
                               .env = {.variables = variables, .variable_count = RULE_VARIABLES}};
        list[i].rule = rule;
        TRY(compile_rule(&e, &list[i]));
    }
    *ret_programs = (struct rule_programs){schema, list, count};
    return ST_OK;
}

/* -- All rules of a schema -- */

struct rule_set {
    struct rule_programs *list; /* sorted by the address of the schema */
    size_t count, room;
};

struct set_maker {
    struct arena *arena;
    struct arena scratch; /* for one node */
    struct rule_set *set;
};

static int set_order(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t)((const struct rule_programs *)a)->schema;
    uintptr_t y = (uintptr_t)((const struct rule_programs *)b)->schema;
    return (x > y) - (x < y);
}

const struct rule_programs *rule_set_find(const struct rule_set *set, const struct schema *schema)
{
    struct rule_programs key = {.schema = schema};
    if (!set->count)
        return NULL;
    return bsearch(&key, set->list, set->count, sizeof(key), set_order);
}

/* Lists the nodes with rules, with duplicates. */
static enum status list_nodes(struct set_maker *m, const struct schema *schema)
{
    struct rule_set *set = m->set;
    if (schema->has_rules) {
        if (set->count == set->room) {
            size_t room = set->room ? 2 * set->room : 16;
            struct rule_programs *list = arena_calloc(&m->scratch, room, sizeof(*list));
            if (!list)
                return ST_NOMEM;
            slice_copy(list, slice_of(set->list, set->count * sizeof(*list)));
            set->list = list;
            set->room = room;
        }
        set->list[set->count++].schema = schema;
    }
    for (size_t i = 0; i < schema->property_count; i++)
        TRY(list_nodes(m, schema->properties[i].schema));
    if (schema->items)
        TRY(list_nodes(m, schema->items));
    return schema->additional ? list_nodes(m, schema->additional) : ST_OK;
}

static enum status sort_nodes(struct set_maker *m)
{
    struct rule_set *set = m->set;
    size_t kept = 0;
    struct rule_programs *list = set->list;
    if (set->count)
        qsort(list, set->count, sizeof(*list), set_order);
    for (size_t i = 0; i < set->count; i++)
        if (!kept || list[kept - 1].schema != list[i].schema)
            list[kept++] = list[i];
    struct slice bytes;
    TRY(arena_dup(m->arena, slice_of(list, kept * sizeof(*list)), &bytes));
    set->list = (struct rule_programs *)(uintptr_t)bytes.ptr;
    set->count = set->room = kept;
    return ST_OK;
}

static enum status compile_node(struct set_maker *m, const struct schema *root,
                                struct rule_programs *programs)
{
    const struct cel_type *type;
    struct arena scratch;
    arena_init(&scratch, NULL, 0, m->arena->limit_bytes);
    enum status status = rule_type_new(&scratch, programs->schema, programs->schema == root, &type);
    if (status == ST_OK && type)
        status = rules_compile(m->arena, &scratch, programs->schema, type, programs);
    arena_fini(&scratch);
    return status;
}

static enum status make_set(struct set_maker *m, const struct schema *root)
{
    TRY(list_nodes(m, root));
    TRY(sort_nodes(m));
    for (size_t i = 0; i < m->set->count; i++)
        TRY(compile_node(m, root, &m->set->list[i]));
    return ST_OK;
}

enum status rule_set_new(struct arena *arena, const struct schema *root,
                         const struct rule_set **ret_set)
{
    struct set_maker m = {.arena = arena, .set = arena_calloc(arena, 1, sizeof(*m.set))};
    if (!m.set)
        return ST_NOMEM;
    arena_init(&m.scratch, NULL, 0, arena->limit_bytes);
    enum status status = make_set(&m, root);
    arena_fini(&m.scratch);
    if (status == ST_OK)
        *ret_set = m.set;
    return status;
}
