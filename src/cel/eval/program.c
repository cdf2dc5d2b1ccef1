#include "cel/eval/program.h"

#include "cel/library/patterns.h"
#include "cel/value/container.h"

/* A variable of a comprehension, in the scopes that are open. */
struct local {
    struct slice name;
    uint32_t slot;
    const struct local *outer;
    const struct cel_node *late; /* its value, which is evaluated when it is first used; or NULL */
};

struct planner {
    const struct cel_env *env;
    struct cel_errors *errors;
    struct arena *arena;
    struct cel_work work; /* for what is folded */
    const struct local *locals;
    uint32_t slots;
    bool failed; /* there was no memory, or an error */
};

enum {
    FOLD_STEPS_MAX = 1000000,
    PATH_FIELD_BYTES_MAX = 64,
};

static const struct cel_node *plan(struct planner *p, const struct cel_expr *expr);

/* -- Nodes -- */

static size_t bytes_of(enum cel_node_kind kind)
{
    switch (kind) {
    case CEL_NODE_CONSTANT:
        return offsetof(struct cel_node, constant) + sizeof(struct cel_value);
    case CEL_NODE_ATTRIBUTE:
        return offsetof(struct cel_node, attribute) + sizeof(struct cel_attribute *);
    case CEL_NODE_CALL:
    case CEL_NODE_APPEND:
        return sizeof(struct cel_node);
    case CEL_NODE_LIST:
    case CEL_NODE_MAP:
        return offsetof(struct cel_node, optional) + sizeof(const bool *);
    case CEL_NODE_OBJECT:
        return offsetof(struct cel_node, creation) + sizeof(const struct cel_creation *);
    case CEL_NODE_FOLD:
        return offsetof(struct cel_node, fold) + sizeof(((struct cel_node *)NULL)->fold);
    default:
        return offsetof(struct cel_node, constant);
    }
}

static struct cel_node *make(struct planner *p, enum cel_node_kind kind, uint32_t count)
{
    struct cel_node *node = arena_calloc(p->arena, 1, bytes_of(kind));
    const struct cel_node **children =
        count ? arena_calloc(p->arena, count, sizeof(struct cel_node *)) : NULL;
    if (!node || (count && !children)) {
        p->failed = true;
        return NULL;
    }
    node->kind = kind;
    node->count = count;
    node->children = children;
    return node;
}

/* The children of a node while it is made. */
static const struct cel_node **children_of(struct cel_node *node)
{
    return (const struct cel_node **)node->children;
}

static const struct cel_node *make_constant(struct planner *p, struct cel_value value)
{
    struct cel_node *node = make(p, CEL_NODE_CONSTANT, 0);
    if (node)
        node->constant = value;
    return node;
}

static const struct cel_node *make_attribute(struct planner *p, const struct cel_attribute *value)
{
    struct cel_node *node = make(p, CEL_NODE_ATTRIBUTE, 0);
    struct cel_attribute *attribute = arena_alloc(p->arena, sizeof(*attribute));
    if (!node || !attribute) {
        p->failed = true;
        return NULL;
    }
    *attribute = *value;
    node->attribute = attribute;
    return node;
}

static const struct cel_node *refuse(struct planner *p, uint32_t offset, struct slice text)
{
    cel_error_add(p->errors, offset, "%.*s", SLICE_ARGS(text));
    p->failed = true;
    return NULL;
}

static bool are_constant(const struct cel_node *node)
{
    for (uint32_t i = 0; i < node->count; i++)
        if (node->children[i]->kind != CEL_NODE_CONSTANT)
            return false;
    return true;
}

/* The node, or the constant that it always is. */
static const struct cel_node *fold_constant(struct planner *p, const struct cel_node *node)
{
    struct cel_program program = {.root = node};
    struct cel_budget budget = {.cost_max = UINT64_MAX};
    if (!are_constant(node))
        return node;
    struct cel_value value = cel_eval(&program, NULL, p->arena, &budget);
    cel_make_constant(value);
    return cel_is_error(value) ? node : make_constant(p, value);
}

