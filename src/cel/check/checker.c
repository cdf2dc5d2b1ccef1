#include "cel/check/checker.h"

#include "cel/check/inference.h"
#include "cel/check/literals.h"
#include "cel/syntax/builder.h"
#include "cel/syntax/walk.h"

#include <stdio.h>

/* A variable of a comprehension, in the scopes that are open. */
struct local {
    struct slice name;
    const struct cel_type *type;
    const struct local *outer;
};

struct checker {
    const struct cel_env *env;
    struct cel_errors *errors;
    struct arena *arena;
    struct cel_inference inference;
    const struct local *locals; /* the innermost; NULL: none */
};

static void check(struct checker *c, struct cel_expr *expr);

/* -- Errors -- */

/* The text of a type for an error message. */
struct type_text {
    char text[1024];
};

static struct type_text text_of(const struct cel_type *type)
{
    AUTO(buf_fini) struct buf buf = {0};
    struct type_text result = {"?"};
    if (cel_type_write(type, &buf) == ST_OK)
        snprintf(result.text, sizeof(result.text), "%.*s", SLICE_ARGS(buf_slice(&buf)));
    return result;
}

static void report_mismatch(struct checker *c, uint32_t offset, const struct cel_type *expected,
                            const struct cel_type *found)
{
    cel_error_add(c->errors, offset, "expected type '%s' but found '%s'", text_of(expected).text,
                  text_of(found).text);
}

static void report_undeclared(struct checker *c, uint32_t offset, struct slice name)
{
    cel_error_add(c->errors, offset, "undeclared reference to '%.*s' (in container '')",
                  SLICE_ARGS(name));
}

/* -- Types -- */

/* A type that could not be made is an error, so that the callers need not look. */
static const struct cel_type *or_error(struct checker *c, const struct cel_type *type)
{
    c->inference.failed |= !type;
    return type ? type : &cel_type_ERROR;
}

static const struct cel_type *substitute(struct checker *c, const struct cel_type *type)
{
    return or_error(c, cel_infer_substitute(&c->inference, type, false));
}

static bool is_assignable(struct checker *c, const struct cel_type *from, const struct cel_type *to)
{
    return cel_infer_assignable(&c->inference, from, to);
}

/* Nothing is known about the type of a value, and nothing may be concluded later from its use. */
static void assume_dyn(struct checker *c, const struct cel_type *type)
{
    c->inference.failed |= !is_assignable(c, &cel_type_DYN, type);
}

/* The value of an optional; every other type is returned as it is. */
static const struct cel_type *unwrap(const struct cel_type *type, bool *ret_is_optional)
{
    *ret_is_optional = cel_type_is_optional(type);
    return *ret_is_optional ? cel_type_param(type, 0) : type;
}

/* -- Names -- */

static struct slice without_dot(struct slice name)
{
    bool rooted = name.len && name.ptr[0] == '.';
    return slice_sub(name, rooted, name.len - rooted);
}

/* The type of objects that can be created; NULL: there is none of this name. */
static const struct cel_type *find_object(struct checker *c, struct slice name)
{
    const struct cel_objects *objects = c->env->objects;
    const struct cel_type *type = NULL;
    if (objects && objects->find(objects, name, c->arena, &type) != ST_OK)
        c->inference.failed = true;
    return type;
}

/* The type of the name of a type. */
static const struct cel_type *type_of_type(struct checker *c, const struct cel_type *type)
{
    struct cel_type *made = arena_alloc(c->arena, sizeof(*made));
    if (!made)
        return or_error(c, NULL);
    *made = (struct cel_type){.kind = CEL_TYPE_TYPE, .name = "type", .params = {type}, .parts = 2};
    return made;
}

/* NULL: it is not declared. */
static const struct cel_type *find_name(struct checker *c, struct slice name)
{
    name = without_dot(name);
    for (const struct local *local = c->locals; local; local = local->outer)
        if (slice_equal(local->name, name))
            return local->type;
    for (uint32_t i = 0; i < c->env->variable_count; i++)
        if (slice_equal(c->env->variables[i].name, name))
            return c->env->variables[i].type;
    const struct cel_type *object = find_object(c, name);
    return object ? type_of_type(c, object) : cel_constant_find(name);
}

static void become_ident(struct cel_expr *expr, struct slice name, const struct cel_type *type)
{
    expr->kind = CEL_EXPR_IDENT;
    expr->ident = without_dot(name);
    expr->type = type;
}

