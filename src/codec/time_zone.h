/*
 * The time zones that Go knows, by their names in the IANA database: when a zone was how far from
 * UTC, and from the last change on, the rule for all years to come. The rows are made by
 * tools/kubegen-zones.py.
 */
#ifndef VIGIL_CODEC_TIME_ZONE_H
#define VIGIL_CODEC_TIME_ZONE_H

#include "base/slice.h"

bool time_zone_exists(struct slice name);

/* The offset from UTC in seconds, at a time in seconds since 1970. False: there is no such zone. */
MUST_CHECK
bool time_zone_offset(struct slice name, int64_t seconds, int32_t *ret_offset);

#endif
