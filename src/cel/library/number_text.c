#include "cel/library/number_text.h"

#include "codec/utf8.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    /* No double has more digits behind its point, or before it. */
    FRACTION_DIGITS_MAX = 1074,
    TEXT_BYTES = 1500,
    SHORTEST_DIGITS_MAX = 17,
    PARSED_MAX = 1000000, /* Go's parser of formats reads no digit behind a larger number */
    SCIENTIFIC_DIGITS = 6,
};

/* Whether Go's parser of formats finds the letter behind so large a number. */
static bool is_readable(int64_t precision)
{
    int64_t before_last = precision / 10;
    return before_last <= PARSED_MAX;
}

/* True: the number is written, because it has no digits. */
static bool write_special(struct cel_writer *to, double number)
{
    if (isnan(number))
        cel_write_text(to, "NaN");
    else if (isinf(number))
        cel_write_text(to, number < 0 ? "-\u221e" : "\u221e");
    return isnan(number) || isinf(number);
}

/* The fewest digits that give the same number, without an exponent. */
static void print_shortest(double number, char text[TEXT_BYTES])
{
    char digits[64];
    int count = 1;
    for (; count < SHORTEST_DIGITS_MAX; count++) {
        snprintf(digits, sizeof(digits), "%.*e", count - 1, number);
        if (strtod(digits, NULL) == number)
            break;
    }
    snprintf(digits, sizeof(digits), "%.*e", count - 1, number);
    long exponent = strtol(strchr(digits, 'e') + 1, NULL, 10);
    if (exponent < count - 1) {
        snprintf(text, TEXT_BYTES, "%.*f", (int)(count - 1 - exponent), number);
        return;
    }
    /* printf would show the exact value of the digits behind the shortest. */
    int at =
        snprintf(text, TEXT_BYTES, "%c%.*s", digits[0], count - 1, digits + (count > 1 ? 2 : 1));
    memset(text + at, '0', (size_t)(exponent + 1 - at));
    text[exponent + 1] = '\0';
}

/* Digits in groups of three. */
static void write_grouped(struct cel_writer *to, struct slice digits)
{
    size_t first = digits.len % 3 ? digits.len % 3 : size_min(digits.len, 3);
    cel_write(to, slice_sub(digits, 0, first));
    for (size_t at = first; at < digits.len; at += 3) {
        cel_write_text(to, ",");
        cel_write(to, slice_sub(digits, at, 3));
    }
}

void cel_write_fixed(struct cel_writer *to, double number, int64_t precision)
{
    char text[TEXT_BYTES];
    if (!is_readable(precision)) {
        cel_write_text(to, "%!(NOVERB)");
        return;
    }
    if (write_special(to, number))
        return;
    int16_t digits_max = (int16_t)(uint16_t)precision;
    size_t digits_min = (uint8_t)precision;
    if (digits_max < 0)
        print_shortest(fabs(number), text);
    else
        snprintf(text, sizeof(text), "%.*f",
                 digits_max < FRACTION_DIGITS_MAX ? digits_max : FRACTION_DIGITS_MAX, fabs(number));
    struct slice fraction = slice_from_text(text), whole = slice_cut(&fraction, '.');
    while (fraction.len && fraction.ptr[fraction.len - 1] == '0')
        fraction.len--;
    if (number < 0)
        cel_write_text(to, "-");
    write_grouped(to, whole);
    if (fraction.len || digits_min)
        cel_write_text(to, ".");
    cel_write(to, fraction);
    if (fraction.len < digits_min)
        cel_write_repeated(to, "0", digits_min - fraction.len);
}

static void write_exponent(struct cel_writer *to, long exponent)
{
    static const char *const raised[] = {"\u2070", "\u00b9", "\u00b2", "\u00b3", "\u2074",
                                         "\u2075", "\u2076", "\u2077", "\u2078", "\u2079"};
    char digits[24];
    cel_write_text(to, exponent < 0 ? "\u00d710\u207b" : "\u00d710");
    snprintf(digits, sizeof(digits), "%02ld", labs(exponent));
    for (const char *at = digits; *at; at++)
        cel_write_text(to, raised[*at - '0']);
}

void cel_write_scientific(struct cel_writer *to, double number, int64_t precision)
{
    char text[64];
    struct cel_writer made = {.work = to->work};
    if (!is_readable(precision)) {
        cel_write_text(to, "%!(NOVERB)");
        return;
    }
    if (!write_special(&made, number)) {
        snprintf(text, sizeof(text), "%.*e", SCIENTIFIC_DIGITS, fabs(number));
        struct slice exponent = slice_from_text(text), digits = slice_cut(&exponent, 'e');
        if (number < 0)
            cel_write_text(&made, "-");
        cel_write(&made, digits);
        write_exponent(&made, strtol((const char *)exponent.ptr, NULL, 10));
    }
    struct slice written = slice_of(made.bytes, made.length);
    size_t width = (uint16_t)precision, length = utf8_count(written);
    to->failed |= made.failed;
    if (length < width)
        cel_write_repeated(to, " ", width - length);
    cel_write(to, written);
}
