/*
 * The tree of an expression, as the parser makes it and the checker completes it. Operators are
 * calls of functions whose names have underscores for the operands ("_+_", "!_"), and macros have
 * been expanded, so that there are only eight kinds of nodes. The names are cel-go's.
 *
 * Everything is in one arena, every node has one parent, and the depth of a tree is limited by
 * CEL_EXPR_HEIGHT_MAX. Texts that occur in the source are borrowed from it.
 */
#ifndef VIGIL_CEL_SYNTAX_EXPR_H
#define VIGIL_CEL_SYNTAX_EXPR_H

#include "base/slice.h"

enum {
    /* cel-go's limits on nested rules of the grammar, and on nested operators and selections. */
    CEL_NESTING_MAX = 250,
    /* The levels of a tree with expanded macros. An expression of cel-go's depth has at most a few
     * levels for each of its rules. */
    CEL_EXPR_HEIGHT_MAX = 2000,
};

enum cel_expr_kind {
    CEL_EXPR_INVALID, /* stands for a part with an error, which has been reported */
    CEL_EXPR_LITERAL,
    CEL_EXPR_IDENT,
    CEL_EXPR_SELECT,
    CEL_EXPR_CALL,
    CEL_EXPR_LIST,
    CEL_EXPR_MAP,
    CEL_EXPR_STRUCT,
    CEL_EXPR_COMPREHENSION,
};

enum cel_literal_kind {
    CEL_LITERAL_NULL,
    CEL_LITERAL_BOOL,
    CEL_LITERAL_INT,
    CEL_LITERAL_UINT,
    CEL_LITERAL_DOUBLE,
    CEL_LITERAL_STRING,
    CEL_LITERAL_BYTES,
};

struct cel_literal {
    enum cel_literal_kind kind;
    union {
        bool truth;
        int64_t i64;
        uint64_t u64;
        double number;
        struct slice text; /* the decoded text of a string, or bytes */
    };
};

struct cel_expr;
struct cel_type;

struct cel_exprs {
    struct cel_expr **at;
    uint32_t count;
};

/* operand.field, or has(operand.field) */
struct cel_select {
    struct cel_expr *operand;
    struct slice field;
    bool is_test;
};

struct cel_call {
    struct slice function;
    struct cel_expr *target; /* target.function(args); NULL: function(args) */
    struct cel_exprs args;
    /* Set by the checker: the overloads that fit the types of the arguments, in ascending order. */
    const uint16_t *overloads;
    uint16_t overload_count;
};

struct cel_list {
    struct cel_exprs items;
    const bool *optional; /* item i was written ?item; NULL: none was */
};

/* key: value in a map, field: value in a struct. */
struct cel_entry {
    uint32_t offset; /* the place of the colon */
    bool optional;   /* written ?key: value */
    struct cel_expr *key;
    struct slice field;
    struct cel_expr *value;
};

/* A map, or Type{field: value}. */
struct cel_entries {
    struct slice type_name; /* empty for a map */
    struct cel_entry *at;
    uint32_t count;
};

/*
 *     accumulator = initial
 *     for (first, second) in range:
 *         if not condition: break
 *         accumulator = step
 *     return result
 */
struct cel_comprehension {
    struct cel_expr *range;
    struct slice
        first; /* the item of a list or the key of a map; with `second`, the index or key */
    struct slice second; /* the item or value; empty: there is one variable */
    struct slice accumulator;
    struct cel_expr *initial, *condition, *step, *result;
};

struct cel_expr {
    uint8_t kind;     /* enum cel_expr_kind */
    uint16_t nesting; /* operators and selections within each other, as cel-go counts them */
    uint16_t height;  /* levels of the tree, including this one */
    const struct cel_type *type; /* set by the checker */
    uint32_t offset; /* its operator or first word, in bytes from the beginning of the source */
    uint32_t number; /* among the nodes of the tree; set by cel_estimate */
    union {
        struct cel_literal literal;
        struct slice ident; /* begins with a dot if it was written so */
        struct cel_select select;
        struct cel_call call;
        struct cel_list list;
        struct cel_entries entries; /* a map or struct */
        struct cel_comprehension *comprehension;
    };
};

#endif
