/*
 * What is wrong with the literals of an expression once the types are known. Kubernetes refuses
 * lists and maps whose parts have several types, and constant arguments of duration(), timestamp()
 * and matches() with which the call would always fail. All of these are reported.
 */
#ifndef VIGIL_CEL_CHECK_LITERALS_H
#define VIGIL_CEL_CHECK_LITERALS_H

#include "cel/errors.h"
#include "cel/syntax/expr.h"

/* The instructions that the constant patterns of one expression may have together. */
enum { CEL_PATTERN_STEPS_MAX = 200000 };

/* ST_OK also if errors were added. ST_NOMEM. */
MUST_CHECK
enum status cel_check_literals(struct cel_errors *errors, struct cel_expr *root);

/* Timestamps are in the years 1 to 9999; in seconds since 1970. */
static inline bool cel_is_timestamp(int64_t seconds)
{
    return seconds >= -62135596800 && seconds <= 253402300799;
}

#endif
