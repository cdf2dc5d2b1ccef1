#include "kube/types/expression/kind_types.h"

#include "cel/value/name.h"

/* An object. Its fields are looked up in the type of Kubernetes. */
struct struct_type {
    struct cel_object object; /* first */
    struct arena *arena;
    const struct kube_type *of; /* NULL: it has no fields */
    const struct struct_type *within;
    const char *name;
};

const char *kube_kind_type_name(struct arena *arena, const char *name, struct slice step)
{
    size_t len = strlen(name);
    char *joined = arena_alloc(arena, len + 1 + step.len + 1);
    if (!joined)
        return NULL;
    memcpy(joined, name, len);
    joined[len] = '.';
    slice_copy(joined + len + 1, step);
    joined[len + 1 + step.len] = '\0';
    return joined;
}

static enum status find_field(const struct cel_object *self, struct slice name,
                              struct arena *scratch, const struct cel_type **ret_type);

static enum status make_object(struct arena *arena, const struct kube_type *of,
                               const struct struct_type *within, const char *name,
                               const struct cel_type **ret_type)
{
    struct struct_type *made = arena_alloc(arena, sizeof(*made));
    struct cel_type *type = arena_alloc(arena, sizeof(*type));
    if (!made || !type)
        return ST_NOMEM;
    for (const struct struct_type *outer = within; outer && of; outer = outer->within)
        if (outer->of == of)
            of = NULL;
    *made = (struct struct_type){
        .object = {.field = find_field}, .arena = arena, .of = of, .within = within, .name = name};
    *type = (struct cel_type){
        .kind = CEL_TYPE_OBJECT, .name = name, .object = &made->object, .parts = 1};
    *ret_type = type;
    return ST_OK;
}

/* One value of a field, or one item. *ret_type is NULL if expressions do not see it. */
static enum status make_value(const struct struct_type *of, const struct kube_field *field,
                              const char *name, const struct cel_type **ret_type)
{
    *ret_type = NULL;
    switch ((enum kube_value)field->value) {
    case KUBE_VALUE_STRING:
        *ret_type = &cel_type_STRING;
        break;
    case KUBE_VALUE_BOOL:
        *ret_type = &cel_type_BOOL;
        break;
    case KUBE_VALUE_INT32:
    case KUBE_VALUE_INT64:
        *ret_type = &cel_type_INT;
        break;
    case KUBE_VALUE_DOUBLE:
        *ret_type = &cel_type_DOUBLE;
        break;
    case KUBE_VALUE_BYTES:
        *ret_type = &cel_type_BYTES;
        break;
    case KUBE_VALUE_TIME:
    case KUBE_VALUE_MICROTIME:
        *ret_type = &cel_type_TIMESTAMP;
        break;
    case KUBE_VALUE_INTORSTRING:
        *ret_type = &cel_type_DYN;
        break;
    case KUBE_VALUE_MESSAGE:
        return make_object(of->arena, kube_field_type(field), of, name, ret_type);
    case KUBE_VALUE_RAW:
        /* Raw extensions and sets of fields are objects. What a schema has as its default or as an
         * example may be anything, and has no type. */
        if (strcmp(kube_type_name(of->of), "JSONSchemaProps") != 0)
            return make_object(of->arena, NULL, of, name, ret_type);
        break;
    case KUBE_VALUE_QUANTITY: /* a string or a number */
    case KUBE_VALUE_SCHEMA_OR_BOOL:
    case KUBE_VALUE_SCHEMA_OR_ARRAY:
    case KUBE_VALUE_SCHEMA_OR_STRINGS:
        break;
    }
    return ST_OK;
}

/* A list of items that are not visible is not visible either; the same for a map. */
static enum status make_field(const struct struct_type *of, const struct kube_field *field,
                              const struct cel_type **ret_type)
{
    struct arena *arena = of->arena;
    bool is_map = field->shape >= KUBE_SHAPE_MAP, is_one = field->shape == KUBE_SHAPE_ONE;
    const char *name = kube_kind_type_name(arena, of->name, kube_field_name(field));
    if (name && !is_one)
        name = kube_kind_type_name(arena, name,
                                   is_map ? SLICE_LITERAL("@elem") : SLICE_LITERAL("@idx"));
    if (!name)
        return ST_NOMEM;
    TRY(make_value(of, field, name, ret_type));
    if (is_one || !*ret_type)
        return ST_OK;
    if (field->shape != KUBE_SHAPE_MAP)
        *ret_type = cel_type_new_list(arena, *ret_type);
    if (is_map)
        *ret_type = cel_type_new_map(arena, &cel_type_STRING, *ret_type);
    return *ret_type ? ST_OK : ST_NOMEM;
}

/* The type lives as long as the object, not only as long as the expression. */
static enum status find_field(const struct cel_object *self, struct slice name,
                              struct arena *scratch, const struct cel_type **ret_type)
{
    const struct struct_type *of = CONTAINER_OF(self, const struct struct_type, object);
    struct slice plain;
    *ret_type = NULL;
    if (!of->of)
        return ST_OK;
    const struct kube_field *field = kube_type_field(of->of, name);
    if (!field) {
        enum status status = cel_name_unescape(scratch, name, &plain);
        if (status == ST_INVALID)
            return ST_OK;
        TRY(status);
        field = kube_type_field(of->of, plain);
    }
    return field ? make_field(of, field, ret_type) : ST_OK;
}

enum status kube_kind_type_new(struct arena *arena, const struct kube_type *of, const char *name,
                               const struct cel_type **ret_type)
{
    return make_object(arena, of, NULL, name, ret_type);
}
