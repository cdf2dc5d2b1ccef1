/*
 * The least and the most that an evaluation of an expression can cost, as cel-go estimates it with
 * Kubernetes' prices. The estimate follows from the expression and from the sizes that the types of
 * variables declare (size_max in cel/check/type.h); the size of everything else is between 0 and
 * 2^64 - 1. Which rules may be written depends on it.
 */
#ifndef VIGIL_CEL_ESTIMATE_ESTIMATE_H
#define VIGIL_CEL_ESTIMATE_ESTIMATE_H

#include "base/memory/arena.h"
#include "cel/check/type.h"
#include "cel/estimate/range.h"
#include "cel/syntax/expr.h"

/*
 * `root` is the checked expression, whose nodes are numbered; `variables` is the type from which
 * the sizes of all variables are taken. Temporary memory is in the arena. ST_NOMEM.
 */
MUST_CHECK
enum status cel_estimate(struct arena *arena, const struct cel_type *variables,
                         struct cel_expr *root, struct cel_range *ret_cost);

#endif
