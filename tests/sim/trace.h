/*
 * What happened in a simulation, in order: a hash of every step, by which two runs of one seed are
 * compared, and lines for people if they are wanted.
 */
#ifndef VIGIL_TESTS_SIM_TRACE_H
#define VIGIL_TESTS_SIM_TRACE_H

#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

void trace_begin(bool prints);
uint64_t trace_hash(void);

/* A step of the scheduler: only hashed. */
void trace_step(const char *name);
/* A line: hashed with the time, and printed if that is wanted. */
__attribute__((format(printf, 1, 2))) void trace_line(const char *format, ...);

#endif
