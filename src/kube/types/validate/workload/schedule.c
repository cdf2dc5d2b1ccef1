/* The schedule of a CronJob and its time zone, as robfig/cron and Go's time package read them. */
#include "kube/types/validate/workload/job.h"

#include "codec/go_duration.h"
#include "codec/time_zone.h"

#include <stdio.h>
#include <stdlib.h>

enum { FIELDS = 5, SHOWN_MAX = 256, WHY_BYTES = 3 * SHOWN_MAX };

#define SHOWN(s) (int)size_min((s).len, SHOWN_MAX), (const char *)(s).ptr

/* -- Time zones -- */

static bool is_zone_part(struct slice part)
{
    enum { PART_BYTES_MAX = 14 };
    if (!part.len || part.len > PART_BYTES_MAX || part.ptr[0] == '-' || slice_is(part, ".") ||
        slice_is(part, ".."))
        return false;
    for (size_t i = 0; i < part.len; i++) {
        uint8_t ch = part.ptr[i], letter = ch | 0x20;
        bool fine = (letter >= 'a' && letter <= 'z') || (ch >= '0' && ch <= '9') || ch == '.' ||
                    ch == '-' || ch == '_' || ch == '+';
        if (!fine)
            return false;
    }
    return true;
}

static bool has_zone_form(struct slice name)
{
    size_t parts = 1;
    for (size_t i = 0; i < name.len; i++)
        parts += name.ptr[i] == '/';
    while (parts-- > 0) {
        if (!is_zone_part(slice_cut(&name, '/')))
            return false;
    }
    return true;
}

void rule_time_zone(struct check *c, const struct at *at, const struct json_node *zone)
{
    struct slice name = rule_text_of(c, zone);
    char why[SHOWN_MAX + 32];
    snprintf(why, sizeof(why), "unknown time zone %.*s", SHOWN(name));
    if (!zone)
        return;
    if (!name.len) {
        bad_text(c, at, name, "timeZone must be nil or non-empty string");
        return;
    }
    if (!has_zone_form(name)) {
        bad_text(c, at, name, why);
        return;
    }
    /* Go would take the zone of the machine on which the controller runs. */
    if (name.len == 5 && strncasecmp((const char *)name.ptr, "Local", 5) == 0)
        bad_text(c, at, name,
                 "timeZone must be an explicit time zone as defined in "
                 "https://www.iana.org/time-zones");
    if (!time_zone_exists(name))
        bad_text(c, at, name, why);
}

/* -- Fields -- */

struct field {
    int64_t min, max;
    const char *const *names; /* names of the numbers from min on; NULL: none */
    size_t name_count;
};

static const char *const months[] = {"jan", "feb", "mar", "apr", "may", "jun",
                                     "jul", "aug", "sep", "oct", "nov", "dec"};
static const char *const days[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};
static const struct field fields[FIELDS] = {
    {0, 59, NULL, 0}, {0, 23, NULL, 0}, {1, 31, NULL, 0}, {1, 12, months, 12}, {0, 6, days, 7}};

/* As Go's Atoi. */
static bool read_int(struct slice text, int64_t *ret_number, char why[WHY_BYTES])
{
    bool negative = text.len && text.ptr[0] == '-', sign = negative;
    const char *problem = NULL;
    int64_t number = 0;
    sign = sign || (text.len && text.ptr[0] == '+');
    if (text.len == sign)
        problem = "invalid syntax";
    for (size_t i = sign; i < text.len; i++) {
        int digit = text.ptr[i] - '0';
        if (digit < 0 || digit > 9)
            problem = "invalid syntax";
        else if (!problem && (__builtin_mul_overflow(number, 10, &number) ||
                              __builtin_add_overflow(number, digit, &number)))
            problem = "value out of range";
    }
    if (problem)
        snprintf(why, WHY_BYTES,
                 "failed to parse int from %.*s: strconv.Atoi: parsing \"%.*s\": %s", SHOWN(text),
                 SHOWN(text), problem);
    else if (negative && number)
        snprintf(why, WHY_BYTES, "negative number (-%lld) not allowed: %.*s", (long long)number,
                 SHOWN(text));
    *ret_number = number;
    return !why[0];
}

static bool read_number(struct slice text, const struct field *field, int64_t *ret_number,
                        char why[WHY_BYTES])
{
    for (size_t i = 0; i < field->name_count; i++) {
        if (text.len == 3 && strncasecmp((const char *)text.ptr, field->names[i], 3) == 0) {
            *ret_number = field->min + (int64_t)i;
            return true;
        }
    }
    return read_int(text, ret_number, why);
}

static size_t count_of(struct slice text, char c)
{
    size_t count = 0;
    for (size_t i = 0; i < text.len; i++)
        count += text.ptr[i] == (uint8_t)c;
    return count;
}

/* "5", "1-5", "*" */
static bool read_range(struct slice text, struct slice whole, const struct field *field,
                       int64_t *ret_from, int64_t *ret_to, char why[WHY_BYTES])
{
    size_t hyphens = count_of(text, '-');
    struct slice end = text, begin = slice_cut(&end, '-');
    if (slice_is(begin, "*") || slice_is(begin, "?")) {
        *ret_from = field->min;
        *ret_to = field->max;
        return true;
    }
    if (!read_number(begin, field, ret_from, why))
        return false;
    *ret_to = *ret_from;
    if (hyphens > 1)
        snprintf(why, WHY_BYTES, "too many hyphens: %.*s", SHOWN(whole));
    return !hyphens || (hyphens == 1 && read_number(end, field, ret_to, why));
}

