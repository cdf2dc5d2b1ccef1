#include "kube/custom/rules/types.h"

#include "kube/types/expression/kind_types.h"

#include <stdlib.h>

/* What a value is besides what its schema says. */
enum {
    RESOURCE = 1 << 0,  /* the root of an object */
    PUBLISHED = 1 << 1, /* its schema is the one that is published, as is all below it */
};

/* An object and the fields that have been used. */
struct object_type {
    struct cel_object object; /* first */
    struct arena *arena;
    const struct schema *schema;
    unsigned is; /* RESOURCE: it has kind, apiVersion and metadata whatever the schema says */
    const char *name;
    struct field_type *made;
};

struct field_type {
    struct slice name;
    const struct cel_type *type; /* NULL: there is no such field */
    struct field_type *next;
};

/* -- Names -- */

static bool is_reserved(struct slice name)
{
    static const char *const words[] = {
        "true",     "false",   "null",      "in",       "as",  "break",  "const",
        "continue", "else",    "for",       "function", "if",  "import", "let",
        "loop",     "package", "namespace", "return",   "var", "void",   "while",
    };
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (slice_equal(name, slice_from_text(words[i])))
            return true;
    return false;
}

/* What a part of a name is written as. *ret_len: how long the part is; 0: it cannot be written. */
static struct slice escape_part(struct slice rest, size_t *ret_len)
{
    uint8_t byte = rest.ptr[0], lower = byte | 0x20;
    *ret_len = 1;
    switch (byte) {
    case '.':
        return SLICE_LITERAL("__dot__");
    case '-':
        return SLICE_LITERAL("__dash__");
    case '/':
        return SLICE_LITERAL("__slash__");
    case '_':
        if (rest.len == 1 || rest.ptr[1] != '_')
            break;
        *ret_len = 2;
        return SLICE_LITERAL("__underscores__");
    default:
        *ret_len = (lower >= 'a' && lower <= 'z') || (byte >= '0' && byte <= '9');
        break;
    }
    return slice_sub(rest, 0, 1);
}

static bool can_begin(struct slice name)
{
    return name.len && (name.ptr[0] < '0' || name.ptr[0] > '9');
}

bool rule_escape(struct slice property, struct buf *to)
{
    size_t len;
    if (!can_begin(property))
        return false;
    if (is_reserved(property))
        return buf_append_format(to, "__%.*s__", SLICE_ARGS(property)) == ST_OK;
    while (property.len) {
        struct slice part = escape_part(property, &len);
        if (!len || buf_append(to, part) != ST_OK)
            return false;
        property = slice_sub(property, len, property.len - len);
    }
    return true;
}

/* Whether an expression calls the property so. A reserved word may also be written as it is. */
static bool is_called(struct slice property, struct slice field)
{
    size_t len;
    if (!can_begin(property))
        return false;
    if (is_reserved(property))
        return slice_equal(property, field) ||
               (field.len == property.len + 4 && slice_has_prefix(field, SLICE_LITERAL("__")) &&
                slice_equal(slice_sub(field, 2, property.len), property) &&
                slice_equal(slice_sub(field, field.len - 2, 2), SLICE_LITERAL("__")));
    while (property.len) {
        struct slice part = escape_part(property, &len);
        if (!len || !slice_has_prefix(field, part))
            return false;
        property = slice_sub(property, len, property.len - len);
        field = slice_sub(field, part.len, field.len - part.len);
    }
    return !field.len;
}

static int property_order(const void *name, const void *property)
{
    return slice_compare(*(const struct slice *)name,
                         ((const struct schema_property *)property)->name);
}

const struct schema_property *rule_property(const struct schema *schema, struct slice field)
{
    /* Most properties are called by their names, and those can be searched. */
    const struct schema_property *property = NULL;
    if (schema->property_count)
        property = bsearch(&field, schema->properties, schema->property_count, sizeof(*property),
                           property_order);
    if (property && is_called(property->name, field))
        return property->schema->least_bytes ? property : NULL;
    for (size_t i = 0; i < schema->property_count; i++) {
        property = &schema->properties[i];
        if (is_called(property->name, field))
            return property->schema->least_bytes ? property : NULL;
    }
    return NULL;
}

