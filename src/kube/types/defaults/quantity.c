#include "kube/types/defaults/quantity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef quantity_amount u128;

/* The parts of a text. */
struct parts {
    bool negative;
    struct slice num, denom, suffix; /* num: without leading zeros */
};

enum {
    DIGITS_MAX = 36, /* that fit in 128 bits, with room for a factor of 100 */
    FAST_DIGITS = 18,
    NANO = -9,
    MILLI = -3,
};

static const struct {
    const char *suffix;
    int exponent;
} decimal_suffixes[] = {{"n", -9}, {"u", -6}, {"m", -3}, {"", 0},   {"k", 3},
                        {"M", 6},  {"G", 9},  {"T", 12}, {"P", 15}, {"E", 18}};
static const char *const binary_suffixes[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};

/* -- Reading -- */

static size_t skip_digits(struct slice text, size_t at)
{
    while (at < text.len && text.ptr[at] >= '0' && text.ptr[at] <= '9')
        at++;
    return at;
}

static struct parts split(struct slice text)
{
    struct parts parts = {.negative = text.len && text.ptr[0] == '-'};
    size_t at = text.len && (text.ptr[0] == '-' || text.ptr[0] == '+');
    while (at < text.len && text.ptr[at] == '0')
        at++;
    size_t end = skip_digits(text, at);
    parts.num = slice_sub(text, at, end - at);
    at = end;
    if (at < text.len && text.ptr[at] == '.') {
        end = skip_digits(text, at + 1);
        parts.denom = slice_sub(text, at + 1, end - at - 1);
        at = end;
    }
    parts.suffix = slice_sub(text, at, text.len - at);
    return parts;
}

/* The number after "e"; 0 if it does not fit, because a valid quantity is of a sensible size. */
static int read_exponent(struct slice suffix)
{
    char digits[8];
    if (suffix.len < 2 || suffix.len >= sizeof(digits))
        return 0;
    slice_copy((uint8_t *)digits, slice_sub(suffix, 1, suffix.len - 1));
    digits[suffix.len - 1] = '\0';
    return (int)strtol(digits, NULL, 10);
}

static enum quantity_format read_suffix(struct slice suffix, int *ret_exponent)
{
    for (size_t i = 0; i < COUNT_OF(decimal_suffixes) && suffix.len == 1; i++) {
        *ret_exponent = decimal_suffixes[i].exponent;
        if (suffix.ptr[0] == (uint8_t)decimal_suffixes[i].suffix[0])
            return QUANTITY_DECIMAL;
    }
    bool binary = suffix.len == 2 && suffix.ptr[1] == 'i';
    for (size_t i = 1; i < COUNT_OF(binary_suffixes) && binary; i++) {
        *ret_exponent = 10 * (int)i;
        if (suffix.ptr[0] == (uint8_t)binary_suffixes[i][0])
            return QUANTITY_BINARY;
    }
    *ret_exponent = read_exponent(suffix);
    return suffix.len ? QUANTITY_EXPONENT : QUANTITY_DECIMAL;
}

static u128 add_digits(u128 amount, struct slice digits)
{
    for (size_t i = 0; i < digits.len; i++)
        amount = amount * 10 + (unsigned)(digits.ptr[i] - '0');
    return amount;
}

static bool ends_with_thousand(struct slice num, struct slice denom)
{
    char digits[2 * FAST_DIGITS + 1];
    size_t len = num.len + denom.len;
    if (len < 3 || len > FAST_DIGITS)
        return false;
    slice_copy((uint8_t *)digits, num);
    slice_copy((uint8_t *)digits + num.len, denom);
    return memcmp(digits + len - 3, "000", 3) == 0;
}

/* Whether Kubernetes takes the text for canonical without looking closer. */
static bool is_kept(const struct quantity *quantity, const struct parts *parts, int exponent)
{
    size_t num = parts->num.len ? parts->num.len : 1;
    if (quantity->format == QUANTITY_BINARY)
        return !parts->denom.len && 15 - (int)num - exponent * 3 / 10 - 1 >= 0 &&
               (quantity->amount >> exponent & 7) != 0;
    return num + parts->denom.len <= FAST_DIGITS && quantity->scale >= NANO &&
           quantity->scale % 3 == 0 && parts->num.len &&
           !ends_with_thousand(parts->num, parts->denom);
}

bool quantity_read(struct slice text, struct quantity *ret_quantity)
{
    struct parts parts = split(text);
    int exponent;
    if (parts.num.len + parts.denom.len > DIGITS_MAX)
        return false;
    struct quantity quantity = {.negative = parts.negative,
                                .format = read_suffix(parts.suffix, &exponent)};
    quantity.amount = add_digits(add_digits(0, parts.num), parts.denom);
    quantity.scale = -(int)parts.denom.len;
    if (quantity.format != QUANTITY_BINARY) {
        quantity.scale += exponent;
    } else {
        if (quantity.amount >> (127 - 4 - exponent))
            return false;
        quantity.amount <<= exponent;
    }
    quantity.kept = is_kept(&quantity, &parts, exponent);
    *ret_quantity = quantity;
    return true;
}

/* -- Rounding -- */

void quantity_round_up(struct quantity *quantity, int scale)
{
    bool rest = false;
    if (quantity->scale >= scale)
        return;
    for (; quantity->scale < scale && quantity->amount; quantity->scale++) {
        rest |= quantity->amount % 10 != 0;
        quantity->amount /= 10;
    }
    quantity->amount += rest;
    quantity->scale = scale;
    quantity->kept = false;
}

