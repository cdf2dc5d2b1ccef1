#include "cel/check/literals.h"

#include "cel/check/formats.h"
#include "cel/check/type.h"
#include "cel/syntax/walk.h"
#include "codec/go_duration.h"
#include "codec/kube_time.h"
#include "regex/regex.h"

enum { PATTERN_ARENA_BYTES_MAX = 64 << 20 };

struct literals {
    struct cel_errors *errors;
    size_t pattern_steps;
    bool is_exempt; /* within the arguments of a format, which may have different types */
    bool out_of_memory;
};

static bool is_named(const struct cel_expr *expr, const char *function)
{
    return expr->kind == CEL_EXPR_CALL &&
           slice_equal(expr->call.function, slice_from_text(function));
}

/* -- Constant arguments -- */

static bool is_duration(const struct cel_literal *literal)
{
    int64_t nanoseconds;
    /* There is duration(int), but no int can be converted. */
    return literal->kind == CEL_LITERAL_STRING && go_duration_read(literal->text, &nanoseconds);
}

static bool is_timestamp(const struct cel_literal *literal)
{
    int64_t seconds, offset_s;
    int32_t nanoseconds;
    if (literal->kind == CEL_LITERAL_INT)
        return cel_is_timestamp(literal->i64);
    return literal->kind == CEL_LITERAL_STRING &&
           kube_time_read_offset(literal->text, &seconds, &nanoseconds, &offset_s) &&
           cel_is_timestamp(seconds);
}

static void check_pattern(struct literals *l, const struct cel_expr *pattern)
{
    const struct regex *regex;
    struct error error;
    struct arena arena;
    if (pattern->literal.kind != CEL_LITERAL_STRING)
        return;
    arena_init(&arena, NULL, 0, PATTERN_ARENA_BYTES_MAX);
    switch (
        regex_compile_within(&arena, pattern->literal.text, &l->pattern_steps, &regex, &error)) {
    case ST_OK:
        break;
    case ST_INVALID:
        cel_error_add(l->errors, pattern->offset, "invalid matches argument");
        break;
    case ST_LIMIT:
        cel_error_add(l->errors, pattern->offset, "the regular expressions are too large");
        break;
    default:
        l->out_of_memory = true;
    }
    arena_fini(&arena);
}

static void check_argument(struct literals *l, const struct cel_expr *expr)
{
    /* matches(text, pattern) is looked at as text.matches(pattern) is, so that the text counts. */
    const struct cel_expr *arg = expr->call.args.count ? expr->call.args.at[0] : NULL;
    if (!arg || arg->kind != CEL_EXPR_LITERAL)
        return;
    if (is_named(expr, "matches"))
        check_pattern(l, arg);
    else if (is_named(expr, "duration") && !is_duration(&arg->literal))
        cel_error_add(l->errors, arg->offset, "invalid duration argument");
    else if (is_named(expr, "timestamp") && !is_timestamp(&arg->literal))
        cel_error_add(l->errors, arg->offset, "invalid timestamp argument");
}

/* -- Lists and maps of one type -- */

/* False: the type differs from that of the first part, which is reported. */
static bool is_same(struct literals *l, const struct cel_expr *part, bool optional,
                    const struct cel_type **first)
{
    AUTO(buf_fini) struct buf texts = {0};
    const struct cel_type *type = part->type;
    if (optional && cel_type_is_optional(type))
        type = cel_type_param(type, 0);
    if (!*first)
        *first = type;
    if (cel_type_equal(*first, type))
        return true;
    if (cel_type_write(*first, &texts) != ST_OK ||
        buf_append_text(&texts, "' but found '") != ST_OK || cel_type_write(type, &texts) != ST_OK)
        l->out_of_memory = true;
    else
        cel_error_add(l->errors, part->offset, "expected type '%.*s'",
                      SLICE_ARGS(buf_slice(&texts)));
    return false;
}

static void check_parts(struct literals *l, const struct cel_expr *expr)
{
    const struct cel_type *key = NULL, *value = NULL;
    for (uint32_t i = 0; expr->kind == CEL_EXPR_LIST && i < expr->list.items.count; i++)
        if (!is_same(l, expr->list.items.at[i], expr->list.optional && expr->list.optional[i],
                     &value))
            break;
    for (uint32_t i = 0; expr->kind == CEL_EXPR_MAP && i < expr->entries.count; i++) {
        const struct cel_entry *entry = &expr->entries.at[i];
        (void)is_same(l, entry->key, false, &key);
        (void)is_same(l, entry->value, entry->optional, &value);
    }
}

/* -- The tree -- */

static void check(void *literals, struct cel_expr *expr)
{
    struct literals *l = literals;
    bool was_exempt = l->is_exempt;
    if (!was_exempt)
        check_parts(l, expr);
    if (expr->kind == CEL_EXPR_CALL)
        check_argument(l, expr);
    l->is_exempt |= is_named(expr, "format");
    cel_for_children(expr, check, l);
    l->is_exempt = was_exempt;
}

enum status cel_check_literals(struct cel_errors *errors, struct cel_expr *root)
{
    struct literals l = {.errors = errors, .pattern_steps = CEL_PATTERN_STEPS_MAX};
    check(&l, root);
    cel_check_formats(errors, root);
    return l.out_of_memory ? ST_NOMEM : ST_OK;
}