static void check_ident(struct checker *c, struct cel_expr *expr)
{
    const struct cel_type *type = find_name(c, expr->ident);
    if (type) {
        become_ident(expr, expr->ident, type);
        return;
    }
    report_undeclared(c, expr->offset, expr->ident);
    expr->type = &cel_type_ERROR;
}

/* -- Fields -- */

/* The type of a field of an object. An error, which is reported, if it has no such field. */
static const struct cel_type *find_field(struct checker *c, uint32_t offset,
                                         const struct cel_type *object, struct slice name)
{
    const struct cel_type *type = NULL;
    /* Objects of the library, such as a quantity, have functions and no fields. */
    if (!object->object) {
        cel_error_add(c->errors, offset, "unexpected failed resolution of '%s'", object->name);
        return &cel_type_ERROR;
    }
    if (object->object->field(object->object, name, c->arena, &type) != ST_OK)
        return or_error(c, NULL);
    if (!type)
        cel_error_add(c->errors, offset, "undefined field '%.*s'", SLICE_ARGS(name));
    return type ? type : &cel_type_ERROR;
}

/* The type of operand.field, or operand.?field. */
static const struct cel_type *check_field(struct checker *c, const struct cel_expr *expr,
                                          struct cel_expr *operand, struct slice field,
                                          bool optional)
{
    bool from_optional;
    check(c, operand);
    const struct cel_type *target = unwrap(substitute(c, operand->type), &from_optional);
    const struct cel_type *result = &cel_type_DYN;
    switch (target->kind) {
    case CEL_TYPE_MAP:
        result = cel_type_param(target, 1);
        break;
    case CEL_TYPE_OBJECT:
        result = find_field(c, expr->offset, target, field);
        break;
    case CEL_TYPE_PARAM:
        assume_dyn(c, target);
        break;
    case CEL_TYPE_DYN:
    case CEL_TYPE_ERROR:
        break;
    default:
        cel_error_add(c->errors, expr->offset, "type '%s' does not support field selection",
                      text_of(target).text);
        break;
    }
    if (!from_optional && !optional)
        return result;
    return or_error(c, cel_type_new_optional(c->arena, result));
}

static void check_select(struct checker *c, struct cel_expr *expr)
{
    /* A variable may have a name with dots. */
    struct slice name = cel_qualified_name(c->arena, expr);
    const struct cel_type *type = name.len ? find_name(c, name) : NULL;
    if (type) {
        become_ident(expr, name, type);
        return;
    }
    type = check_field(c, expr, expr->select.operand, expr->select.field, false);
    expr->type = expr->select.is_test ? &cel_type_BOOL : substitute(c, type);
}

/* -- Calls -- */

/* operand.?field is a call with the name of the field as a literal. */
static void check_optional_select(struct checker *c, struct cel_expr *expr)
{
    static const uint16_t none[1];
    struct cel_expr *const *args = expr->call.args.at;
    assert(expr->call.args.count == 2 && args[1]->kind == CEL_EXPR_LITERAL);
    args[1]->type = &cel_type_DYN;
    expr->type = substitute(c, check_field(c, expr, args[0], args[1]->literal.text, true));
    expr->call.overloads = none;
    expr->call.overload_count = 0;
}

/* && and || have one overload, and say which of their sides is wrong. */
static void check_logical(struct checker *c, struct cel_expr *expr, uint16_t *overloads,
                          struct cel_function function)
{
    bool fits = true;
    for (uint32_t i = 0; i < expr->call.args.count; i++) {
        const struct cel_expr *arg = expr->call.args.at[i];
        if (is_assignable(c, arg->type, &cel_type_BOOL))
            continue;
        report_mismatch(c, arg->offset, &cel_type_BOOL, arg->type);
        fits = false;
    }
    overloads[0] = function.first;
    expr->call.overload_count = 1;
    expr->type = fits ? &cel_type_BOOL : &cel_type_ERROR;
}

