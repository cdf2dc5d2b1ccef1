#include "codec/json/number.h"

#include "codec/json/scanner.h"

enum { EXPONENT_MAX = 1000000 };

bool json_number_valid(struct slice text)
{
    struct json_scanner s;
    json_scanner_init(&s, text);
    return json_next(&s) == JSON_NUMBER && s.raw.len == text.len;
}

/* The digits of a number, integer part and fraction without the point, and the position of the
 * point. */
struct number_parts {
    struct slice whole, fraction;
    int64_t exponent;
    bool negative;
};

static struct slice take_digits(struct slice *rest)
{
    size_t n = 0;
    while (n < rest->len && rest->ptr[n] >= '0' && rest->ptr[n] <= '9')
        n++;
    struct slice digits = slice_sub(*rest, 0, n);
    *rest = slice_sub(*rest, n, rest->len - n);
    return digits;
}

static bool take_byte(struct slice *rest, const char *any_of)
{
    if (rest->len == 0 || !strchr(any_of, rest->ptr[0]))
        return false;
    *rest = slice_sub(*rest, 1, rest->len - 1);
    return true;
}

static struct number_parts split(struct slice text)
{
    struct number_parts p = {.fraction = SLICE_EMPTY};
    p.negative = take_byte(&text, "-");
    p.whole = take_digits(&text);
    if (take_byte(&text, "."))
        p.fraction = take_digits(&text);
    while (p.fraction.len && p.fraction.ptr[p.fraction.len - 1] == '0')
        p.fraction.len--;
    if (take_byte(&text, "eE")) {
        bool down = text.len && text.ptr[0] == '-';
        (void)take_byte(&text, "+-");
        while (text.len && p.exponent < EXPONENT_MAX) {
            p.exponent = p.exponent * 10 + (text.ptr[0] - '0');
            text = slice_sub(text, 1, text.len - 1);
        }
        p.exponent = down ? -p.exponent : p.exponent;
    }
    return p;
}

static bool is_zero(const struct number_parts *p)
{
    return p->fraction.len == 0 && p->whole.len == 1 && p->whole.ptr[0] == '0';
}

static bool add_digit(uint64_t *magnitude, unsigned digit)
{
    return !__builtin_mul_overflow(*magnitude, UINT64_C(10), magnitude) &&
           !__builtin_add_overflow(*magnitude, (uint64_t)digit, magnitude);
}

/* False: it is not an integer, or does not fit 64 bits. */
static bool magnitude_of(const struct number_parts *p, uint64_t *ret_magnitude)
{
    uint64_t n = 0;
    *ret_magnitude = 0;
    if (is_zero(p))
        return true;
    if (p->fraction.len && p->exponent < (int64_t)p->fraction.len)
        return false;
    int64_t whole = (int64_t)p->whole.len + (p->exponent < 0 ? p->exponent : 0);
    if (whole < 0)
        return false;
    for (size_t i = 0; i < p->whole.len; i++) {
        unsigned digit = (unsigned)p->whole.ptr[i] - '0';
        if ((int64_t)i >= whole ? digit != 0 : !add_digit(&n, digit))
            return false;
    }
    for (int64_t i = 0; i < p->exponent; i++) {
        bool real = i < (int64_t)p->fraction.len;
        if (!add_digit(&n, real ? (unsigned)p->fraction.ptr[i] - '0' : 0))
            return false;
    }
    *ret_magnitude = n;
    return true;
}

bool json_number_u64(struct slice text, uint64_t *ret_number)
{
    struct number_parts p = split(text);
    uint64_t n;
    if (!magnitude_of(&p, &n) || (p.negative && n != 0))
        return false;
    *ret_number = n;
    return true;
}

bool json_number_i64(struct slice text, int64_t *ret_number)
{
    struct number_parts p = split(text);
    uint64_t n;
    if (!magnitude_of(&p, &n) || n > (uint64_t)INT64_MAX + p.negative)
        return false;
    *ret_number = p.negative ? (int64_t)(0 - n) : (int64_t)n;
    return true;
}
