/*
 * cel-go's sets: lists whose order and repetitions do not matter. Every item of one list may be
 * compared with every item of the other, which the cost counts.
 */
#ifndef VIGIL_CEL_LIBRARY_SETS_H
#define VIGIL_CEL_LIBRARY_SETS_H

#include "cel/library/library.h"

extern const struct cel_library cel_sets;

#endif