static void report_no_overload(struct checker *c, const struct cel_expr *expr,
                               const struct cel_type *const *args, uint32_t count)
{
    AUTO(buf_fini) struct buf signature = {0};
    bool is_member = expr->call.target != NULL;
    enum status status = is_member ? ST_OK : buf_append_text(&signature, "(");
    for (uint32_t i = 0; i < count && status == ST_OK; i++) {
        const struct cel_type *type =
            or_error(c, cel_infer_substitute(&c->inference, args[i], true));
        status = cel_type_write(type, &signature);
        bool is_last = i + 1 == count;
        if (status == ST_OK && is_member && i == 0)
            status = buf_append_text(&signature, ".(");
        else if (status == ST_OK && !is_last)
            status = buf_append_text(&signature, ", ");
    }
    cel_error_add(c->errors, expr->offset,
                  "found no matching overload for '%.*s' applied to '%.*s)'",
                  SLICE_ARGS(expr->call.function), SLICE_ARGS(buf_slice(&signature)));
}

/* Keeps the overloads that fit. The result has the type of the first, or dyn if they differ. */
static void resolve(struct checker *c, struct cel_expr *expr, struct cel_function function)
{
    struct cel_call *call = &expr->call;
    const struct cel_type *types[CEL_ARGS_MAX];
    uint32_t count = call->args.count + (call->target != NULL);
    uint16_t *overloads =
        arena_calloc(c->arena, (size_t)(function.end - function.first), sizeof(*overloads));
    call->overloads = overloads;
    expr->type = &cel_type_ERROR;
    if (!overloads) {
        c->inference.failed = true;
        return;
    }
    if (slice_equal(call->function, SLICE_LITERAL("_&&_")) ||
        slice_equal(call->function, SLICE_LITERAL("_||_"))) {
        check_logical(c, expr, overloads, function);
        return;
    }

    const struct cel_type **args = arena_calloc(c->arena, count + 1, sizeof(*args));
    const struct cel_type *result = NULL;
    if (!args) {
        c->inference.failed = true;
        return;
    }
    if (call->target)
        args[0] = call->target->type;
    for (uint32_t i = 0; i < call->args.count; i++)
        args[i + (call->target != NULL)] = call->args.at[i]->type;
    for (uint16_t at = function.first; at < function.end; at++) {
        const struct cel_overload *overload = &cel_overloads[at];
        const struct cel_type *its_result;
        if (overload->is_member != (call->target != NULL) ||
            !cel_infer_instance(&c->inference, overload, types, &its_result) ||
            overload->arg_count != count ||
            !cel_infer_assignable_all(&c->inference, args, types, count))
            continue;
        overloads[call->overload_count++] = at;
        its_result = substitute(c, its_result);
        if (!result)
            result = its_result;
        else if (!cel_type_equal(result, its_result))
            result = &cel_type_DYN;
    }
    if (result)
        expr->type = result;
    else
        report_no_overload(c, expr, args, count);
}

static bool find_function(const struct checker *c, struct slice name,
                          struct cel_function *ret_function)
{
    return cel_function_find(name, ret_function) &&
           (c->env->has_patches || !slice_has_prefix(name, SLICE_LITERAL("jsonpatch.")));
}

static void check_call(struct checker *c, struct cel_expr *expr)
{
    struct cel_call *call = &expr->call;
    struct cel_function function;
    if (!call->target && slice_equal(call->function, SLICE_LITERAL("_?._"))) {
        check_optional_select(c, expr);
        return;
    }
    for (uint32_t i = 0; i < call->args.count; i++)
        check(c, call->args.at[i]);

    /* optional.of(x) is a call of a function with a dot in its name, not of a member. */
    struct slice prefix = call->target ? cel_qualified_name(c->arena, call->target) : SLICE_EMPTY;
    if (prefix.len) {
        size_t len = prefix.len + 1 + call->function.len;
        uint8_t *name = arena_alloc(c->arena, len);
        if (!name) {
            c->inference.failed = true;
            return;
        }
        slice_copy(name, prefix);
        name[prefix.len] = '.';
        slice_copy(name + prefix.len + 1, call->function);
        struct slice qualified = without_dot(slice_of(name, len));
        if (find_function(c, qualified, &function)) {
            call->function = qualified;
            call->target = NULL;
            resolve(c, expr, function);
            return;
        }
    }
    if (call->target)
        check(c, call->target);
    struct slice name = call->target ? call->function : without_dot(call->function);
    if (!find_function(c, name, &function)) {
        report_undeclared(c, expr->offset, call->function);
        expr->type = &cel_type_ERROR;
        return;
    }
    call->function = name;
    resolve(c, expr, function);
}

