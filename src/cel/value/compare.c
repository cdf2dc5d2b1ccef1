#include "cel/value/container.h"
#include "cel/value/opaque.h"
#include "cel/value/shape.h"
#include "cel/value/unknown.h"
#include "cel/value/unordered.h"

#include <math.h>

enum { DEPTH_MAX = 1000 };

static int order_doubles(double a, double b)
{
    return (a > b) - (a < b);
}

static int order_int_double(int64_t a, double b)
{
    if (b < -9223372036854775808.0)
        return 1;
    if (b > 9223372036854775807.0)
        return -1;
    return order_doubles((double)a, b);
}

static int order_uint_double(uint64_t a, double b)
{
    if (b < 0)
        return 1;
    if (b > 18446744073709551615.0)
        return -1;
    return order_doubles((double)a, b);
}

static int order_int_uint(int64_t a, uint64_t b)
{
    if (a < 0 || b > INT64_MAX)
        return -1;
    return (a > (int64_t)b) - (a < (int64_t)b);
}

static bool is_number(struct cel_value value)
{
    return value.kind == CEL_INT || value.kind == CEL_UINT || value.kind == CEL_DOUBLE;
}

/* Both are numbers, and neither is NaN. */
static int order_numbers(struct cel_value a, struct cel_value b)
{
    if (a.kind > b.kind)
        return -order_numbers(b, a);
    if (a.kind == CEL_DOUBLE)
        return order_doubles(a.number, b.number);
    if (b.kind == CEL_DOUBLE)
        return a.kind == CEL_INT ? order_int_double(a.i64, b.number)
                                 : order_uint_double(a.u64, b.number);
    if (a.kind == CEL_INT && b.kind == CEL_UINT)
        return order_int_uint(a.i64, b.u64);
    if (a.kind == CEL_INT)
        return (a.i64 > b.i64) - (a.i64 < b.i64);
    return (a.u64 > b.u64) - (a.u64 < b.u64);
}

static bool is_nan(struct cel_value value)
{
    return value.kind == CEL_DOUBLE && isnan(value.number);
}

/*
 * An opaque value cannot be compared with a value of another type, which is an error. Neither can a
 * list or map of a schema. Lists and maps of the language take an error within them for equality;
 * those of a schema pass it on.
 */
enum equality { DIFFERENT, EQUAL, INCOMPARABLE };

struct comparison {
    struct cel_work *work;
    struct cel_value error; /* why values are INCOMPARABLE */
};

static enum equality equal(struct comparison *c, struct cel_value a, struct cel_value b, int depth);

static enum equality incomparable(struct comparison *c, struct cel_value error)
{
    c->error = cel_is_error(error) ? error : CEL_NO_OVERLOAD;
    return INCOMPARABLE;
}

static bool lists_equal(struct comparison *c, struct cel_value a, struct cel_value b, int depth)
{
    struct cel_walk left, right;
    struct cel_value index, x, y;
    cel_walk_init(&left, c->work, a);
    cel_walk_init(&right, c->work, b);
    while (cel_walk_next(&left, &index, &x) && cel_walk_next(&right, &index, &y))
        if (equal(c, x, y, depth + 1) == DIFFERENT)
            return false;
    return true;
}

static bool maps_equal(struct comparison *c, struct cel_value a, struct cel_value b, int depth)
{
    struct cel_walk walk;
    struct cel_value key, x, y;
    cel_walk_init(&walk, c->work, a);
    while (cel_walk_next(&walk, &key, &x))
        if (!cel_map_find(c->work, b, key, &y) || equal(c, x, y, depth + 1) == DIFFERENT)
            return false;
    return true;
}

static enum equality opaques_equal(struct comparison *c, struct cel_value a, struct cel_value b)
{
    bool result;
    const struct cel_opaque_ops *ops = a.opaque->ops;
    if (b.kind != CEL_OPAQUE && ops->differs)
        return DIFFERENT;
    if (b.kind != CEL_OPAQUE || !ops->equal || !ops->equal(c->work, a.opaque, b.opaque, &result))
        return incomparable(c, b);
    return result ? EQUAL : DIFFERENT;
}

static enum equality optionals_equal(struct comparison *c, struct cel_value a, struct cel_value b,
                                     int depth)
{
    if (!a.some || !b.some)
        return !a.some && !b.some ? EQUAL : DIFFERENT;
    if (a.some->kind == CEL_OPAQUE)
        return opaques_equal(c, *a.some, *b.some);
    return equal(c, *a.some, *b.some, depth + 1);
}

/* -- Lists and maps of a schema -- */

static enum equality shaped_lists_equal(struct comparison *c, struct cel_value a,
                                        struct cel_value b, int depth)
{
    struct cel_walk left, right;
    struct cel_value index, x, y;
    enum equality result = EQUAL;
    cel_walk_init(&left, c->work, a);
    cel_walk_init(&right, c->work, b);
    while (result == EQUAL && cel_walk_next(&left, &index, &x) && cel_walk_next(&right, &index, &y))
        result = equal(c, x, y, depth + 1);
    return result;
}

/* Each item of the second list has one in the first, which is equal as a whole. */
static enum equality unordered_equal(struct comparison *c, struct cel_value a, struct cel_value b,
                                     int depth)
{
    struct cel_same same;
    struct cel_walk walk;
    struct cel_value index, item;
    enum equality result = EQUAL;
    if (!a.count)
        return EQUAL;
    if (!cel_same_items(c->work, a, b, &same, &c->error))
        return INCOMPARABLE;
    cel_walk_init(&walk, c->work, b);
    for (uint32_t i = a.count; result == EQUAL && cel_walk_next(&walk, &index, &item); i++) {
        if (same.last[i] == CEL_NO_ITEM)
            return DIFFERENT;
        if (a.shape->kind == CEL_SHAPE_MAP_LIST)
            result = equal(c, cel_shaped(c->work, a.shape->item, same.raws[same.last[i]]), item,
                           depth + 1);
    }
    return result;
}

