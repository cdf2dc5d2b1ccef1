#include "cel/eval/program.h"
#include "cel/library/convert.h"
#include "cel/value/container.h"
#include "cel/value/opaque.h"
#include "cel/value/shape.h"

#include <stdio.h>

enum { COST_LIST = 10, COST_MAP = 30, COST_OBJECT = 40, STEPS_PER_COST = 64 };

/* Comprehensions nest seldom; programs with more variables than these allocate them. */
enum { FEW_SLOTS = 16 };

struct eval {
    struct cel_work work; /* no steps are left once the evaluation has ended */
    struct cel_value *slots;
    uint64_t cost_left, cost_max;
    uint64_t cost_beyond; /* by how much the cost that ended the evaluation exceeds what was left */
    bool ended;           /* the budget is used up: everything is an error from then on */
};

static struct cel_value eval_path(struct eval *e, const struct cel_attribute *attribute);
static struct cel_value eval_other(struct eval *e, const struct cel_node *node);

/* -- Cost -- */

NEVER_INLINE static void end(struct eval *e, uint64_t cost)
{
    /* Where cel-go panics, the call that does so has no cost. */
    if (e->ended || e->work.end)
        cost = 0;
    if (cost > e->cost_left) {
        e->cost_beyond = cost - e->cost_left;
        cost = e->cost_left;
    }
    e->cost_left -= cost;
    e->ended = true;
    cel_work_stop(&e->work);
}

/* False: the evaluation has ended. */
static inline bool pay(struct eval *e, uint64_t cost)
{
    if (UNLIKELY(cost > e->cost_left || e->work.steps_left < 0)) {
        end(e, cost);
        return false;
    }
    e->cost_left -= cost;
    return true;
}

static inline struct cel_value charge(struct eval *e, uint64_t cost, struct cel_value value)
{
    return pay(e, cost) ? value : CEL_TOO_MUCH_WORK;
}

/* Most nodes are constants, or variables with nothing behind them, such as those of
 * comprehensions. These need no call. */
static inline struct cel_value eval(struct eval *e, const struct cel_node *node)
{
    if (node->kind == CEL_NODE_CONSTANT)
        return node->constant;
    if (node->kind == CEL_NODE_ATTRIBUTE && node->attribute->root == CEL_ROOT_VARIABLE &&
        !node->attribute->first && e->slots[node->attribute->slot].kind != CEL_OPTIONAL)
        return charge(e, 1, e->slots[node->attribute->slot]);
    if (node->kind == CEL_NODE_ATTRIBUTE && node->attribute->field_count)
        return eval_path(e, node->attribute);
    return eval_other(e, node);
}

/* -- Attributes -- */

static struct cel_value missing_key(struct eval *e, struct cel_value key)
{
    switch ((enum cel_value_kind)key.kind) {
    case CEL_STRING:
        return cel_of_error_format(&e->work, "no such key: %.*s", SLICE_ARGS(cel_text(key)));
    case CEL_INT:
        return cel_of_error_format(&e->work, "no such key: %lld", (long long)key.i64);
    case CEL_UINT:
        return cel_of_error_format(&e->work, "no such key: %llu", (unsigned long long)key.u64);
    case CEL_BOOL:
        return cel_of_error_format(&e->work, "no such key: %s", key.truth ? "true" : "false");
    default:
        return cel_of_error_format(&e->work, "no such key: %s", cel_value_type_name(key));
    }
}

/* The index that a value is. False: it is not a whole number. */
static bool index_of(struct cel_value value, int64_t *ret_index)
{
    if (value.kind == CEL_DOUBLE && value.number > -9e18 && value.number < 9e18 &&
        (double)(int64_t)value.number == value.number) {
        *ret_index = (int64_t)value.number;
        return true;
    }
    if (value.kind == CEL_UINT && value.u64 > INT64_MAX)
        return false;
    *ret_index = value.i64;
    return value.kind == CEL_INT || value.kind == CEL_UINT;
}

