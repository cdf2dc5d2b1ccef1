/*
 * A checked expression that is ready to be evaluated, as often and on as many threads as needed.
 *
 *     cel_parse ─► cel_check ─► cel_program_new ─► cel_eval … cel_eval
 *
 * The tree of a program is not that of the expression: constants are folded, and a variable with
 * the fields and indexes behind it is one node, an attribute. It has cel-go's structure, because
 * the cost of an evaluation is counted by its nodes. In an arena; read-only.
 */
#ifndef VIGIL_CEL_EVAL_PROGRAM_H
#define VIGIL_CEL_EVAL_PROGRAM_H

#include "cel/check/checker.h"
#include "cel/library/builtin.h"

enum { CEL_FIELDS_MAX = 1000 }; /* an object that an expression creates has at most these */

enum cel_node_kind {
    CEL_NODE_CONSTANT,
    CEL_NODE_ATTRIBUTE,
    CEL_NODE_AND,
    CEL_NODE_OR,
    CEL_NODE_EQUAL,
    CEL_NODE_NOT_EQUAL,
    CEL_NODE_CALL,
    CEL_NODE_APPEND,             /* list + [item], a call as well */
    CEL_NODE_NOT_STRICTLY_FALSE, /* the condition of all: not false; an error may become one */
    CEL_NODE_OR_OPTIONAL,        /* a.or(b), which evaluates b only if a has no value */
    CEL_NODE_OR_VALUE,           /* a.orValue(b), likewise */
    CEL_NODE_LIST,
    CEL_NODE_MAP,
    CEL_NODE_OBJECT,
    CEL_NODE_FOLD,
};

struct cel_node;

/* .field, [index], .?field or [?index] */
struct cel_qualifier {
    struct cel_value constant;
    const struct cel_node *index; /* NULL: the constant */
    bool optional;
    bool is_test;     /* the last one of has(a.b) */
    bool is_declared; /* a field of what the checker knows to be an object */
    struct cel_qualifier *next;
};

/* What an attribute begins with. */
enum cel_root {
    CEL_ROOT_VARIABLE,    /* a variable of the environment or of a comprehension */
    CEL_ROOT_LATE,        /* a variable that gets the value of the operand when it is first used */
    CEL_ROOT_OPERAND,     /* any other node */
    CEL_ROOT_CONDITIONAL, /* condition ? attribute : attribute */
};

struct cel_attribute {
    uint8_t root; /* enum cel_root */
    bool is_test;
    /* Qualifiers, if all of them are fields with the same names in JSON, of a variable, and none
     * is optional; otherwise 0, and for more than CEL_PATH_FIELDS_MAX. */
    uint16_t field_count;
    uint32_t slot; /* the number of the variable */
    union {
        /* What a variable and an operand have. */
        struct {
            const struct cel_node *operand;
            struct cel_qualifier *first, *last;
        };
        /* What a conditional has; the qualifiers are those of its two attributes. */
        struct {
            const struct cel_node *condition;
            struct cel_attribute *chosen, *other;
        };
    };
};
enum { CEL_PATH_FIELDS_MAX = 1000 };

/* Operators of two ints that are evaluated without a call. */
enum cel_of_ints {
    CEL_OF_INTS_NONE,
    CEL_OF_INTS_LESS,
    CEL_OF_INTS_LESS_EQUALS,
    CEL_OF_INTS_GREATER,
    CEL_OF_INTS_GREATER_EQUALS,
    CEL_OF_INTS_ADD,
    CEL_OF_INTS_SUBTRACT,
};

/* Type{field: value}; the values are the children of its node. */
struct cel_creation {
    const struct cel_objects *objects;
    const struct cel_type *type;
    const struct slice *names;
    const uint32_t *first; /* the first field with the same name; the last value counts */
    const bool *optional;
};

/* Has only the bytes that its kind needs: a schema may have thousands of rules. */
struct cel_node {
    enum cel_node_kind kind;
    uint32_t count; /* children */
    const struct cel_node *const *children;
    union {
        struct cel_value constant;
        struct cel_attribute *attribute;
        struct {
            const struct cel_builtin *builtin;
            int overload; /* the only one that fits, or -1 */
            enum cel_of_ints of_ints;
            bool in_order;             /* arguments behind an error are not evaluated */
            const struct regex *regex; /* the second argument, which is constant; NULL: it is not */
        } call;
        const bool *optional; /* items of a list, entries of a map; NULL: none */
        const struct cel_creation *creation;
        /* children: range, initial, condition, step, result */
        struct {
            uint32_t accumulator, first, second; /* slots */
            bool has_second;
            bool is_late; /* the accumulator is, because there is no item */
        } fold;
    };
};

struct cel_program {
    const struct cel_node *root;
    uint32_t variable_count; /* variables of the environment, whose slots come first */
    uint32_t slot_count;
};

/* ST_INVALID: an error was added; a constant cannot be converted, or a function is not implemented.
 * ST_NOMEM. The program is in errors->arena and borrows from the source, but not from the tree,
 * which may be in another arena. */
MUST_CHECK
enum status cel_program_new(const struct cel_env *env, struct cel_errors *errors,
                            const struct cel_expr *root, const struct cel_program **ret_program);

/* What an evaluation cost and may cost. */
struct cel_budget {
    uint64_t cost, cost_max;
    uint64_t steps; /* the steps of work.h, which the cost does not count */
};

/* The value of the expression, or an error; variables are in the order of the environment. Adds the
 * cost and the steps to the budget. All memory is in the arena. */
struct cel_value cel_eval(const struct cel_program *program, const struct cel_value *variables,
                          struct arena *arena, struct cel_budget *budget);

#endif