/* The value without its fraction; *ret_exact: it has none. False: it does not fit. */
static bool whole(const struct quantity *quantity, u128 *ret_value, bool *ret_exact)
{
    struct quantity rounded = *quantity;
    quantity_round_up(&rounded, 0);
    *ret_value = rounded.amount;
    *ret_exact = true;
    struct quantity again = *quantity;
    for (; again.scale < 0; again.scale++) {
        *ret_exact = *ret_exact && again.amount % 10 == 0;
        again.amount /= 10;
    }
    return rounded.scale == 0;
}

/* Binary quantities end at the largest 64-bit number. */
static void cap(struct quantity *quantity)
{
    u128 value;
    bool exact;
    if (quantity->format != QUANTITY_BINARY || !whole(quantity, &value, &exact) ||
        value <= INT64_MAX)
        return;
    quantity->amount = INT64_MAX;
    quantity->scale = 0;
    quantity->kept = false;
}

/* -- Writing -- */

static struct slice print(const struct quantity *quantity, u128 amount, const char *suffix,
                          char to[QUANTITY_BYTES])
{
    size_t at = QUANTITY_BYTES - 1 - strlen(suffix), len = QUANTITY_BYTES - 1 - at;
    memcpy(to + at, suffix, len + 1);
    while (amount > UINT64_MAX) {
        to[--at] = (char)('0' + (int)(amount % 10));
        amount /= 10;
    }
    uint64_t rest = (uint64_t)amount; /* divided several times faster */
    do
        to[--at] = (char)('0' + (int)(rest % 10));
    while ((rest /= 10) != 0);
    if (quantity->negative)
        to[--at] = '-';
    return slice_of(to + at, QUANTITY_BYTES - 1 - at);
}

/* Beyond exa Kubernetes writes no suffix at all. */
static const char *decimal_suffix(int exponent)
{
    for (size_t i = 0; i < COUNT_OF(decimal_suffixes); i++) {
        if (decimal_suffixes[i].exponent == exponent)
            return decimal_suffixes[i].suffix;
    }
    return "";
}

static struct slice print_decimal(const struct quantity *quantity, char to[QUANTITY_BYTES])
{
    u128 amount = quantity->amount;
    int scale = quantity->scale;
    char exponent[16] = "";
    for (; amount >= 10 && amount % 10 == 0; scale++)
        amount /= 10;
    for (; scale % 3 != 0; scale--)
        amount *= 10;
    if (quantity->format != QUANTITY_EXPONENT)
        return print(quantity, amount, decimal_suffix(scale), to);
    if (scale)
        snprintf(exponent, sizeof(exponent), "e%d", scale);
    return print(quantity, amount, exponent, to);
}

struct slice quantity_write(const struct quantity *quantity, char to[QUANTITY_BYTES])
{
    u128 value = 0;
    bool exact = false;
    if (!quantity->amount)
        return SLICE_LITERAL("0");
    if (quantity->format == QUANTITY_BINARY && whole(quantity, &value, &exact) && exact &&
        value >= 1024) {
        size_t times = 0;
        for (; value >= 1024 && value % 1024 == 0 && times + 1 < COUNT_OF(binary_suffixes); times++)
            value /= 1024;
        return print(quantity, value, binary_suffixes[times], to);
    }
    return print_decimal(quantity, to);
}

struct slice quantity_canonical(struct slice text, bool milli, char to[QUANTITY_BYTES])
{
    struct quantity quantity;
    text = slice_trim(text);
    if (!quantity_read(text, &quantity))
        return text;
    quantity_round_up(&quantity, NANO);
    cap(&quantity);
    if (milli)
        quantity_round_up(&quantity, MILLI);
    return quantity.kept ? text : quantity_write(&quantity, to);
}

/* -- Arithmetic -- */

/* Without changing the value. False: it does not fit. */
static bool lower_scale(struct quantity *quantity, int scale)
{
    for (; quantity->scale > scale && quantity->amount; quantity->scale--) {
        if (quantity->amount > ~(u128)0 / 10)
            return false;
        quantity->amount *= 10;
    }
    quantity->scale = scale;
    return true;
}

bool quantity_add(struct quantity *to, const struct quantity *more)
{
    struct quantity sum = *to, other = *more;
    int scale = sum.scale < other.scale ? sum.scale : other.scale;
    if (!sum.amount)
        sum.format = other.format;
    if (!lower_scale(&sum, scale) || !lower_scale(&other, scale) ||
        sum.amount + other.amount < sum.amount)
        return false;
    sum.amount += other.amount;
    sum.kept = false;
    *to = sum;
    return true;
}

void quantity_subtract(struct quantity *from, const struct quantity *less)
{
    struct quantity rest = *from, other = *less;
    int scale = rest.scale < other.scale ? rest.scale : other.scale;
    if (quantity_compare(from, less) <= 0) {
        *from = (struct quantity){0};
        return;
    }
    /* One that does not fit here is so large that the other makes no difference. */
    if (!lower_scale(&rest, scale) || !lower_scale(&other, scale))
        return;
    rest.amount -= other.amount;
    rest.kept = false;
    *from = rest;
}

int quantity_compare(const struct quantity *a, const struct quantity *b)
{
    struct quantity one = *a, other = *b;
    int scale = one.scale < other.scale ? one.scale : other.scale;
    if (!lower_scale(&one, scale))
        return 1;
    if (!lower_scale(&other, scale))
        return -1;
    return (one.amount > other.amount) - (one.amount < other.amount);
}
