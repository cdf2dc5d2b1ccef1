#include "cel/library/quantity.h"

#include "cel/library/decimal.h"

#include <math.h>

enum { NANO_DIGITS = 9, FAST_DIGITS = 18, FAST_BINARY_DIGITS = 15 };

/*
 * As in Kubernetes, a small amount is value × 10^scale, and others are decimals. What is visible of
 * that is imitated: an amount that once was compared with a decimal is not an integer from then on,
 * and adding to a decimal changes all that share it.
 */
struct quantity {
    struct cel_opaque opaque;
    int64_t value;
    int32_t scale;
    struct cel_decimal *decimal; /* NULL: the amount is small */
};

static bool quantities_equal(struct cel_work *work, const struct cel_opaque *a,
                             const struct cel_opaque *b, bool *ret_equal);
static cel_builtin_fn compare;

static const struct cel_opaque_ops quantity_ops = {.type = &cel_type_KUBERNETES_QUANTITY,
                                                   .go_type = "cel.Quantity",
                                                   .equal = quantities_equal,
                                                   .compare = compare};
/* Go returns sums as pointers, which cannot be on the right of ==. */
static const struct cel_opaque_ops sum_ops = {.type = &cel_type_KUBERNETES_QUANTITY,
                                              .go_type = "*cel.Quantity",
                                              .equal = quantities_equal,
                                              .compare = compare};

static struct quantity *as_quantity(struct cel_value value)
{
    bool is_quantity = cel_is_opaque(value, &quantity_ops) || cel_is_opaque(value, &sum_ops);
    return is_quantity ? (struct quantity *)value.opaque : NULL;
}

/* A decimal has too many digits, which ends the evaluation. */
static struct cel_value too_large(struct cel_work *work)
{
    if (arena_ran_out(work->arena))
        return CEL_NO_MEMORY;
    work->steps_left = -1;
    return CEL_TOO_MUCH_WORK;
}

/* -- Reading -- */

struct parts {
    bool negative;
    struct slice number, whole, fraction, suffix; /* number: with its sign and point */
};

static size_t skip(struct slice text, size_t at, const char *set)
{
    while (at < text.len && text.ptr[at] && strchr(set, text.ptr[at]))
        at++;
    return at;
}

static bool split(struct slice text, struct parts *ret_parts)
{
    static const char digits[] = "0123456789";
    struct parts parts = {.negative = text.ptr[0] == '-'};
    size_t begin = skip(text, parts.negative || text.ptr[0] == '+', "0");
    size_t at = skip(text, begin, digits);
    parts.whole = slice_sub(text, begin, at - begin);
    if (at < text.len && text.ptr[at] == '.') {
        size_t end = skip(text, at + 1, digits);
        parts.fraction = slice_sub(text, at + 1, end - at - 1);
        at = end;
    }
    parts.number = slice_sub(text, 0, at);
    parts.suffix = slice_sub(text, at, text.len - at);
    at = skip(text, at, "eEinumkKMGTP");
    if (at < text.len && (text.ptr[at] == '-' || text.ptr[at] == '+'))
        at++;
    *ret_parts = parts;
    return skip(text, at, digits) == text.len;
}

/* Behind an E; 64 bits are read, and 32 of them are used, as in Go. */
static bool read_exponent(struct slice text, int32_t *ret_exponent)
{
    bool negative = text.len && text.ptr[0] == '-';
    size_t at = negative || (text.len && text.ptr[0] == '+');
    int64_t exponent = 0;
    if (at == text.len)
        return false;
    for (; at < text.len; at++) {
        int digit = text.ptr[at] - '0';
        if (digit < 0 || digit > 9 || __builtin_mul_overflow(exponent, 10, &exponent) ||
            __builtin_sub_overflow(exponent, digit, &exponent))
            return false;
    }
    if (!negative && exponent == INT64_MIN)
        return false;
    *ret_exponent = (int32_t)(uint32_t)(uint64_t)(negative ? exponent : -exponent);
    return true;
}

