#include "cel/syntax/walk.h"

void cel_for_children(struct cel_expr *expr, cel_child_fn *fn, void *context)
{
    struct cel_comprehension *body;
    switch ((enum cel_expr_kind)expr->kind) {
    case CEL_EXPR_INVALID:
    case CEL_EXPR_LITERAL:
    case CEL_EXPR_IDENT:
        break;
    case CEL_EXPR_SELECT:
        fn(context, expr->select.operand);
        break;
    case CEL_EXPR_CALL:
        if (expr->call.target)
            fn(context, expr->call.target);
        for (uint32_t i = 0; i < expr->call.args.count; i++)
            fn(context, expr->call.args.at[i]);
        break;
    case CEL_EXPR_LIST:
        for (uint32_t i = 0; i < expr->list.items.count; i++)
            fn(context, expr->list.items.at[i]);
        break;
    case CEL_EXPR_MAP:
    case CEL_EXPR_STRUCT:
        for (uint32_t i = 0; i < expr->entries.count; i++) {
            if (expr->entries.at[i].key)
                fn(context, expr->entries.at[i].key);
            fn(context, expr->entries.at[i].value);
        }
        break;
    case CEL_EXPR_COMPREHENSION:
        body = expr->comprehension;
        fn(context, body->range);
        fn(context, body->initial);
        fn(context, body->condition);
        fn(context, body->step);
        fn(context, body->result);
        break;
    }
}

struct search {
    struct slice name;
    bool found;
};

static void search(void *context, struct cel_expr *expr)
{
    struct search *s = context;
    if (s->found)
        return;
    s->found = expr->kind == CEL_EXPR_IDENT && slice_equal(expr->ident, s->name);
    cel_for_children(expr, search, s);
}

bool cel_expr_mentions(struct cel_expr *root, struct slice name)
{
    struct search s = {.name = name};
    search(&s, root);
    return s.found;
}
