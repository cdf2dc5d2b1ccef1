/*
 * indexOf and lastIndexOf: where a part of a string, or an item of a list, is found first or last.
 */
#ifndef VIGIL_CEL_LIBRARY_PLACES_H
#define VIGIL_CEL_LIBRARY_PLACES_H

#include "cel/library/library.h"

extern const struct cel_library cel_places;

#endif