/* A field that the schema does not declare: it differs only if both have it. */
static enum equality undeclared_equal(struct comparison *c, const struct json_node *member,
                                      struct cel_value b, int depth)
{
    if (!b.shape)
        return incomparable(c, b);
    const struct json_node *other = json_look_member(b.node, member->key);
    return other ? equal(c, cel_of_json(c->work, member), cel_of_json(c->work, other), depth + 1)
                 : EQUAL;
}

static enum equality member_equal(struct comparison *c, struct cel_value a, struct cel_value b,
                                  const struct json_node *member, int depth)
{
    struct cel_value x, y, key = cel_of_string(member->key);
    if (!cel_shape_member(a.shape, member->key))
        return undeclared_equal(c, member, b, depth);
    bool has = cel_map_find(c->work, a, key, &x);
    if (has != cel_map_find(c->work, b, key, &y))
        return DIFFERENT;
    return has ? equal(c, x, y, depth + 1) : EQUAL;
}

static enum equality shaped_equal(struct comparison *c, struct cel_value a, struct cel_value b,
                                  int depth)
{
    enum equality result = EQUAL;
    if (a.kind != b.kind)
        return incomparable(c, b);
    if (a.count != b.count)
        return DIFFERENT;
    if (a.kind == CEL_LIST)
        return a.shape->kind == CEL_SHAPE_LIST ? shaped_lists_equal(c, a, b, depth)
                                               : unordered_equal(c, a, b, depth);
    for (const struct json_node *member = a.node->first; result == EQUAL && member;
         member = member->next)
        result = member_equal(c, a, b, member, depth);
    return result;
}

static enum equality equal(struct comparison *c, struct cel_value a, struct cel_value b, int depth)
{
    struct cel_work *work = c->work;
    if (--work->steps_left < 0 || depth > DEPTH_MAX)
        return DIFFERENT;
    if (is_number(a) && is_number(b))
        return !is_nan(a) && !is_nan(b) && order_numbers(a, b) == 0 ? EQUAL : DIFFERENT;
    if (cel_is_error(a))
        return incomparable(c, a);
    if (a.kind == CEL_OPAQUE && a.opaque->ops == &cel_unknown_ops)
        return equal(c, cel_raw(a), cel_raw(b), depth + 1);
    if (a.kind == CEL_OPAQUE && b.kind != CEL_NULL)
        return opaques_equal(c, a, b);
    /* Null differs from everything, but what a schema describes is not compared with null within
     * lists and maps. */
    if ((a.kind == CEL_LIST || a.kind == CEL_MAP) && a.shape && (b.kind != CEL_NULL || depth))
        return shaped_equal(c, a, b, depth);
    if (a.kind != b.kind)
        return DIFFERENT;
    bool same = false;
    switch ((enum cel_value_kind)a.kind) {
    case CEL_NULL:
        return EQUAL;
    case CEL_BOOL:
        same = a.truth == b.truth;
        break;
    case CEL_STRING:
    case CEL_BYTES:
        work->steps_left -= (int64_t)(size_min(a.length, b.length) / 64);
        same = slice_equal(cel_text(a), cel_text(b));
        break;
    case CEL_DURATION:
        same = a.nanoseconds == b.nanoseconds;
        break;
    case CEL_TIMESTAMP:
        same = a.i64 == b.i64 && a.nanoseconds == b.nanoseconds;
        break;
    case CEL_LIST:
        same = a.count == b.count && lists_equal(c, a, b, depth);
        break;
    case CEL_MAP:
        same = a.count == b.count && maps_equal(c, a, b, depth);
        break;
    case CEL_TYPE_VALUE:
        same = strcmp(a.type->name, b.type->name) == 0;
        break;
    case CEL_OPTIONAL:
        return optionals_equal(c, a, b, depth);
    default:
        break;
    }
    return same ? EQUAL : DIFFERENT;
}

struct cel_value cel_equal(struct cel_work *work, struct cel_value a, struct cel_value b)
{
    struct comparison c = {.work = work};
    enum equality result = equal(&c, a, b, 0);
    if (work->steps_left < 0)
        return CEL_TOO_MUCH_WORK;
    return result == INCOMPARABLE ? c.error : cel_of_bool(result == EQUAL);
}

bool cel_compare(struct cel_value a, struct cel_value b, int *ret_order,
                 struct cel_value *ret_error)
{
    if (is_nan(a) || (is_nan(b) && is_number(a))) {
        *ret_error = CEL_FAIL("NaN values cannot be ordered");
        return false;
    }
    if (is_number(a) && is_number(b)) {
        *ret_order = order_numbers(a, b);
        return true;
    }
    *ret_error = CEL_NO_OVERLOAD;
    if (a.kind != b.kind)
        return false;
    switch ((enum cel_value_kind)a.kind) {
    case CEL_BOOL:
        *ret_order = (int)a.truth - (int)b.truth;
        return true;
    case CEL_STRING:
    case CEL_BYTES:
        *ret_order = slice_compare(cel_text(a), cel_text(b));
        return true;
    case CEL_DURATION:
        *ret_order = (a.nanoseconds > b.nanoseconds) - (a.nanoseconds < b.nanoseconds);
        return true;
    case CEL_TIMESTAMP:
        *ret_order = a.i64 != b.i64
                         ? (a.i64 > b.i64) - (a.i64 < b.i64)
                         : (a.nanoseconds > b.nanoseconds) - (a.nanoseconds < b.nanoseconds);
        return true;
    default:
        return false;
    }
}
