#include "cel/library/optional.h"

struct cel_value cel_optional_of(struct cel_work *work, const struct cel_value *args)
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
    default:
        return false;
    }
}

struct cel_value cel_optional_of_non_zero(struct cel_work *work, const struct cel_value *args)
{
    return is_zero(args[0]) ? cel_of_none() : cel_of_some(work, args[0]);
}

struct cel_value cel_optional_none(struct cel_work *work, const struct cel_value *args)
{
    (void)work;
    (void)args;
    return cel_of_none();
}

struct cel_value cel_optional_value(struct cel_work *work, const struct cel_value *args)
{
    (void)work;
    if (args[0].kind != CEL_OPTIONAL)
        return CEL_NO_OVERLOAD;
    return args[0].some ? *args[0].some : CEL_FAIL("optional.none() dereference");
}

struct cel_value cel_optional_has_value(struct cel_work *work, const struct cel_value *args)
{
    (void)work;
    return args[0].kind == CEL_OPTIONAL ? cel_of_bool(args[0].some) : CEL_NO_OVERLOAD;
}
