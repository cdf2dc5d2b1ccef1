#include "yaml/scalar.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static bool is_one_of(struct slice text, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (slice_equal(text, slice_from_text(words[i])))
            return true;
    }
    return false;
}

static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};
static const char *const trues[] = {"true", "True", "TRUE", "yes", "Yes", "YES",
                                    "on",   "On",   "ON",   "y",   "Y"};
static const char *const falses[] = {"false", "False", "FALSE", "no", "No", "NO",
                                     "off",   "Off",   "OFF",   "n",  "N"};
static const char *const infinities[] = {".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"};
static const char *const negative_infinities[] = {"-.inf", "-.Inf", "-.INF"};
static const char *const not_numbers[] = {".nan", ".NaN", ".NAN"};

/* Copies the text without underscores to a C string; false: too long for a number. */
static bool plain_digits(struct slice text, char to[64])
{
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '_')
            continue;
        if (len == 63)
            return false;
        to[len++] = (char)text.ptr[i];
    }
    to[len] = '\0';
    return len;
}

/* Parses "0x1f", "0b11", "0o17" and the old "017"; otherwise decimal. */
static bool parse_int(const char *digits, struct yaml_scalar *ret_scalar)
{
    bool negative = *digits == '-';
    int base = 10;
    char *end;
    if (*digits == '-' || *digits == '+')
        digits++;
    if (digits[0] == '0' && digits[1]) {
        char mark = digits[1];
        base = mark == 'x' || mark == 'X' ? 16 : mark == 'b' || mark == 'B' ? 2 : 8;
        digits += base != 8 || mark == 'o' ? 2 : 1;
    }
    if (*digits == '-' || *digits == '+' || *digits == ' ' || !*digits)
        return false;
    errno = 0;
    unsigned long long value = strtoull(digits, &end, base);
    if (*end || errno || (negative && value > (unsigned long long)INT64_MAX + 1))
        return false;
    if (!negative && value > (unsigned long long)INT64_MAX)
        *ret_scalar = (struct yaml_scalar){.kind = YAML_SCALAR_UINT, .u = value};
    else
        *ret_scalar = (struct yaml_scalar){.kind = YAML_SCALAR_INT,
                                           .i = (int64_t)(negative ? 0 - value : value)};
    return true;
}

static bool is_float(const char *s)
{
    size_t digits = 0;
    s += *s == '-' || *s == '+';
    for (; *s >= '0' && *s <= '9'; s++)
        digits++;
    if (*s == '.')
        for (s++; *s >= '0' && *s <= '9'; s++)
            digits++;
    if (!digits)
        return false;
    if (*s == 'e' || *s == 'E') {
        s++;
        s += *s == '-' || *s == '+';
        if (!*s)
            return false;
        while (*s >= '0' && *s <= '9')
            s++;
    }
    return !*s;
}

static struct yaml_scalar of_float(double value)
{
    return (struct yaml_scalar){.kind = YAML_SCALAR_FLOAT, .f = value};
}

static struct yaml_scalar of_bool(bool truth)
{
    return (struct yaml_scalar){.kind = YAML_SCALAR_BOOL, .truth = truth};
}

struct yaml_scalar yaml_scalar_of(struct slice text)
{
    char digits[64];
    struct yaml_scalar number;
    if (is_one_of(text, nulls, COUNT_OF(nulls)))
        return (struct yaml_scalar){.kind = YAML_SCALAR_NULL};
    if (is_one_of(text, trues, COUNT_OF(trues)))
        return of_bool(true);
    if (is_one_of(text, falses, COUNT_OF(falses)))
        return of_bool(false);
    if (is_one_of(text, infinities, COUNT_OF(infinities)))
        return of_float(HUGE_VAL);
    if (is_one_of(text, negative_infinities, COUNT_OF(negative_infinities)))
        return of_float(-HUGE_VAL);
    if (is_one_of(text, not_numbers, COUNT_OF(not_numbers)))
        return of_float(NAN);
    if (strchr("0123456789+-.", text.ptr[0]) && plain_digits(text, digits)) {
        if (parse_int(digits, &number))
            return number;
        if (is_float(digits) && isfinite(strtod(digits, NULL)))
            return of_float(strtod(digits, NULL));
    }
    return (struct yaml_scalar){.kind = YAML_SCALAR_TEXT};
}

void yaml_float_text(double value, char text[YAML_NUMBER_BYTES])
{
    for (int precision = 15; precision <= 17; precision++) {
        snprintf(text, YAML_NUMBER_BYTES, "%.*g", precision, value);
        if (strtod(text, NULL) == value)
            break;
    }
}

void yaml_float_key(double value, char text[YAML_NUMBER_BYTES])
{
    enum { EXPONENT_LEAST = -4, EXPONENT_END = 6, DIGITS_MAX = 9 };
    int digits = 1;
    if (!isfinite((float)value)) {
        snprintf(text, YAML_NUMBER_BYTES, "%s",
                 isnan(value) ? ".nan"
                 : value > 0  ? ".inf"
                              : "-.inf");
        return;
    }
    for (; digits <= DIGITS_MAX; digits++) {
        snprintf(text, YAML_NUMBER_BYTES, "%.*e", digits - 1, (double)(float)value);
        if (strtof(text, NULL) == (float)value)
            break;
    }
    long exponent = strtol(strchr(text, 'e') + 1, NULL, 10);
    int decimals = digits - 1 - (int)exponent;
    if (exponent >= EXPONENT_LEAST && exponent < EXPONENT_END)
        snprintf(text, YAML_NUMBER_BYTES, "%.*f", decimals > 0 ? decimals : 0,
                 (double)(float)value);
}
