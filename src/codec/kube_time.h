/* Times as Kubernetes writes them: RFC 3339 in UTC, in seconds or microseconds. */
#ifndef VIGIL_CODEC_KUBE_TIME_H
#define VIGIL_CODEC_KUBE_TIME_H

#include "base/slice.h"

/* "2026-11-15T06:16:03.000000Z" and a zero byte, with room for years of five digits */
enum { KUBE_TIME_BYTES = 32 };

/* January 1 of year 1: the zero time in Go, null in JSON. */
#define KUBE_TIME_NONE (-62135596800)

/* False: the year does not have four digits. */
MUST_CHECK
bool kube_time_write(int64_t seconds, int32_t nanos, bool micro, char text[KUBE_TIME_BYTES]);
/* "2026-11-15T06:15:00Z", for times of the server's clock. */
void kube_time_text(int64_t seconds, char to[KUBE_TIME_BYTES]);
/* False: not a valid time. Accepts UTC offsets and fractions of any length. */
MUST_CHECK
bool kube_time_read(struct slice text, int64_t *ret_seconds, int32_t *ret_nanos);
/* The same, with the offset from UTC in seconds, up to a day and an hour. */
MUST_CHECK
bool kube_time_read_offset(struct slice text, int64_t *ret_seconds, int32_t *ret_nanos,
                           int64_t *ret_offset);

/* The day with this number, counted from January 1, 1970; months and days count from 1. */
void kube_date_of(int64_t days, int64_t *ret_year, int *ret_month, int *ret_day);
/* The number of a day. */
int64_t kube_days_of(int64_t year, int64_t month, int64_t day);

#endif
