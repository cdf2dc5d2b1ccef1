/*
 * The clauses of a format, such as %s and %.2f: how they are read, and which types each of them
 * accepts. Used when a format is evaluated, and for constant ones also when the expression is
 * checked.
 */
#ifndef VIGIL_CEL_CHECK_CLAUSE_H
#define VIGIL_CEL_CHECK_CLAUSE_H

#include "cel/check/type.h"

struct cel_clause {
    char verb; /* one of s, d, f, e, b, x, X and o */
    bool has_precision;
    int64_t precision;
    size_t length; /* with the percent sign */
};

/* What is at the beginning of the rest of a format. */
enum cel_part {
    CEL_PART_TEXT,   /* ret_text, which is not empty */
    CEL_PART_CLAUSE, /* a percent sign, but not two */
    CEL_PART_END,
};

/* Removes a text from the rest; a clause stays. */
enum cel_part cel_format_next(struct slice *rest, struct slice *ret_text);

/* The clause at the beginning of a text, for the argument with this index. False, with the error,
 * which is in the arena. */
MUST_CHECK
bool cel_clause_read(struct arena *arena, struct slice text, uint32_t index, uint32_t args,
                     struct cel_clause *ret_clause, struct slice *ret_error);

/* Whether the clause accepts values of this type; of strings, %f and %e accept only the names of
 * numbers that have no digits. */
bool cel_clause_accepts(char verb, const struct cel_type *type);

/* The error about a value of a type that the clause does not accept. */
struct slice cel_clause_refusal(struct arena *arena, char verb, const struct cel_type *type);

#endif
