#include "cel/library/optional.h"

#include "cel/library/convert.h"
#include "cel/value/container.h"
#include "cel/value/opaque.h"

static struct cel_value of(struct cel_work *work, const struct cel_value *args)
{
    return cel_of_some(work, args[0]);
}

/* Whether a value is the one that its type has without any: 0, "", [], null. */
static bool is_zero(struct cel_value value)
{
    switch ((enum cel_value_kind)value.kind) {
    case CEL_NULL:
        return true;
    case CEL_BOOL:
        return !value.truth;
    case CEL_INT:
    case CEL_UINT:
        return value.u64 == 0;
    case CEL_DOUBLE:
        return value.number == 0;
    case CEL_STRING:
    case CEL_BYTES:
        return value.length == 0;
    case CEL_DURATION:
        return value.nanoseconds == 0;
    case CEL_TIMESTAMP: /* the first second of the year 1 is Go's zero time */
        return value.i64 == -62135596800 && value.nanoseconds == 0;
    case CEL_LIST:
    case CEL_MAP: /* those of a schema are never zero */
        return value.count == 0 && !value.shape;
    case CEL_OPTIONAL:
        return !value.some || is_zero(*value.some);
    case CEL_OPAQUE:
        return value.opaque->ops->is_zero && value.opaque->ops->is_zero(value.opaque);
    default:
        return false;
    }
}

static struct cel_value of_non_zero(struct cel_work *work, const struct cel_value *args)
{
    return is_zero(args[0]) ? cel_of_none() : cel_of_some(work, args[0]);
}

static struct cel_value none(struct cel_work *work, const struct cel_value *args)
{
    (void)work;
    (void)args;
    return cel_of_none();
}

static struct cel_value value_of(struct cel_work *work, const struct cel_value *args)
{
    (void)work;
    if (args[0].kind != CEL_OPTIONAL)
        return CEL_NO_OVERLOAD;
    return args[0].some ? *args[0].some : CEL_FAIL("optional.none() dereference");
}

static struct cel_value has_value(struct cel_work *work, const struct cel_value *args)
{
    (void)work;
    return args[0].kind == CEL_OPTIONAL ? cel_of_bool(args[0].some) : CEL_NO_OVERLOAD;
}

/* -- Lists -- */

static struct cel_value first(struct cel_work *work, const struct cel_value *args)
{
    if (args[0].kind != CEL_LIST)
        return CEL_NO_OVERLOAD;
    return args[0].count ? cel_of_some(work, cel_list_at(work, args[0], 0)) : cel_of_none();
}

static struct cel_value last(struct cel_work *work, const struct cel_value *args)
{
    if (args[0].kind != CEL_LIST)
        return CEL_NO_OVERLOAD;
    uint32_t count = args[0].count;
    return count ? cel_of_some(work, cel_list_at(work, args[0], count - 1)) : cel_of_none();
}

static struct cel_value not_optional(struct cel_work *work, struct cel_value item)
{
    struct cel_value text = cel_to_string(work, &item);
    if (cel_is_error(text))
        text = cel_of_string(slice_from_text(cel_value_type_name(item)));
    return cel_of_error_format(work, "value %.*s is not optional", SLICE_ARGS(cel_text(text)));
}

/* The values of those that have one. */
static struct cel_value unwrap(struct cel_work *work, const struct cel_value *args)
{
    struct cel_walk walk;
    struct cel_value index, item, list = cel_list_new(work, 0);
    if (args[0].kind != CEL_LIST)
        return CEL_NO_OVERLOAD;
    cel_walk_init(&walk, work, args[0]);
    while (!cel_is_error(list) && cel_walk_next(&walk, &index, &item)) {
        work->steps_left--;
        if (item.kind != CEL_OPTIONAL)
            return not_optional(work, item);
        if (item.some)
            list = cel_list_append(work, list, *item.some);
    }
    return list;
}

static const struct cel_builtin rows[] = {
    {"hasValue", 1, has_value, true, 0, NULL},
    {"optional.none", 0, none, false, 0, NULL},
    {"optional.of", 1, of, true, 0, NULL},
    {"optional.ofNonZeroValue", 1, of_non_zero, false, 0, NULL},
    {"value", 1, value_of, true, 0, NULL},
    {"first", 1, first, true, 0, NULL},
    {"last", 1, last, true, 0, NULL},
    {"optional.unwrap", 1, unwrap, true, 0, NULL},
    {"unwrapOpt", 1, unwrap, true, 0, NULL},
};

const struct cel_library cel_optionals = CEL_LIBRARY(rows);
