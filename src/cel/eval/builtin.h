/*
 * The functions and operators of the language. They take values of any kind: what the checker did
 * not know is decided when an expression is evaluated, and a function that does not accept a value
 * answers with "no such overload".
 */
#ifndef VIGIL_CEL_EVAL_BUILTIN_H
#define VIGIL_CEL_EVAL_BUILTIN_H

#include "cel/eval/value.h"

struct cel_builtin {
    const char *name;
    uint32_t args; /* the target of a member included */
    cel_builtin_fn *fn;
    bool names_types; /* its error names the types of the arguments */
    unsigned kinds;   /* bits of the kinds that the first argument may have; 0: any */
};

/* NULL: there is no such function with so many arguments. */
const struct cel_builtin *cel_builtin_find(struct slice function, uint32_t args);

/* Instead of an overload: x in [constants], which cel-go turns into a set. */
enum { CEL_WITHOUT_COST = -2 };

/* The cost of a call, as cel-go counts it; overload: its only one, CEL_WITHOUT_COST, or -1. */
uint64_t cel_call_cost(int overload, const struct cel_value *args, struct cel_value result);

#endif
