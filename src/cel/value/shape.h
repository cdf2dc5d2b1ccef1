/*
 * The shape of JSON that a schema describes. A value with a shape is a view of the same JSON, but
 * shows only what the schema declares, with the types of the schema: a number may be an int or a
 * double, a text may be a timestamp, and the lists that the schema calls sets and maps have a + and
 * a == of their own. Mirrors the values that Kubernetes' API server gives to cel-go.
 *
 *     cel_of_json(node) ── raw ──► cel_shaped(shape, raw) ─► item ─► cel_shaped(shape->item, raw)
 *
 * A raw value is one of JSON without a shape. A list of several lists is an array of raw items,
 * which get their shape when they are read. Shapes are read-only, and outlive the values.
 */
#ifndef VIGIL_CEL_VALUE_SHAPE_H
#define VIGIL_CEL_VALUE_SHAPE_H

#include "cel/value/value.h"

enum cel_shape_kind {
    CEL_SHAPE_INVALID, /* has no type: its values are errors */
    CEL_SHAPE_BOOL,
    CEL_SHAPE_INT,
    CEL_SHAPE_DOUBLE,
    CEL_SHAPE_STRING,
    CEL_SHAPE_INT_OR_STRING,
    CEL_SHAPE_OBJECT, /* has the declared properties; a property that is null is absent */
    CEL_SHAPE_MAP,    /* any keys, whose values are items */
    CEL_SHAPE_LIST,
    CEL_SHAPE_SET,      /* a list of scalars without order */
    CEL_SHAPE_MAP_LIST, /* a list of objects that some of their properties identify */
    CEL_SHAPE_UNKNOWN,  /* anything; it can only be compared */
};

struct cel_property {
    struct slice key; /* in JSON */
    const struct cel_shape *shape;
};

struct cel_shape {
    uint8_t kind; /* enum cel_shape_kind */
    bool is_nullable;
    uint32_t count; /* properties, or keys of a map list */
    union {
        const struct cel_property *properties; /* an object has these, sorted by key */
        const struct slice *keys;              /* a map list has these, as expressions write them */
        /* The value of a string with a format, or an error; NULL: the string. */
        struct cel_value (*read)(struct cel_work *work, struct slice text);
    };
    const struct cel_shape *item; /* items of a list, values of a map; NULL: the schema has none */
};

/* The value with the shape, or an error if it does not have it. */
struct cel_value cel_shaped(struct cel_work *work, const struct cel_shape *shape,
                            struct cel_value raw);
/* The value without its shape. What was made from a text with a format stays as it is. */
struct cel_value cel_raw(struct cel_value value);

/* The property or entry of a view with a shape, by its name in expressions. False: there is none.
 * A key that is not a string gives an error. */
MUST_CHECK
bool cel_shaped_find(struct cel_work *work, struct cel_value map, struct cel_value key,
                     struct cel_value *ret_value);
/* The same for a member of the JSON. False: expressions do not see it. */
MUST_CHECK
bool cel_shaped_member(struct cel_work *work, const struct cel_shape *shape,
                       const struct json_node *member, struct cel_value *ret_value);
/* The member of a view, which may have no shape, by its key in JSON. */
MUST_CHECK
bool cel_view_find(struct cel_work *work, struct cel_value view, struct slice key,
                   struct cel_value *ret_value);
/* The shape of a member of an object or map, by its key in JSON; NULL: expressions do not see it.
 */
const struct cel_shape *cel_shape_member(const struct cel_shape *shape, struct slice key);

/* The name of the type of a list or map with a shape in Go. */
const char *cel_shape_go_type(const struct cel_shape *shape);

#endif
