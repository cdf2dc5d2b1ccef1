#include "cel/value/shape.h"

#include "cel/value/name.h"
#include "cel/value/opaque.h"
#include "cel/value/unknown.h"

#include <stdlib.h>

/* -- Values that only can be compared -- */

static const struct cel_type unknown_type = {
    .kind = CEL_TYPE_OPAQUE, .name = "unknown", .parts = 1};

const struct cel_opaque_ops cel_unknown_ops = {
    .type = &unknown_type,
    .go_type = "*common.unknownPreserved",
};

static struct cel_value of_unknown(struct cel_work *work, struct cel_value raw)
{
    struct cel_unknown *unknown = arena_alloc(work->arena, sizeof(*unknown));
    if (!unknown)
        return CEL_NO_MEMORY;
    *unknown = (struct cel_unknown){.opaque = {&cel_unknown_ops}, .raw = raw};
    return (struct cel_value){.kind = CEL_OPAQUE, .opaque = &unknown->opaque};
}

/* -- Giving a value its shape -- */

static const char *go_type_of(struct cel_value raw)
{
    static const char *const names[] = {
        [CEL_NULL] = "structpb.NullValue",
        [CEL_BOOL] = "bool",
        [CEL_INT] = "int64",
        [CEL_UINT] = "uint64",
        [CEL_DOUBLE] = "float64",
        [CEL_STRING] = "string",
        [CEL_BYTES] = "[]uint8",
        [CEL_DURATION] = "time.Duration",
        [CEL_TIMESTAMP] = "time.Time",
        [CEL_LIST] = "[]interface {}",
        [CEL_MAP] = "map[string]interface {}",
    };
    return raw.kind < COUNT_OF(names) && names[raw.kind] ? names[raw.kind] : "<nil>";
}

static struct cel_value expected(struct cel_work *work, const char *what, struct cel_value raw)
{
    return cel_of_error_format(work, "invalid data, expected %s, got %s", what, go_type_of(raw));
}

static struct cel_value shaped_container(const struct cel_shape *shape, struct cel_value raw)
{
    bool is_list = shape->kind != CEL_SHAPE_OBJECT && shape->kind != CEL_SHAPE_MAP;
    /* A list that an expression writes is not one of the schema, wherever it is appended. */
    bool is_native = raw.is_view || raw.shape;
    if (!is_list && (raw.kind != CEL_MAP || !is_native))
        return CEL_FAIL("invalid data, expected a map for the provided schema with type=object");
    if (is_list && (raw.kind != CEL_LIST || !is_native))
        return CEL_FAIL("invalid data, expected an array for the provided schema with type=array");
    if (is_list && !shape->item)
        return CEL_FAIL("invalid array type, expected Items with a non-empty Schema");
    raw.shape = shape;
    return raw;
}

struct cel_value cel_shaped(struct cel_work *work, const struct cel_shape *shape,
                            struct cel_value raw)
{
    if (cel_is_error(raw))
        return raw;
    if (raw.kind == CEL_NULL && !raw.is_view)
        return shape->is_nullable
                   ? raw
                   : CEL_FAIL("invalid data, got null for schema with nullable=false");
    switch ((enum cel_shape_kind)shape->kind) {
    case CEL_SHAPE_BOOL:
        return raw.kind == CEL_BOOL ? raw : expected(work, "bool", raw);
    case CEL_SHAPE_INT:
        return raw.kind == CEL_INT ? raw : expected(work, "int", raw);
    case CEL_SHAPE_DOUBLE:
        if (raw.kind == CEL_INT)
            return cel_of_double((double)raw.i64);
        return raw.kind == CEL_DOUBLE ? raw : expected(work, "float", raw);
    case CEL_SHAPE_STRING:
        if (raw.kind != CEL_STRING)
            return expected(work, "string", raw);
        return shape->read ? shape->read(work, cel_text(raw)) : raw;
    case CEL_SHAPE_INT_OR_STRING:
        return raw.kind == CEL_INT || raw.kind == CEL_STRING
                   ? raw
                   : CEL_FAIL("invalid data, expected XIntOrString value to be either a string "
                              "or integer");
    case CEL_SHAPE_OBJECT:
    case CEL_SHAPE_MAP:
    case CEL_SHAPE_LIST:
    case CEL_SHAPE_SET:
    case CEL_SHAPE_MAP_LIST:
        return shaped_container(shape, raw);
    case CEL_SHAPE_UNKNOWN:
        return of_unknown(work, raw);
    case CEL_SHAPE_INVALID:
        break;
    }
    return CEL_FAIL("invalid type, expected object, array, number, integer, boolean or string, or "
                    "no type with x-kubernetes-int-or-string or "
                    "x-kubernetes-preserve-unknown-fields is true, got ");
}

struct cel_value cel_raw(struct cel_value value)
{
    if ((value.kind == CEL_LIST || value.kind == CEL_MAP) && value.is_view)
        value.shape = NULL;
    if (value.kind == CEL_OPAQUE && value.opaque->ops == &cel_unknown_ops)
        return ((const struct cel_unknown *)value.opaque)->raw;
    return value;
}

/* -- Members -- */

static int property_order(const void *a, const void *b)
{
    return slice_compare(((const struct cel_property *)a)->key,
                         ((const struct cel_property *)b)->key);
}

const struct cel_shape *cel_shape_member(const struct cel_shape *shape, struct slice key)
{
    const struct cel_property wanted = {.key = key};
    if (shape->kind == CEL_SHAPE_MAP)
        return shape->item;
    if (shape->kind != CEL_SHAPE_OBJECT || !shape->count)
        return NULL;
    const struct cel_property *found =
        bsearch(&wanted, shape->properties, shape->count, sizeof(wanted), property_order);
    return found ? found->shape : NULL;
}

bool cel_shaped_member(struct cel_work *work, const struct cel_shape *shape,
                       const struct json_node *member, struct cel_value *ret_value)
{
    const struct cel_shape *of_member = cel_shape_member(shape, member->key);
    if (!of_member || (shape->kind == CEL_SHAPE_OBJECT && member->type == JSON_TYPE_NULL))
        return false;
    *ret_value = cel_shaped(work, of_member, cel_of_json(work, member));
    return true;
}

bool cel_view_find(struct cel_work *work, struct cel_value view, struct slice key,
                   struct cel_value *ret_value)
{
    const struct json_node *member = json_look_member(view.node, key);
    if (!member)
        return false;
    if (view.shape)
        return cel_shaped_member(work, view.shape, member, ret_value);
    *ret_value = cel_of_json(work, member);
    return true;
}

bool cel_shaped_find(struct cel_work *work, struct cel_value map, struct cel_value key,
                     struct cel_value *ret_value)
{
    struct slice name = cel_text(key);
    bool is_object = map.shape->kind == CEL_SHAPE_OBJECT;
    assert(map.kind == CEL_MAP && map.is_view);
    if (key.kind != CEL_STRING) {
        *ret_value = cel_is_error(key) ? key : CEL_NO_OVERLOAD;
        return true;
    }
    if (is_object && map.shape->count &&
        cel_name_unescape(work->arena, cel_text(key), &name) != ST_OK)
        return false;
    return cel_view_find(work, map, name, ret_value);
}

const char *cel_shape_go_type(const struct cel_shape *shape)
{
    switch ((enum cel_shape_kind)shape->kind) {
    case CEL_SHAPE_LIST:
        return "*common.unstructuredList";
    case CEL_SHAPE_SET:
        return "*common.unstructuredSetList";
    case CEL_SHAPE_MAP_LIST:
        return "*common.unstructuredMapList";
    default:
        return "*common.unstructuredMap";
    }
}
