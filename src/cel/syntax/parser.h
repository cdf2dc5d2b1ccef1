/*
 * Reads an expression of the Common Expression Language, and expands its macros. The grammar, the
 * limits and the errors are those of cel-go 0.26 with the options of Kubernetes: optional syntax
 * (a.?b) is part of the language, `a-b` in backticks is not.
 *
 * A syntax error ends the reading, where cel-go's parser tries to continue and may report more.
 */
#ifndef VIGIL_CEL_SYNTAX_PARSER_H
#define VIGIL_CEL_SYNTAX_PARSER_H

#include "cel/errors.h"
#include "cel/syntax/expr.h"

enum { CEL_SOURCE_CHARACTERS_MAX = 100000 };

/*
 * The source is errors->source; the tree is in errors->arena and borrows from both. ST_INVALID:
 * there are errors. ST_NOMEM.
 */
MUST_CHECK
enum status cel_parse(struct cel_errors *errors, struct cel_expr **ret_root);

/* Whether a variable or function cannot have this name. */
bool cel_is_reserved(struct slice name);

#endif
