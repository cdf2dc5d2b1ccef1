/*
 * The functions and operators of the language. They take values of any kind: what the checker did
 * not know is decided when an expression is evaluated, and a function that does not accept a value
 * answers with "no such overload".
 */
#ifndef VIGIL_CEL_LIBRARY_BUILTIN_H
#define VIGIL_CEL_LIBRARY_BUILTIN_H

#include "cel/library/library.h"

/* NULL: there is no such function with so many arguments. */
const struct cel_builtin *cel_builtin_find(struct slice function, uint32_t args);

/* The cost of an operator or call, as cel-go counts it; overload: its only one, CEL_WITHOUT_COST,
 * or -1. */
uint64_t cel_overload_cost(int overload, const struct cel_value *args);

#endif