/* -- Literals and names -- */

/* The source stays, but the tree may be freed. */
static struct slice keep(struct planner *p, struct slice text)
{
    struct slice source = p->errors->source;
    bool is_written = source.len && text.ptr >= source.ptr && text.ptr < source.ptr + source.len;
    if (!is_written && arena_dup(p->arena, text, &text) != ST_OK)
        p->failed = true;
    return text;
}

static const struct cel_node *plan_literal(struct planner *p, const struct cel_literal *literal)
{
    switch (literal->kind) {
    case CEL_LITERAL_NULL:
        return make_constant(p, (struct cel_value){.kind = CEL_NULL});
    case CEL_LITERAL_BOOL:
        return make_constant(p, cel_of_bool(literal->truth));
    case CEL_LITERAL_INT:
        return make_constant(p, cel_of_int(literal->i64));
    case CEL_LITERAL_UINT:
        return make_constant(p, cel_of_uint(literal->u64));
    case CEL_LITERAL_DOUBLE:
        return make_constant(p, cel_of_double(literal->number));
    case CEL_LITERAL_STRING:
        return make_constant(p, cel_of_string(keep(p, literal->text)));
    case CEL_LITERAL_BYTES:
        return make_constant(p, cel_of_bytes(keep(p, literal->text)));
    }
    return NULL;
}

/* False: it is not a variable, but the name of a type. */
static bool find_variable(const struct planner *p, struct slice name,
                          struct cel_attribute *ret_attribute)
{
    for (const struct local *local = p->locals; local; local = local->outer)
        if (slice_equal(local->name, name)) {
            *ret_attribute = (struct cel_attribute){
                .root = local->late ? CEL_ROOT_LATE : CEL_ROOT_VARIABLE,
                .slot = local->slot,
                .operand = local->late,
            };
            return true;
        }
    for (uint32_t i = 0; i < p->env->variable_count; i++)
        if (slice_equal(p->env->variables[i].name, name)) {
            *ret_attribute = (struct cel_attribute){.root = CEL_ROOT_VARIABLE, .slot = i};
            return true;
        }
    return false;
}

static const struct cel_node *plan_ident(struct planner *p, const struct cel_expr *expr)
{
    struct cel_attribute attribute;
    if (find_variable(p, expr->ident, &attribute))
        return make_attribute(p, &attribute);
    assert(expr->type->kind == CEL_TYPE_TYPE);
    /* cel-go's evaluation does not know the names of objects that Kubernetes makes. */
    if (expr->type->params[0] && expr->type->params[0]->object) {
        cel_error_add(p->errors, CEL_NO_PLACE, "reference to undefined type: %.*s",
                      SLICE_ARGS(expr->ident));
        p->failed = true;
        return NULL;
    }
    /* The tree may end before the program does. Only the name of a type matters to its values. */
    const struct cel_type *type = expr->type->params[0] ? expr->type->params[0] : expr->type;
    struct cel_type *kept = arena_calloc(p->arena, 1, sizeof(*kept));
    if (!kept) {
        p->failed = true;
        return NULL;
    }
    kept->kind = type->kind;
    kept->name = type->name;
    return make_constant(p, (struct cel_value){.kind = CEL_TYPE_VALUE, .type = kept});
}

/* -- Fields and indexes -- */

/* Whether it has the same name in JSON: all escapes begin with "__". Longer names
 * take more work than the cost of a path counts. */
static bool is_field(const struct cel_qualifier *qualifier)
{
    struct slice name = cel_text(qualifier->constant);
    return !qualifier->index && !qualifier->optional && qualifier->constant.kind == CEL_STRING &&
           name.len <= PATH_FIELD_BYTES_MAX && !memmem(name.ptr, name.len, "__", 2);
}

