#include "cel/library/decimal.h"

#include <stdlib.h>

enum { INT64_DIGITS = 20 };

/* Room for digits, or NULL. */
static uint8_t *make(struct cel_work *work, size_t count)
{
    work->steps_left -= (int64_t)(count / 16);
    if (count > CEL_DECIMAL_DIGITS_MAX || work->steps_left < 0)
        return NULL;
    return arena_alloc(work->arena, count + 1);
}

static void set_digits(struct cel_decimal *decimal, const uint8_t *digits, size_t count)
{
    while (count && !digits[0]) {
        digits++;
        count--;
    }
    decimal->digits = digits;
    decimal->count = count;
}

bool cel_decimal_read(struct cel_work *work, struct slice text, struct cel_decimal *ret_decimal)
{
    uint8_t *digits = make(work, text.len);
    if (!digits)
        return false;
    for (size_t i = 0; i < text.len; i++)
        digits[i] = (uint8_t)(text.ptr[i] - '0');
    *ret_decimal = (struct cel_decimal){0};
    set_digits(ret_decimal, digits, text.len);
    return true;
}

bool cel_decimal_of_int(struct cel_work *work, int64_t value, int32_t scale,
                        struct cel_decimal *ret_decimal)
{
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    uint8_t *digits = make(work, INT64_DIGITS);
    if (!digits)
        return false;
    for (size_t i = INT64_DIGITS; i > 0; rest /= 10)
        digits[--i] = (uint8_t)(rest % 10);
    *ret_decimal = (struct cel_decimal){.scale = scale, .negative = value < 0};
    set_digits(ret_decimal, digits, INT64_DIGITS);
    return true;
}

bool cel_decimal_multiply(struct cel_work *work, struct cel_decimal *decimal, uint32_t factor)
{
    size_t count = decimal->count + 10;
    uint8_t *digits = make(work, count);
    uint64_t carry = 0;
    if (!digits)
        return false;
    for (size_t i = 0; i < count; i++) {
        carry +=
            i < decimal->count ? (uint64_t)factor * decimal->digits[decimal->count - 1 - i] : 0;
        digits[count - 1 - i] = (uint8_t)(carry % 10);
        carry /= 10;
    }
    set_digits(decimal, digits, count);
    return true;
}

/* The digits with zeros behind them. */
static bool shift(struct cel_work *work, struct cel_decimal *decimal, int64_t zeros)
{
    if (!decimal->count)
        return true;
    if (zeros > CEL_DECIMAL_DIGITS_MAX)
        return false;
    uint8_t *digits = make(work, decimal->count + (size_t)zeros);
    if (!digits)
        return false;
    memcpy(digits, decimal->digits, decimal->count);
    memset(digits + decimal->count, 0, (size_t)zeros);
    decimal->digits = digits;
    decimal->count += (size_t)zeros;
    return true;
}

bool cel_decimal_round_up(struct cel_work *work, struct cel_decimal *decimal, int32_t scale)
{
    int64_t more = (int64_t)scale - decimal->scale;
    decimal->scale = scale;
    if (more >= 0)
        return shift(work, decimal, more);
    size_t kept = -more < (int64_t)decimal->count ? decimal->count - (size_t)-more : 0;
    bool is_exact = true;
    for (size_t i = kept; i < decimal->count; i++)
        is_exact = is_exact && !decimal->digits[i];
    decimal->count = kept;
    static const uint8_t one[] = {1};
    struct cel_decimal rest = {
        .digits = one, .count = 1, .scale = scale, .negative = decimal->negative};
    return is_exact || cel_decimal_add(work, decimal, &rest, decimal);
}

/* -- Sums -- */

/* Compares numbers of the same scale without their signs. */
static int compare_digits(const struct cel_decimal *a, const struct cel_decimal *b)
{
    if (a->count != b->count)
        return a->count < b->count ? -1 : 1;
    return a->count ? memcmp(a->digits, b->digits, a->count) : 0;
}

static int digit_of(const struct cel_decimal *decimal, size_t from_the_right)
{
    return from_the_right < decimal->count ? decimal->digits[decimal->count - 1 - from_the_right]
                                           : 0;
}

/* large ± small, where the first is not smaller; their signs are ignored. */
static bool combine(struct cel_work *work, const struct cel_decimal *large,
                    const struct cel_decimal *small, bool subtract, struct cel_decimal *ret_sum)
{
    size_t count = large->count + 1;
    uint8_t *digits = make(work, count);
    int carry = 0;
    if (!digits)
        return false;
    for (size_t i = 0; i < count; i++) {
        int digit = digit_of(large, i) + carry;
        digit += subtract ? -digit_of(small, i) : digit_of(small, i);
        carry = digit < 0 ? -1 : digit / 10;
        digits[count - 1 - i] = (uint8_t)(digit - 10 * carry);
    }
    set_digits(ret_sum, digits, count);
    return true;
}

bool cel_decimal_add(struct cel_work *work, const struct cel_decimal *a,
                     const struct cel_decimal *b, struct cel_decimal *ret_sum)
{
    struct cel_decimal x = *a, y = *b;
    int32_t scale = x.scale > y.scale ? x.scale : y.scale;
    if (!shift(work, &x, (int64_t)scale - x.scale) || !shift(work, &y, (int64_t)scale - y.scale))
        return false;
    bool swap = compare_digits(&x, &y) < 0;
    struct cel_decimal sum = {.scale = scale, .negative = swap ? y.negative : x.negative};
    if (!combine(work, swap ? &y : &x, swap ? &x : &y, x.negative != y.negative, &sum))
        return false;
    sum.negative = sum.negative && sum.count;
    *ret_sum = sum;
    return true;
}

/* -- Comparing -- */

/* Without their signs; neither is 0. */
static int compare_sizes(const struct cel_decimal *a, const struct cel_decimal *b)
{
    int64_t left = (int64_t)a->count - a->scale, right = (int64_t)b->count - b->scale;
    if (left != right)
        return left < right ? -1 : 1;
    for (size_t i = 0; i < a->count || i < b->count; i++) {
        int x = i < a->count ? a->digits[i] : 0, y = i < b->count ? b->digits[i] : 0;
        if (x != y)
            return x - y;
    }
    return 0;
}

int cel_decimal_compare(struct cel_work *work, const struct cel_decimal *a,
                        const struct cel_decimal *b)
{
    bool below = a->negative && a->count, other_below = b->negative && b->count;
    work->steps_left -= (int64_t)((a->count + b->count) / 64);
    if (!a->count && !b->count)
        return 0;
    if (below != other_below)
        return below ? -1 : 1;
    if (!a->count || !b->count)
        return a->count ? (below ? -1 : 1) : (other_below ? 1 : -1);
    int order = compare_sizes(a, b);
    return below ? -order : order;
}

bool cel_decimal_unscaled(struct cel_work *work, const struct cel_decimal *decimal,
                          double *ret_number)
{
    uint8_t *text = make(work, decimal->count + 1);
    if (!text)
        return false;
    text[0] = '0';
    for (size_t i = 0; i < decimal->count; i++)
        text[i + 1] = (uint8_t)('0' + decimal->digits[i]);
    text[decimal->count + 1] = '\0';
    double number = strtod((const char *)text, NULL);
    *ret_number = decimal->negative ? -number : number;
    return true;
}
