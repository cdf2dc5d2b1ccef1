/*
 * What calls of functions cost, and how large their results are: the rows of cel-go's libraries of
 * lists and sets, and of Kubernetes' estimator.
 */
#ifndef VIGIL_CEL_ESTIMATE_FUNCTIONS_H
#define VIGIL_CEL_ESTIMATE_FUNCTIONS_H

#include "cel/estimate/range.h"
#include "cel/syntax/expr.h"

/* The target or an argument of a call. */
struct cel_operand {
    const struct cel_expr *expr;
    bool known; /* the size follows from the expression or from a type */
    struct cel_range size;
    struct cel_range item_size; /* the items of a list */
};

struct cel_estimated_call {
    struct slice function;
    int overload;                     /* -1: one without a number */
    const struct cel_operand *target; /* NULL: it has none */
    const struct cel_operand *args;
    uint32_t count;
};

struct cel_call_cost {
    struct cel_range cost; /* without the arguments */
    bool sized;
    struct cel_range size; /* what the result has */
};

/* False: the function has no row. */
MUST_CHECK
bool cel_function_cost(const struct cel_estimated_call *call, struct cel_call_cost *ret_cost);

#endif
