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

#endif
