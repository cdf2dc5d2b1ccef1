/*
 * cel-go's functions that make lists: slice, reverse, lists.range, flatten, sort, sortBy and
 * distinct. What a call costs is known only behind it, so that a call which would exceed the limit
 * anyway does little before it ends.
 */
#ifndef VIGIL_CEL_LIBRARY_SEQUENCES_H
#define VIGIL_CEL_LIBRARY_SEQUENCES_H

#include "cel/library/library.h"

extern const struct cel_library cel_sequences;

#endif