/* -- Lists, maps and structs -- */

/* The common type of the items so far and another one; dyn if they have none. */
static const struct cel_type *join(struct checker *c, const struct cel_type *so_far,
                                   const struct cel_type *type)
{
    if (!so_far)
        return type;
    return is_assignable(c, so_far, type) ? cel_more_general(so_far, type) : &cel_type_DYN;
}

/* The type of a value that was written ?value, which must be an optional. */
static const struct cel_type *unwrap_written(struct checker *c, const struct cel_expr *value,
                                             bool optional)
{
    bool is_optional;
    if (!optional)
        return value->type;
    const struct cel_type *type = unwrap(value->type, &is_optional);
    if (!is_optional && type->kind != CEL_TYPE_DYN)
        report_mismatch(c, value->offset, or_error(c, cel_type_new_optional(c->arena, type)), type);
    return type;
}

static void check_list(struct checker *c, struct cel_expr *expr)
{
    const struct cel_type *type = NULL;
    for (uint32_t i = 0; i < expr->list.items.count; i++) {
        struct cel_expr *item = expr->list.items.at[i];
        check(c, item);
        bool optional = expr->list.optional && expr->list.optional[i];
        type = join(c, type, unwrap_written(c, item, optional));
    }
    if (!type)
        type = or_error(c, cel_infer_new(&c->inference));
    expr->type = or_error(c, cel_type_new_list(c->arena, type));
}

static void check_map(struct checker *c, struct cel_expr *expr)
{
    const struct cel_type *key = NULL, *value = NULL;
    for (uint32_t i = 0; i < expr->entries.count; i++) {
        struct cel_entry *entry = &expr->entries.at[i];
        check(c, entry->key);
        key = join(c, key, entry->key->type);
        check(c, entry->value);
        value = join(c, value, unwrap_written(c, entry->value, entry->optional));
    }
    if (!key) {
        key = or_error(c, cel_infer_new(&c->inference));
        value = or_error(c, cel_infer_new(&c->inference));
    }
    expr->type = or_error(c, cel_type_new_map(c->arena, key, value));
}

static void report_not_an_object(struct checker *c, const struct cel_expr *expr)
{
    const struct cel_type *type = find_name(c, expr->entries.type_name);
    if (!type)
        report_undeclared(c, expr->offset, expr->entries.type_name);
    else if (type->kind != CEL_TYPE_TYPE)
        cel_error_add(c->errors, expr->offset, "'%s' is not a type", type->name);
    else
        cel_error_add(c->errors, expr->offset, "'%s' is not a message type",
                      type->params[0] ? type->params[0]->name : type->name);
}

static void check_struct(struct checker *c, struct cel_expr *expr)
{
    struct slice name = without_dot(expr->entries.type_name);
    const struct cel_type *object = find_object(c, name);
    if (!object) {
        report_not_an_object(c, expr);
        expr->type = &cel_type_ERROR;
        return;
    }
    expr->entries.type_name = name;
    expr->type = object;
    for (uint32_t i = 0; i < expr->entries.count; i++) {
        const struct cel_entry *entry = &expr->entries.at[i];
        check(c, entry->value);
        const struct cel_type *field = find_field(c, entry->offset, object, entry->field);
        const struct cel_type *value = unwrap_written(c, entry->value, entry->optional);
        if (!is_assignable(c, field, value))
            cel_error_add(c->errors, entry->offset,
                          "expected type of field '%.*s' is '%s' but provided type is '%s'",
                          SLICE_ARGS(entry->field), text_of(field).text, text_of(value).text);
    }
}

/* -- Comprehensions -- */

/* The types of the variables of a comprehension over a range. */
static void find_variables(struct checker *c, const struct cel_comprehension *comprehension,
                           struct local *first, struct local *second)
{
    bool two = comprehension->second.len > 0;
    const struct cel_type *range = substitute(c, comprehension->range->type);
    first->type = second->type = &cel_type_DYN;
    switch (range->kind) {
    case CEL_TYPE_LIST:
        first->type = two ? &cel_type_INT : cel_type_param(range, 0);
        second->type = cel_type_param(range, 0);
        break;
    case CEL_TYPE_MAP:
        first->type = cel_type_param(range, 0);
        second->type = cel_type_param(range, 1);
        break;
    case CEL_TYPE_PARAM:
        assume_dyn(c, range);
        break;
    case CEL_TYPE_DYN:
    case CEL_TYPE_ERROR:
        break;
    default:
        cel_error_add(c->errors, comprehension->range->offset,
                      "expression of type '%s' cannot be range of a comprehension (must be list, "
                      "map, or dynamic)",
                      text_of(range).text);
        first->type = second->type = &cel_type_ERROR;
    }
}