/* "1-5/2" */
static bool check_part(struct slice text, const struct field *field, char why[WHY_BYTES])
{
    size_t slashes = count_of(text, '/');
    struct slice step = text, range = slice_cut(&step, '/');
    int64_t from, to, by = 1;
    if (!read_range(range, text, field, &from, &to, why))
        return false;
    if (slashes > 1)
        snprintf(why, WHY_BYTES, "too many slashes: %.*s", SHOWN(text));
    else if (slashes == 1 && read_int(step, &by, why) && !count_of(range, '-'))
        to = field->max;
    if (why[0])
        return false;
    if (from < field->min)
        snprintf(why, WHY_BYTES, "beginning of range (%lld) below minimum (%lld): %.*s",
                 (long long)from, (long long)field->min, SHOWN(text));
    else if (to > field->max)
        snprintf(why, WHY_BYTES, "end of range (%lld) above maximum (%lld): %.*s", (long long)to,
                 (long long)field->max, SHOWN(text));
    else if (from > to)
        snprintf(why, WHY_BYTES, "beginning of range (%lld) beyond end of range (%lld): %.*s",
                 (long long)from, (long long)to, SHOWN(text));
    else if (!by)
        snprintf(why, WHY_BYTES, "step of range should be a positive number: %.*s", SHOWN(text));
    return !why[0];
}

static bool is_space(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* The next field; empty: there is none. */
static struct slice next_field(struct slice *rest)
{
    size_t i = 0, begin;
    while (i < rest->len && is_space(rest->ptr[i]))
        i++;
    begin = i;
    while (i < rest->len && !is_space(rest->ptr[i]))
        i++;
    struct slice field = slice_sub(*rest, begin, i - begin);
    *rest = slice_sub(*rest, i, rest->len - i);
    return field;
}

static void complain_of_count(struct slice schedule, size_t count, char why[WHY_BYTES])
{
    size_t len = (size_t)snprintf(why, WHY_BYTES, "expected exactly 5 fields, found %zu: [", count);
    for (size_t i = 0; i < count && len < SHOWN_MAX; i++) {
        struct slice field = next_field(&schedule);
        len += (size_t)snprintf(why + len, WHY_BYTES - len, "%s%.*s", i ? " " : "", SHOWN(field));
    }
    snprintf(why + len, WHY_BYTES - len, "]");
}

static bool check_fields(struct slice schedule, char why[WHY_BYTES])
{
    struct slice rest = schedule;
    size_t count = 0;
    while (next_field(&rest).len)
        count++;
    if (count != FIELDS) {
        complain_of_count(schedule, count, why);
        return false;
    }
    for (size_t i = 0; i < FIELDS; i++) {
        struct slice field = next_field(&schedule);
        while (field.len) {
            struct slice part = slice_cut(&field, ',');
            if (part.len && !check_part(part, &fields[i], why))
                return false;
        }
    }
    return true;
}

/* -- Descriptors -- */

static bool check_descriptor(struct slice text, char why[WHY_BYTES])
{
    static const struct slice every = SLICE_LITERAL("@every ");
    if (rule_one_of(text, "@yearly,@annually,@monthly,@weekly,@daily,@midnight,@hourly"))
        return true;
    if (slice_has_prefix(text, every)) {
        char fault[GO_DURATION_WHY_BYTES];
        if (go_duration_check(slice_sub(text, every.len, text.len - every.len), fault))
            return true;
        snprintf(why, WHY_BYTES, "failed to parse duration %.*s: %.*s", SHOWN(text),
                 WHY_BYTES - SHOWN_MAX - 64, fault);
        return false;
    }
    snprintf(why, WHY_BYTES, "unrecognized descriptor: %.*s", SHOWN(text));
    return false;
}

/* -- Schedules -- */

/* "TZ=Europe/Berlin * * * * *" */
static bool cut_zone(struct slice *schedule, char why[WHY_BYTES])
{
    bool zoned = slice_has_prefix(*schedule, SLICE_LITERAL("TZ=")) ||
                 slice_has_prefix(*schedule, SLICE_LITERAL("CRON_TZ="));
    struct slice rest = *schedule, name;
    if (!zoned)
        return true;
    if (!memchr(rest.ptr, ' ', rest.len)) {
        snprintf(why, WHY_BYTES,
                 "invalid schedule format: runtime error: slice bounds out of "
                 "range [:-1]");
        return false;
    }
    slice_cut(&rest, '=');
    name = slice_cut(&rest, ' ');
    *schedule = rest;
    while (schedule->len && is_space(schedule->ptr[0]))
        *schedule = slice_sub(*schedule, 1, schedule->len - 1);
    if (name.len && !time_zone_exists(name))
        snprintf(why, WHY_BYTES, "provided bad location %.*s: unknown time zone %.*s", SHOWN(name),
                 SHOWN(name));
    return !why[0];
}

static bool has_zone(struct slice schedule)
{
    return schedule.len && memmem(schedule.ptr, schedule.len, "TZ", 2);
}

void rule_schedule(struct check *c, const struct at *at, const struct json_node *spec,
                   const struct json_node *old)
{
    struct slice schedule = rule_text(c, spec, "schedule"), rest = schedule;
    bool kept = has_zone(rule_text(c, old, "schedule"));
    char why[WHY_BYTES] = "";
    if (!schedule.len) {
        bad_required(c, at, NULL);
        return;
    }
    bool valid =
        cut_zone(&rest, why) &&
        (rest.len && rest.ptr[0] == '@' ? check_descriptor(rest, why) : check_fields(rest, why));
    if (!valid)
        bad_text(c, at, schedule, why);
    if (has_zone(schedule) && kept && rule_member(spec, "timeZone"))
        bad_text(c, at, schedule, "cannot use both timeZone field and TZ or CRON_TZ in schedule");
    else if (has_zone(schedule) && !kept)
        bad_text(c, at, schedule,
                 "cannot use TZ or CRON_TZ in schedule, use timeZone field instead");
}
