#include "cel/library/times.h"

#include "cel/check/literals.h"
#include "codec/go_duration.h"
#include "codec/kube_time.h"
#include "codec/time_zone.h"

#include <stdio.h>
#include <stdlib.h>

enum { NS_PER_S = 1000000000, NS_PER_MS = 1000000, S_PER_DAY = 86400, TEXT_BYTES = 64 };

#define INT_OVERFLOW CEL_FAIL("integer overflow")
#define TIMESTAMP_OVERFLOW CEL_FAIL("timestamp overflow")

/* -- Conversions -- */

static struct cel_value of_duration(int64_t nanoseconds)
{
    return (struct cel_value){.kind = CEL_DURATION, .nanoseconds = nanoseconds};
}

static struct cel_value of_timestamp(int64_t seconds, int64_t nanoseconds, int32_t zone_minutes)
{
    if (!cel_is_timestamp(seconds))
        return TIMESTAMP_OVERFLOW;
    return (struct cel_value){.kind = CEL_TIMESTAMP,
                              .i64 = seconds,
                              .nanoseconds = nanoseconds,
                              .zone_minutes = zone_minutes};
}

static struct cel_value fail(struct cel_work *work, struct cel_value from,
                             const struct cel_type *to)
{
    return cel_of_error_format(work, "type conversion error from '%s' to '%s'",
                               cel_value_type_name(from), to->name);
}

struct cel_value cel_to_duration(struct cel_work *work, const struct cel_value *args)
{
    int64_t nanoseconds;
    if (args[0].kind == CEL_DURATION)
        return args[0];
    if (args[0].kind != CEL_STRING && args[0].kind != CEL_INT)
        return CEL_NO_OVERLOAD;
    work->steps_left -= args[0].kind == CEL_STRING ? (int64_t)(args[0].length / 64) : 0;
    /* Kubernetes' environment declares duration(int), but no int can be converted. */
    if (args[0].kind == CEL_INT || !go_duration_read(cel_text(args[0]), &nanoseconds))
        return fail(work, args[0], &cel_type_DURATION);
    return of_duration(nanoseconds);
}

struct cel_value cel_to_timestamp(struct cel_work *work, const struct cel_value *args)
{
    int64_t seconds, offset_s;
    int32_t nanoseconds;
    if (args[0].kind == CEL_TIMESTAMP)
        return args[0];
    if (args[0].kind == CEL_INT)
        return of_timestamp(args[0].i64, 0, 0);
    if (args[0].kind != CEL_STRING)
        return CEL_NO_OVERLOAD;
    work->steps_left -= (int64_t)(args[0].length / 64);
    if (!kube_time_read_offset(cel_text(args[0]), &seconds, &nanoseconds, &offset_s))
        return fail(work, args[0], &cel_type_TIMESTAMP);
    return of_timestamp(seconds, nanoseconds, (int32_t)(offset_s / 60));
}

static struct cel_value copy_string(struct cel_work *work, const char *text, int length)
{
    struct slice copy;
    assert(length >= 0);
    if (arena_dup(work->arena, slice_of(text, (size_t)length), &copy) != ST_OK)
        return CEL_NO_MEMORY;
    return cel_of_string(copy);
}

/* As Go's Duration.Seconds, whose last digits are those of a double. */
static double seconds_of(int64_t nanoseconds)
{
    int64_t whole = nanoseconds / NS_PER_S;
    return (double)whole + (double)(nanoseconds % NS_PER_S) / 1e9;
}

/* The shortest digits that give the same number of seconds, without exponent. */
static struct cel_value duration_to_string(struct cel_work *work, int64_t nanoseconds)
{
    char text[TEXT_BYTES];
    double seconds = seconds_of(nanoseconds);
    int decimals = 0, length;
    do
        length = snprintf(text, sizeof(text), "%.*f", decimals, seconds);
    while (strtod(text, NULL) != seconds && decimals++ < 30);
    length += snprintf(text + length, sizeof(text) - (size_t)length, "s");
    return copy_string(work, text, length);
}

