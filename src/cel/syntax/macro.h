/*
 * Macros: calls that the parser replaces by other expressions, because they bind variables or test
 * a field instead of evaluating it: has, all, exists, exists_one, existsOne, map, filter, those
 * with two variables (transformList, transformMap, transformMapEntry and others), optMap,
 * optFlatMap and sortBy. Their expansions are cel-go's, because the cost of an expression depends
 * on them.
 */
#ifndef VIGIL_CEL_SYNTAX_MACRO_H
#define VIGIL_CEL_SYNTAX_MACRO_H

#include "cel/errors.h"
#include "cel/syntax/expr.h"

/* optMap and optFlatMap copy their target, so that those within each other double it each time. */
enum { CEL_COPIES_MAX = 50000 };

/*
 * True if the call is one of a macro; *ret_expanded is what replaces it, at the same offset. If its
 * arguments are wrong, an error is added and an invalid expression replaces it. The nodes that it
 * copies are subtracted from *copies, which is CEL_COPIES_MAX initially; an error is added if there
 * are too many.
 */
MUST_CHECK
bool cel_expand_macro(struct cel_errors *errors, uint32_t offset, const struct cel_call *call,
                      uint32_t *copies, struct cel_expr **ret_expanded);

#endif
