/*
 * Whether a format that is constant is correct, and fits the types of its arguments, if these are
 * written as a list: "%d".format(["a"]) is refused when it is written.
 */
#ifndef VIGIL_CEL_CHECK_FORMATS_H
#define VIGIL_CEL_CHECK_FORMATS_H

#include "cel/errors.h"
#include "cel/syntax/expr.h"

/* Adds errors. The nodes have their final types. */
void cel_check_formats(struct cel_errors *errors, struct cel_expr *root);

#endif