static int64_t floor_divide(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static struct cel_value timestamp_to_string(struct cel_work *work, struct cel_value time)
{
    char text[TEXT_BYTES], fraction[16] = "";
    int64_t year;
    int month, day;
    int64_t local_s = time.i64 + 60 * (int64_t)time.zone_minutes;
    int64_t days = floor_divide(local_s, S_PER_DAY);
    int of_day = (int)(local_s - days * S_PER_DAY);
    kube_date_of(days, &year, &month, &day);
    if (time.nanoseconds) {
        int digits = snprintf(fraction, sizeof(fraction), ".%09d", (int)time.nanoseconds);
        while (fraction[digits - 1] == '0')
            fraction[--digits] = 0;
    }
    int length = snprintf(text, sizeof(text), "%04d-%02d-%02dT%02d:%02d:%02d%s", (int)year, month,
                          day, of_day / 3600, of_day / 60 % 60, of_day % 60, fraction);
    int minutes = abs(time.zone_minutes);
    if (minutes)
        length += snprintf(text + length, sizeof(text) - (size_t)length, "%c%02d:%02d",
                           time.zone_minutes < 0 ? '-' : '+', minutes / 60, minutes % 60);
    else
        text[length++] = 'Z';
    return copy_string(work, text, length);
}

struct cel_value cel_time_to_string(struct cel_work *work, struct cel_value time)
{
    return time.kind == CEL_DURATION ? duration_to_string(work, time.nanoseconds)
                                     : timestamp_to_string(work, time);
}

/* -- Arithmetic -- */

static struct cel_value move(struct cel_value time, int64_t by)
{
    int64_t seconds = time.i64 + by / NS_PER_S;
    int64_t nanoseconds = time.nanoseconds + by % NS_PER_S;
    if (nanoseconds < 0) {
        nanoseconds += NS_PER_S;
        seconds--;
    } else if (nanoseconds >= NS_PER_S) {
        nanoseconds -= NS_PER_S;
        seconds++;
    }
    return of_timestamp(seconds, nanoseconds, time.zone_minutes);
}

struct cel_value cel_add_times(struct cel_value a, struct cel_value b)
{
    int64_t sum;
    if (a.kind == CEL_TIMESTAMP)
        return b.kind == CEL_DURATION ? move(a, b.nanoseconds) : CEL_NO_OVERLOAD;
    if (b.kind == CEL_TIMESTAMP)
        return move(b, a.nanoseconds);
    if (b.kind != CEL_DURATION)
        return CEL_NO_OVERLOAD;
    return __builtin_add_overflow(a.nanoseconds, b.nanoseconds, &sum) ? INT_OVERFLOW
                                                                      : of_duration(sum);
}

struct cel_value cel_subtract_times(struct cel_value a, struct cel_value b)
{
    int64_t difference;
    if (a.kind == CEL_TIMESTAMP && b.kind == CEL_TIMESTAMP)
        return __builtin_mul_overflow(a.i64 - b.i64, (int64_t)NS_PER_S, &difference) ||
                       __builtin_add_overflow(difference, a.nanoseconds - b.nanoseconds,
                                              &difference)
                   ? INT_OVERFLOW
                   : of_duration(difference);
    if (b.kind != CEL_DURATION)
        return CEL_NO_OVERLOAD;
    if (a.kind == CEL_TIMESTAMP)
        return b.nanoseconds == INT64_MIN ? INT_OVERFLOW : move(a, -b.nanoseconds);
    return __builtin_sub_overflow(a.nanoseconds, b.nanoseconds, &difference)
               ? INT_OVERFLOW
               : of_duration(difference);
}

/* -- Accessors -- */

/* What Go's strconv.Atoi reads. False, with its error. */
static bool read_int(struct cel_work *work, struct slice text, int64_t *ret_number,
                     struct cel_value *ret_error)
{
    bool negative = text.len && text.ptr[0] == '-';
    size_t digits = negative || (text.len && text.ptr[0] == '+');
    bool is_number = text.len > digits, fits = true;
    uint64_t number = 0, limit = (uint64_t)INT64_MAX + negative;
    for (size_t i = digits; i < text.len && is_number && fits; i++) {
        uint64_t digit = (uint64_t)text.ptr[i] - '0';
        is_number = digit <= 9;
        fits = !__builtin_mul_overflow(number, 10, &number) &&
               !__builtin_add_overflow(number, digit, &number);
    }
    fits = fits && number <= limit;
    *ret_number = (int64_t)(negative ? 0 - number : number);
    if (is_number && fits)
        return true;
    *ret_error = cel_of_error_format(work, "strconv.Atoi: parsing %s: %s", cel_quoted(work, text),
                                     is_number ? "value out of range" : "invalid syntax");
    return false;
}

/* "-08:00". The numbers may be of any size, and then overflow as in Go. */
static bool read_offset(struct cel_work *work, struct slice text, size_t colon, int64_t *ret_offset,
                        struct cel_value *ret_error)
{
    int64_t hours, minutes;
    if (!read_int(work, slice_sub(text, 0, colon), &hours, ret_error) ||
        !read_int(work, slice_sub(text, colon + 1, text.len - colon - 1), &minutes, ret_error))
        return false;
    uint64_t sum = (uint64_t)hours * 60;
    sum = text.ptr[0] == '-' ? sum - (uint64_t)minutes : sum + (uint64_t)minutes;
    *ret_offset = (int64_t)seconds_of((int64_t)(sum * 60 * NS_PER_S));
    return true;
}

static bool has_dots(struct slice name)
{
    for (size_t i = 0; i + 1 < name.len; i++)
        if (name.ptr[i] == '.' && name.ptr[i + 1] == '.')
            return true;
    return false;
}

/* The seconds of the local time in a zone, counted like those of UTC. */
static bool in_zone(struct cel_work *work, struct cel_value time, struct slice zone,
                    int64_t *ret_local_s, struct cel_value *ret_error)
{
    const uint8_t *colon = zone.len ? memchr(zone.ptr, ':', zone.len) : NULL;
    int64_t offset_s;
    int32_t zone_s = 0;
    work->steps_left -= (int64_t)(zone.len / 64);
    if (colon) {
        if (!read_offset(work, zone, (size_t)(colon - zone.ptr), &offset_s, ret_error))
            return false;
        *ret_local_s = (int64_t)((uint64_t)time.i64 + (uint64_t)offset_s);
        return true;
    }
    if (zone.len && (has_dots(zone) || zone.ptr[0] == '/' || zone.ptr[0] == '\\')) {
        *ret_error = CEL_FAIL("time: invalid location name");
        return false;
    }
    if (zone.len && !time_zone_offset(zone, time.i64, &zone_s)) {
        *ret_error = cel_of_error_format(work, "unknown time zone %.*s", SLICE_ARGS(zone));
        return false;
    }
    *ret_local_s = time.i64 + zone_s;
    return true;
}

enum part { YEAR, MONTH, DAY, DAY_FROM_ZERO, DAY_OF_WEEK, DAY_OF_YEAR, HOUR, MINUTE, SECOND };

static int64_t part_of(int64_t local_s, enum part part)
{
    int64_t year;
    int month, day;
    int64_t days = floor_divide(local_s, S_PER_DAY);
    int64_t of_day = local_s - days * S_PER_DAY;
    kube_date_of(days, &year, &month, &day);
    switch (part) {
    case YEAR:
        return year;
    case MONTH:
        return month - 1;
    case DAY:
        return day;
    case DAY_FROM_ZERO:
        return day - 1;
    case DAY_OF_WEEK: /* January 1, 1970 was a Thursday, and 0 is Sunday. */
        return ((days + 4) % 7 + 7) % 7;
    case DAY_OF_YEAR:
        return days - kube_days_of(year, 1, 1);
    case HOUR:
        return of_day / 3600;
    case MINUTE:
        return of_day / 60 % 60;
    case SECOND:
        break;
    }
    return of_day % 60;
}

static struct cel_value part_in_utc(const struct cel_value *args, enum part part)
{
    return args[0].kind == CEL_TIMESTAMP ? cel_of_int(part_of(args[0].i64, part)) : CEL_NO_OVERLOAD;
}

static struct cel_value part_in_zone(struct cel_work *work, const struct cel_value *args,
                                     enum part part)
{
    int64_t local_s;
    struct cel_value error;
    if (args[0].kind != CEL_TIMESTAMP || args[1].kind != CEL_STRING)
        return CEL_NO_OVERLOAD;
    if (!in_zone(work, args[0], cel_text(args[1]), &local_s, &error))
        return error;
    return cel_of_int(part_of(local_s, part));
}

/* Whole hours and the rest as doubles, whose sum may be rounded up, as in Go. */
static struct cel_value units_of(int64_t nanoseconds, int64_t unit_ns)
{
    int64_t whole = nanoseconds / unit_ns;
    return cel_of_int((int64_t)((double)whole + (double)(nanoseconds % unit_ns) / (double)unit_ns));
}

/* The accessors of a timestamp alone, and those that a duration has as well. */
#define ACCESSOR(name, part)                                                                     \
    static struct cel_value get_##name(struct cel_work *work, const struct cel_value *args)      \
    {                                                                                            \
        (void)work;                                                                              \
        return part_in_utc(args, part);                                                          \
    }                                                                                            \
    static struct cel_value get_##name##_in(struct cel_work *work, const struct cel_value *args) \
    {                                                                                            \
        return part_in_zone(work, args, part);                                                   \
    }
#define ACCESSOR_OF_BOTH(name, part, unit_ns)                                                    \
    static struct cel_value get_##name(struct cel_work *work, const struct cel_value *args)      \
    {                                                                                            \
        (void)work;                                                                              \
        return args[0].kind == CEL_DURATION ? units_of(args[0].nanoseconds, unit_ns)             \
                                            : part_in_utc(args, part);                           \
    }                                                                                            \
    static struct cel_value get_##name##_in(struct cel_work *work, const struct cel_value *args) \
    {                                                                                            \
        return part_in_zone(work, args, part);                                                   \
    }

ACCESSOR(year, YEAR)
ACCESSOR(month, MONTH)
ACCESSOR(day, DAY)
ACCESSOR(day_from_zero, DAY_FROM_ZERO)
ACCESSOR(day_of_week, DAY_OF_WEEK)
ACCESSOR(day_of_year, DAY_OF_YEAR)
ACCESSOR_OF_BOTH(hours, HOUR, 3600LL * NS_PER_S)
ACCESSOR_OF_BOTH(minutes, MINUTE, 60LL * NS_PER_S)
ACCESSOR_OF_BOTH(seconds, SECOND, (int64_t)NS_PER_S)

static struct cel_value get_milliseconds(struct cel_work *work, const struct cel_value *args)
{
    (void)work;
    if (args[0].kind != CEL_TIMESTAMP && args[0].kind != CEL_DURATION)
        return CEL_NO_OVERLOAD;
    return cel_of_int(args[0].nanoseconds / NS_PER_MS);
}

static struct cel_value get_milliseconds_in(struct cel_work *work, const struct cel_value *args)
{
    struct cel_value checked = part_in_zone(work, args, SECOND);
    return cel_is_error(checked) ? checked : cel_of_int(args[0].nanoseconds / NS_PER_MS);
}

static const struct cel_builtin rows[] = {
    {"duration", 1, cel_to_duration, true, 0, NULL},
    {"timestamp", 1, cel_to_timestamp, true, 0, NULL},
    {"getFullYear", 1, get_year, true, 0, NULL},
    {"getFullYear", 2, get_year_in, true, 0, NULL},
    {"getMonth", 1, get_month, true, 0, NULL},
    {"getMonth", 2, get_month_in, true, 0, NULL},
    {"getDate", 1, get_day, true, 0, NULL},
    {"getDate", 2, get_day_in, true, 0, NULL},
    {"getDayOfMonth", 1, get_day_from_zero, true, 0, NULL},
    {"getDayOfMonth", 2, get_day_from_zero_in, true, 0, NULL},
    {"getDayOfWeek", 1, get_day_of_week, true, 0, NULL},
    {"getDayOfWeek", 2, get_day_of_week_in, true, 0, NULL},
    {"getDayOfYear", 1, get_day_of_year, true, 0, NULL},
    {"getDayOfYear", 2, get_day_of_year_in, true, 0, NULL},
    {"getHours", 1, get_hours, true, 0, NULL},
    {"getHours", 2, get_hours_in, true, 0, NULL},
    {"getMinutes", 1, get_minutes, true, 0, NULL},
    {"getMinutes", 2, get_minutes_in, true, 0, NULL},
    {"getSeconds", 1, get_seconds, true, 0, NULL},
    {"getSeconds", 2, get_seconds_in, true, 0, NULL},
    {"getMilliseconds", 1, get_milliseconds, true, 0, NULL},
    {"getMilliseconds", 2, get_milliseconds_in, true, 0, NULL},
};

const struct cel_library cel_times = CEL_LIBRARY(rows);
