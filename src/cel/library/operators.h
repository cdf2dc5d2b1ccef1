/* Arithmetic, order, membership and sizes. */
#ifndef VIGIL_CEL_LIBRARY_OPERATORS_H
#define VIGIL_CEL_LIBRARY_OPERATORS_H

#include "cel/value/value.h"

cel_builtin_fn cel_add, cel_subtract, cel_multiply, cel_divide, cel_modulo, cel_negate, cel_not,
    cel_less, cel_less_equals, cel_greater, cel_greater_equals, cel_in, cel_size, cel_type_of,
    cel_dyn, cel_insert_entry, cel_insert_map;

/* a.isLessThan(b) and others, of opaque types with an order. */
cel_builtin_fn cel_compare_to, cel_is_less_than, cel_is_greater_than;

#endif