/* A conditional passes its qualifiers on to both of its sides. */
static void add_qualifier(struct planner *p, struct cel_attribute *attribute,
                          const struct cel_qualifier *qualifier)
{
    if (attribute->root == CEL_ROOT_CONDITIONAL) {
        add_qualifier(p, attribute->chosen, qualifier);
        add_qualifier(p, attribute->other, qualifier);
        return;
    }
    struct cel_qualifier *copy = arena_alloc(p->arena, sizeof(*copy));
    if (!copy) {
        p->failed = true;
        return;
    }
    *copy = *qualifier;
    bool was_path =
        attribute->root == CEL_ROOT_VARIABLE && (!attribute->first || attribute->field_count);
    bool is_path = was_path && is_field(qualifier) && attribute->field_count < CEL_PATH_FIELDS_MAX;
    attribute->field_count = is_path ? (uint16_t)(attribute->field_count + 1) : 0;
    if (attribute->last)
        attribute->last->next = copy;
    else
        attribute->first = copy;
    attribute->last = copy;
}

/* The attribute that a node is, or one that begins with it. */
static const struct cel_node *as_attribute(struct planner *p, const struct cel_node *node)
{
    if (!node || node->kind == CEL_NODE_ATTRIBUTE)
        return node;
    return make_attribute(p, &(struct cel_attribute){.root = CEL_ROOT_OPERAND, .operand = node});
}

static const struct cel_node *plan_qualified(struct planner *p, const struct cel_expr *operand,
                                             const struct cel_qualifier *qualifier)
{
    const struct cel_node *node = as_attribute(p, plan(p, operand));
    if (!node)
        return NULL;
    node->attribute->is_test = qualifier->is_test;
    add_qualifier(p, node->attribute, qualifier);
    return node;
}

static const struct cel_node *plan_index(struct planner *p, const struct cel_expr *expr,
                                         bool optional)
{
    const struct cel_node *index = plan(p, expr->call.args.at[1]);
    if (!index)
        return NULL;
    struct cel_qualifier qualifier = {.optional = optional};
    if (index->kind != CEL_NODE_CONSTANT) {
        qualifier.index = index;
    } else {
        enum cel_value_kind kind = (enum cel_value_kind)index->constant.kind;
        if (kind < CEL_BOOL || kind > CEL_STRING)
            return refuse(p, expr->offset, SLICE_LITERAL("invalid qualifier type"));
        qualifier.constant = index->constant;
    }
    return plan_qualified(p, expr->call.args.at[0], &qualifier);
}

/* -- Calls -- */

static struct cel_node *plan_children(struct planner *p, const struct cel_expr *expr,
                                      enum cel_node_kind kind)
{
    uint32_t count = 0;
    const struct cel_call *call = &expr->call;
    struct cel_node *node = make(p, kind, call->args.count + (call->target != NULL));
    if (!node)
        return NULL;
    if (call->target)
        children_of(node)[count++] = plan(p, call->target);
    for (uint32_t i = 0; i < call->args.count && !p->failed; i++)
        children_of(node)[count++] = plan(p, call->args.at[i]);
    return p->failed ? NULL : node;
}

static struct cel_attribute *attribute_of(struct planner *p, const struct cel_expr *expr)
{
    const struct cel_node *node = as_attribute(p, plan(p, expr));
    return node ? node->attribute : NULL;
}

static const struct cel_node *plan_conditional(struct planner *p, const struct cel_expr *expr)
{
    struct cel_attribute attribute = {.root = CEL_ROOT_CONDITIONAL};
    attribute.condition = plan(p, expr->call.args.at[0]);
    attribute.chosen = attribute_of(p, expr->call.args.at[1]);
    attribute.other = attribute_of(p, expr->call.args.at[2]);
    return p->failed ? NULL : make_attribute(p, &attribute);
}

static bool is_conversion(struct slice name)
{
    static const char *const names[] = {"bool", "bytes",  "double", "duration", "dyn",
                                        "int",  "string", "type",   "uint",     "timestamp"};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (slice_equal(name, slice_from_text(names[i])))
            return true;
    return false;
}

