/*
 * Values that only the functions of one library know: quantities, IP addresses, URLs. The library
 * has a struct that begins with struct cel_opaque, in the arena of the evaluation.
 */
#ifndef VIGIL_CEL_VALUE_OPAQUE_H
#define VIGIL_CEL_VALUE_OPAQUE_H

#include "cel/check/type.h"
#include "cel/value/work.h"

struct cel_opaque;

/* What the language needs to know of one opaque type. Ops are compared by their address. */
struct cel_opaque_ops {
    const struct cel_type *type;
    const char *go_type; /* the name in Go, which is in some of cel-go's errors */
    /* The type of one of them; NULL: all have the same. It has no name for type(x). */
    const struct cel_type *(*type_of)(const struct cel_opaque *opaque);
    /* Whether two of them are equal. False: they cannot be compared, which is "no such overload".
     * NULL: none can. */
    bool (*equal)(struct cel_work *work, const struct cel_opaque *a, const struct cel_opaque *b,
                  bool *ret_equal);
    /* Their order as an int, or an error; NULL: they have none. */
    cel_builtin_fn *compare;
    /* string(x); NULL: there is no such conversion. */
    struct cel_value (*to_string)(struct cel_work *work, const struct cel_opaque *opaque);
    bool differs; /* from every value of another type; otherwise they cannot be compared */
    /* Whether it is the zero value of its type; NULL: none is. */
    bool (*is_zero)(const struct cel_opaque *opaque);
    /* What counts for the cost; NULL: 1. */
    uint64_t (*size)(const struct cel_opaque *opaque);
    /* opaque.name, for an object whose fields are only made when they are used; it may evaluate
     * another program. *ret_present is false if there is no such field; it then returns an error,
     * or the value of absent fields. NULL: it has none. */
    struct cel_value (*field)(struct cel_work *work, const struct cel_opaque *opaque,
                              struct slice name, bool *ret_present);
    /* The same where the checker knows that it is an object; NULL: as above. */
    struct cel_value (*declared_field)(struct cel_work *work, const struct cel_opaque *opaque,
                                       struct slice name, bool *ret_present);
};

/* The beginning of a value of an opaque type. */
struct cel_opaque {
    const struct cel_opaque_ops *ops;
};

#endif
