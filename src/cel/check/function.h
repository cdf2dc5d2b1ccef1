/*
 * The functions and operators that expressions can call, with their overloads: cel-go's standard
 * library and the libraries that Kubernetes 1.36 enables. The rows are in overloads.inc, in
 * cel-go's order: the first overload that fits decides about the type of a call.
 */
#ifndef VIGIL_CEL_CHECK_FUNCTION_H
#define VIGIL_CEL_CHECK_FUNCTION_H

#include "cel/check/type.h"

enum { CEL_ARGS_MAX = 4 }; /* arguments, including the target of a member */

enum cel_overload_id {
#define CEL_OVERLOAD(id, ...) CEL_OVERLOAD_##id,
#include "cel/check/overloads.inc"
#undef CEL_OVERLOAD
    CEL_OVERLOADS
};

struct cel_overload {
    const char *function;
    const char *name; /* cel-go's name of the overload */
    bool is_member;   /* target.function(…); the target is the first argument */
    uint8_t arg_count;
    const struct cel_type *result;
    const struct cel_type *args[CEL_ARGS_MAX];
};

extern const struct cel_overload cel_overloads[CEL_OVERLOADS];

/* The overloads of one function, [first, end). */
struct cel_function {
    uint16_t first, end;
};

/* False: there is no such function. */
MUST_CHECK
bool cel_function_find(struct slice name, struct cel_function *ret_function);

/* The type of a predeclared name, such as int, which is a type; NULL if there is none. */
const struct cel_type *cel_constant_find(struct slice name);

#endif