static struct cel_value bad_index(struct eval *e, struct cel_value key)
{
    if (key.kind != CEL_DOUBLE)
        return cel_of_error_format(&e->work, "unsupported index type '%s' in list",
                                   cel_value_type_name(key));
    struct cel_value text = cel_to_string(&e->work, &key);
    return cel_of_error_format(&e->work, "unsupported index value %.*s in list",
                               SLICE_ARGS(cel_text(text)));
}

/* opaque.key */
static struct cel_value qualify_opaque(struct eval *e, const struct cel_opaque *opaque,
                                       struct cel_value key, bool is_declared, bool *ret_present)
{
    const struct cel_opaque_ops *ops = opaque->ops;
    *ret_present = false;
    if (is_declared && ops->declared_field)
        return ops->declared_field(&e->work, opaque, cel_text(key), ret_present);
    if (!ops->field || key.kind != CEL_STRING)
        return missing_key(e, key);
    struct cel_value value = ops->field(&e->work, opaque, cel_text(key), ret_present);
    return *ret_present || !cel_is_error(value) ? value : missing_key(e, key);
}

/* object[key]. *ret_present is false if there is none, which is an error unless `optional`. */
static struct cel_value qualify(struct eval *e, struct cel_value object, struct cel_value key,
                                const struct cel_qualifier *q, bool optional, bool *ret_present)
{
    struct cel_value value;
    int64_t index;
    *ret_present = true;
    switch ((enum cel_value_kind)object.kind) {
    case CEL_ERROR:
        return object;
    case CEL_MAP:
        if (cel_map_find(&e->work, object, key, &value))
            return value;
        break;
    case CEL_LIST:
        if (!index_of(key, &index))
            return bad_index(e, key);
        *ret_present = index >= 0 && index < object.count;
        if (*ret_present && object.shape && key.kind != CEL_INT)
            return cel_of_error_format(&e->work, "unsupported index: %lld", (long long)index);
        if (*ret_present)
            return cel_list_at(&e->work, object, (uint32_t)index);
        return cel_of_error_format(&e->work, "index out of bounds: %lld", (long long)index);
    case CEL_OPAQUE:
        return qualify_opaque(e, object.opaque, key, q->is_declared, ret_present);
    default:
        if (optional)
            break;
        *ret_present = false;
        return missing_key(e, key);
    }
    *ret_present = false;
    /* The text is never shown for what may be absent, and writing it costs more than all the rest.
     */
    return optional ? CEL_FAIL("no such key") : missing_key(e, key);
}

/* The value of a variable that has not been used yet, known by its address. */
static const char unset[] = "not evaluated yet";

static bool is_unset(struct cel_value value)
{
    return cel_is_error(value) && value.bytes == (const uint8_t *)unset;
}

static struct cel_value resolve(struct eval *e, const struct cel_attribute *attribute);

static struct cel_value key_of(struct eval *e, const struct cel_qualifier *qualifier)
{
    const struct cel_node *index = qualifier->index;
    if (!index)
        return qualifier->constant;
    /* An index that is an attribute is not evaluated as such: it costs only its qualifiers. */
    struct cel_value key =
        index->kind == CEL_NODE_ATTRIBUTE ? resolve(e, index->attribute) : eval(e, index);
    bool is_native = key.is_view && index->kind == CEL_NODE_ATTRIBUTE;
    switch ((enum cel_value_kind)key.kind) {
    case CEL_ERROR:
    case CEL_BOOL:
    case CEL_INT:
    case CEL_UINT:
    case CEL_DOUBLE:
    case CEL_STRING:
        return key;
    case CEL_NULL:
        return index->kind == CEL_NODE_ATTRIBUTE ? CEL_FAIL("invalid qualifier type: <nil>")
                                                 : CEL_FAIL("invalid qualifier type: types.Null");
    case CEL_LIST:
        if (key.shape)
            return cel_of_error_format(&e->work, "invalid qualifier type: %s",
                                       cel_value_go_type(key));
        return is_native ? CEL_FAIL("invalid qualifier type: []interface {}")
                         : CEL_FAIL("invalid qualifier type: *types.baseList");
    case CEL_MAP:
        if (key.shape)
            return cel_of_error_format(&e->work, "invalid qualifier type: %s",
                                       cel_value_go_type(key));
        return is_native ? CEL_FAIL("invalid qualifier type: map[string]interface {}")
                         : CEL_FAIL("invalid qualifier type: *types.baseMap");
    default:
        return cel_of_error_format(&e->work, "invalid qualifier type: %s", cel_value_go_type(key));
    }
}

