#include "cel/library/operators.h"

#include "cel/library/library.h"
#include "cel/library/times.h"
#include "cel/value/container.h"
#include "cel/value/opaque.h"
#include "cel/value/shape.h"
#include "cel/value/unordered.h"
#include "codec/utf8.h"

/* -- Arithmetic -- */

#define INT_OVERFLOW CEL_FAIL("integer overflow")
#define UINT_OVERFLOW CEL_FAIL("unsigned integer overflow")

static bool both(const struct cel_value *args, enum cel_value_kind kind)
{
    return args[0].kind == kind && args[1].kind == kind;
}

static struct cel_value join(struct cel_work *work, struct cel_value a, struct cel_value b)
{
    uint8_t *joined = arena_alloc(work->arena, a.length + b.length + 1);
    if (!joined)
        return CEL_NO_MEMORY;
    work->steps_left -= (int64_t)((a.length + b.length) / 64);
    slice_copy(joined, cel_text(a));
    slice_copy(joined + a.length, cel_text(b));
    a.bytes = joined;
    a.length += b.length;
    return a;
}

struct cel_value cel_add(struct cel_work *work, const struct cel_value *args)
{
    int64_t sum;
    uint64_t unsigned_sum;
    if (both(args, CEL_INT))
        return __builtin_add_overflow(args[0].i64, args[1].i64, &sum) ? INT_OVERFLOW
                                                                      : cel_of_int(sum);
    if (both(args, CEL_UINT))
        return __builtin_add_overflow(args[0].u64, args[1].u64, &unsigned_sum)
                   ? UINT_OVERFLOW
                   : cel_of_uint(unsigned_sum);
    if (both(args, CEL_DOUBLE))
        return cel_of_double(args[0].number + args[1].number);
    if (both(args, CEL_STRING) || both(args, CEL_BYTES))
        return join(work, args[0], args[1]);
    if (both(args, CEL_LIST) && args[0].shape && args[0].shape->kind != CEL_SHAPE_LIST)
        return cel_unordered_concat(work, args[0], args[1]);
    if (both(args, CEL_LIST))
        return cel_list_concat(work, args[0], args[1]);
    if (args[0].kind == CEL_DURATION || args[0].kind == CEL_TIMESTAMP)
        return cel_add_times(args[0], args[1]);
    return CEL_NO_OVERLOAD;
}

struct cel_value cel_subtract(struct cel_work *work, const struct cel_value *args)
{
    int64_t difference;
    (void)work;
    if (both(args, CEL_INT))
        return __builtin_sub_overflow(args[0].i64, args[1].i64, &difference)
                   ? INT_OVERFLOW
                   : cel_of_int(difference);
    if (both(args, CEL_UINT))
        return args[1].u64 > args[0].u64 ? UINT_OVERFLOW : cel_of_uint(args[0].u64 - args[1].u64);
    if (both(args, CEL_DOUBLE))
        return cel_of_double(args[0].number - args[1].number);
    if (args[0].kind == CEL_DURATION || args[0].kind == CEL_TIMESTAMP)
        return cel_subtract_times(args[0], args[1]);
    return CEL_NO_OVERLOAD;
}

struct cel_value cel_multiply(struct cel_work *work, const struct cel_value *args)
{
    int64_t product;
    uint64_t unsigned_product;
    (void)work;
    if (both(args, CEL_INT))
        return __builtin_mul_overflow(args[0].i64, args[1].i64, &product) ? INT_OVERFLOW
                                                                          : cel_of_int(product);
    if (both(args, CEL_UINT))
        return __builtin_mul_overflow(args[0].u64, args[1].u64, &unsigned_product)
                   ? UINT_OVERFLOW
                   : cel_of_uint(unsigned_product);
    if (both(args, CEL_DOUBLE))
        return cel_of_double(args[0].number * args[1].number);
    return CEL_NO_OVERLOAD;
}

struct cel_value cel_divide(struct cel_work *work, const struct cel_value *args)
{
    (void)work;
    if (both(args, CEL_DOUBLE))
        return cel_of_double(args[0].number / args[1].number);
    if (!both(args, CEL_INT) && !both(args, CEL_UINT))
        return CEL_NO_OVERLOAD;
    if (args[1].u64 == 0)
        return CEL_FAIL("division by zero");
    if (args[0].kind == CEL_UINT)
        return cel_of_uint(args[0].u64 / args[1].u64);
    if (args[0].i64 == INT64_MIN && args[1].i64 == -1)
        return INT_OVERFLOW;
    return cel_of_int(args[0].i64 / args[1].i64);
}

struct cel_value cel_modulo(struct cel_work *work, const struct cel_value *args)
{
    (void)work;
    if (!both(args, CEL_INT) && !both(args, CEL_UINT))
        return CEL_NO_OVERLOAD;
    if (args[1].u64 == 0)
        return CEL_FAIL("modulus by zero");
    if (args[0].kind == CEL_UINT)
        return cel_of_uint(args[0].u64 % args[1].u64);
    if (args[0].i64 == INT64_MIN && args[1].i64 == -1)
        return INT_OVERFLOW;
    return cel_of_int(args[0].i64 % args[1].i64);
}

struct cel_value cel_negate(struct cel_work *work, const struct cel_value *args)
{
    (void)work;
    if (args[0].kind == CEL_DOUBLE)
        return cel_of_double(-args[0].number);
    if (args[0].kind == CEL_DURATION)
        return cel_subtract_times((struct cel_value){.kind = CEL_DURATION}, args[0]);
    if (args[0].kind != CEL_INT)
        return CEL_NO_OVERLOAD;
    return args[0].i64 == INT64_MIN ? INT_OVERFLOW : cel_of_int(-args[0].i64);
}