/* x in [constants] costs nothing but x: cel-go looks into a set. */
static bool is_membership(const struct cel_node *node)
{
    if (node->call.overload != CEL_OVERLOAD_IN_LIST || node->children[1]->kind != CEL_NODE_CONSTANT)
        return false;
    struct cel_value list = node->children[1]->constant;
    for (uint32_t i = 0; list.kind == CEL_LIST && i < list.count; i++) {
        struct cel_value item = list.array->items[i];
        if (item.kind < CEL_BOOL || item.kind > CEL_STRING)
            return false;
    }
    return list.kind == CEL_LIST;
}

static enum cel_of_ints find_of_ints(struct slice function)
{
    static const char *const names[] = {
        [CEL_OF_INTS_LESS] = "_<_",    [CEL_OF_INTS_LESS_EQUALS] = "_<=_",
        [CEL_OF_INTS_GREATER] = "_>_", [CEL_OF_INTS_GREATER_EQUALS] = "_>=_",
        [CEL_OF_INTS_ADD] = "_+_",     [CEL_OF_INTS_SUBTRACT] = "_-_",
    };
    for (unsigned i = CEL_OF_INTS_NONE + 1; i < COUNT_OF(names); i++)
        if (slice_equal(function, slice_from_text(names[i])))
            return (enum cel_of_ints)i;
    return CEL_OF_INTS_NONE;
}

/* A regular expression that is constant is compiled once. */
static void compile_pattern(struct planner *p, const struct cel_expr *expr, struct cel_node *node)
{
    const struct cel_node *pattern = node->children[1];
    if (pattern->kind != CEL_NODE_CONSTANT || pattern->constant.kind != CEL_STRING)
        return;
    struct cel_value error =
        cel_compile_pattern(&p->work, cel_text(pattern->constant), &node->call.regex);
    if (cel_is_error(error))
        refuse(p, expr->offset, cel_text(error));
}

/* list + [item] */
static bool is_append(const struct cel_node *node)
{
    if (node->call.of_ints != CEL_OF_INTS_ADD)
        return false;
    const struct cel_node *list = node->children[1];
    return list->kind == CEL_NODE_LIST && list->count == 1 && !list->optional;
}

static const struct cel_node *plan_function(struct planner *p, const struct cel_expr *expr)
{
    const struct cel_call *call = &expr->call;
    struct cel_node *node = plan_children(p, expr, CEL_NODE_CALL);
    if (!node)
        return NULL;
    const struct cel_builtin *builtin = cel_builtin_find(call->function, node->count);
    node->call.overload = call->overload_count == 1 ? call->overloads[0] : -1;
    if (!builtin) {
        cel_error_add(p->errors, expr->offset, "the function '%.*s' is not supported",
                      SLICE_ARGS(call->function));
        p->failed = true;
        return NULL;
    }
    node->call.builtin = builtin;
    node->call.of_ints = find_of_ints(call->function);
    if (is_append(node))
        node->kind = CEL_NODE_APPEND;
    if (cel_takes_pattern(builtin))
        compile_pattern(p, expr, node);
    /* cel-go treats these as functions of any number of arguments: those of many arguments, with a
     * constant pattern, whose overload is looked for, and this one. */
    node->call.in_order = node->count > 2 || node->call.regex ||
                          (node->call.overload == -1 && builtin->names_types) ||
                          slice_equal(call->function, SLICE_LITERAL("format"));
    if (is_membership(node)) {
        if (!node->children[1]->constant.count)
            return make_constant(p, cel_of_bool(false));
        node->call.overload = CEL_WITHOUT_COST;
    }
    if (node->count != 1 || !is_conversion(call->function) || !are_constant(node))
        return node;
    const struct cel_value *arg = &node->children[0]->constant;
    struct cel_value value = builtin->fn(&p->work, arg);
    if (builtin->names_types && cel_is_no_overload(value))
        value = cel_no_overload_for(&p->work, builtin, 1, arg);
    return cel_is_error(value) ? refuse(p, expr->offset, cel_text(value)) : make_constant(p, value);
}

