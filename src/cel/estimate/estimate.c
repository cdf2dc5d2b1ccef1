#include "cel/estimate/estimate.h"

#include "cel/check/function.h"
#include "cel/estimate/functions.h"
#include "cel/estimate/path.h"
#include "cel/syntax/walk.h"

/* The sizes of the items of a list, or of the keys and values of a map. */
struct entry {
    bool known, is_list;
    struct cel_range key, value;
};

struct size {
    bool known;
    struct cel_range range;
};

/* What is known of a node. */
struct facts {
    struct size size;
    struct entry entry;
    struct cel_path path;
};

/* A variable of a comprehension, in the scopes that are open. */
struct local {
    struct slice name;
    struct cel_path path;
    struct size size;
    struct entry entry;
    const struct local *outer;
};

struct estimate {
    struct arena *arena;
    const struct cel_type *variables;
    struct facts *facts; /* by the number of the node */
    uint32_t nodes;
    const struct local *locals; /* the innermost; NULL: none */
    bool failed;                /* there was no memory */
};

static struct cel_range cost_of(struct estimate *e, const struct cel_expr *expr);

/* -- Paths -- */

static struct facts *facts_of(struct estimate *e, const struct cel_expr *expr)
{
    return &e->facts[expr->number];
}

static const struct local *find_local(const struct estimate *e, const struct cel_expr *expr)
{
    if (expr->kind != CEL_EXPR_IDENT)
        return NULL;
    for (const struct local *local = e->locals; local; local = local->outer)
        if (slice_equal(local->name, expr->ident))
            return local;
    return NULL;
}

static struct cel_path path_of(struct estimate *e, const struct cel_expr *expr)
{
    const struct local *local = find_local(e, expr);
    return local ? local->path : facts_of(e, expr)->path;
}

static struct cel_path append(struct estimate *e, struct cel_path path, enum cel_step_kind kind,
                              struct slice name)
{
    if (!cel_path_append(e->arena, path, kind, name, &path))
        e->failed = true;
    return path;
}

/* -- Sizes -- */

/* The size of what is written in the expression. */
static struct size size_written(const struct cel_expr *expr)
{
    uint64_t size = 1;
    if (expr->kind == CEL_EXPR_LIST) {
        size = expr->list.items.count;
    } else if (expr->kind == CEL_EXPR_MAP) {
        size = expr->entries.count;
    } else if (expr->kind != CEL_EXPR_LITERAL) {
        return (struct size){0};
    } else if (expr->literal.kind == CEL_LITERAL_BYTES) {
        size = expr->literal.text.len;
    } else if (expr->literal.kind == CEL_LITERAL_STRING) {
        size = 0;
        for (size_t i = 0; i < expr->literal.text.len; i++)
            size += (expr->literal.text.ptr[i] & 0xc0) != 0x80;
    }
    return (struct size){true, CEL_EXACTLY(size)};
}

static bool is_scalar(const struct cel_type *type)
{
    while (cel_type_is_optional(type))
        type = cel_type_param(type, 0);
    switch (type->kind) {
    case CEL_TYPE_BOOL:
    case CEL_TYPE_INT:
    case CEL_TYPE_UINT:
    case CEL_TYPE_DOUBLE:
    case CEL_TYPE_DURATION:
    case CEL_TYPE_TIMESTAMP:
        return true;
    default:
        return false;
    }
}

/* A size that was found by the path is kept, because the path may change later. */
static struct size size_of(struct estimate *e, const struct cel_expr *expr)
{
    struct facts *facts = facts_of(e, expr);
    struct size size = facts->size.known ? facts->size : size_written(expr);
    if (size.known)
        return size;
    size.known = cel_path_size(e->arena, path_of(e, expr), e->variables, &size.range);
    if (size.known) {
        facts->size = size;
        return size;
    }
    if (is_scalar(expr->type))
        return (struct size){true, CEL_EXACTLY(1)};
    const struct local *local = find_local(e, expr);
    return local ? local->size : (struct size){0};
}

static struct cel_range or_any(struct size size)
{
    return size.known ? size.range : CEL_ANY_SIZE;
}

static void set_size(struct estimate *e, const struct cel_expr *expr, struct size size)
{
    if (size.known)
        facts_of(e, expr)->size = size;
}

