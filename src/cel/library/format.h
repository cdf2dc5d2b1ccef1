/*
 * "%s has %d items".format([name, count]), with the texts of cel-go's library before its version 4:
 * %f and %e write numbers as in American English, 1,234.500000 and 1.234500×10⁰³.
 */
#ifndef VIGIL_CEL_LIBRARY_FORMAT_H
#define VIGIL_CEL_LIBRARY_FORMAT_H

#include "cel/library/library.h"

extern const struct cel_library cel_formats;

#endif
