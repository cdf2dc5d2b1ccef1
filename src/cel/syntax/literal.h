/* The values of the words of an expression that are numbers and texts. */
#ifndef VIGIL_CEL_SYNTAX_LITERAL_H
#define VIGIL_CEL_SYNTAX_LITERAL_H

#include "cel/syntax/expr.h"
#include "cel/syntax/token.h"

/*
 * The token is one of INT, UINT, DOUBLE, STRING, BYTES, TRUE, FALSE and NULL. `negative`: an INT or
 * DOUBLE has a minus before it. A wrong one is reported at `offset`, and false returned. A text
 * without escapes is borrowed from the source, others are allocated in errors->arena.
 */
MUST_CHECK
bool cel_read_literal(struct cel_errors *errors, const struct cel_token *token, bool negative,
                      uint32_t offset, struct cel_literal *ret_literal);

#endif