static struct entry entry_of(struct estimate *e, const struct cel_expr *expr)
{
    const struct facts *facts = facts_of(e, expr);
    if (facts->entry.known)
        return facts->entry;
    const struct local *local = find_local(e, expr);
    return local ? local->entry : (struct entry){0};
}

static void set_entry(struct estimate *e, const struct cel_expr *expr, struct entry entry)
{
    if (entry.known)
        facts_of(e, expr)->entry = entry;
}

static struct entry union_of(struct entry a, struct entry b)
{
    if (!a.known || !b.known)
        return (struct entry){0};
    return (struct entry){true, a.is_list, cel_range_union(a.key, b.key),
                          cel_range_union(a.value, b.value)};
}

static struct size value_size(struct entry entry)
{
    return (struct size){entry.known, entry.value};
}

/* -- Calls -- */

static struct cel_operand operand_of(struct estimate *e, const struct cel_expr *expr)
{
    struct cel_path path = path_of(e, expr);
    struct size size = size_of(e, expr);
    struct cel_operand operand = {
        .expr = expr, .known = size.known, .size = or_any(size), .item_size = CEL_ANY_SIZE};
    if (expr->type->params[0] &&
        !cel_path_item_size(e->arena, path, e->variables, &operand.item_size))
        operand.item_size = CEL_ANY_SIZE;
    return operand;
}

static struct cel_range regex_cost(struct cel_range text, struct cel_range regex)
{
    text = cel_range_traversal(cel_range_add(text, CEL_EXACTLY(1)));
    return cel_range_multiply(text, cel_range_scale(regex, 0.25));
}

/* The end of the shorter one decides at the latest. */
static struct cel_range comparison_cost(struct cel_range a, struct cel_range b)
{
    uint64_t most = a.max < b.max ? a.max : b.max;
    return cel_range_traversal((struct cel_range){most > 0, most});
}

/* a + b, whose items or characters are those of both. */
static struct cel_call_cost sum_cost(struct estimate *e, const struct cel_expr *expr,
                                     const struct cel_estimated_call *call)
{
    const struct cel_operand *args = call->args;
    struct cel_range size = cel_range_add(args[0].size, args[1].size);
    set_entry(e, expr, union_of(entry_of(e, args[0].expr), entry_of(e, args[1].expr)));
    bool is_list = call->overload == CEL_OVERLOAD_ADD_LIST;
    return (struct cel_call_cost){is_list ? CEL_EXACTLY(1) : cel_range_traversal(size), true, size};
}

/* The price of an overload of cel-go's own functions, without the arguments. Products that are too
 * large are not limited where cel-go does not limit them. */
static struct cel_call_cost overload_cost(struct estimate *e, const struct cel_expr *expr,
                                          const struct cel_estimated_call *call)
{
    const struct cel_operand *args = call->args, *target = call->target;
    struct cel_range size = call->count ? args[0].size : CEL_ANY_SIZE;
    switch (call->overload) {
    case CEL_OVERLOAD_STRING_FORMAT:
        return (struct cel_call_cost){.cost = cel_range_traversal(target->size)};
    case CEL_OVERLOAD_STRING_TO_BYTES:
        return (struct cel_call_cost){cel_range_traversal(size), true, {size.min, size.max * 4}};
    case CEL_OVERLOAD_BYTES_TO_STRING:
        return (struct cel_call_cost){cel_range_traversal(size), true, {size.min / 4, size.max}};
    case CEL_OVERLOAD_STRINGS_QUOTE:
        return (struct cel_call_cost){
            cel_range_traversal(size), true, {size.min + 2, size.max * 2 + 2}};
    case CEL_OVERLOAD_STARTS_WITH_STRING:
    case CEL_OVERLOAD_ENDS_WITH_STRING:
        return (struct cel_call_cost){.cost = cel_range_traversal(size)};
    case CEL_OVERLOAD_IN_LIST:
        return (struct cel_call_cost){.cost = cel_range_scale(args[1].size, 1)};
    case CEL_OVERLOAD_MATCHES_STRING:
        return (struct cel_call_cost){.cost = regex_cost(target->size, size)};
    case CEL_OVERLOAD_CONTAINS_STRING:
        return (struct cel_call_cost){.cost = cel_range_multiply(cel_range_traversal(target->size),
                                                                 cel_range_traversal(size))};
    case CEL_OVERLOAD_ADD_STRING:
    case CEL_OVERLOAD_ADD_BYTES:
    case CEL_OVERLOAD_ADD_LIST:
        return sum_cost(e, expr, call);
    case CEL_OVERLOAD_LESS_STRING:
    case CEL_OVERLOAD_GREATER_STRING:
    case CEL_OVERLOAD_LESS_EQUALS_STRING:
    case CEL_OVERLOAD_GREATER_EQUALS_STRING:
    case CEL_OVERLOAD_LESS_BYTES:
    case CEL_OVERLOAD_GREATER_BYTES:
    case CEL_OVERLOAD_LESS_EQUALS_BYTES:
    case CEL_OVERLOAD_GREATER_EQUALS_BYTES:
    case CEL_OVERLOAD_EQUALS:
    case CEL_OVERLOAD_NOT_EQUALS:
        return (struct cel_call_cost){.cost = comparison_cost(size, args[1].size)};
    default:
        return (struct cel_call_cost){.cost = CEL_EXACTLY(1)};
    }
}