static bool read_suffix(struct slice suffix, bool *ret_binary, int32_t *ret_exponent)
{
    static const struct {
        const char *suffix;
        bool binary;
        int32_t exponent;
    } suffixes[] = {{"", false, 0},   {"n", false, -9}, {"u", false, -6}, {"m", false, -3},
                    {"k", false, 3},  {"M", false, 6},  {"G", false, 9},  {"T", false, 12},
                    {"P", false, 15}, {"E", false, 18}, {"Ki", true, 10}, {"Mi", true, 20},
                    {"Gi", true, 30}, {"Ti", true, 40}, {"Pi", true, 50}, {"Ei", true, 60}};
    for (size_t i = 0; i < COUNT_OF(suffixes); i++)
        if (slice_equal(suffix, slice_from_text(suffixes[i].suffix))) {
            *ret_binary = suffixes[i].binary;
            *ret_exponent = suffixes[i].exponent;
            return true;
        }
    *ret_binary = false;
    return suffix.len > 1 && (suffix.ptr[0] == 'e' || suffix.ptr[0] == 'E') &&
           read_exponent(slice_sub(suffix, 1, suffix.len - 1), ret_exponent);
}

static uint64_t digits_of(uint64_t value, struct slice digits)
{
    for (size_t i = 0; i < digits.len; i++)
        value = value * 10 + (uint64_t)(digits.ptr[i] - '0');
    return value;
}

/* An amount with few digits that is not too small. False: it has to be a decimal. */
static bool read_small(const struct parts *parts, bool binary, int32_t exponent,
                       struct quantity *quantity)
{
    size_t whole = parts->whole.len ? parts->whole.len : 1;
    size_t length = whole + parts->fraction.len;
    int64_t value;
    if (binary ? parts->fraction.len || length + (size_t)exponent * 3 / 10 + 1 > FAST_BINARY_DIGITS
               : length > FAST_DIGITS)
        return false;
    quantity->scale = binary ? 0 : (int32_t)((uint32_t)exponent - (uint32_t)parts->fraction.len);
    if (quantity->scale < -NANO_DIGITS)
        return false;
    value = (int64_t)digits_of(digits_of(0, parts->whole), parts->fraction);
    if (binary && __builtin_mul_overflow(value, INT64_C(1) << exponent, &value))
        return false;
    quantity->value = parts->negative ? -value : value;
    return true;
}

static struct cel_value read_decimal(struct cel_work *work, const struct parts *parts, bool binary,
                                     int32_t exponent, struct quantity *quantity)
{
    struct cel_decimal *decimal = arena_alloc(work->arena, sizeof(*decimal));
    struct cel_decimal most;
    uint8_t *digits = arena_alloc(work->arena, parts->whole.len + parts->fraction.len + 1);
    if (!decimal || !digits)
        return CEL_NO_MEMORY;
    /* A number without any digit is 0 if it is small, but not as a decimal. */
    if (skip(parts->number, 0, "+-.") == parts->number.len)
        return CEL_FAIL("unable to parse numeric part of quantity");
    slice_copy(digits, parts->whole);
    slice_copy(digits + parts->whole.len, parts->fraction);
    struct slice all = slice_of(digits, parts->whole.len + parts->fraction.len);
    if (!cel_decimal_read(work, all, decimal))
        return too_large(work);
    decimal->scale = (int32_t)parts->fraction.len;
    if (!binary)
        decimal->scale = (int32_t)((uint32_t)decimal->scale - (uint32_t)exponent);
    for (int32_t i = 0; binary && i < exponent; i += 10)
        if (!cel_decimal_multiply(work, decimal, 1024))
            return too_large(work);
    /* An amount other than zero is at least a billionth. */
    if (decimal->count && !cel_decimal_round_up(work, decimal, NANO_DIGITS))
        return too_large(work);
    if (!cel_decimal_of_int(work, INT64_MAX, 0, &most))
        return too_large(work);
    if (binary && cel_decimal_compare(work, decimal, &most) > 0)
        *decimal = most;
    decimal->negative = parts->negative && decimal->count;
    quantity->decimal = decimal;
    return cel_of_opaque(&quantity->opaque);
}

