#include "cel/check/formats.h"

#include "cel/check/clause.h"
#include "cel/syntax/walk.h"

/* The part of an argument of %s that it does not accept; NULL: there is none. */
static const struct cel_expr *find_refused(const struct cel_expr *expr)
{
    const struct cel_expr *refused = NULL;
    if (expr->type->kind != CEL_TYPE_DYN && !cel_clause_accepts('s', expr->type))
        return expr;
    if (expr->kind == CEL_EXPR_LIST)
        for (uint32_t i = 0; i < expr->list.items.count && !refused; i++)
            refused = find_refused(expr->list.items.at[i]);
    for (uint32_t i = 0; expr->kind == CEL_EXPR_MAP && i < expr->entries.count && !refused; i++) {
        refused = find_refused(expr->entries.at[i].key);
        if (!refused)
            refused = find_refused(expr->entries.at[i].value);
    }
    return refused;
}

static const struct cel_expr *refused_by(char verb, const struct cel_expr *arg)
{
    if (verb == 's')
        return find_refused(arg);
    return arg->type->kind == CEL_TYPE_DYN || cel_clause_accepts(verb, arg->type) ? NULL : arg;
}

static void report(struct cel_errors *errors, const struct cel_expr *at, struct slice error)
{
    cel_error_add(errors, at->offset, "%.*s", SLICE_ARGS(error));
}

static void check_format(struct cel_errors *errors, const struct cel_expr *call,
                         const struct cel_exprs *args)
{
    struct slice text, rest = call->call.target->literal.text;
    struct slice error;
    struct cel_clause clause;
    enum cel_part part;
    uint32_t index = 0;
    while ((part = cel_format_next(&rest, &text)) != CEL_PART_END) {
        if (part == CEL_PART_TEXT)
            continue;
        /* Unlike at evaluation, the end of the format is found before the end of the arguments. */
        uint32_t count = rest.len == 1 ? index + 1 : args->count;
        if (!cel_clause_read(errors->arena, rest, index, count, &clause, &error)) {
            report(errors, call, error);
            return;
        }
        const struct cel_expr *refused = refused_by(clause.verb, args->at[index]);
        if (refused) {
            report(errors, refused, cel_clause_refusal(errors->arena, clause.verb, refused->type));
            return;
        }
        index++;
        rest = slice_sub(rest, clause.length, rest.len - clause.length);
    }
    if (args->count > index)
        cel_error_add(errors, call->offset,
                      "too many arguments supplied to string.format (expected %u, got %u)", index,
                      args->count);
}

static bool is_string(const struct cel_expr *expr)
{
    return expr->kind == CEL_EXPR_LITERAL && expr->literal.kind == CEL_LITERAL_STRING;
}

/* cel-go checks inner calls first. */
static void check(void *errors, struct cel_expr *expr)
{
    const struct cel_call *call = &expr->call;
    cel_for_children(expr, check, errors);
    if (expr->kind == CEL_EXPR_CALL && slice_equal(call->function, SLICE_LITERAL("format")) &&
        call->target && is_string(call->target) && call->args.count == 1 &&
        call->args.at[0]->kind == CEL_EXPR_LIST)
        check_format(errors, expr, &call->args.at[0]->list.items);
}

void cel_check_formats(struct cel_errors *errors, struct cel_expr *root)
{
    check(errors, root);
}