/* The price of one overload with its arguments. */
static struct cel_call_cost cost_with_args(struct estimate *e, const struct cel_expr *expr,
                                           const struct cel_estimated_call *call,
                                           const struct cel_range *costs)
{
    struct cel_call_cost cost;
    if (cel_function_cost(call, &cost)) {
        /* A row. */
    } else if (call->overload == CEL_OVERLOAD_LOGICAL_AND ||
               call->overload == CEL_OVERLOAD_LOGICAL_OR) {
        cost.cost = (struct cel_range){costs[0].min, cel_saturated_sum(costs[0].max, costs[1].max)};
        cost.sized = false;
        return cost;
    } else if (call->overload == CEL_OVERLOAD_CONDITIONAL) {
        const struct cel_operand *args = call->args;
        set_entry(e, expr, union_of(entry_of(e, args[1].expr), entry_of(e, args[2].expr)));
        cost.cost = cel_range_add(costs[0], cel_range_union(costs[1], costs[2]));
        cost.sized = true;
        cost.size = cel_range_union(args[1].size, args[2].size);
        return cost;
    } else {
        cost = overload_cost(e, expr, call);
    }
    struct cel_range sum = {0};
    for (uint32_t i = 0; i < call->count; i++)
        sum = cel_range_add(sum, costs[i]);
    cost.cost = cel_range_add(cost.cost, sum);
    return cost;
}

/* The costs of all overloads that fit, and the size of the result. */
static struct cel_range cost_of_overloads(struct estimate *e, const struct cel_expr *expr,
                                          struct cel_estimated_call *call,
                                          const struct cel_range *costs)
{
    struct cel_range sum = {UINT64_MAX, 0};
    struct size size = {0};
    uint16_t count = expr->call.overload_count;
    /* a.?b has one that has no number. */
    for (uint16_t i = 0; i < count || i == 0; i++) {
        call->overload = count ? expr->call.overloads[i] : -1;
        struct cel_call_cost cost = cost_with_args(e, expr, call, costs);
        sum = cel_range_union(sum, cost.cost);
        if (cost.sized)
            size = (struct size){true,
                                 size.known ? cel_range_union(size.range, cost.size) : cost.size};
        if (call->overload == CEL_OVERLOAD_INDEX_LIST || call->overload == CEL_OVERLOAD_INDEX_MAP) {
            const struct cel_expr *from = call->args[0].expr;
            size = value_size(entry_of(e, from));
            facts_of(e, expr)->path = append(e, path_of(e, from), CEL_STEP_ITEMS, SLICE_EMPTY);
        }
        if (!size.known)
            size = size_of(e, expr);
    }
    set_size(e, expr, size);
    return sum;
}

static struct cel_range cost_of_call(struct estimate *e, const struct cel_expr *expr)
{
    const struct cel_call *call = &expr->call;
    struct cel_range costs[CEL_ARGS_MAX], sum = {0};
    struct cel_operand args[CEL_ARGS_MAX], target;
    struct cel_estimated_call estimated = {
        .function = call->function, .args = args, .count = call->args.count};
    assert(call->args.count <= CEL_ARGS_MAX);
    if (slice_equal(call->function, SLICE_LITERAL("dyn"))) {
        const struct cel_expr *arg = call->args.at[0];
        sum = cel_range_add(CEL_EXACTLY(1), cost_of(e, arg));
        set_size(e, expr, size_of(e, arg));
        set_entry(e, expr, entry_of(e, arg));
        return sum;
    }
    for (uint32_t i = 0; i < call->args.count; i++) {
        costs[i] = cost_of(e, call->args.at[i]);
        args[i] = operand_of(e, call->args.at[i]);
    }
    if (call->target) {
        sum = cost_of(e, call->target);
        target = operand_of(e, call->target);
        estimated.target = &target;
    }
    return cel_range_add(sum, cost_of_overloads(e, expr, &estimated, costs));
}