static struct cel_value read(struct cel_work *work, struct slice text)
{
    struct parts parts;
    bool binary;
    int32_t exponent;
    struct quantity *quantity = arena_calloc(work->arena, 1, sizeof(*quantity));
    if (!quantity)
        return CEL_NO_MEMORY;
    quantity->opaque.ops = &quantity_ops;
    work->steps_left -= (int64_t)(text.len / 64);
    if (!text.len || !split(text, &parts))
        return CEL_FAIL("quantities must match the regular expression "
                        "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
    if (!read_suffix(parts.suffix, &binary, &exponent))
        return CEL_FAIL("unable to parse quantity's suffix");
    if (read_small(&parts, binary, exponent, quantity))
        return cel_of_opaque(&quantity->opaque);
    quantity->value = 0;
    quantity->scale = 0;
    return read_decimal(work, &parts, binary, exponent, quantity);
}

static struct cel_value to_quantity(struct cel_work *work, const struct cel_value *args)
{
    return args[0].kind == CEL_STRING ? read(work, cel_text(args[0])) : CEL_NO_OVERLOAD;
}

static struct cel_value is_quantity(struct cel_work *work, const struct cel_value *args)
{
    if (args[0].kind != CEL_STRING)
        return CEL_NO_OVERLOAD;
    struct cel_value quantity = read(work, cel_text(args[0]));
    if (work->steps_left < 0)
        return CEL_TOO_MUCH_WORK;
    return cel_of_bool(!cel_is_error(quantity));
}

/* -- Numbers -- */

static struct cel_value sign(struct cel_work *work, const struct cel_value *args)
{
    const struct quantity *quantity = as_quantity(args[0]);
    (void)work;
    if (!quantity)
        return CEL_NO_OVERLOAD;
    if (quantity->decimal)
        return cel_of_int(!quantity->decimal->count ? 0 : quantity->decimal->negative ? -1 : 1);
    return cel_of_int((quantity->value > 0) - (quantity->value < 0));
}

/* value × 10^scale. False: it does not fit. */
static bool scale_up(int64_t value, int32_t scale, int64_t *ret_value)
{
    for (int32_t i = 0; i < scale && value; i++)
        if (__builtin_mul_overflow(value, 10, &value))
            return false;
    *ret_value = value;
    return true;
}

static bool to_integer(const struct quantity *quantity, int64_t *ret_value)
{
    return !quantity->decimal && quantity->scale >= 0 &&
           scale_up(quantity->value, quantity->scale, ret_value);
}

static struct cel_value is_integer(struct cel_work *work, const struct cel_value *args)
{
    const struct quantity *quantity = as_quantity(args[0]);
    int64_t value;
    (void)work;
    return quantity ? cel_of_bool(to_integer(quantity, &value)) : CEL_NO_OVERLOAD;
}

static struct cel_value as_integer(struct cel_work *work, const struct cel_value *args)
{
    const struct quantity *quantity = as_quantity(args[0]);
    int64_t value;
    (void)work;
    if (!quantity)
        return CEL_NO_OVERLOAD;
    return to_integer(quantity, &value) ? cel_of_int(value)
                                        : CEL_FAIL("cannot convert value to integer");
}

/* Go's math.Pow10, which is the product or quotient of two exact powers. */
static double power_of_ten(int64_t exponent)
{
    static const double small[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10,
                                   1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21,
                                   1e22, 1e23, 1e24, 1e25, 1e26, 1e27, 1e28, 1e29, 1e30, 1e31};
    static const double large[] = {1e0, 1e32, 1e64, 1e96, 1e128, 1e160, 1e192, 1e224, 1e256, 1e288};
    static const double tiny[] = {1e0,    1e-32,  1e-64,  1e-96,  1e-128, 1e-160,
                                  1e-192, 1e-224, 1e-256, 1e-288, 1e-320};
    if (exponent > 308)
        return INFINITY;
    if (exponent >= 0)
        return large[exponent / 32] * small[exponent % 32];
    return exponent < -323 ? 0 : tiny[-exponent / 32] / small[-exponent % 32];
}

static struct cel_value as_double(struct cel_work *work, const struct cel_value *args)
{
    const struct quantity *quantity = as_quantity(args[0]);
    if (!quantity)
        return CEL_NO_OVERLOAD;
    double number = (double)quantity->value;
    int64_t exponent = quantity->scale;
    if (quantity->decimal) {
        exponent = -(int64_t)quantity->decimal->scale;
        if (!cel_decimal_unscaled(work, quantity->decimal, &number))
            return too_large(work);
    }
    return cel_of_double(exponent ? number * power_of_ten(exponent) : number);
}

/* -- Comparing -- */

/* False without memory or work. */
static bool decimal_of(struct cel_work *work, const struct quantity *quantity,
                       struct cel_decimal *ret_decimal)
{
    if (!quantity->decimal)
        return cel_decimal_of_int(work, quantity->value, (int32_t)(0 - (uint32_t)quantity->scale),
                                  ret_decimal);
    *ret_decimal = *quantity->decimal;
    return true;
}

static bool order_of(struct cel_work *work, const struct quantity *a, const struct quantity *b,
                     int *ret_order)
{
    struct cel_decimal x, y;
    if (!a->decimal && !b->decimal && a->scale == b->scale) {
        *ret_order = (a->value > b->value) - (a->value < b->value);
        return true;
    }
    if (!decimal_of(work, a, &x) || !decimal_of(work, b, &y))
        return false;
    *ret_order = cel_decimal_compare(work, &x, &y);
    return true;
}

static bool quantities_equal(struct cel_work *work, const struct cel_opaque *a,
                             const struct cel_opaque *b, bool *ret_equal)
{
    int order = 0;
    if (b->ops != &quantity_ops)
        return false;
    *ret_equal = order_of(work, (const struct quantity *)a, (const struct quantity *)b, &order) &&
                 order == 0;
    return true;
}

/* From then on it is a decimal. */
static bool make_decimal(struct cel_work *work, struct quantity *quantity)
{
    struct cel_decimal *decimal;
    if (quantity->decimal)
        return true;
    decimal = arena_alloc(work->arena, sizeof(*decimal));
    if (!decimal || !decimal_of(work, quantity, decimal))
        return false;
    quantity->decimal = decimal;
    quantity->value = 0;
    quantity->scale = 0;
    return true;
}

static struct cel_value compare(struct cel_work *work, const struct cel_value *args)
{
    struct quantity *a = as_quantity(args[0]), *b = as_quantity(args[1]);
    int order;
    if (!a || !b)
        return CEL_NO_OVERLOAD;
    if (!order_of(work, a, b, &order) || (b->decimal && !make_decimal(work, a)))
        return too_large(work);
    return cel_of_int((order > 0) - (order < 0));
}

/* -- Sums -- */

static bool add_small(struct quantity *sum, int64_t value, int32_t scale)
{
    int64_t a = sum->value, b = value;
    int32_t difference = (int32_t)((uint32_t)sum->scale - (uint32_t)scale);
    if (!b)
        return true;
    if (!a) {
        sum->value = value;
        sum->scale = scale;
        return true;
    }
    bool fits = sum->scale > scale ? scale_up(a, difference, &a)
                                   : scale_up(b, (int32_t)(0 - (uint32_t)difference), &b);
    if (!fits || __builtin_add_overflow(a, b, &a))
        return false;
    sum->value = a;
    sum->scale = sum->scale > scale ? scale : sum->scale;
    return true;
}

static struct cel_value add(struct cel_work *work, const struct cel_value *args, bool subtract)
{
    const struct quantity *a = as_quantity(args[0]), *b = as_quantity(args[1]);
    struct quantity number = {.value = args[1].i64};
    struct cel_decimal other;
    if (!b && args[1].kind == CEL_INT)
        b = &number;
    if (!a || !b)
        return CEL_NO_OVERLOAD;
    struct quantity *sum = arena_alloc(work->arena, sizeof(*sum));
    if (!sum)
        return CEL_NO_MEMORY;
    *sum = *a;
    sum->opaque.ops = &sum_ops;
    int64_t value = subtract ? (int64_t)(0 - (uint64_t)b->value) : b->value;
    if (!a->decimal && !b->decimal && add_small(sum, value, b->scale))
        return cel_of_opaque(&sum->opaque);
    if (!make_decimal(work, sum) || !decimal_of(work, b, &other))
        return too_large(work);
    other.negative = other.negative != subtract;
    return cel_decimal_add(work, sum->decimal, &other, sum->decimal) ? cel_of_opaque(&sum->opaque)
                                                                     : too_large(work);
}

static struct cel_value add_quantity(struct cel_work *work, const struct cel_value *args)
{
    return add(work, args, false);
}

static struct cel_value subtract_quantity(struct cel_work *work, const struct cel_value *args)
{
    return add(work, args, true);
}

static const struct cel_builtin rows[] = {
    {"quantity", 1, to_quantity, true, 0, cel_cost_of_text},
    {"isQuantity", 1, is_quantity, true, 0, cel_cost_of_text},
    {"sign", 1, sign, true, 0, NULL},
    {"isInteger", 1, is_integer, true, 0, NULL},
    {"asInteger", 1, as_integer, true, 0, NULL},
    {"asApproximateFloat", 1, as_double, true, 0, NULL},
    {"add", 2, add_quantity, true, 0, NULL},
    {"sub", 2, subtract_quantity, true, 0, NULL},
};

const struct cel_library cel_quantities = CEL_LIBRARY(rows);
