/* Functions of the standard library on texts. */
#ifndef VIGIL_CEL_LIBRARY_TEXTS_H
#define VIGIL_CEL_LIBRARY_TEXTS_H

#include "cel/value/value.h"

cel_builtin_fn cel_contains, cel_starts_with, cel_ends_with;

#endif