/* The object behind the qualifiers. Behind the first optional one, everything is optional. */
static struct cel_value apply(struct eval *e, const struct cel_attribute *attribute,
                              struct cel_value object)
{
    bool optional = object.kind == CEL_OPTIONAL;
    bool present;
    if (optional && !object.some)
        return object;
    /* cel-go keeps only the innermost value of an optional within an optional, as a value of Go:
     * what a schema says about it is lost, such as the names of fields and that a list is a set. */
    while (object.kind == CEL_OPTIONAL)
        object = object.some ? *object.some : (struct cel_value){.kind = CEL_NULL};
    if (optional)
        object = cel_raw(object);
    for (const struct cel_qualifier *q = attribute->first; q; q = q->next) {
        struct cel_value key = key_of(e, q);
        optional |= q->optional;
        if (cel_is_error(key))
            return optional ? key : charge(e, 1, key);
        bool may_lack = optional || q->is_test;
        struct cel_value value = qualify(e, object, key, q, may_lack, &present);
        if (!present && q->is_test && !optional)
            return charge(e, 1, cel_of_bool(false));
        if (optional && !present)
            return cel_of_none();
        if (optional && cel_is_error(value))
            return value; /* has no cost, as in cel-go */
        value = charge(e, 1, value);
        if (cel_is_error(value))
            return value;
        object = q->is_test ? cel_of_bool(true) : value;
    }
    return optional ? cel_of_some(&e->work, object) : object;
}

static struct cel_value resolve(struct eval *e, const struct cel_attribute *attribute)
{
    struct cel_value root;
    switch ((enum cel_root)attribute->root) {
    case CEL_ROOT_VARIABLE:
        root = e->slots[attribute->slot];
        break;
    case CEL_ROOT_LATE:
        if (is_unset(e->slots[attribute->slot]))
            e->slots[attribute->slot] = eval(e, attribute->operand);
        root = e->slots[attribute->slot];
        break;
    case CEL_ROOT_OPERAND:
        root = eval(e, attribute->operand);
        break;
    case CEL_ROOT_CONDITIONAL:
        root = eval(e, attribute->condition);
        if (root.kind == CEL_BOOL)
            return resolve(e, root.truth ? attribute->chosen : attribute->other);
        return cel_is_error(root) ? root : CEL_NO_OVERLOAD;
    }
    return cel_is_error(root) ? root : apply(e, attribute, root);
}

NEVER_INLINE static struct cel_value eval_attribute(struct eval *e,
                                                    const struct cel_attribute *attribute)
{
    struct cel_value value = resolve(e, attribute);
    if (attribute->is_test && value.kind == CEL_OPTIONAL)
        value = cel_of_bool(value.some);
    /* A conditional costs what its condition and one side cost, and a test one less than the value
     * would; so a test of a conditional gives one back. */
    bool is_conditional = attribute->root == CEL_ROOT_CONDITIONAL;
    if (is_conditional && attribute->is_test && e->cost_left < e->cost_max)
        e->cost_left++;
    return charge(e, is_conditional || attribute->is_test ? 0 : 1, value);
}

/* A member of JSON, and its shape, if it has one. */
struct member {
    const struct json_node *node; /* NULL: something is missing, or not what it should be */
    const struct cel_shape *shape;
    bool only_last_is_missing;
};

