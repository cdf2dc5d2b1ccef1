/*
 * Optional values: optional.of(x), x.value() and others, also those of lists. or and orValue are
 * nodes of a program.
 */
#ifndef VIGIL_CEL_LIBRARY_OPTIONAL_H
#define VIGIL_CEL_LIBRARY_OPTIONAL_H

#include "cel/library/library.h"

extern const struct cel_library cel_optionals;

#endif
