#include "codec/go_duration.h"

#include "base/macros.h"

#include <stdio.h>

/* A quoted byte takes up to four, so the duration and a unit fit into the reason. */
enum { SHOWN_MAX = 128, UNIT_SHOWN_MAX = 16, QUOTED_BYTES = 4 * SHOWN_MAX + 1 };

static const uint64_t LARGEST = UINT64_C(1) << 63; /* that of a negative duration */

static void quote(struct slice text, size_t shown_max, char to[QUOTED_BYTES])
{
    size_t at = 0;
    for (size_t i = 0; i < size_min(text.len, shown_max); i++) {
        uint8_t c = text.ptr[i];
        if (c == '"' || c == '\\')
            to[at++] = '\\';
        if (c < ' ' || c >= 0x80)
            at += (size_t)snprintf(to + at, 5, "\\x%02x", c);
        else
            to[at++] = (char)c;
    }
    to[at] = '\0';
}

static bool is_digit(struct slice text)
{
    return text.len && text.ptr[0] >= '0' && text.ptr[0] <= '9';
}

static struct slice behind(struct slice text, size_t count)
{
    return slice_sub(text, count, text.len - count);
}

/* False: it is too large. */
static bool take_whole(struct slice *text, uint64_t *ret_whole)
{
    uint64_t whole = 0;
    for (; is_digit(*text); *text = behind(*text, 1)) {
        if (whole > LARGEST / 10)
            return false;
        whole = whole * 10 + (uint64_t)(text->ptr[0] - '0');
        if (whole > LARGEST)
            return false;
    }
    *ret_whole = whole;
    return true;
}

/* Digits beyond the precision of the number are dropped. */
static uint64_t take_fraction(struct slice *text, double *ret_scale)
{
    uint64_t digits = 0;
    double scale = 1;
    bool full = false;
    for (; is_digit(*text); *text = behind(*text, 1)) {
        uint64_t next = digits * 10 + (uint64_t)(text->ptr[0] - '0');
        full = full || digits > (LARGEST - 1) / 10 || next > LARGEST;
        if (full)
            continue;
        digits = next;
        scale *= 10;
    }
    *ret_scale = scale;
    return digits;
}

static struct slice take_unit(struct slice *text)
{
    struct slice rest = *text;
    while (rest.len && rest.ptr[0] != '.' && !is_digit(rest))
        rest = behind(rest, 1);
    struct slice unit = slice_sub(*text, 0, text->len - rest.len);
    *text = rest;
    return unit;
}

/* In nanoseconds; 0: unknown. */
static uint64_t unit_ns(struct slice unit)
{
    static const struct {
        const char *name;
        uint64_t ns;
    } units[] = {{"ns", 1},       {"us", 1000},      {"\u00b5s", 1000},   {"\u03bcs", 1000},
                 {"ms", 1000000}, {"s", 1000000000}, {"m", 60000000000u}, {"h", 3600000000000}};
    for (size_t i = 0; i < COUNT_OF(units); i++)
        if (slice_equal(unit, slice_from_text(units[i].name)))
            return units[i].ns;
    return 0;
}

enum fault { FINE, INVALID, NO_UNIT, UNKNOWN_UNIT };

/* One number with its unit. */
static enum fault take_part(struct slice *text, uint64_t *total, struct slice *ret_unit)
{
    uint64_t whole, fraction = 0;
    double scale = 1;
    size_t before = text->len;
    if (!take_whole(text, &whole))
        return INVALID;
    bool some = text->len != before;
    if (text->len && text->ptr[0] == '.') {
        *text = behind(*text, 1);
        before = text->len;
        fraction = take_fraction(text, &scale);
        some = some || text->len != before;
    }
    if (!some)
        return INVALID;
    *ret_unit = take_unit(text);
    if (!ret_unit->len)
        return NO_UNIT;
    uint64_t unit = unit_ns(*ret_unit);
    if (!unit)
        return UNKNOWN_UNIT;
    if (whole > LARGEST / unit)
        return INVALID;
    uint64_t part = whole * unit + (uint64_t)((double)fraction * ((double)unit / scale));
    *total += part;
    return part > LARGEST || *total > LARGEST ? INVALID : FINE;
}

static enum fault find_fault(struct slice text, int64_t *ret_ns, struct slice *ret_unit)
{
    bool negative = text.len && text.ptr[0] == '-';
    uint64_t total = 0;
    if (negative || (text.len && text.ptr[0] == '+'))
        text = behind(text, 1);
    if (slice_equal(text, SLICE_LITERAL("0")))
        text = SLICE_EMPTY;
    else if (!text.len)
        return INVALID;
    while (text.len) {
        enum fault fault = take_part(&text, &total, ret_unit);
        if (fault != FINE)
            return fault;
    }
    if (total == LARGEST && !negative)
        return INVALID;
    *ret_ns = (int64_t)(negative ? 0 - total : total);
    return FINE;
}

bool go_duration_read(struct slice text, int64_t *ret_ns)
{
    struct slice unit;
    return find_fault(text, ret_ns, &unit) == FINE;
}

bool go_duration_check(struct slice text, char why[GO_DURATION_WHY_BYTES])
{
    struct slice unit = SLICE_EMPTY;
    char shown[QUOTED_BYTES], unit_shown[QUOTED_BYTES];
    int64_t ns;
    enum fault fault = find_fault(text, &ns, &unit);
    quote(text, SHOWN_MAX, shown);
    quote(unit, UNIT_SHOWN_MAX, unit_shown);
    switch (fault) {
    case FINE:
        return true;
    case INVALID:
        snprintf(why, GO_DURATION_WHY_BYTES, "time: invalid duration \"%s\"", shown);
        break;
    case NO_UNIT:
        snprintf(why, GO_DURATION_WHY_BYTES, "time: missing unit in duration \"%s\"", shown);
        break;
    case UNKNOWN_UNIT:
        snprintf(why, GO_DURATION_WHY_BYTES, "time: unknown unit \"%.64s\" in duration \"%s\"",
                 unit_shown, shown);
        break;
    }
    return false;
}