/* The member behind a view and the fields of an attribute. */
static inline struct member find_member(const struct cel_value *view,
                                        const struct cel_attribute *attribute)
{
    struct member at = {.node = view->node, .shape = view->shape};
    for (const struct cel_qualifier *q = attribute->first; q; q = q->next) {
        struct slice key = cel_text(q->constant);
        const struct cel_shape *shape = at.shape;
        bool is_object = shape && shape->kind == CEL_SHAPE_OBJECT;
        if (at.node->type != JSON_TYPE_OBJECT ||
            (shape && !is_object && shape->kind != CEL_SHAPE_MAP))
            return (struct member){.node = NULL};
        at.node = json_look_member(at.node, key);
        if (at.node && shape)
            at.shape = cel_shape_member(shape, key);
        /* A member that the schema does not have is not visible. */
        if (!at.node || (shape && !at.shape) || (is_object && at.node->type == JSON_TYPE_NULL))
            return (struct member){.only_last_is_missing = !q->next};
    }
    return at;
}

/* A variable and fields behind it, or has() of them, as in most rules: if all goes well, no values
 * are made of what is on the way. Otherwise everything is done step by step, which finds the error.
 */
NEVER_INLINE static struct cel_value eval_path(struct eval *e,
                                               const struct cel_attribute *attribute)
{
    const struct cel_value *root = &e->slots[attribute->slot];
    if (root->kind != CEL_MAP || !root->is_view || attribute->field_count >= e->cost_left)
        return eval_attribute(e, attribute);
    struct member member = find_member(root, attribute);
    if (attribute->is_test && member.only_last_is_missing)
        return charge(e, attribute->field_count, cel_of_bool(false));
    if (!member.node)
        return eval_attribute(e, attribute);
    if (attribute->is_test) {
        struct cel_value value = cel_of_json(&e->work, member.node);
        if (member.shape)
            value = cel_shaped(&e->work, member.shape, value);
        return charge(e, attribute->field_count, cel_is_error(value) ? value : cel_of_bool(true));
    }
    if (!pay(e, 1 + attribute->field_count))
        return CEL_TOO_MUCH_WORK;
    if (member.shape)
        return cel_shaped(&e->work, member.shape, cel_of_json(&e->work, member.node));
    return cel_of_json(&e->work, member.node);
}

/* -- Operators -- */

/* && and ||: the term that decides wins, also over an error before it. */
NEVER_INLINE static struct cel_value eval_logical(struct eval *e, const struct cel_node *node,
                                                  bool decisive)
{
    struct cel_value error = cel_of_bool(!decisive);
    for (uint32_t i = 0; i < node->count; i++) {
        struct cel_value term = eval(e, node->children[i]);
        if (e->ended)
            return term;
        if (term.kind == CEL_BOOL && term.truth == decisive)
            return term;
        if (term.kind != CEL_BOOL && !cel_is_error(error))
            error = cel_is_error(term) ? term : CEL_NO_OVERLOAD;
    }
    return error;
}

NEVER_INLINE static struct cel_value eval_equality(struct eval *e, const struct cel_node *node,
                                                   bool wanted)
{
    struct cel_value args[2] = {eval(e, node->children[0]), eval(e, node->children[1])};
    struct cel_value result;
    if (cel_is_error(args[0]))
        result = args[0];
    else if (cel_is_error(args[1]))
        result = args[1];
    else
        result = cel_equal(&e->work, args[0], args[1]);
    bool compared = !cel_is_error(args[0]) && !cel_is_error(args[1]);
    if (result.kind == CEL_BOOL)
        result.truth = result.truth == wanted;
    else if (!wanted && compared && e->work.steps_left >= 0 && !e->work.end)
        result = cel_of_bool(true); /* values that cannot be compared are not equal */
    /* Kubernetes knows that == compares opaque values at once, but not that != does. */
    uint64_t cost =
        wanted && args[0].kind == CEL_OPAQUE ? 1 : cel_overload_cost(CEL_OVERLOAD_EQUALS, args);
    return charge(e, cost, result);
}