/* -- Types -- */

static enum status make(struct arena *arena, const struct schema *schema, unsigned is,
                        const char *name, const struct cel_type **ret_type);

static enum status sized(struct arena *arena, const struct cel_type *type, uint64_t size_max,
                         const struct cel_type **ret_type)
{
    *ret_type = cel_type_with_size(arena, type, size_max);
    return *ret_type ? ST_OK : ST_NOMEM;
}

/* -- Objects -- */

/* The metadata of a resource whose schema does not describe it. */
static const struct schema metadata_schema;

static enum status find_field(const struct cel_object *self, struct slice name,
                              struct arena *scratch, const struct cel_type **ret_type);

static enum status make_object(struct arena *arena, const struct schema *schema, unsigned is,
                               const char *name, const struct cel_type **ret_type)
{
    struct object_type *object = arena_alloc(arena, sizeof(*object));
    struct cel_type *type = arena_alloc(arena, sizeof(*type));
    if (!object || !type)
        return ST_NOMEM;
    *object = (struct object_type){
        .object = {.field = find_field},
        .arena = arena,
        .schema = schema,
        .is = is,
        .name = name,
    };
    *type = (struct cel_type){.kind = CEL_TYPE_OBJECT, .name = name, .object = &object->object};
    *ret_type = type;
    return ST_OK;
}

/* What a resource has whatever its schema says. False: the field is not one of them. */
static bool is_own_field(const struct object_type *object, struct slice name)
{
    if (object->schema == &metadata_schema)
        return slice_equal(name, SLICE_LITERAL("name")) ||
               slice_equal(name, SLICE_LITERAL("generateName"));
    /* A schema may describe the metadata of a resource; once it is published they are those of all
     * objects. */
    if (!(object->is & RESOURCE) || (object->schema->has_meta && !(object->is & PUBLISHED)))
        return false;
    return slice_equal(name, SLICE_LITERAL("kind")) ||
           slice_equal(name, SLICE_LITERAL("apiVersion")) ||
           slice_equal(name, SLICE_LITERAL("metadata"));
}

static enum status make_field(const struct object_type *object, struct slice name,
                              const struct cel_type **ret_type)
{
    struct arena *arena = object->arena;
    bool own = is_own_field(object, name),
         is_metadata = slice_equal(name, SLICE_LITERAL("metadata"));
    if (own && !is_metadata)
        return sized(arena, &cel_type_STRING, RULE_REQUEST_BYTES - 2, ret_type);
    const struct schema_property *property = own ? NULL : rule_property(object->schema, name);
    if (!own && !property)
        return ST_OK;
    const char *type_name = kube_kind_type_name(arena, object->name, name);
    if (!type_name)
        return ST_NOMEM;
    if (own && object->is & PUBLISHED)
        return kube_kind_type_new(arena, kube_type_metadata(), type_name, ret_type);
    if (own)
        return make_object(arena, &metadata_schema, 0, type_name, ret_type);
    return make(arena, property->schema, object->is & PUBLISHED, type_name, ret_type);
}

/* The type lives as long as the object, not only as long as the expression. */
static enum status find_field(const struct cel_object *self, struct slice name,
                              struct arena *scratch, const struct cel_type **ret_type)
{
    (void)scratch;
    struct object_type *object = (struct object_type *)(uintptr_t)self;
    struct field_type *field = object->made;
    while (field && !slice_equal(field->name, name))
        field = field->next;
    if (!field) {
        field = arena_calloc(object->arena, 1, sizeof(*field));
        if (!field || arena_dup(object->arena, name, &field->name) != ST_OK)
            return ST_NOMEM;
        TRY(make_field(object, name, &field->type));
        field->next = object->made;
        object->made = field;
    }
    *ret_type = field->type;
    return ST_OK;
}

/* -- Strings, lists and maps -- */

/* The longest text of an enum. */
static enum status longest_value(struct arena *arena, const struct json_node *values,
                                 uint64_t *ret_size)
{
    struct slice text;
    *ret_size = 0;
    for (const struct json_node *value = values->first; value; value = value->next) {
        if (value->type != JSON_TYPE_STRING)
            continue;
        TRY(json_node_text(value, arena, &text));
        *ret_size = size_max(*ret_size, text.len);
    }
    return ST_OK;
}