/* -- Other nodes -- */

static struct cel_range cost_of_ident(struct estimate *e, const struct cel_expr *expr)
{
    const struct local *local = find_local(e, expr);
    facts_of(e, expr)->path =
        local ? local->path : append(e, (struct cel_path){0}, CEL_STEP_FIELD, expr->ident);
    return CEL_EXACTLY(1);
}

static struct cel_range cost_of_select(struct estimate *e, const struct cel_expr *expr)
{
    const struct cel_expr *operand = expr->select.operand;
    struct cel_range cost = cost_of(e, operand);
    if (expr->select.is_test)
        return cost;
    if (operand->type->kind == CEL_TYPE_MAP || operand->type->kind == CEL_TYPE_OBJECT)
        cost = cel_range_add(cost, CEL_EXACTLY(1));
    facts_of(e, expr)->path = append(e, path_of(e, operand), CEL_STEP_FIELD, expr->select.field);
    return cost;
}

/* The range of the sizes of parts, before there is any. */
static struct cel_range no_part(uint32_t count)
{
    return (struct cel_range){count ? UINT64_MAX : 0, 0};
}

static struct cel_range cost_of_list(struct estimate *e, const struct cel_expr *expr)
{
    const struct cel_exprs *items = &expr->list.items;
    struct cel_range sum = {0}, size = no_part(items->count);
    for (uint32_t i = 0; i < items->count; i++) {
        sum = cel_range_add(sum, cost_of(e, items->at[i]));
        size = cel_range_union(size, or_any(size_of(e, items->at[i])));
    }
    set_entry(e, expr, (struct entry){true, true, CEL_EXACTLY(1), size});
    return cel_range_add(sum, CEL_EXACTLY(10));
}

static struct cel_range cost_of_map(struct estimate *e, const struct cel_expr *expr)
{
    const struct cel_entries *entries = &expr->entries;
    struct cel_range sum = {0};
    struct entry entry = {true, false, no_part(entries->count), no_part(entries->count)};
    for (uint32_t i = 0; i < entries->count; i++) {
        const struct cel_expr *key = entries->at[i].key, *value = entries->at[i].value;
        sum = cel_range_add(sum, cost_of(e, key));
        sum = cel_range_add(sum, cost_of(e, value));
        entry.key = cel_range_union(entry.key, or_any(size_of(e, key)));
        entry.value = cel_range_union(entry.value, or_any(size_of(e, value)));
    }
    set_entry(e, expr, entry);
    return cel_range_add(sum, CEL_EXACTLY(30));
}

static struct cel_range cost_of_struct(struct estimate *e, const struct cel_expr *expr)
{
    struct cel_range sum = CEL_EXACTLY(40);
    for (uint32_t i = 0; i < expr->entries.count; i++)
        sum = cel_range_add(sum, cost_of(e, expr->entries.at[i].value));
    return sum;
}

/* -- Comprehensions -- */

enum part { PART_KEY, PART_VALUE, PART_SINGLE };

/* A variable that runs over a range. */
static struct local running(struct estimate *e, struct slice name, const struct cel_expr *range,
                            enum part part)
{
    struct entry entry = entry_of(e, range);
    bool is_list = entry.known ? entry.is_list : range->type->kind == CEL_TYPE_LIST;
    bool is_value = part == PART_VALUE || (part == PART_SINGLE && is_list);
    enum cel_step_kind step = is_value  ? CEL_STEP_ITEMS
                              : is_list ? CEL_STEP_INDICES
                                        : CEL_STEP_KEYS;
    return (struct local){
        .name = name,
        .path = append(e, path_of(e, range), step, SLICE_EMPTY),
        .size = {entry.known, is_value ? entry.value : entry.key},
        .outer = e->locals,
    };
}

