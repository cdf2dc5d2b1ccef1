/* What the source of a library brings: its functions as rows, and what a call of them costs. */
#ifndef VIGIL_CEL_LIBRARY_LIBRARY_H
#define VIGIL_CEL_LIBRARY_LIBRARY_H

#include "cel/value/opaque.h"
#include "cel/value/value.h"

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

/* "no such overload: int(list, string)" */
struct cel_value cel_no_overload_for(struct cel_work *work, const struct cel_builtin *builtin,
                                     uint32_t count, const struct cel_value *args);

/* The functions of one library; builtin.c lists the libraries. */
struct cel_library {
    const struct cel_builtin *rows;
    size_t count;
};

#define CEL_LIBRARY(builtins)        \
    {                                \
        builtins, COUNT_OF(builtins) \
    }

/* What libraries count with: the characters of a string, the items of a list or map; 1 for
 * everything else. */
uint64_t cel_cost_size(struct cel_value value);
/* The same for libraries that do not look into optionals. */
uint64_t cel_cost_size_shallow(struct cel_value value);
/* A tenth, rounded up: what it costs to traverse a text of this size. */
uint64_t cel_cost_traversal(uint64_t size);

/* The cost of a function that traverses the text which is its first argument. */
cel_cost_fn cel_cost_of_text;

/* The cost of a function that goes through the first argument: of a list or map with all that it
 * contains. */
cel_cost_fn cel_cost_of_items;

/* The length of the first character of a text that is not empty; bytes that are not valid UTF-8 are
 * characters of their own. */
size_t cel_first_length(struct slice text);
size_t cel_count_characters(struct slice text);

/* The name of the type of a value in Go. */
const char *cel_value_go_type(struct cel_value value);

/* The panic of cel-go when a value, whose type in Go is not a list, is used as one. */
void cel_panic_not_list(struct cel_work *work, struct cel_value value);

/* The text in quotes, as Go writes it into errors. "" without memory. */
const char *cel_quoted(struct cel_work *work, struct slice text);

/* Instead of an overload: x in [constants], which cel-go turns into a set. */
enum { CEL_WITHOUT_COST = -2 };

static inline bool cel_is_no_overload(struct cel_value value)
{
    return value.kind == CEL_ERROR && value.bytes == (const uint8_t *)cel_no_overload;
}

static inline struct cel_value cel_of_opaque(const struct cel_opaque *opaque)
{
    return (struct cel_value){.kind = CEL_OPAQUE, .opaque = opaque};
}

static inline bool cel_is_opaque(struct cel_value value, const struct cel_opaque_ops *ops)
{
    return value.kind == CEL_OPAQUE && value.opaque->ops == ops;
}

#endif
