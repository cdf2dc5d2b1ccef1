#include "kube/types/schema/go_value.h"

#include "base/status.h"

#include <string.h>

enum { SHOWN_BYTES_MAX = 64 };

const char *kube_json_type(const struct json_node *node)
{
    static const char *const names[] = {
        [JSON_TYPE_NULL] = "null",     [JSON_TYPE_BOOL] = "bool",   [JSON_TYPE_NUMBER] = "number",
        [JSON_TYPE_STRING] = "string", [JSON_TYPE_ARRAY] = "array", [JSON_TYPE_OBJECT] = "object",
    };
    return names[node->type];
}

/* -- Times, parsed chunk by chunk like Go's time.Parse -- */

struct clock_text {
    struct slice all, rest;
    bool micro;
    int month, day, year;
    struct error *error;
};

static bool is_digit(struct slice text, size_t at)
{
    return at < text.len && text.ptr[at] >= '0' && text.ptr[at] <= '9';
}

static int shown(struct slice text)
{
    return (int)size_min(text.len, SHOWN_BYTES_MAX);
}

static enum status cannot_parse(const struct clock_text *t, const char *chunk)
{
    return error_set(t->error, ST_INVALID,
                     "parsing time \"%.*s\" as \"2006-01-02T15:04:05%sZ07:00\": cannot parse "
                     "\"%.*s\" as \"%s\"",
                     shown(t->all), (const char *)t->all.ptr, t->micro ? ".000000" : "",
                     shown(t->rest), (const char *)t->rest.ptr, chunk);
}

static enum status out_of_range(const struct clock_text *t, const char *what)
{
    return error_set(t->error, ST_INVALID, "parsing time \"%.*s\": %s out of range", shown(t->all),
                     (const char *)t->all.ptr, what);
}

static void skip(struct clock_text *t, size_t count)
{
    t->rest = slice_sub(t->rest, count, t->rest.len - count);
}

static enum status take_literal(struct clock_text *t, const char *literal)
{
    if (!t->rest.len || t->rest.ptr[0] != (uint8_t)literal[0])
        return cannot_parse(t, literal);
    skip(t, 1);
    return ST_OK;
}

/* Requires at least `least` digits and reads at most `most`. */
static enum status take_number(struct clock_text *t, const char *chunk, size_t least, size_t most,
                               int *ret_number)
{
    size_t count = 0;
    int number = 0;
    for (; count < most && is_digit(t->rest, count); count++)
        number = number * 10 + (t->rest.ptr[count] - '0');
    if (count < least)
        return cannot_parse(t, chunk);
    skip(t, count);
    *ret_number = number;
    return ST_OK;
}

static enum status take_date(struct clock_text *t)
{
    TRY(take_number(t, "2006", 4, 4, &t->year));
    TRY(take_literal(t, "-"));
    TRY(take_number(t, "01", 2, 2, &t->month));
    if (t->month < 1 || t->month > 12)
        return out_of_range(t, "month");
    TRY(take_literal(t, "-"));
    return take_number(t, "02", 2, 2, &t->day);
}

static enum status take_clock(struct clock_text *t)
{
    int hour, minute, second;
    TRY(take_literal(t, "T"));
    /* Go accepts an hour of one digit. */
    TRY(take_number(t, "15", 1, 2, &hour));
    if (hour > 23)
        return out_of_range(t, "hour");
    TRY(take_literal(t, ":"));
    TRY(take_number(t, "04", 2, 2, &minute));
    if (minute > 59)
        return out_of_range(t, "minute");
    TRY(take_literal(t, ":"));
    TRY(take_number(t, "05", 2, 2, &second));
    return second > 59 ? out_of_range(t, "second") : ST_OK;
}

static enum status take_fraction(struct clock_text *t)
{
    /* Go also accepts a comma before the fraction. */
    bool begins = t->rest.len && (t->rest.ptr[0] == '.' || t->rest.ptr[0] == ',');
    size_t digits = 0;
    while (begins && is_digit(t->rest, 1 + digits) && (!t->micro || digits < 6))
        digits++;
    if (t->micro && digits < 6)
        return cannot_parse(t, ".000000");
    skip(t, digits ? 1 + digits : 0);
    return ST_OK;
}

static enum status take_zone(struct clock_text *t)
{
    struct slice zone = t->rest;
    if (zone.len && zone.ptr[0] == 'Z') {
        skip(t, 1);
        return ST_OK;
    }
    if (zone.len < 6 || (zone.ptr[0] != '+' && zone.ptr[0] != '-') || zone.ptr[3] != ':' ||
        !is_digit(zone, 1) || !is_digit(zone, 2) || !is_digit(zone, 4) || !is_digit(zone, 5))
        return cannot_parse(t, "Z07:00");
    if ((zone.ptr[1] - '0') * 10 + zone.ptr[2] - '0' > 24)
        return out_of_range(t, "time zone offset hour");
    if ((zone.ptr[4] - '0') * 10 + zone.ptr[5] - '0' > 60)
        return out_of_range(t, "time zone offset minute");
    skip(t, 6);
    return ST_OK;
}

static int days_in(int month, int year)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return days[month - 1] + (month == 2 && leap);
}

enum status go_time_check(struct slice text, bool micro, struct error *error)
{
    struct clock_text t = {.all = text, .rest = text, .micro = micro, .error = error};
    TRY(take_date(&t));
    TRY(take_clock(&t));
    TRY(take_fraction(&t));
    TRY(take_zone(&t));
    if (t.rest.len)
        return error_set(error, ST_INVALID, "parsing time \"%.*s\": extra text: \"%.*s\"",
                         shown(text), (const char *)text.ptr, shown(t.rest),
                         (const char *)t.rest.ptr);
    /* Go checks the day at the end, when the month and the year are known. */
    return t.day < 1 || t.day > days_in(t.month, t.year) ? out_of_range(&t, "day") : ST_OK;
}

/* -- Quantities -- */

static size_t skip_digits(struct slice text, size_t at)
{
    while (is_digit(text, at))
        at++;
    return at;
}

static bool is_suffix(struct slice suffix)
{
    static const char *const names[] = {"n", "u", "m",  "",   "k",  "M",  "G",  "T",
                                        "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (slice_is(suffix, names[i]))
            return true;
    if (suffix.len < 2 || (suffix.ptr[0] != 'e' && suffix.ptr[0] != 'E'))
        return false;
    size_t at = suffix.ptr[1] == '-' || suffix.ptr[1] == '+' ? 2 : 1, end = skip_digits(suffix, at);
    return end > at && end == suffix.len && end - at < 19; /* the exponent fits in 64 bits */
}

enum status go_quantity_check(struct slice text, struct error *error)
{
    static const char *const letters = "eEinumkKMGTP";
    text = slice_trim(text);
    size_t at = text.len && (text.ptr[0] == '-' || text.ptr[0] == '+');
    at = skip_digits(text, at);
    if (at < text.len && text.ptr[at] == '.')
        at = skip_digits(text, at + 1);
    size_t suffix = at;
    while (at < text.len && text.ptr[at] && strchr(letters, text.ptr[at]))
        at++;
    if (at < text.len && (text.ptr[at] == '-' || text.ptr[at] == '+'))
        at++;
    at = skip_digits(text, at);
    if (!text.len || at < text.len)
        return error_set(error, ST_INVALID,
                         "quantities must match the regular expression "
                         "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
    if (!is_suffix(slice_sub(text, suffix, text.len - suffix)))
        return error_set(error, ST_INVALID, "unable to parse quantity's suffix");
    return ST_OK;
}