/* Only the first item of a list is looked at. */
static bool is_of_type(struct eval *e, struct cel_value value, const struct cel_type *wanted)
{
    while (wanted->kind != CEL_TYPE_DYN && wanted->kind != CEL_TYPE_PARAM) {
        const struct cel_type *type = cel_value_type(value);
        if (type != wanted && strcmp(type->name, wanted->name) != 0)
            return false;
        if (value.kind != CEL_LIST || !value.count)
            return true;
        wanted = cel_type_param(wanted, 0);
        value = cel_list_at(&e->work, value, 0);
    }
    return true;
}

/* Whether the values are those of the only overload that the checker found. Its types are known
 * before, except where the expression has dyn. */
static bool fits(struct eval *e, const struct cel_node *node, const struct cel_value *args)
{
    for (uint32_t i = 0; i < node->count; i++)
        if (!is_of_type(e, args[i], cel_overloads[node->call.overload].args[i]))
            return false;
    return true;
}

NEVER_INLINE static struct cel_value call(struct eval *e, const struct cel_node *node,
                                          const struct cel_value *args)
{
    const struct cel_builtin *builtin = node->call.builtin;
    if (node->call.regex) {
        e->work.regex = node->call.regex;
        struct cel_value result = builtin->fn(&e->work, args);
        e->work.regex = NULL;
        return result;
    }
    bool has_members =
        args[0].kind == CEL_STRING || args[0].kind == CEL_DURATION || args[0].kind == CEL_TIMESTAMP;
    if (builtin->kinds && !(builtin->kinds >> args[0].kind & 1))
        /* cel-go tries the function as a member of the value, if its type has some. */
        return has_members ? CEL_NO_OVERLOAD
                           : cel_of_error_format(&e->work, "no such overload: %s", builtin->name);
    if (builtin->names_types && node->call.overload >= 0 && !fits(e, node, args))
        return cel_no_overload_for(&e->work, builtin, node->count, args);
    e->work.overload = node->call.overload;
    struct cel_value result = builtin->fn(&e->work, args);
    return builtin->names_types && cel_is_no_overload(result)
               ? cel_no_overload_for(&e->work, builtin, node->count, args)
               : result;
}

/* The call with its arguments, of which the first error is the result. */
static struct cel_value finish_call(struct eval *e, const struct cel_node *node,
                                    const struct cel_value *args)
{
    const struct cel_value *error = NULL;
    if (e->ended)
        return CEL_TOO_MUCH_WORK;
    for (uint32_t i = 0; i < node->count && !error; i++)
        if (cel_is_error(args[i]))
            error = &args[i];
    struct cel_value result = error ? *error : call(e, node, args);
    cel_cost_fn *cost = node->call.builtin->cost;
    if (!cost)
        return charge(e, cel_overload_cost(node->call.overload, args), result);
    struct cel_called called = {args, node->count, node->call.overload, result};
    return charge(e, cost(&e->work, &called), result);
}

NEVER_INLINE static struct cel_value eval_call(struct eval *e, const struct cel_node *node)
{
    struct cel_value args[CEL_ARGS_MAX];
    for (uint32_t i = 0; i < node->count; i++) {
        args[i] = eval(e, node->children[i]);
        /* In order, the arguments behind an error are not evaluated, and the call costs nothing. */
        if (cel_is_error(args[i]) && (e->ended || (node->call.in_order && i + 1 < node->count)))
            return args[i];
    }
    return finish_call(e, node, args);
}

NEVER_INLINE static struct cel_value finish_operator(struct eval *e, const struct cel_node *node,
                                                     struct cel_value a, struct cel_value b)
{
    return finish_call(e, node, (struct cel_value[2]){a, b});
}