static enum status make_string(struct arena *arena, const struct schema *schema,
                               const struct cel_type **ret_type)
{
    const struct schema_more *more = schema->more;
    bool limited = more->max_length >= 0;
    uint64_t size = RULE_REQUEST_BYTES - 2;
    if (slice_equal(more->format, SLICE_LITERAL("duration")))
        return sized(arena, &cel_type_DURATION, 32, ret_type);
    if (slice_equal(more->format, SLICE_LITERAL("date")))
        return sized(arena, &cel_type_TIMESTAMP, 12, ret_type);
    if (slice_equal(more->format, SLICE_LITERAL("date-time")))
        return sized(arena, &cel_type_TIMESTAMP, 32, ret_type);
    if (slice_equal(more->format, SLICE_LITERAL("byte"))) {
        size = limited ? (uint64_t)more->max_length : size;
        return sized(arena, &cel_type_BYTES, size, ret_type);
    }
    /* A character takes four bytes at most. */
    if (limited)
        size = (uint64_t)more->max_length * 4;
    else if (more->values && more->values->count)
        TRY(longest_value(arena, more->values, &size));
    return sized(arena, &cel_type_STRING, size, ret_type);
}

/* A list or map whose items or values have a schema. */
static enum status make_container(struct arena *arena, const struct schema *schema, unsigned is,
                                  const char *name, const struct cel_type **ret_type)
{
    bool is_list = schema->types == SCHEMA_ARRAY;
    const struct schema *below = is_list ? schema->items : schema->additional;
    int64_t count_max = is_list ? schema->more->max_items : schema->more->max_properties;
    /* A comma follows an item; an entry also has a key in quotes and a colon. */
    uint64_t bytes = below->least_bytes + (is_list ? UINT64_C(1) : UINT64_C(6));
    const struct cel_type *item, *type;
    name =
        kube_kind_type_name(arena, name, is_list ? SLICE_LITERAL("@idx") : SLICE_LITERAL("@elem"));
    if (!name)
        return ST_NOMEM;
    TRY(make(arena, below, is & PUBLISHED, name, &item));
    type =
        is_list ? cel_type_new_list(arena, item) : cel_type_new_map(arena, &cel_type_STRING, item);
    uint64_t size = count_max >= 0 ? (uint64_t)count_max : (RULE_REQUEST_BYTES - 2) / bytes;
    return sized(arena, type, size, ret_type);
}

static enum status make(struct arena *arena, const struct schema *schema, unsigned is,
                        const char *name, const struct cel_type **ret_type)
{
    *ret_type = NULL;
    if (!schema->least_bytes)
        return ST_OK;
    if (schema->int_or_string) {
        int64_t length = schema->more->max_length;
        uint64_t size = length >= 0 ? (uint64_t)length * 4 : RULE_REQUEST_BYTES - 2;
        return sized(arena, &cel_type_DYN, size, ret_type);
    }
    switch (schema->types) {
    case SCHEMA_STRING:
        return make_string(arena, schema, ret_type);
    case SCHEMA_NUMBER:
        *ret_type = &cel_type_DOUBLE;
        return ST_OK;
    case SCHEMA_INTEGER:
        *ret_type = &cel_type_INT;
        return ST_OK;
    case SCHEMA_BOOLEAN:
        *ret_type = &cel_type_BOOL;
        return ST_OK;
    case SCHEMA_OBJECT:
        if (!schema->additional)
            return make_object(arena, schema, is | (schema->embedded ? RESOURCE : 0u), name,
                               ret_type);
        break;
    }
    return make_container(arena, schema, is, name, ret_type);
}

enum status rule_type_new(struct arena *arena, const struct schema *schema, bool resource,
                          const struct cel_type **ret_type)
{
    return make(arena, schema, resource ? RESOURCE : 0u, "selfType", ret_type);
}

enum status rule_type_published(struct arena *arena, const struct schema *schema, const char *name,
                                const struct cel_type **ret_type)
{
    return make(arena, schema, RESOURCE | PUBLISHED, name, ret_type);
}
