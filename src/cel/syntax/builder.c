#include "cel/syntax/builder.h"

/* -- Depths. Those of a node follow from its children. -- */

struct depths {
    uint16_t nesting, height;
    bool missing; /* a child could not be allocated */
};

static void take_child(struct depths *depths, const struct cel_expr *child)
{
    if (!child) {
        depths->missing = true;
        return;
    }
    depths->nesting = child->nesting > depths->nesting ? child->nesting : depths->nesting;
    depths->height = child->height > depths->height ? child->height : depths->height;
}

static void take_children(struct depths *depths, const struct cel_exprs *children)
{
    for (uint32_t i = 0; i < children->count; i++)
        take_child(depths, children->at[i]);
}

static struct cel_expr *make(struct arena *arena, uint32_t offset, enum cel_expr_kind kind,
                             struct depths depths)
{
    struct cel_expr *expr = depths.missing ? NULL : arena_calloc(arena, 1, sizeof(*expr));
    if (!expr)
        return NULL;
    expr->kind = (uint8_t)kind;
    expr->offset = offset;
    expr->nesting = depths.nesting;
    expr->height = (uint16_t)(depths.height + 1);
    return expr;
}

/* -- Nodes -- */

struct cel_expr *cel_make_invalid(struct arena *arena, uint32_t offset)
{
    return make(arena, offset, CEL_EXPR_INVALID, (struct depths){0});
}

struct cel_expr *cel_make_literal(struct arena *arena, uint32_t offset, struct cel_literal literal)
{
    struct cel_expr *expr = make(arena, offset, CEL_EXPR_LITERAL, (struct depths){0});
    if (expr)
        expr->literal = literal;
    return expr;
}

struct cel_expr *cel_make_bool(struct arena *arena, uint32_t offset, bool truth)
{
    return cel_make_literal(arena, offset,
                            (struct cel_literal){.kind = CEL_LITERAL_BOOL, .truth = truth});
}

struct cel_expr *cel_make_int(struct arena *arena, uint32_t offset, int64_t value)
{
    return cel_make_literal(arena, offset,
                            (struct cel_literal){.kind = CEL_LITERAL_INT, .i64 = value});
}

struct cel_expr *cel_make_ident(struct arena *arena, uint32_t offset, struct slice name)
{
    struct cel_expr *expr = make(arena, offset, CEL_EXPR_IDENT, (struct depths){0});
    if (expr)
        expr->ident = name;
    return expr;
}

struct cel_expr *cel_make_select(struct arena *arena, uint32_t offset,
                                 const struct cel_select *select)
{
    struct depths depths = {0};
    take_child(&depths, select->operand);
    struct cel_expr *expr = make(arena, offset, CEL_EXPR_SELECT, depths);
    if (expr)
        expr->select = *select;
    return expr;
}

struct cel_expr *cel_make_call(struct arena *arena, uint32_t offset, const struct cel_call *call)
{
    struct depths depths = {0};
    if (call->target)
        take_child(&depths, call->target);
    take_children(&depths, &call->args);
    struct cel_expr *expr = make(arena, offset, CEL_EXPR_CALL, depths);
    if (expr)
        expr->call = *call;
    return expr;
}

struct cel_expr *cel_make_list(struct arena *arena, uint32_t offset, const struct cel_list *list)
{
    struct depths depths = {0};
    take_children(&depths, &list->items);
    struct cel_expr *expr = make(arena, offset, CEL_EXPR_LIST, depths);
    if (expr)
        expr->list = *list;
    return expr;
}

struct cel_expr *cel_make_entries(struct arena *arena, uint32_t offset,
                                  const struct cel_entries *entries)
{
    struct depths depths = {0};
    bool is_map = entries->type_name.len == 0;
    for (uint32_t i = 0; i < entries->count; i++) {
        if (is_map)
            take_child(&depths, entries->at[i].key);
        take_child(&depths, entries->at[i].value);
    }
    struct cel_expr *expr = make(arena, offset, is_map ? CEL_EXPR_MAP : CEL_EXPR_STRUCT, depths);
    if (expr)
        expr->entries = *entries;
    return expr;
}

struct cel_expr *cel_make_comprehension(struct arena *arena, uint32_t offset,
                                        const struct cel_comprehension *comprehension)
{
    struct depths depths = {0};
    take_child(&depths, comprehension->range);
    take_child(&depths, comprehension->initial);
    take_child(&depths, comprehension->condition);
    take_child(&depths, comprehension->step);
    take_child(&depths, comprehension->result);
    struct cel_expr *expr = make(arena, offset, CEL_EXPR_COMPREHENSION, depths);
    struct cel_comprehension *body = expr ? arena_alloc(arena, sizeof(*body)) : NULL;
    if (!body)
        return NULL;
    *body = *comprehension;
    expr->comprehension = body;
    return expr;
}

struct cel_expr *cel_make_function(struct arena *arena, uint32_t offset, const char *function,
                                   struct cel_expr *a, struct cel_expr *b, struct cel_expr *c)
{
    struct cel_expr **args = arena_calloc(arena, 3, sizeof(struct cel_expr *));
    if (!args)
        return NULL;
    args[0] = a;
    args[1] = b;
    args[2] = c;
    uint32_t count = c ? 3 : b ? 2 : a ? 1 : 0;
    return cel_make_call(arena, offset,
                         &(struct cel_call){.function = slice_from_text(function),
                                            .args = {.at = args, .count = count}});
}

