#include "base/options/value.h"

#include "base/clock.h"

#include <stdio.h>

enum status option_value_bool(const char *text, bool *ret_value)
{
    static const char *const yes[] = {"1", "t", "T", "true", "TRUE", "True"};
    static const char *const no[] = {"0", "f", "F", "false", "FALSE", "False"};
    for (size_t i = 0; i < COUNT_OF(yes); i++) {
        if (strcmp(text, yes[i]) == 0 || strcmp(text, no[i]) == 0) {
            *ret_value = strcmp(text, yes[i]) == 0;
            return ST_OK;
        }
    }
    return ST_INVALID;
}

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return 99;
}

static unsigned take_base(const char **text)
{
    const char *t = *text;
    if (t[0] != '0' || t[1] == 0)
        return 10;
    *text += 2;
    switch (t[1]) {
    case 'x':
    case 'X':
        return 16;
    case 'b':
    case 'B':
        return 2;
    case 'o':
    case 'O':
        return 8;
    default: /* a leading 0 alone means octal */
        *text = t + 1;
        return 8;
    }
}

/* Digits to the end of the text. */
static enum status parse_digits(const char *text, unsigned base, uint64_t *ret_value)
{
    uint64_t value = 0;
    bool after_digit = false;
    if (!*text)
        return ST_INVALID;
    for (; *text; text++) {
        if (*text == '_' && after_digit && digit_of(text[1]) < (int)base) {
            after_digit = false;
            continue;
        }
        int digit = digit_of(*text);
        if (digit >= (int)base || __builtin_mul_overflow(value, base, &value) ||
            __builtin_add_overflow(value, (unsigned)digit, &value))
            return ST_INVALID;
        after_digit = true;
    }
    *ret_value = value;
    return ST_OK;
}

static bool take_sign(const char **text)
{
    bool negative = **text == '-';
    if (**text == '-' || **text == '+')
        (*text)++;
    return negative;
}

/* The magnitude with its sign, if it fits. */
static enum status with_sign(bool negative, uint64_t magnitude, int64_t *ret_value)
{
    if (magnitude > (uint64_t)INT64_MAX + negative)
        return ST_INVALID;
    *ret_value = (int64_t)(negative ? -magnitude : magnitude);
    return ST_OK;
}

enum status option_value_int(const char *text, int64_t *ret_value)
{
    uint64_t magnitude;
    bool negative = take_sign(&text);
    unsigned base = take_base(&text);
    TRY(parse_digits(text, base, &magnitude));
    return with_sign(negative, magnitude, ret_value);
}

/* The power of two of a suffix, or -1. */
static int size_suffix(const char *suffix)
{
    static const char letters[] = "KMGT";
    const char *letter = *suffix ? strchr(letters, *suffix & ~0x20) : NULL;
    if (!letter)
        return -1;
    const char *after = suffix + 1;
    if (*after && strcmp(after, "B") != 0 && strcmp(after, "iB") != 0)
        return -1;
    return 10 * (int)(letter - letters + 1);
}

enum status option_value_size(const char *text, uint64_t *ret_bytes)
{
    size_t digits = strspn(text, "0123456789");
    int shift = digits ? size_suffix(text + digits) : -1;
    if (shift < 0) {
        int64_t plain;
        TRY(option_value_int(text, &plain));
        if (plain < 0)
            return ST_INVALID;
        *ret_bytes = (uint64_t)plain;
        return ST_OK;
    }
    char number[24];
    uint64_t value;
    if (digits >= sizeof(number))
        return ST_INVALID;
    memcpy(number, text, digits);
    number[digits] = 0;
    TRY(parse_digits(number, 10, &value));
    if (value > (uint64_t)INT64_MAX >> shift)
        return ST_INVALID;
    *ret_bytes = value << shift;
    return ST_OK;
}

/* -- durations -- */

static const struct {
    const char *name;
    int64_t ns;
} units[] = {
    {"ns", 1},         {"us", NS_PER_US}, {"\u00b5s", NS_PER_US}, {"\u03bcs", NS_PER_US},
    {"ms", NS_PER_MS}, {"s", NS_PER_S},   {"m", 60 * NS_PER_S},   {"h", 3600 * NS_PER_S},
};

static int64_t take_unit(const char **text)
{
    size_t len = strcspn(*text, ".0123456789");
    for (size_t i = 0; i < COUNT_OF(units); i++) {
        if (strlen(units[i].name) == len && memcmp(*text, units[i].name, len) == 0) {
            *text += len;
            return units[i].ns;
        }
    }
    return 0;
}

