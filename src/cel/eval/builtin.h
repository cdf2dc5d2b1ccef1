/*
 * The functions and operators of the language. They take values of any kind: what the checker did
 * not know is decided when an expression is evaluated, and a function that does not accept a value
 * answers with "no such overload".
 */
#ifndef VIGIL_CEL_EVAL_BUILTIN_H
#define VIGIL_CEL_EVAL_BUILTIN_H

#include "cel/eval/value.h"

/* A call that has been made. If an argument is an error, so is the result. */
struct cel_called {
    const struct cel_value *args;
    uint32_t count;
    int overload; /* the only one that fits, or -1 */
    struct cel_value result;
};

typedef uint64_t cel_cost_fn(struct cel_work *work, const struct cel_called *call);

struct cel_builtin {
    const char *name;
    uint32_t args; /* the target of a member included */
    cel_builtin_fn *fn;
    bool names_types; /* its error names the types of the arguments */
    unsigned kinds;   /* bits of the kinds that the first argument may have; 0: any */
    /* What Kubernetes counts for the function, whichever overload is called; NULL: cel-go's cost of
     * the overload. */
    cel_cost_fn *cost;
};

/* The functions of one library; builtin.c lists the libraries. */
struct cel_library {
    const struct cel_builtin *rows;
    size_t count;
};

#define CEL_LIBRARY(builtins)        \
    {                                \
        builtins, COUNT_OF(builtins) \
    }

/* NULL: there is no such function with so many arguments. */
const struct cel_builtin *cel_builtin_find(struct slice function, uint32_t args);

/* Instead of an overload: x in [constants], which cel-go turns into a set. */
enum { CEL_WITHOUT_COST = -2 };

/* The cost of an operator or call, as cel-go counts it; overload: its only one, CEL_WITHOUT_COST,
 * or -1. */
uint64_t cel_overload_cost(int overload, const struct cel_value *args);

/* What libraries count with: the characters of a string, the items of a list or map; 1 for
 * everything else. */
uint64_t cel_cost_size(struct cel_value value);
/* A tenth, rounded up: what it costs to traverse a text of this size. */
uint64_t cel_cost_traversal(uint64_t size);

#endif