/* An operator with two operands, which are ints in most rules. */
NEVER_INLINE static struct cel_value eval_operator(struct eval *e, const struct cel_node *node)
{
    int64_t number;
    struct cel_value a = eval(e, node->children[0]);
    struct cel_value b = eval(e, node->children[1]);
    if (a.kind != CEL_INT || b.kind != CEL_INT || e->ended)
        return finish_operator(e, node, a, b);
    switch (node->call.of_ints) {
    case CEL_OF_INTS_NONE:
        break;
    case CEL_OF_INTS_LESS:
        return pay(e, 1) ? cel_of_bool(a.i64 < b.i64) : CEL_TOO_MUCH_WORK;
    case CEL_OF_INTS_LESS_EQUALS:
        return pay(e, 1) ? cel_of_bool(a.i64 <= b.i64) : CEL_TOO_MUCH_WORK;
    case CEL_OF_INTS_GREATER:
        return pay(e, 1) ? cel_of_bool(a.i64 > b.i64) : CEL_TOO_MUCH_WORK;
    case CEL_OF_INTS_GREATER_EQUALS:
        return pay(e, 1) ? cel_of_bool(a.i64 >= b.i64) : CEL_TOO_MUCH_WORK;
    case CEL_OF_INTS_ADD:
        if (__builtin_add_overflow(a.i64, b.i64, &number))
            break;
        return pay(e, 1) ? cel_of_int(number) : CEL_TOO_MUCH_WORK;
    case CEL_OF_INTS_SUBTRACT:
        if (__builtin_sub_overflow(a.i64, b.i64, &number))
            break;
        return pay(e, 1) ? cel_of_int(number) : CEL_TOO_MUCH_WORK;
    }
    /* The function finds the error. */
    return finish_operator(e, node, a, b);
}

/* list + [item], as in each step of map and filter: without a list for the item alone. */
NEVER_INLINE static struct cel_value eval_append(struct eval *e, const struct cel_node *node)
{
    struct cel_value args[2];
    args[0] = eval(e, node->children[0]);
    struct cel_value item = eval(e, node->children[1]->children[0]);
    if (args[0].kind == CEL_LIST && !args[0].shape && !cel_is_error(item)) {
        e->work.steps_left--;
        args[0] = charge(e, COST_LIST, args[0]);
        if (!cel_is_error(args[0]))
            args[0] = cel_list_append(&e->work, args[0], item);
        return charge(e, 1, args[0]);
    }
    args[1] = item;
    if (!cel_is_error(item)) {
        args[1] = cel_list_new(&e->work, 1);
        if (!cel_is_error(args[1]))
            args[1] = cel_list_append(&e->work, args[1], item);
    }
    args[1] = charge(e, COST_LIST, args[1]);
    return finish_call(e, node, args);
}

NEVER_INLINE static struct cel_value eval_or_else(struct eval *e, const struct cel_node *node)
{
    struct cel_value first = eval(e, node->children[0]);
    /* A value that is not optional, although its type says so, is the result, as in cel-go: oldSelf
     * is such a value in a messageExpression. An error is one, too. */
    if (first.kind != CEL_OPTIONAL)
        return first;
    if (first.some)
        return node->kind == CEL_NODE_OR_OPTIONAL ? first : *first.some;
    return eval(e, node->children[1]);
}

/* -- Lists, maps and comprehensions -- */

static struct cel_value not_optional(struct eval *e, struct cel_value value)
{
    return cel_of_error_format(&e->work,
                               "cannot initialize optional list element from non-optional value %s",
                               cel_value_type_name(value));
}

NEVER_INLINE static struct cel_value eval_list(struct eval *e, const struct cel_node *node)
{
    struct cel_value list = cel_list_new(&e->work, node->count);
    for (uint32_t i = 0; i < node->count && !cel_is_error(list); i++) {
        struct cel_value item = eval(e, node->children[i]);
        if (!cel_is_error(item) && node->optional && node->optional[i]) {
            if (item.kind != CEL_OPTIONAL)
                item = not_optional(e, item);
            else if (!item.some)
                continue;
            else
                item = *item.some;
        }
        if (cel_is_error(item))
            return charge(e, COST_LIST, item);
        list = cel_list_append(&e->work, list, item);
    }
    return charge(e, COST_LIST, list);
}

