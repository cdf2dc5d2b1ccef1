/*
 * Makes the nodes of a tree for the parser and its macros. A node that cannot be allocated is NULL,
 * and so is one that is made from NULL: the callers continue, and the parser finds in the end that
 * the arena ran out.
 */
#ifndef VIGIL_CEL_SYNTAX_BUILDER_H
#define VIGIL_CEL_SYNTAX_BUILDER_H

#include "cel/errors.h"
#include "cel/syntax/expr.h"

/* The name of the accumulator in comprehensions. No source can contain it. */
#define CEL_ACCUMULATOR SLICE_LITERAL("@result")

struct cel_expr *cel_make_invalid(struct arena *arena, uint32_t offset);
struct cel_expr *cel_make_literal(struct arena *arena, uint32_t offset, struct cel_literal literal);
struct cel_expr *cel_make_bool(struct arena *arena, uint32_t offset, bool truth);
struct cel_expr *cel_make_int(struct arena *arena, uint32_t offset, int64_t value);
struct cel_expr *cel_make_ident(struct arena *arena, uint32_t offset, struct slice name);
struct cel_expr *cel_make_select(struct arena *arena, uint32_t offset,
                                 const struct cel_select *select);
/* Borrows the arguments' array. */
struct cel_expr *cel_make_call(struct arena *arena, uint32_t offset, const struct cel_call *call);
struct cel_expr *cel_make_list(struct arena *arena, uint32_t offset, const struct cel_list *list);
/* A map if the type has no name, otherwise a struct. */
struct cel_expr *cel_make_entries(struct arena *arena, uint32_t offset,
                                  const struct cel_entries *entries);
struct cel_expr *cel_make_comprehension(struct arena *arena, uint32_t offset,
                                        const struct cel_comprehension *comprehension);

/* function(a, b, c); the arguments end at the first NULL. */
struct cel_expr *cel_make_function(struct arena *arena, uint32_t offset, const char *function,
                                   struct cel_expr *a, struct cel_expr *b, struct cel_expr *c);
/* a.function(b); b may be NULL. */
struct cel_expr *cel_make_method(struct arena *arena, uint32_t offset, const char *function,
                                 struct cel_expr *a, struct cel_expr *b);
/* [item]; NULL: an empty list */
struct cel_expr *cel_make_list_of(struct arena *arena, uint32_t offset, struct cel_expr *item);

/* "a.b.c" for names that select from each other; empty for every other expression, and without
 * memory. */
struct slice cel_qualified_name(struct arena *arena, const struct cel_expr *expr);

/* A deep copy. Subtracts its nodes from *budget; NULL also if there are too many. */
struct cel_expr *cel_copy(struct arena *arena, const struct cel_expr *expr, uint32_t *budget);

#endif