struct cel_expr *cel_make_method(struct arena *arena, uint32_t offset, const char *function,
                                 struct cel_expr *a, struct cel_expr *b)
{
    struct cel_expr *call = cel_make_function(arena, offset, function, b, NULL, NULL);
    if (!call || !a)
        return NULL;
    call->call.target = a;
    struct depths depths = {.nesting = call->nesting, .height = (uint16_t)(call->height - 1)};
    take_child(&depths, a);
    call->nesting = depths.nesting;
    call->height = (uint16_t)(depths.height + 1);
    return call;
}

struct cel_expr *cel_make_list_of(struct arena *arena, uint32_t offset, struct cel_expr *item)
{
    struct cel_expr **items = arena_calloc(arena, 1, sizeof(struct cel_expr *));
    if (!items)
        return NULL;
    items[0] = item;
    return cel_make_list(arena, offset,
                         &(struct cel_list){.items = {.at = items, .count = item != NULL}});
}

struct slice cel_qualified_name(struct arena *arena, const struct cel_expr *expr)
{
    size_t len = 0;
    const struct cel_expr *e = expr;
    for (; e->kind == CEL_EXPR_SELECT && !e->select.is_test; e = e->select.operand)
        len += e->select.field.len + 1;
    if (e->kind != CEL_EXPR_IDENT || e == expr)
        return e == expr && e->kind == CEL_EXPR_IDENT ? e->ident : SLICE_EMPTY;
    len += e->ident.len;
    uint8_t *name = arena_alloc(arena, len);
    if (!name)
        return SLICE_EMPTY;
    slice_copy(name, e->ident);
    size_t end = len;
    for (e = expr; e->kind == CEL_EXPR_SELECT; e = e->select.operand) {
        end -= e->select.field.len;
        slice_copy(name + end, e->select.field);
        name[--end] = '.';
    }
    return slice_of(name, len);
}

/* -- Copies -- */

static bool copy_all(struct arena *arena, struct cel_exprs *exprs, uint32_t *budget)
{
    struct cel_expr **copies = arena_calloc(arena, exprs->count, sizeof(struct cel_expr *));
    for (uint32_t i = 0; copies && i < exprs->count; i++) {
        copies[i] = cel_copy(arena, exprs->at[i], budget);
        if (!copies[i])
            return false;
    }
    exprs->at = copies;
    return copies || !exprs->count;
}

static bool copy_entries(struct arena *arena, struct cel_entries *entries, uint32_t *budget)
{
    struct cel_entry *copies = arena_calloc(arena, entries->count, sizeof(*copies));
    for (uint32_t i = 0; copies && i < entries->count; i++) {
        const struct cel_entry *entry = &entries->at[i];
        copies[i] = *entry;
        copies[i].key = entry->key ? cel_copy(arena, entry->key, budget) : NULL;
        copies[i].value = cel_copy(arena, entry->value, budget);
        if ((entry->key && !copies[i].key) || !copies[i].value)
            return false;
    }
    entries->at = copies;
    return copies || !entries->count;
}

static bool copy_comprehension(struct arena *arena, struct cel_expr *expr, uint32_t *budget)
{
    struct cel_comprehension *body = arena_alloc(arena, sizeof(*body));
    if (!body)
        return false;
    *body = *expr->comprehension;
    body->range = cel_copy(arena, body->range, budget);
    body->initial = cel_copy(arena, body->initial, budget);
    body->condition = cel_copy(arena, body->condition, budget);
    body->step = cel_copy(arena, body->step, budget);
    body->result = cel_copy(arena, body->result, budget);
    expr->comprehension = body;
    return body->range && body->initial && body->condition && body->step && body->result;
}

struct cel_expr *cel_copy(struct arena *arena, const struct cel_expr *expr, uint32_t *budget)
{
    struct cel_expr *copy = *budget ? arena_alloc(arena, sizeof(*copy)) : NULL;
    if (!copy)
        return NULL;
    --*budget;
    *copy = *expr;
    bool complete = true;
    switch ((enum cel_expr_kind)expr->kind) {
    case CEL_EXPR_INVALID:
    case CEL_EXPR_LITERAL:
    case CEL_EXPR_IDENT:
        break;
    case CEL_EXPR_SELECT:
        copy->select.operand = cel_copy(arena, expr->select.operand, budget);
        complete = copy->select.operand != NULL;
        break;
    case CEL_EXPR_CALL:
        copy->call.target = expr->call.target ? cel_copy(arena, expr->call.target, budget) : NULL;
        complete =
            !expr->call.target == !copy->call.target && copy_all(arena, &copy->call.args, budget);
        break;
    case CEL_EXPR_LIST:
        complete = copy_all(arena, &copy->list.items, budget);
        break;
    case CEL_EXPR_MAP:
    case CEL_EXPR_STRUCT:
        complete = copy_entries(arena, &copy->entries, budget);
        break;
    case CEL_EXPR_COMPREHENSION:
        complete = copy_comprehension(arena, copy, budget);
        break;
    }
    return complete ? copy : NULL;
}
