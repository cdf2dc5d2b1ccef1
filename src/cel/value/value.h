/*
 * The values of expressions. A value of 24 bytes is copied; what it refers to is read-only, and is
 * in the arena of the evaluation, in the program, or in the JSON that the expression looks at: a
 * list or map of JSON is a view of its nodes.
 *
 * An error is a value, too. It passes through functions, and only && and || may ignore it.
 */
#ifndef VIGIL_CEL_VALUE_VALUE_H
#define VIGIL_CEL_VALUE_VALUE_H

#include "base/memory/arena.h"
#include "cel/check/type.h"
#include "cel/value/work.h"
#include "codec/json/tree.h"

enum cel_value_kind {
    CEL_ERROR,
    CEL_NULL,
    CEL_BOOL,
    CEL_INT,
    CEL_UINT,
    CEL_DOUBLE,
    CEL_STRING,
    CEL_BYTES,
    CEL_DURATION,
    CEL_TIMESTAMP,
    CEL_LIST,
    CEL_MAP,
    CEL_TYPE_VALUE, /* the value of the name int, and of type(x) */
    CEL_OPTIONAL,
    CEL_OPAQUE, /* an IP address, a quantity: known only to the functions of a library */
};

struct cel_array;       /* container.h */
struct cel_entry_array; /* container.h */
struct cel_opaque;      /* opaque.h */
struct cel_shape;       /* shape.h */

struct cel_value {
    uint8_t kind; /* enum cel_value_kind */
    bool is_view; /* a list or map is the node of JSON; null is one that no schema allows */
    union {
        uint32_t count;       /* items of a list, entries of a map */
        int32_t zone_minutes; /* the offset from UTC with which a timestamp is written */
    };
    union {
        bool truth;
        int64_t i64; /* the value of an int; the seconds since 1970 of a timestamp */
        uint64_t u64;
        double number;
        const uint8_t *bytes; /* a string, bytes or the text of an error; `length` bytes */
        const struct json_node *node;
        struct cel_array *array;
        struct cel_entry_array *entries;
        const struct cel_type *type;
        const struct cel_value *some; /* the value of an optional; NULL: it has none */
        const struct cel_opaque *opaque;
    };
    union {
        size_t length;
        int64_t nanoseconds;           /* a whole duration; what a timestamp has below a second */
        const struct cel_shape *shape; /* a list or map is described by a schema */
    };
};

/* -- Making -- */

static inline struct cel_value cel_of_bool(bool truth)
{
    return (struct cel_value){.kind = CEL_BOOL, .truth = truth};
}

static inline struct cel_value cel_of_int(int64_t value)
{
    return (struct cel_value){.kind = CEL_INT, .i64 = value};
}

static inline struct cel_value cel_of_uint(uint64_t value)
{
    return (struct cel_value){.kind = CEL_UINT, .u64 = value};
}

static inline struct cel_value cel_of_double(double value)
{
    return (struct cel_value){.kind = CEL_DOUBLE, .number = value};
}

/* Texts and bytes are borrowed. */
static inline struct cel_value cel_of_string(struct slice text)
{
    return (struct cel_value){.kind = CEL_STRING, .bytes = text.ptr, .length = text.len};
}

static inline struct cel_value cel_of_bytes(struct slice bytes)
{
    return (struct cel_value){.kind = CEL_BYTES, .bytes = bytes.ptr, .length = bytes.len};
}

static inline struct cel_value cel_of_error(struct slice text)
{
    return (struct cel_value){.kind = CEL_ERROR, .bytes = text.ptr, .length = text.len};
}

#define CEL_FAIL(text) cel_of_error(SLICE_LITERAL(text))
/* Known by its address, because some functions replace it by one with more details. */
extern const char cel_no_overload[];
#define CEL_NO_OVERLOAD cel_of_error(slice_from_text(cel_no_overload))
#define CEL_NO_MEMORY CEL_FAIL("not enough memory for the evaluation")
#define CEL_TOO_MUCH_WORK CEL_FAIL("operation cancelled: actual cost limit exceeded")

/* An error with a text of its own. */
struct cel_value cel_of_error_format(struct cel_work *work, const char *format, ...)
    PRINTF_LIKE(2, 3);

/* A value of JSON, without a shape. Numbers without fraction and exponent are integers, if they
 * fit. Texts with escapes are decoded into the arena. */
struct cel_value cel_of_json(struct cel_work *work, const struct json_node *node);

/* The optional with this value. */
struct cel_value cel_of_some(struct cel_work *work, struct cel_value value);
static inline struct cel_value cel_of_none(void)
{
    return (struct cel_value){.kind = CEL_OPTIONAL};
}

/* -- Reading -- */

static inline bool cel_is_error(struct cel_value value)
{
    return value.kind == CEL_ERROR;
}

static inline bool cel_is_true(struct cel_value value)
{
    return value.kind == CEL_BOOL && value.truth;
}

/* A string, bytes or an error. */
static inline struct slice cel_text(struct cel_value value)
{
    return slice_of(value.bytes, value.length);
}

/* How error messages call the type of a value: "int", "list". */
const char *cel_value_type_name(struct cel_value value);
/* The type of a value, as type(x) gives it. */
const struct cel_type *cel_value_type(struct cel_value value);

#endif