/* -- Logic -- */

struct cel_value cel_not(struct cel_work *work, const struct cel_value *args)
{
    (void)work;
    return args[0].kind == CEL_BOOL ? cel_of_bool(!args[0].truth) : CEL_NO_OVERLOAD;
}

/* -- Order -- */

struct cel_value cel_less(struct cel_work *work, const struct cel_value *args)
{
    int order;
    struct cel_value error;
    (void)work;
    return cel_compare(args[0], args[1], &order, &error) ? cel_of_bool(order < 0) : error;
}

struct cel_value cel_less_equals(struct cel_work *work, const struct cel_value *args)
{
    int order;
    struct cel_value error;
    (void)work;
    return cel_compare(args[0], args[1], &order, &error) ? cel_of_bool(order <= 0) : error;
}

struct cel_value cel_greater(struct cel_work *work, const struct cel_value *args)
{
    int order;
    struct cel_value error;
    (void)work;
    return cel_compare(args[0], args[1], &order, &error) ? cel_of_bool(order > 0) : error;
}

struct cel_value cel_greater_equals(struct cel_work *work, const struct cel_value *args)
{
    int order;
    struct cel_value error;
    (void)work;
    return cel_compare(args[0], args[1], &order, &error) ? cel_of_bool(order >= 0) : error;
}

struct cel_value cel_compare_to(struct cel_work *work, const struct cel_value *args)
{
    if (args[0].kind != CEL_OPAQUE || !args[0].opaque->ops->compare)
        return CEL_NO_OVERLOAD;
    return args[0].opaque->ops->compare(work, args);
}

struct cel_value cel_is_less_than(struct cel_work *work, const struct cel_value *args)
{
    struct cel_value order = cel_compare_to(work, args);
    return cel_is_error(order) ? order : cel_of_bool(order.i64 < 0);
}

struct cel_value cel_is_greater_than(struct cel_work *work, const struct cel_value *args)
{
    struct cel_value order = cel_compare_to(work, args);
    return cel_is_error(order) ? order : cel_of_bool(order.i64 > 0);
}

/* -- Lists and maps -- */

struct cel_value cel_in(struct cel_work *work, const struct cel_value *args)
{
    struct cel_walk walk;
    struct cel_value key, item, found;
    struct cel_value result = cel_of_bool(false);
    if (args[1].kind == CEL_MAP) {
        bool present = cel_map_find(work, args[1], args[0], &found);
        return present && args[1].shape && cel_is_error(found) ? found : cel_of_bool(present);
    }
    if (args[1].kind != CEL_LIST)
        return CEL_NO_OVERLOAD;
    if (work->overload == CEL_WITHOUT_COST && args[0].kind == CEL_BYTES) {
        /* cel-go looks into a set of constants, and panics at what cannot be in one. */
        result = CEL_FAIL("internal error: runtime error: hash of unhashable type types.Bytes");
        cel_end(work, result);
        return result;
    }
    cel_walk_init(&walk, work, args[1]);
    while (cel_walk_next(&walk, &key, &item)) {
        found = args[1].shape ? cel_equal(work, item, args[0]) : cel_equal(work, args[0], item);
        if (cel_is_true(found))
            return found;
        /* An item that cannot be compared is not the one that is looked for; a list of a schema
         * reports it. */
        if (args[1].shape && cel_is_error(found) && !cel_is_error(result))
            result = found;
    }
    return work->steps_left < 0 ? CEL_TOO_MUCH_WORK : result;
}

/* cel.@mapInsert(map, key, value), the step of transformMap. */
struct cel_value cel_insert_entry(struct cel_work *work, const struct cel_value *args)
{
    return args[0].kind == CEL_MAP ? cel_map_insert(work, args[0], args[1], args[2])
                                   : CEL_NO_OVERLOAD;
}

/* cel.@mapInsert(map, map), the step of transformMapEntry. */
struct cel_value cel_insert_map(struct cel_work *work, const struct cel_value *args)
{
    struct cel_walk walk;
    struct cel_value key, value, map = args[0];
    if (!both(args, CEL_MAP))
        return CEL_NO_OVERLOAD;
    cel_walk_init(&walk, work, args[1]);
    while (!cel_is_error(map) && cel_walk_next(&walk, &key, &value))
        map = cel_map_insert(work, map, key, value);
    return map;
}

struct cel_value cel_size(struct cel_work *work, const struct cel_value *args)
{
    switch ((enum cel_value_kind)args[0].kind) {
    case CEL_STRING:
        work->steps_left -= (int64_t)(args[0].length / 64);
        return cel_of_int((int64_t)cel_count_characters(cel_text(args[0])));
    case CEL_BYTES:
        return cel_of_int((int64_t)args[0].length);
    case CEL_LIST:
    case CEL_MAP:
        return cel_of_int(args[0].count);
    default:
        return CEL_NO_OVERLOAD;
    }
}

/* -- Types -- */

struct cel_value cel_type_of(struct cel_work *work, const struct cel_value *args)
{
    (void)work;
    /* Types that the environment makes have no name for the evaluation. */
    bool is_made = args[0].kind == CEL_OPAQUE && args[0].opaque->ops->type_of;
    return (struct cel_value){.kind = CEL_TYPE_VALUE,
                              .type = is_made ? &cel_type_TYPE : cel_value_type(args[0])};
}

struct cel_value cel_dyn(struct cel_work *work, const struct cel_value *args)
{
    (void)work;
    return args[0];
}