static const struct cel_node *plan_call(struct planner *p, const struct cel_expr *expr)
{
    static const struct {
        struct slice function;
        enum cel_node_kind kind;
    } operators[] = {
        {SLICE_LITERAL("_&&_"), CEL_NODE_AND},
        {SLICE_LITERAL("_||_"), CEL_NODE_OR},
        {SLICE_LITERAL("_==_"), CEL_NODE_EQUAL},
        {SLICE_LITERAL("_!=_"), CEL_NODE_NOT_EQUAL},
        {SLICE_LITERAL("or"), CEL_NODE_OR_OPTIONAL},
        {SLICE_LITERAL("orValue"), CEL_NODE_OR_VALUE},
        {SLICE_LITERAL("@not_strictly_false"), CEL_NODE_NOT_STRICTLY_FALSE},
    };
    struct slice name = expr->call.function;
    for (size_t i = 0; i < COUNT_OF(operators); i++)
        if (slice_equal(name, operators[i].function))
            return plan_children(p, expr, operators[i].kind);
    if (slice_equal(name, SLICE_LITERAL("_?_:_")))
        return plan_conditional(p, expr);
    if (slice_equal(name, SLICE_LITERAL("_[_]")))
        return plan_index(p, expr, false);
    if (slice_equal(name, SLICE_LITERAL("_[?_]")) || slice_equal(name, SLICE_LITERAL("_?._")))
        return plan_index(p, expr, true);
    return plan_function(p, expr);
}

/* -- Lists, maps and comprehensions -- */

static const struct cel_node *plan_list(struct planner *p, const struct cel_list *list)
{
    struct cel_node *node = make(p, CEL_NODE_LIST, list->items.count);
    struct slice optional = slice_of(list->optional, list->optional ? list->items.count : 0);
    if (!node || arena_dup(p->arena, optional, &optional) != ST_OK) {
        p->failed = true;
        return NULL;
    }
    node->optional = list->optional ? (const bool *)optional.ptr : NULL;
    for (uint32_t i = 0; i < list->items.count; i++)
        children_of(node)[i] = plan(p, list->items.at[i]);
    return p->failed ? NULL : fold_constant(p, node);
}

static const struct cel_node *plan_map(struct planner *p, const struct cel_entries *entries)
{
    struct cel_node *node = make(p, CEL_NODE_MAP, 2 * entries->count);
    bool *optional = arena_calloc(p->arena, entries->count + 1, sizeof(*optional));
    if (!node || !optional) {
        p->failed = true;
        return NULL;
    }
    node->optional = optional;
    for (uint32_t i = 0; i < entries->count; i++) {
        children_of(node)[2 * i] = plan(p, entries->at[i].key);
        children_of(node)[2 * i + 1] = plan(p, entries->at[i].value);
        optional[i] = entries->at[i].optional;
    }
    return p->failed ? NULL : fold_constant(p, node);
}

/* Numbers the fields with the same name as an earlier one after it. */
static void find_first(const struct cel_entries *entries, uint32_t *first)
{
    for (uint32_t i = 0; i < entries->count; i++) {
        uint32_t j = 0;
        while (!slice_equal(entries->at[j].field, entries->at[i].field))
            j++;
        first[i] = j;
    }
}

static const struct cel_node *plan_object(struct planner *p, const struct cel_expr *expr)
{
    const struct cel_entries *entries = &expr->entries;
    uint32_t count = entries->count;
    if (!p->env->objects || !p->env->objects->make)
        return refuse(p, expr->offset, SLICE_LITERAL("objects cannot be created here"));
    if (count > CEL_FIELDS_MAX)
        return refuse(p, expr->offset, SLICE_LITERAL("an object with more than 1000 fields"));
    struct cel_node *node = make(p, CEL_NODE_OBJECT, count);
    struct cel_creation *creation = arena_calloc(p->arena, 1, sizeof(*creation));
    struct slice *names = arena_calloc(p->arena, count + 1, sizeof(*names));
    uint32_t *first = arena_calloc(p->arena, count + 1, sizeof(*first));
    bool *optional = arena_calloc(p->arena, count + 1, sizeof(*optional));
    if (!node || !creation || !names || !first || !optional) {
        p->failed = true;
        return NULL;
    }
    for (uint32_t i = 0; i < count; i++) {
        names[i] = keep(p, entries->at[i].field);
        optional[i] = entries->at[i].optional;
        children_of(node)[i] = plan(p, entries->at[i].value);
    }
    find_first(entries, first);
    *creation = (struct cel_creation){p->env->objects, expr->type, names, first, optional};
    node->creation = creation;
    return p->failed ? NULL : node;
}

