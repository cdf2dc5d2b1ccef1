/* Conversions between types: int(x), string(x) and others. */
#ifndef VIGIL_CEL_LIBRARY_CONVERT_H
#define VIGIL_CEL_LIBRARY_CONVERT_H

#include "cel/value/value.h"

cel_builtin_fn cel_to_bool, cel_to_bytes, cel_to_double, cel_to_int, cel_to_string, cel_to_uint;

#endif