static void expect_type(struct checker *c, const struct cel_expr *expr, const struct cel_type *type)
{
    if (!is_assignable(c, type, expr->type))
        report_mismatch(c, expr->offset, type, expr->type);
}

static void check_comprehension(struct checker *c, struct cel_expr *expr)
{
    struct cel_comprehension *body = expr->comprehension;
    const struct local *outside = c->locals;
    check(c, body->range);
    check(c, body->initial);
    struct local accumulator = {body->accumulator, body->initial->type, outside};
    struct local first = {.name = body->first, .outer = &accumulator};
    struct local second = {.name = body->second, .outer = &first};
    find_variables(c, body, &first, &second);

    c->locals = body->second.len ? &second : &first;
    check(c, body->condition);
    expect_type(c, body->condition, &cel_type_BOOL);
    check(c, body->step);
    expect_type(c, body->step, accumulator.type);
    /* The result sees the accumulator, but no item. */
    c->locals = &accumulator;
    check(c, body->result);
    c->locals = outside;
    expr->type = substitute(c, body->result->type);
}

/* -- The tree -- */

static void check(struct checker *c, struct cel_expr *expr)
{
    /* Once the types are too complex, the expression is refused, whatever else is in it. */
    if (c->inference.failed) {
        expr->type = &cel_type_ERROR;
        return;
    }
    static const struct cel_type *const literals[] = {
        [CEL_LITERAL_NULL] = &cel_type_NULL,     [CEL_LITERAL_BOOL] = &cel_type_BOOL,
        [CEL_LITERAL_INT] = &cel_type_INT,       [CEL_LITERAL_UINT] = &cel_type_UINT,
        [CEL_LITERAL_DOUBLE] = &cel_type_DOUBLE, [CEL_LITERAL_STRING] = &cel_type_STRING,
        [CEL_LITERAL_BYTES] = &cel_type_BYTES,
    };
    switch ((enum cel_expr_kind)expr->kind) {
    case CEL_EXPR_INVALID: /* not in a tree that was parsed without errors */
        break;
    case CEL_EXPR_LITERAL:
        expr->type = literals[expr->literal.kind];
        break;
    case CEL_EXPR_IDENT:
        check_ident(c, expr);
        break;
    case CEL_EXPR_SELECT:
        check_select(c, expr);
        break;
    case CEL_EXPR_CALL:
        check_call(c, expr);
        break;
    case CEL_EXPR_LIST:
        check_list(c, expr);
        break;
    case CEL_EXPR_MAP:
        check_map(c, expr);
        break;
    case CEL_EXPR_STRUCT:
        check_struct(c, expr);
        break;
    case CEL_EXPR_COMPREHENSION:
        check_comprehension(c, expr);
        break;
    }
    if (!expr->type)
        expr->type = &cel_type_ERROR; /* there was no memory */
}

/* Gives a node its final type: what is not known by now is only known at evaluation. */
static void finish(void *checker, struct cel_expr *expr)
{
    struct checker *c = checker;
    expr->type = or_error(c, cel_infer_substitute(&c->inference, expr->type, true));
    cel_for_children(expr, finish, c);
}

enum status cel_check(const struct cel_env *env, struct cel_errors *errors, struct cel_expr *root)
{
    struct checker c = {.env = env, .errors = errors, .arena = errors->arena};
    cel_inference_init(&c.inference, errors->arena);
    check(&c, root);
    if (!cel_errors_any(errors) && !c.inference.failed)
        finish(&c, root);
    if (!cel_errors_any(errors) && !c.inference.failed && cel_check_literals(errors, root) != ST_OK)
        return ST_NOMEM;
    if (arena_ran_out(errors->arena))
        return ST_NOMEM;
    if (c.inference.failed) {
        errors->count = 0; /* the errors that followed from it would mislead */
        cel_error_add(errors, CEL_NO_PLACE, "the types of the expression are too complex");
    }
    return cel_errors_any(errors) ? ST_INVALID : ST_OK;
}
