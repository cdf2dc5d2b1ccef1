#include "kube/types/schema/zero.h"

bool kube_zero_omits(const struct kube_field *field)
{
    bool message = field->shape == KUBE_SHAPE_ONE && field->value >= KUBE_VALUE_MESSAGE &&
                   !(field->flags & KUBE_FIELD_POINTER);
    return field->flags & KUBE_FIELD_OMIT_ZERO ||
           (field->flags & KUBE_FIELD_OMIT_EMPTY && !message);
}

struct json_node *kube_zero_value(struct arena *arena, const struct kube_field *field)
{
    struct json_node *object = NULL;
    if (field->shape != KUBE_SHAPE_ONE || field->flags & KUBE_FIELD_POINTER)
        return json_node_new(arena, JSON_TYPE_NULL);
    switch ((enum kube_value)field->value) {
    case KUBE_VALUE_MESSAGE:
        return kube_zero_object(arena, kube_field_type(field), &object) == ST_OK ? object : NULL;
    case KUBE_VALUE_STRING:
        return json_node_new_text(arena, SLICE_EMPTY);
    case KUBE_VALUE_BOOL:
        return json_node_new(arena, JSON_TYPE_BOOL);
    case KUBE_VALUE_QUANTITY:
        return json_node_new_text(arena, SLICE_LITERAL("0"));
    case KUBE_VALUE_INT32:
    case KUBE_VALUE_INT64:
    case KUBE_VALUE_DOUBLE:
    case KUBE_VALUE_INTORSTRING:
        return json_node_new_int(arena, 0);
    default:
        return json_node_new(arena, JSON_TYPE_NULL);
    }
}

static enum status zero_fields(struct arena *arena, const struct kube_type *type,
                               struct json_node *object)
{
    const struct kube_field *field = kube_type_fields(type);
    for (size_t i = 0; i < type->field_count; i++, field++) {
        if (field->flags & KUBE_FIELD_INLINE) {
            TRY(zero_fields(arena, kube_field_type(field), object));
            continue;
        }
        if (kube_zero_omits(field))
            continue;
        struct json_node *value = kube_zero_value(arena, field);
        if (!value)
            return ST_NOMEM;
        TRY(json_node_set(arena, object, kube_field_name(field), value));
    }
    return ST_OK;
}

enum status kube_zero_object(struct arena *arena, const struct kube_type *type,
                             struct json_node **ret_object)
{
    struct json_node *object = json_node_new(arena, JSON_TYPE_OBJECT);
    if (!object)
        return ST_NOMEM;
    *ret_object = object;
    return zero_fields(arena, type, object);
}

enum status kube_zero_member(struct arena *arena, const struct kube_type *type, struct slice name,
                             struct json_node **ret_value)
{
    const struct kube_field *field = kube_type_field(type, name);
    *ret_value = NULL;
    if (!field || kube_zero_omits(field))
        return ST_OK;
    *ret_value = kube_zero_value(arena, field);
    return *ret_value ? ST_OK : ST_NOMEM;
}

bool kube_is_zero(const struct json_node *node)
{
    switch ((enum json_type)node->type) {
    case JSON_TYPE_NULL:
        return true;
    case JSON_TYPE_BOOL:
        return !node->truth;
    case JSON_TYPE_NUMBER:
        return slice_is(node->text, "0");
    case JSON_TYPE_STRING:
        return !node->text.len;
    default:
        return !node->first;
    }
}