static const struct cel_node *plan_fold(struct planner *p, const struct cel_comprehension *body)
{
    struct cel_node *node = make(p, CEL_NODE_FOLD, 5);
    const struct local *outside = p->locals;
    if (!node)
        return NULL;
    const struct cel_node **children = children_of(node);
    children[0] = plan(p, body->range);
    children[1] = plan(p, body->initial);
    struct local accumulator = {body->accumulator, p->slots++, outside, NULL};
    struct local first = {body->first, p->slots++, &accumulator, NULL};
    struct local second = {body->second, p->slots++, &first, NULL};
    node->fold.accumulator = accumulator.slot;
    node->fold.first = first.slot;
    node->fold.second = second.slot;
    node->fold.has_second = body->second.len > 0;
    p->locals = node->fold.has_second ? &second : &first;
    children[2] = plan(p, body->condition);
    children[3] = plan(p, body->step);
    /* A variable of optMap() is an accumulator of an empty list. cel-go evaluates it when it is
     * first used, which may be never. */
    const struct cel_node *range = children[0];
    node->fold.is_late = range && range->kind == CEL_NODE_CONSTANT &&
                         range->constant.kind == CEL_LIST && !range->constant.count;
    accumulator.late = node->fold.is_late ? children[1] : NULL;
    p->locals = &accumulator;
    children[4] = plan(p, body->result);
    p->locals = outside;
    return p->failed ? NULL : node;
}

static const struct cel_node *plan(struct planner *p, const struct cel_expr *expr)
{
    struct cel_qualifier field = {0};
    if (p->failed)
        return NULL;
    switch ((enum cel_expr_kind)expr->kind) {
    case CEL_EXPR_INVALID:
        break;
    case CEL_EXPR_LITERAL:
        return plan_literal(p, &expr->literal);
    case CEL_EXPR_IDENT:
        return plan_ident(p, expr);
    case CEL_EXPR_SELECT:
        field.constant = cel_of_string(expr->select.field);
        field.is_test = expr->select.is_test;
        field.is_declared = expr->select.operand->type->kind == CEL_TYPE_OBJECT;
        return plan_qualified(p, expr->select.operand, &field);
    case CEL_EXPR_CALL:
        return plan_call(p, expr);
    case CEL_EXPR_LIST:
        return plan_list(p, &expr->list);
    case CEL_EXPR_MAP:
        return plan_map(p, &expr->entries);
    case CEL_EXPR_STRUCT:
        return plan_object(p, expr);
    case CEL_EXPR_COMPREHENSION:
        return plan_fold(p, expr->comprehension);
    }
    return NULL;
}

enum status cel_program_new(const struct cel_env *env, struct cel_errors *errors,
                            const struct cel_expr *root, const struct cel_program **ret_program)
{
    struct planner p = {
        .env = env,
        .errors = errors,
        .arena = errors->arena,
        .work = {.arena = errors->arena, .steps_left = FOLD_STEPS_MAX},
        .slots = env->variable_count,
    };
    struct cel_program *program = arena_alloc(errors->arena, sizeof(*program));
    const struct cel_node *node = program ? plan(&p, root) : NULL;
    if (cel_errors_any(errors))
        return ST_INVALID;
    if (!node)
        return ST_NOMEM;
    *program = (struct cel_program){node, env->variable_count, p.slots};
    *ret_program = program;
    return ST_OK;
}
