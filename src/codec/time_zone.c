#include "codec/time_zone.h"

#include "base/macros.h"
#include "codec/kube_time.h"

#include <stdlib.h>

enum { S_PER_DAY = 86400 };

struct name {
    const char *name;
    uint16_t zone;
};

struct zone {
    int32_t first_offset; /* before the first change */
    int64_t first_s;      /* the time of the first change */
    uint16_t first_change, change_count;
    uint8_t rule;
};

struct change {
    uint32_t after_s; /* since the change before; 0 for the first one */
    uint16_t offset;  /* its number in `offsets` */
};

/* A day of a month ("the last Sunday of March", week 5) and a second of it, in local time. */
struct day {
    int month, week, day_of_week, second;
};

/* Standard and summer time, and when each begins; both are equal if there is no summer time. */
struct rule {
    int32_t standard, summer;
    struct day begin, end;
};

static const struct name names[] = {
#define NAME(name, zone) {name, zone},
#include "codec/time_zone_rows.inc"
#undef NAME
};
static const struct zone zones[] = {
#define ZONE(first_offset, first_s, first_change, change_count, rule) \
    {first_offset, first_s, first_change, change_count, rule},
#include "codec/time_zone_rows.inc"
#undef ZONE
};
static const struct rule rules[] = {
#define RULE(standard, summer, m1, w1, d1, s1, m2, w2, d2, s2) \
    {standard, summer, {m1, w1, d1, s1}, {m2, w2, d2, s2}},
#include "codec/time_zone_rows.inc"
#undef RULE
};
static const int32_t offsets[] = {
#define OFFSETS
#include "codec/time_zone_rows.inc"
#undef OFFSETS
};
static const struct change changes[] = {
#define CHANGES
#include "codec/time_zone_rows.inc"
#undef CHANGES
};

static int order(const void *key, const void *row)
{
    return slice_compare(*(const struct slice *)key,
                         slice_from_text(((const struct name *)row)->name));
}

static const struct name *find(struct slice name)
{
    return bsearch(&name, names, COUNT_OF(names), sizeof(names[0]), order);
}

static bool is_utc(struct slice name)
{
    /* The zone of the server is UTC. */
    return slice_equal(name, SLICE_LITERAL("UTC")) || slice_equal(name, SLICE_LITERAL("Local"));
}

bool time_zone_exists(struct slice name)
{
    return is_utc(name) || find(name);
}

/* The second of a day of a rule in a year, in local time. */
static int64_t second_of(int64_t year, const struct day *when)
{
    int64_t first = kube_days_of(year, when->month, 1);
    int64_t next =
        when->month == 12 ? kube_days_of(year + 1, 1, 1) : kube_days_of(year, when->month + 1, 1);
    int64_t day_of_week = ((first + 4) % 7 + 7) % 7; /* January 1, 1970 was a Thursday */
    int64_t day = first + (when->day_of_week - day_of_week + 7) % 7 + 7 * (int64_t)(when->week - 1);
    while (day >= next)
        day -= 7;
    return day * S_PER_DAY + when->second;
}

/* The year is that of UTC, as in Go. */
static int32_t offset_by_rule(const struct rule *rule, int64_t seconds)
{
    int64_t year;
    int month, day;
    if (rule->standard == rule->summer)
        return rule->standard;
    kube_date_of(seconds / S_PER_DAY - (seconds % S_PER_DAY < 0), &year, &month, &day);
    int64_t begin = second_of(year, &rule->begin) - rule->standard;
    int64_t end = second_of(year, &rule->end) - rule->summer;
    bool is_summer =
        begin < end ? seconds >= begin && seconds < end : !(seconds >= end && seconds < begin);
    return is_summer ? rule->summer : rule->standard;
}

bool time_zone_offset(struct slice name, int64_t seconds, int32_t *ret_offset)
{
    *ret_offset = 0;
    if (is_utc(name))
        return true;
    const struct name *row = find(name);
    if (!row)
        return false;
    const struct zone *zone = &zones[row->zone];
    const struct change *change = &changes[zone->first_change];
    int64_t at = zone->first_s;
    int32_t offset = zone->first_offset;
    for (uint16_t i = 0; i < zone->change_count; i++, change++) {
        at += change->after_s;
        if (seconds < at) {
            *ret_offset = offset;
            return true;
        }
        offset = offsets[change->offset];
    }
    /* Behind the last change the rule holds. */
    *ret_offset = offset_by_rule(&rules[zone->rule], seconds);
    return true;
}
