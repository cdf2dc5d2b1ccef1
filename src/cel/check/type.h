/*
 * The types of expressions. A type is read-only, is never freed by itself, and refers to others of
 * the same lifetime: the types of functions are constants, others are in an arena.
 *
 *     list(map(string, dyn))          a list, whose parameter is a map, which has two
 *
 * Names and texts are cel-go's, because error messages contain them.
 */
#ifndef VIGIL_CEL_CHECK_TYPE_H
#define VIGIL_CEL_CHECK_TYPE_H

#include "base/buf.h"
#include "base/memory/arena.h"

enum cel_type_kind {
    CEL_TYPE_ERROR, /* the type of an expression with an error, which fits everything */
    CEL_TYPE_DYN,   /* known only when the expression is evaluated */
    CEL_TYPE_NULL,
    CEL_TYPE_BOOL,
    CEL_TYPE_INT,
    CEL_TYPE_UINT,
    CEL_TYPE_DOUBLE,
    CEL_TYPE_STRING,
    CEL_TYPE_BYTES,
    CEL_TYPE_DURATION,
    CEL_TYPE_TIMESTAMP,
    CEL_TYPE_LIST,
    CEL_TYPE_MAP,
    CEL_TYPE_TYPE,   /* the type of a type, such as int; its parameter is that type */
    CEL_TYPE_OBJECT, /* has fields */
    CEL_TYPE_OPAQUE, /* known only to its functions, such as an optional or an IP address */
    CEL_TYPE_PARAM,  /* stands for any type, in the declaration of a function or while checking */
};

struct cel_object;
struct cel_type;

struct cel_type {
    enum cel_type_kind kind;
    const char *name; /* "list", "optional_type", "A"; NULL for one made while checking */
    const struct cel_type *params[2];
    const struct cel_object *object; /* the fields of an object; NULL: it has none */
    uint32_t variable; /* the number of a type that is made while checking; 0: declared */
    uint32_t parts;    /* the number of types within it, counted as often as they occur */
    /* What a value has at most, for the estimate of a cost: bytes of a string, items of a list,
     * entries of a map; 0 for everything else. */
    uint64_t size_max;
};

/* A larger type is not made: functions that compare types would take too long. */
enum { CEL_TYPE_PARTS_MAX = 10000 };

/*
 * The fields of an object. The code that declares a variable of such a type implements it, so that
 * the types of a large schema are made only for the parts that an expression uses.
 */
struct cel_object {
    /* The type of a field, made in the arena if necessary. *ret_type is NULL if there is no such
     * field. ST_NOMEM. */
    enum status (*field)(const struct cel_object *object, struct slice name, struct arena *arena,
                         const struct cel_type **ret_type);
};

/* cel_type_INT, cel_type_LIST_A and all others that functions use. */
#define CEL_TYPE(id, ...) extern const struct cel_type cel_type_##id;
#include "cel/check/overloads.inc"
#undef CEL_TYPE
extern const struct cel_type cel_type_ERROR;

static inline const struct cel_type *cel_type_param(const struct cel_type *type, unsigned i)
{
    assert(i < COUNT_OF(type->params) && type->params[i]);
    return type->params[i];
}

static inline bool cel_type_is_optional(const struct cel_type *type)
{
    return type->kind == CEL_TYPE_OPAQUE && strcmp(type->name, "optional_type") == 0;
}

/* NULL without memory, if a parameter is NULL, and if it would be too large. */
const struct cel_type *cel_type_new_list(struct arena *arena, const struct cel_type *item);
const struct cel_type *cel_type_new_map(struct arena *arena, const struct cel_type *key,
                                        const struct cel_type *value);
const struct cel_type *cel_type_new_optional(struct arena *arena, const struct cel_type *value);
/* The same type, of values that have at most this size. */
const struct cel_type *cel_type_with_size(struct arena *arena, const struct cel_type *type,
                                          uint64_t size_max);
/* The same kind and name, with other parameters. */
const struct cel_type *cel_type_with_params(struct arena *arena, const struct cel_type *type,
                                            const struct cel_type *const params[2]);

bool cel_type_equal(const struct cel_type *a, const struct cel_type *b);

/* "map(string, list(int))". ST_NOMEM. */
MUST_CHECK
enum status cel_type_write(const struct cel_type *type, struct buf *to);

#endif
