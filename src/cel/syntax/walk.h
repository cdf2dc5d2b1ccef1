/* Walks over the tree of an expression. */
#ifndef VIGIL_CEL_SYNTAX_WALK_H
#define VIGIL_CEL_SYNTAX_WALK_H

#include "cel/syntax/expr.h"

typedef void cel_child_fn(void *context, struct cel_expr *child);

/* Calls the function with every child of a node. */
void cel_for_children(struct cel_expr *expr, cel_child_fn *fn, void *context);

/* Whether a name that stands for a variable is this one. */
bool cel_expr_mentions(struct cel_expr *root, struct slice name);

#endif