NEVER_INLINE static struct cel_value eval_map(struct eval *e, const struct cel_node *node)
{
    struct cel_value map = cel_map_new(&e->work, node->count / 2);
    for (uint32_t i = 0; i < node->count && !cel_is_error(map); i += 2) {
        struct cel_value key = eval(e, node->children[i]);
        if (cel_is_error(key))
            return charge(e, COST_MAP, key);
        struct cel_value value = eval(e, node->children[i + 1]);
        if (!cel_is_error(value) && node->optional && node->optional[i / 2]) {
            if (value.kind != CEL_OPTIONAL)
                value = not_optional(e, value);
            else if (!value.some)
                continue;
            else
                value = *value.some;
        }
        if (cel_is_error(value))
            return charge(e, COST_MAP, value);
        map = cel_map_set(&e->work, map, key, value);
    }
    return charge(e, COST_MAP, map);
}

/* How Go prints a value. */
static struct slice text_of(struct eval *e, struct cel_value value)
{
    if (value.kind < CEL_BOOL || value.kind > CEL_STRING)
        return slice_from_text(cel_value_type_name(value));
    return cel_text(cel_to_string(&e->work, &value));
}

/* A field of an object that is being created: `at` holds the fields so far, with CEL_ERROR for
 * those that have no value. */
static struct cel_value eval_field(struct eval *e, const struct cel_node *node, uint32_t i,
                                   struct cel_value *at)
{
    const struct cel_creation *creation = node->creation;
    struct cel_value value = eval(e, node->children[i]);
    if (cel_is_error(value))
        return value;
    if (creation->optional[i] && value.kind != CEL_OPTIONAL)
        return cel_of_error_format(
            &e->work, "cannot initialize optional entry '%.*s' from non-optional value %.*s",
            SLICE_ARGS(creation->names[i]), SLICE_ARGS(text_of(e, value)));
    if (creation->optional[i])
        value = value.some ? *value.some : (struct cel_value){.kind = CEL_ERROR};
    at[creation->first[i]] = value;
    return cel_of_bool(true);
}

NEVER_INLINE static struct cel_value eval_object(struct eval *e, const struct cel_node *node)
{
    const struct cel_creation *creation = node->creation;
    struct cel_value *values = arena_calloc(e->work.arena, node->count + 1, sizeof(*values));
    struct slice *names = arena_calloc(e->work.arena, node->count + 1, sizeof(*names));
    uint32_t count = 0;
    if (!values || !names)
        return CEL_NO_MEMORY;
    for (uint32_t i = 0; i < node->count; i++) {
        struct cel_value field = eval_field(e, node, i, values);
        if (cel_is_error(field))
            return charge(e, COST_OBJECT, field);
    }
    for (uint32_t i = 0; i < node->count; i++)
        if (values[i].kind != CEL_ERROR) {
            names[count] = creation->names[i];
            values[count++] = values[i];
        }
    return charge(e, COST_OBJECT,
                  creation->objects->make(&e->work, creation->type, names, values, count));
}

NEVER_INLINE static struct cel_value eval_fold(struct eval *e, const struct cel_node *node)
{
    struct cel_walk walk;
    struct cel_value key, value;
    struct cel_value range = eval(e, node->children[0]);
    if (cel_is_error(range))
        return range;
    if (range.kind != CEL_LIST && range.kind != CEL_MAP)
        return cel_of_error_format(&e->work,
                                   node->fold.has_second
                                       ? "unsupported comprehension range type: %s"
                                       : "got '%s', expected iterable type",
                                   cel_value_go_type(range));
    bool keys_only = range.kind == CEL_MAP && !node->fold.has_second;
    e->slots[node->fold.accumulator] =
        node->fold.is_late ? cel_of_error(slice_from_text(unset)) : eval(e, node->children[1]);
    /* Where no item can end it early, there is no condition to evaluate. */
    const struct cel_node *condition =
        node->children[2]->kind == CEL_NODE_CONSTANT && cel_is_true(node->children[2]->constant)
            ? NULL
            : node->children[2];
    cel_walk_init(&walk, &e->work, range);
    while (!e->ended && cel_walk_next(&walk, &key, &value)) {
        e->work.steps_left--;
        e->slots[node->fold.first] = node->fold.has_second || keys_only ? key : value;
        e->slots[node->fold.second] = value;
        struct cel_value goes_on = condition ? eval(e, condition) : cel_of_bool(true);
        if (goes_on.kind == CEL_BOOL && !goes_on.truth)
            break;
        e->slots[node->fold.accumulator] = eval(e, node->children[3]);
    }
    if (e->ended)
        return CEL_TOO_MUCH_WORK;
    return eval(e, node->children[4]);
}