static struct local bound(struct estimate *e, const struct cel_comprehension *body)
{
    return (struct local){
        .name = body->accumulator,
        .path = path_of(e, body->initial),
        .entry = entry_of(e, body->initial),
        .size = size_of(e, body->initial),
        .outer = e->locals,
    };
}

/* A comprehension that only gives a value a name. */
static bool is_binding(const struct cel_comprehension *body)
{
    const struct cel_expr *condition = body->condition;
    return body->range->kind == CEL_EXPR_LIST && !body->range->list.items.count &&
           condition->kind == CEL_EXPR_LITERAL && condition->literal.kind == CEL_LITERAL_BOOL &&
           !condition->literal.truth;
}

static struct cel_range cost_of_binding(struct estimate *e, const struct cel_expr *expr)
{
    const struct cel_comprehension *body = expr->comprehension;
    struct cel_range sum = cost_of(e, body->range);
    sum = cel_range_add(sum, cost_of(e, body->initial));
    struct local local = bound(e, body);
    e->locals = &local;
    sum = cel_range_add(sum, cost_of(e, body->result));
    e->locals = local.outer;
    set_size(e, expr, size_of(e, body->result));
    set_entry(e, expr, entry_of(e, body->result));
    return sum;
}

static struct cel_range cost_of_loop(struct estimate *e, const struct cel_expr *expr)
{
    const struct cel_comprehension *body = expr->comprehension;
    bool two = body->second.len > 0;
    struct cel_range sum = cost_of(e, body->range);
    sum = cel_range_add(sum, cost_of(e, body->initial));
    struct local accumulator = bound(e, body), second;
    e->locals = &accumulator;
    struct local first = running(e, body->first, body->range, two ? PART_KEY : PART_SINGLE);
    e->locals = &first;
    if (two) {
        second = running(e, body->second, body->range, PART_VALUE);
        e->locals = &second;
    }
    struct cel_range turn = cost_of(e, body->condition);
    turn = cel_range_add(cost_of(e, body->step), turn);
    e->locals = &accumulator;
    sum = cel_range_add(sum, cost_of(e, body->result));
    e->locals = accumulator.outer;

    struct size turns = {true, or_any(size_of(e, body->range))};
    if (body->initial->kind == CEL_EXPR_LITERAL) {
        set_size(e, expr, size_of(e, body->initial));
    } else if (body->initial->kind == CEL_EXPR_LIST || body->initial->kind == CEL_EXPR_MAP) {
        set_size(e, expr, turns);
        set_entry(e, expr, entry_of(e, body->step));
    }
    return cel_range_add(sum, cel_range_multiply(turns.range, turn));
}

/* -- The tree -- */

static struct cel_range cost_of(struct estimate *e, const struct cel_expr *expr)
{
    switch ((enum cel_expr_kind)expr->kind) {
    case CEL_EXPR_INVALID: /* not in a tree that was checked */
    case CEL_EXPR_LITERAL:
        break;
    case CEL_EXPR_IDENT:
        return cost_of_ident(e, expr);
    case CEL_EXPR_SELECT:
        return cost_of_select(e, expr);
    case CEL_EXPR_CALL:
        return cost_of_call(e, expr);
    case CEL_EXPR_LIST:
        return cost_of_list(e, expr);
    case CEL_EXPR_MAP:
        return cost_of_map(e, expr);
    case CEL_EXPR_STRUCT:
        return cost_of_struct(e, expr);
    case CEL_EXPR_COMPREHENSION:
        return is_binding(expr->comprehension) ? cost_of_binding(e, expr) : cost_of_loop(e, expr);
    }
    return (struct cel_range){0};
}

static void number(void *context, struct cel_expr *expr)
{
    uint32_t *count = context;
    expr->number = (*count)++;
    cel_for_children(expr, number, count);
}

enum status cel_estimate(struct arena *arena, const struct cel_type *variables,
                         struct cel_expr *root, struct cel_range *ret_cost)
{
    struct estimate e = {.arena = arena, .variables = variables};
    number(&e.nodes, root);
    e.facts = arena_calloc(arena, e.nodes, sizeof(*e.facts));
    if (!e.facts)
        return ST_NOMEM;
    struct cel_range cost = cost_of(&e, root);
    if (e.failed || arena_ran_out(arena))
        return ST_NOMEM;
    *ret_cost = cost;
    return ST_OK;
}