/* The digits after the point, as parts of the unit; those below a nanosecond are dropped. */
static uint64_t take_fraction(const char **text, int64_t unit_ns, size_t digits)
{
    uint64_t numerator = 0, denominator = 1;
    for (size_t i = 0; i < digits; i++) {
        if (denominator < 1000000000000) {
            numerator = numerator * 10 + (uint64_t)((*text)[i] - '0');
            denominator *= 10;
        }
    }
    return (uint64_t)((unsigned __int128)numerator * (uint64_t)unit_ns / denominator);
}

/* One number with its unit: "1.5h". */
static enum status take_term(const char **text, uint64_t *sum_ns)
{
    const char *whole = *text;
    size_t whole_len = strspn(whole, "0123456789");
    const char *at = whole + whole_len;
    const char *fraction = at;
    size_t fraction_len = 0;
    if (*at == '.') {
        fraction = at + 1;
        fraction_len = strspn(fraction, "0123456789");
        at = fraction + fraction_len;
    }
    if (whole_len + fraction_len == 0)
        return ST_INVALID;
    int64_t unit_ns = take_unit(&at);
    if (unit_ns == 0)
        return ST_INVALID;
    uint64_t value = 0;
    for (size_t i = 0; i < whole_len; i++)
        if (__builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (unsigned)(whole[i] - '0'), &value))
            return ST_INVALID;
    if (__builtin_mul_overflow(value, (uint64_t)unit_ns, &value) ||
        __builtin_add_overflow(value, take_fraction(&fraction, unit_ns, fraction_len), &value) ||
        __builtin_add_overflow(*sum_ns, value, sum_ns))
        return ST_INVALID;
    *text = at;
    return ST_OK;
}

enum status option_value_duration(const char *text, int64_t *ret_ns)
{
    bool negative = take_sign(&text);
    uint64_t sum = 0;
    if (strcmp(text, "0") != 0) {
        if (!*text)
            return ST_INVALID;
        while (*text)
            TRY(take_term(&text, &sum));
    }
    return with_sign(negative, sum, ret_ns);
}

/* A number of units with its fraction, without trailing zeros: 1500000 ns of ms is "1.5ms". */
static int format_part(char *to, size_t room, uint64_t ns, uint64_t unit_ns, const char *unit)
{
    uint64_t fraction = ns % unit_ns;
    if (fraction == 0)
        return snprintf(to, room, "%llu%s", (unsigned long long)(ns / unit_ns), unit);
    char digits[16];
    int len = snprintf(digits, sizeof(digits), "%09u", (unsigned)(fraction * (NS_PER_S / unit_ns)));
    while (digits[len - 1] == '0')
        len--;
    return snprintf(to, room, "%llu.%.*s%s", (unsigned long long)(ns / unit_ns), len, digits, unit);
}

void option_format_duration(int64_t ns, char text[OPTION_DURATION_BYTES])
{
    uint64_t left = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
    char *at = text;
    char *end = text + OPTION_DURATION_BYTES;
    const uint64_t minute = 60 * NS_PER_S, hour = 3600 * NS_PER_S;
    if (ns < 0)
        *at++ = '-';
    if (left == 0) {
        snprintf(at, (size_t)(end - at), "0s");
        return;
    }
    if (left < NS_PER_S) {
        uint64_t unit = left < NS_PER_US ? 1 : left < NS_PER_MS ? NS_PER_US : NS_PER_MS;
        format_part(at, (size_t)(end - at), left, unit,
                    unit == 1           ? "ns"
                    : unit == NS_PER_US ? "\u00b5s"
                                        : "ms");
        return;
    }
    if (left >= hour)
        at += snprintf(at, (size_t)(end - at), "%lluh", (unsigned long long)(left / hour));
    if (left >= minute)
        at += snprintf(at, (size_t)(end - at), "%llum", (unsigned long long)(left % hour / minute));
    format_part(at, (size_t)(end - at), left % minute, NS_PER_S, "s");
}

bool option_list_next(const char **rest, struct slice *ret_item)
{
    const char *at = *rest;
    while (*at == ' ')
        at++;
    if (!*at)
        return false;
    size_t len = strcspn(at, ",");
    *rest = at[len] ? at + len + 1 : at + len;
    while (len && at[len - 1] == ' ')
        len--;
    *ret_item = slice_of(at, len);
    return true;
}
