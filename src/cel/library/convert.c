#include "cel/library/convert.h"

#include "cel/library/times.h"
#include "codec/utf8.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    NUMBER_BYTES_MAX = 64,
    DOUBLE_TEXT_MAX = 512,
    EXPONENT_MIN = 6, /* from 1e+06 on */
};

static struct cel_value fail(struct cel_work *work, struct cel_value from, const char *to)
{
    return cel_of_error_format(work, "type conversion error from '%s' to '%s'",
                               cel_value_type_name(from), to);
}

/* The text of a value with a zero behind it. False: it is empty, or too long for a number. */
static bool copy_text(struct cel_value value, char *copy, size_t room)
{
    if (!value.length || value.length >= room || memchr(value.bytes, 0, value.length))
        return false;
    slice_copy(copy, cel_text(value));
    copy[value.length] = 0;
    return true;
}

static bool has_digits_only(const char *text)
{
    size_t digits = strspn(text, "0123456789");
    return digits && !text[digits];
}

struct cel_value cel_to_int(struct cel_work *work, const struct cel_value *args)
{
    char text[NUMBER_BYTES_MAX];
    struct cel_value from = args[0];
    switch ((enum cel_value_kind)from.kind) {
    case CEL_INT:
        return from;
    case CEL_UINT:
        return from.u64 > INT64_MAX ? CEL_FAIL("integer overflow") : cel_of_int((int64_t)from.u64);
    case CEL_DOUBLE:
        /* The limits themselves are not exact as doubles, and so are refused, too. */
        if (!(from.number > -9223372036854775808.0 && from.number < 9223372036854775807.0))
            return CEL_FAIL("integer overflow");
        return cel_of_int((int64_t)from.number);
    case CEL_TIMESTAMP:
        return cel_of_int(from.i64);
    case CEL_DURATION:
        return cel_of_int(from.nanoseconds);
    case CEL_STRING:
        if (copy_text(from, text, sizeof(text)) &&
            has_digits_only(text + (text[0] == '-' || text[0] == '+'))) {
            errno = 0;
            long long value = strtoll(text, NULL, 10);
            if (!errno)
                return cel_of_int(value);
        }
        return fail(work, from, "int");
    default:
        return CEL_NO_OVERLOAD;
    }
}

struct cel_value cel_to_uint(struct cel_work *work, const struct cel_value *args)
{
    char text[NUMBER_BYTES_MAX];
    struct cel_value from = args[0];
    switch ((enum cel_value_kind)from.kind) {
    case CEL_UINT:
        return from;
    case CEL_INT:
        return from.i64 < 0 ? CEL_FAIL("unsigned integer overflow")
                            : cel_of_uint((uint64_t)from.i64);
    case CEL_DOUBLE:
        if (!(from.number >= 0 && from.number < 18446744073709551615.0))
            return CEL_FAIL("unsigned integer overflow");
        return cel_of_uint((uint64_t)from.number);
    case CEL_STRING:
        if (copy_text(from, text, sizeof(text)) && has_digits_only(text)) {
            errno = 0;
            unsigned long long value = strtoull(text, NULL, 10);
            if (!errno)
                return cel_of_uint(value);
        }
        return fail(work, from, "uint");
    default:
        return CEL_NO_OVERLOAD;
    }
}

/* A number as Go's strconv reads it. */
static bool read_double(const char *text, double *ret_number)
{
    char *end;
    bool starts_well = isdigit((unsigned char)text[0]) || (text[0] && strchr("+-.iInN", text[0]));
    errno = 0;
    double number = strtod(text, &end);
    if (!starts_well || *end || end == text || strchr(text, '('))
        return false;
    if (errno == ERANGE && isinf(number))
        return false;
    *ret_number = number;
    return true;
}

struct cel_value cel_to_double(struct cel_work *work, const struct cel_value *args)
{
    char text[DOUBLE_TEXT_MAX];
    double number;
    struct cel_value from = args[0];
    switch ((enum cel_value_kind)from.kind) {
    case CEL_DOUBLE:
        return from;
    case CEL_INT:
        return cel_of_double((double)from.i64);
    case CEL_UINT:
        return cel_of_double((double)from.u64);
    case CEL_STRING:
        if (copy_text(from, text, sizeof(text)) && read_double(text, &number))
            return cel_of_double(number);
        return fail(work, from, "double");
    default:
        return CEL_NO_OVERLOAD;
    }
}