static struct cel_value eval_other(struct eval *e, const struct cel_node *node)
{
    struct cel_value value;
    if (e->ended)
        return CEL_TOO_MUCH_WORK;
    switch (node->kind) {
    case CEL_NODE_CONSTANT:
        return node->constant;
    case CEL_NODE_ATTRIBUTE:
        return eval_attribute(e, node->attribute);
    case CEL_NODE_AND:
        return eval_logical(e, node, false);
    case CEL_NODE_OR:
        return eval_logical(e, node, true);
    case CEL_NODE_EQUAL:
        return eval_equality(e, node, true);
    case CEL_NODE_NOT_EQUAL:
        return eval_equality(e, node, false);
    case CEL_NODE_CALL:
        return node->call.of_ints ? eval_operator(e, node) : eval_call(e, node);
    case CEL_NODE_APPEND:
        return eval_append(e, node);
    case CEL_NODE_NOT_STRICTLY_FALSE:
        value = eval(e, node->children[0]);
        return charge(e, 1, cel_of_bool(value.kind != CEL_BOOL || value.truth));
    case CEL_NODE_OR_OPTIONAL:
    case CEL_NODE_OR_VALUE:
        return eval_or_else(e, node);
    case CEL_NODE_LIST:
        return eval_list(e, node);
    case CEL_NODE_MAP:
        return eval_map(e, node);
    case CEL_NODE_OBJECT:
        return eval_object(e, node);
    case CEL_NODE_FOLD:
        return eval_fold(e, node);
    }
    return CEL_NO_OVERLOAD;
}

struct cel_value cel_eval(const struct cel_program *program, const struct cel_value *variables,
                          struct arena *arena, struct cel_budget *budget)
{
    struct cel_value few[FEW_SLOTS];
    uint64_t left = budget->cost_max > budget->cost ? budget->cost_max - budget->cost : 0;
    uint64_t steps = left < INT64_MAX / STEPS_PER_COST ? left * STEPS_PER_COST : INT64_MAX;
    struct eval e = {
        .work = {.arena = arena, .steps_left = (int64_t)steps},
        .cost_left = left,
        .cost_max = left,
        .slots = program->slot_count <= FEW_SLOTS
                     ? few
                     : arena_alloc(arena, program->slot_count * sizeof(struct cel_value)),
    };
    if (!e.slots)
        return CEL_NO_MEMORY;
    for (uint32_t i = 0; i < program->variable_count; i++)
        e.slots[i] = variables[i];
    struct cel_value result = eval(&e, program->root);
    uint64_t cost = left - e.cost_left;
    if (__builtin_add_overflow(cost, e.cost_beyond, &cost) ||
        __builtin_add_overflow(budget->cost, cost, &budget->cost))
        budget->cost = UINT64_MAX;
    budget->steps +=
        steps - (uint64_t)(e.work.steps_left > 0 ? e.work.steps_left : e.work.steps_kept);
    if (UNLIKELY(arena_ran_out(arena)))
        result = CEL_NO_MEMORY;
    else if (UNLIKELY(e.work.end != NULL))
        result = *e.work.end;
    else if (UNLIKELY(e.ended))
        result = CEL_TOO_MUCH_WORK;
    return result;
}
