#include "kube/custom/rules/shape.h"

#include "base/random.h"
#include "cel/value/name.h"
#include "kube/custom/rules/formats.h"

#include <stdlib.h>

struct made_shape {
    const struct schema *schema; /* first, because its bytes are the key */
    struct cel_shape shape;
};

static struct slice key_of(const void *value)
{
    return slice_of(value, sizeof(const struct schema *));
}

void rule_shapes_init(struct rule_shapes *shapes, struct arena *arena)
{
    *shapes = (struct rule_shapes){.arena = arena};
    hash_map_init(&shapes->made, key_of, random_seed_system());
}

void rule_shapes_fini(struct rule_shapes *shapes)
{
    hash_map_fini(&shapes->made);
}

/* -- Objects -- */

static const struct cel_shape text_shape = {.kind = CEL_SHAPE_STRING};
static const struct cel_property name_properties[] = {
    {SLICE_LITERAL("generateName"), &text_shape},
    {SLICE_LITERAL("name"), &text_shape},
};
static const struct cel_shape names_shape = {
    .kind = CEL_SHAPE_OBJECT, .count = COUNT_OF(name_properties), .properties = name_properties};
/* What every resource has, sorted. */
static const struct cel_property resource_properties[] = {
    {SLICE_LITERAL("apiVersion"), &text_shape},
    {SLICE_LITERAL("kind"), &text_shape},
    {SLICE_LITERAL("metadata"), &names_shape},
};

/* Merges the properties of a schema with those of every resource, which replace them. */
static uint32_t merge(struct cel_property *into, const struct cel_property *own, size_t count)
{
    uint32_t merged = 0;
    size_t i = 0;
    for (size_t j = 0; j < COUNT_OF(resource_properties); j++) {
        const struct cel_property *common = &resource_properties[j];
        while (i < count && slice_compare(own[i].key, common->key) < 0)
            into[merged++] = own[i++];
        if (i < count && slice_equal(own[i].key, common->key))
            i++;
        into[merged++] = *common;
    }
    while (i < count)
        into[merged++] = own[i++];
    return merged;
}

static enum status make_object(struct rule_shapes *shapes, const struct schema *schema,
                               bool resource, struct cel_shape *shape)
{
    size_t count = schema->property_count;
    struct cel_property *own = arena_calloc(shapes->arena, count + 1, sizeof(*own));
    if (!own)
        return ST_NOMEM;
    for (size_t i = 0; i < count; i++) {
        own[i].key = schema->properties[i].name;
        TRY(rule_shapes_get(shapes, schema->properties[i].schema, false, &own[i].shape));
    }
    shape->kind = CEL_SHAPE_OBJECT;
    shape->count = (uint32_t)count;
    shape->properties = own;
    if (!resource || schema->has_meta)
        return ST_OK;
    struct cel_property *all =
        arena_calloc(shapes->arena, count + COUNT_OF(resource_properties), sizeof(*all));
    if (!all)
        return ST_NOMEM;
    shape->count = merge(all, own, count);
    shape->properties = all;
    return ST_OK;
}

/* -- Others -- */

static enum status make_list(struct rule_shapes *shapes, const struct schema *schema,
                             struct cel_shape *shape)
{
    const struct schema_names *names = &schema->more->list_keys;
    static const uint8_t kinds[] = {
        [SCHEMA_LIST_ATOMIC] = CEL_SHAPE_LIST,
        [SCHEMA_LIST_SET] = CEL_SHAPE_SET,
        [SCHEMA_LIST_MAP] = CEL_SHAPE_MAP_LIST,
    };
    shape->kind = kinds[schema->list_type];
    if (shape->kind != CEL_SHAPE_MAP_LIST)
        return ST_OK;
    struct slice *keys = arena_calloc(shapes->arena, names->count + 1, sizeof(*keys));
    if (!keys)
        return ST_NOMEM;
    for (size_t i = 0; i < names->count; i++) {
        enum status status = cel_name_escape(shapes->arena, names->names[i], &keys[i]);
        if (status == ST_INVALID)
            keys[i] = names->names[i];
        else
            TRY(status);
    }
    shape->count = (uint32_t)names->count;
    shape->keys = keys;
    return ST_OK;
}

static enum status fill(struct rule_shapes *shapes, const struct schema *schema, bool resource,
                        struct cel_shape *shape)
{
    shape->is_nullable = schema->nullable;
    if (schema->int_or_string) {
        shape->kind = CEL_SHAPE_INT_OR_STRING;
        return ST_OK;
    }
    const struct schema *below = NULL;
    switch (schema->types) {
    case SCHEMA_OBJECT:
        if (resource || schema->embedded || schema->property_count || !schema->additional)
            return make_object(shapes, schema, resource || schema->embedded, shape);
        shape->kind = CEL_SHAPE_MAP;
        below = schema->additional;
        break;
    case SCHEMA_ARRAY:
        TRY(make_list(shapes, schema, shape));
        below = schema->items;
        break;
    case SCHEMA_STRING:
        shape->kind = CEL_SHAPE_STRING;
        shape->read = rule_format_reader(schema->more->format);
        break;
    case SCHEMA_NUMBER:
        shape->kind = CEL_SHAPE_DOUBLE;
        break;
    case SCHEMA_INTEGER:
        shape->kind = CEL_SHAPE_INT;
        break;
    case SCHEMA_BOOLEAN:
        shape->kind = CEL_SHAPE_BOOL;
        break;
    default:
        shape->kind = schema->preserve_unknown ? CEL_SHAPE_UNKNOWN : CEL_SHAPE_INVALID;
        break;
    }
    return below ? rule_shapes_get(shapes, below, false, &shape->item) : ST_OK;
}

enum status rule_shapes_get(struct rule_shapes *shapes, const struct schema *schema, bool resource,
                            const struct cel_shape **ret_shape)
{
    struct made_shape *made = resource ? NULL : hash_map_get(&shapes->made, key_of(&schema));
    if (!made) {
        void *replaced;
        made = arena_calloc(shapes->arena, 1, sizeof(*made));
        if (!made)
            return ST_NOMEM;
        made->schema = schema;
        TRY(fill(shapes, schema, resource, &made->shape));
        if (!resource)
            TRY(hash_map_put(&shapes->made, made, &replaced));
    }
    *ret_shape = &made->shape;
    return ST_OK;
}