struct cel_value cel_to_bool(struct cel_work *work, const struct cel_value *args)
{
    static const struct {
        const char *text;
        bool truth;
    } words[] = {{"1", true},    {"t", true},      {"T", true},      {"TRUE", true},
                 {"true", true}, {"True", true},   {"0", false},     {"f", false},
                 {"F", false},   {"FALSE", false}, {"false", false}, {"False", false}};
    if (args[0].kind == CEL_BOOL)
        return args[0];
    if (args[0].kind != CEL_STRING)
        return CEL_NO_OVERLOAD;
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (slice_equal(cel_text(args[0]), slice_from_text(words[i].text)))
            return cel_of_bool(words[i].truth);
    return fail(work, args[0], "bool");
}

struct cel_value cel_to_bytes(struct cel_work *work, const struct cel_value *args)
{
    (void)work;
    if (args[0].kind != CEL_BYTES && args[0].kind != CEL_STRING)
        return CEL_NO_OVERLOAD;
    return cel_of_bytes(cel_text(args[0]));
}

/* -- string(x) -- */

static struct cel_value copy_string(struct cel_work *work, const char *text, int length)
{
    struct slice copy;
    assert(length >= 0);
    if (arena_dup(work->arena, slice_of(text, (size_t)length), &copy) != ST_OK)
        return CEL_NO_MEMORY;
    return cel_of_string(copy);
}

/* Go's %g: the shortest digits that give the same number, with an exponent if there are many zeros.
 */
static struct cel_value double_to_string(struct cel_work *work, double number)
{
    char text[NUMBER_BYTES_MAX], digits[NUMBER_BYTES_MAX];
    if (isnan(number))
        return copy_string(work, "NaN", 3);
    if (isinf(number))
        return copy_string(work, number > 0 ? "+Inf" : "-Inf", 4);
    int precision = 1;
    for (; precision < 17; precision++) {
        snprintf(digits, sizeof(digits), "%.*e", precision - 1, number);
        if (strtod(digits, NULL) == number)
            break;
    }
    snprintf(digits, sizeof(digits), "%.*e", precision - 1, number);
    long exponent = strtol(strchr(digits, 'e') + 1, NULL, 10);
    int length;
    if (exponent < -4 || exponent >= EXPONENT_MIN)
        length = snprintf(text, sizeof(text), "%s", digits);
    else
        length = snprintf(text, sizeof(text), "%.*f",
                          precision - 1 > exponent ? (int)(precision - 1 - exponent) : 0, number);
    return copy_string(work, text, length);
}

struct cel_value cel_to_string(struct cel_work *work, const struct cel_value *args)
{
    char text[NUMBER_BYTES_MAX];
    struct cel_value from = args[0];
    switch ((enum cel_value_kind)from.kind) {
    case CEL_STRING:
        return from;
    case CEL_BOOL:
        return cel_of_string(from.truth ? SLICE_LITERAL("true") : SLICE_LITERAL("false"));
    case CEL_INT:
        return copy_string(work, text, snprintf(text, sizeof(text), "%lld", (long long)from.i64));
    case CEL_UINT:
        return copy_string(work, text,
                           snprintf(text, sizeof(text), "%llu", (unsigned long long)from.u64));
    case CEL_DOUBLE:
        return double_to_string(work, from.number);
    case CEL_BYTES:
        if (!utf8_valid(cel_text(from)))
            return CEL_FAIL("invalid UTF-8 in bytes, cannot convert to string");
        return cel_of_string(cel_text(from));
    case CEL_DURATION:
    case CEL_TIMESTAMP:
        return cel_time_to_string(work, from);
    case CEL_OPAQUE:
        return from.opaque->ops->to_string ? from.opaque->ops->to_string(work, from.opaque)
                                           : CEL_NO_OVERLOAD;
    default:
        return CEL_NO_OVERLOAD;
    }
}
