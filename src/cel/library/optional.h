/* Optional values: optional.of(x), x.value() and others; or and orValue are nodes of a program. */
#ifndef VIGIL_CEL_LIBRARY_OPTIONAL_H
#define VIGIL_CEL_LIBRARY_OPTIONAL_H

#include "cel/value/value.h"

cel_builtin_fn cel_optional_of, cel_optional_of_non_zero, cel_optional_none, cel_optional_value,
    cel_optional_has_value;

#endif
