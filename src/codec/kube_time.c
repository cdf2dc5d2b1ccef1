#include "codec/kube_time.h"

#include <stdio.h>
#include <time.h>

enum { SECONDS_PER_DAY = 86400, DAYS_PER_400_YEARS = 146097, DAYS_TO_1970 = 719468 };

/* Years are counted from March, so that the leap day is the last day of a year. */
int64_t kube_days_of(int64_t year, int64_t month, int64_t day)
{
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - 399) / 400;
    int64_t year_of_era = year - era * 400;
    int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * DAYS_PER_400_YEARS + day_of_era - DAYS_TO_1970;
}

void kube_date_of(int64_t days, int64_t *ret_year, int *ret_month, int *ret_day)
{
    days += DAYS_TO_1970;
    int64_t era = (days >= 0 ? days : days - (DAYS_PER_400_YEARS - 1)) / DAYS_PER_400_YEARS;
    int64_t of_era = days - era * DAYS_PER_400_YEARS;
    int64_t year_of_era =
        (of_era - of_era / 1460 + of_era / 36524 - of_era / (DAYS_PER_400_YEARS - 1)) / 365;
    int64_t day_of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t month = (5 * day_of_year + 2) / 153; /* March is 0 */
    *ret_day = (int)(day_of_year - (153 * month + 2) / 5 + 1);
    *ret_month = (int)(month < 10 ? month + 3 : month - 9);
    *ret_year = year_of_era + era * 400 + (*ret_month <= 2);
}

bool kube_time_write(int64_t seconds, int32_t nanos, bool micro, char text[KUBE_TIME_BYTES])
{
    static const int64_t last = 253402300799; /* end of the year 9999 */
    int64_t year;
    int month, day;
    if (seconds < KUBE_TIME_NONE || seconds > last || nanos < 0 || nanos > 999999999)
        return false;
    int64_t days = (seconds - KUBE_TIME_NONE) / SECONDS_PER_DAY + KUBE_TIME_NONE / SECONDS_PER_DAY;
    int left = (int)(seconds - days * SECONDS_PER_DAY);
    kube_date_of(days, &year, &month, &day);
    char line[80];
    int len = snprintf(line, sizeof(line), "%04d-%02d-%02dT%02d:%02d:%02d", (int)year, month, day,
                       left / 3600, left / 60 % 60, left % 60);
    len +=
        micro ? snprintf(line + len, sizeof(line) - (size_t)len, ".%06d", (int)(nanos / 1000)) : 0;
    len += snprintf(line + len, sizeof(line) - (size_t)len, "Z");
    assert(len < KUBE_TIME_BYTES);
    memcpy(text, line, (size_t)len + 1);
    return true;
}

void kube_time_text(int64_t seconds, char to[KUBE_TIME_BYTES])
{
    time_t at = (time_t)seconds;
    struct tm tm;
    gmtime_r(&at, &tm);
    strftime(to, KUBE_TIME_BYTES, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

/* -- Reading -- */

static bool read_digits(struct slice *text, size_t count, int64_t *ret_number)
{
    int64_t number = 0;
    if (text->len < count)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (text->ptr[i] < '0' || text->ptr[i] > '9')
            return false;
        number = number * 10 + (text->ptr[i] - '0');
    }
    *text = slice_sub(*text, count, text->len - count);
    *ret_number = number;
    return true;
}

static bool read_byte(struct slice *text, char byte)
{
    if (!text->len || text->ptr[0] != (uint8_t)byte)
        return false;
    *text = slice_sub(*text, 1, text->len - 1);
    return true;
}

static bool read_fraction(struct slice *text, int32_t *ret_nanos)
{
    int32_t nanos = 0, unit = 100000000;
    size_t digits = 0;
    *ret_nanos = 0;
    if (!read_byte(text, '.') && !read_byte(text, ','))
        return true;
    for (; digits < text->len && text->ptr[digits] >= '0' && text->ptr[digits] <= '9'; digits++) {
        nanos += (text->ptr[digits] - '0') * unit;
        unit /= 10;
    }
    *text = slice_sub(*text, digits, text->len - digits);
    *ret_nanos = nanos;
    return digits > 0;
}

static bool read_offset(struct slice *text, int64_t *ret_seconds)
{
    int64_t hours, minutes;
    *ret_seconds = 0;
    if (read_byte(text, 'Z'))
        return true;
    int64_t sign = read_byte(text, '+') ? 1 : read_byte(text, '-') ? -1 : 0;
    if (!sign || !read_digits(text, 2, &hours) || !read_byte(text, ':') ||
        !read_digits(text, 2, &minutes) || hours > 24 || minutes > 60)
        return false;
    *ret_seconds = sign * (hours * 3600 + minutes * 60);
    return true;
}

static bool date_is_real(int64_t year, int64_t month, int64_t day)
{
    static const uint8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return month >= 1 && month <= 12 && day >= 1 &&
           day <= days[month - 1] + (month == 2 && leap ? 1 : 0);
}

bool kube_time_read_offset(struct slice text, int64_t *ret_seconds, int32_t *ret_nanos,
                           int64_t *ret_offset)
{
    int64_t year, month, day, hour, minute, second, offset;
    int32_t nanos;
    if (!read_digits(&text, 4, &year) || !read_byte(&text, '-') || !read_digits(&text, 2, &month) ||
        !read_byte(&text, '-') || !read_digits(&text, 2, &day) || !read_byte(&text, 'T') ||
        /* Go reads an hour of one digit as well. */
        !(read_digits(&text, 2, &hour) || read_digits(&text, 1, &hour)) || !read_byte(&text, ':') ||
        !read_digits(&text, 2, &minute) || !read_byte(&text, ':') ||
        !read_digits(&text, 2, &second) || !read_fraction(&text, &nanos) ||
        !read_offset(&text, &offset) || text.len)
        return false;
    if (!date_is_real(year, month, day) || hour > 23 || minute > 59 || second > 59)
        return false;
    *ret_seconds = kube_days_of(year, month, day) * SECONDS_PER_DAY + hour * 3600 + minute * 60 +
                   second - offset;
    *ret_nanos = nanos;
    *ret_offset = offset;
    return true;
}

bool kube_time_read(struct slice text, int64_t *ret_seconds, int32_t *ret_nanos)
{
    int64_t offset;
    return kube_time_read_offset(text, ret_seconds, ret_nanos, &offset);
}
