/* Durations and timestamps: conversions, arithmetic and accessors. */
#ifndef VIGIL_CEL_LIBRARY_TIMES_H
#define VIGIL_CEL_LIBRARY_TIMES_H

#include "cel/library/library.h"

extern const struct cel_library cel_times;

/* duration(x) and timestamp(x), each with one argument. */
cel_builtin_fn cel_to_duration, cel_to_timestamp;

/* string(x) of a duration or timestamp. */
struct cel_value cel_time_to_string(struct cel_work *work, struct cel_value time);

/* a + b and a - b, if the first is a duration or timestamp. */
struct cel_value cel_add_times(struct cel_value a, struct cel_value b);
struct cel_value cel_subtract_times(struct cel_value a, struct cel_value b);

#endif
