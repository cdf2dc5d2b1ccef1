/*
 * Functions with regular expressions: matches, find and findAll. A pattern that is constant is
 * compiled with the program (struct cel_work.regex), another one at each call, unless it is the one
 * of the last call.
 */
#ifndef VIGIL_CEL_LIBRARY_PATTERNS_H
#define VIGIL_CEL_LIBRARY_PATTERNS_H

#include "cel/library/library.h"

extern const struct cel_library cel_patterns;

/* Whether the second argument of a function is a pattern. */
bool cel_takes_pattern(const struct cel_builtin *builtin);

/* The pattern, compiled in the arena of the work; an error if it is invalid or too large. */
struct cel_value cel_compile_pattern(struct cel_work *work, struct slice pattern,
                                     const struct regex **ret_regex);

#endif
