/* Points in time as Kubernetes writes them: RFC 3339, in UTC, by the second or the microsecond. */
#ifndef VIGIL_KUBE_SCHEMA_TIME_H
#define VIGIL_KUBE_SCHEMA_TIME_H

#include "base/slice.h"

/* "2026-11-15T06:16:03.000000Z" and a zero */
enum { KUBE_TIME_BYTES = 28 };

/* Year 1, January 1: no time at all in Go, null in JSON. */
#define KUBE_TIME_NONE (-62135596800)

/* False: not a year of four digits. */
MUST_CHECK
bool kube_time_write(int64_t seconds, int32_t nanos, bool micro, char text[KUBE_TIME_BYTES]);
/* False: no such text. Offsets and fractions of any length are taken. */
MUST_CHECK
bool kube_time_read(struct slice text, int64_t *ret_seconds, int32_t *ret_nanos);

#endif
