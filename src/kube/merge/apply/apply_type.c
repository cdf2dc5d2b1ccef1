#include "kube/merge/apply/apply_type.h"

#include "kube/types/schema/zero.h"

static struct apply_type type_of(unsigned kind, const void *of)
{
    struct apply_type type = {.of = of};
    type.kind = kind;
    return type;
}

static const struct apply_type nothing = {.kind = APPLY_TYPE_NOTHING};

static struct apply_rules scalar(enum apply_scalar what)
{
    return (struct apply_rules){.forms = APPLY_FORM_SCALAR, .scalar = what};
}

static struct apply_rules anything(bool whole)
{
    return (struct apply_rules){.forms = APPLY_FORM_MAP | APPLY_FORM_SCALAR | APPLY_FORM_LIST,
                                .list_atomic = true,
                                .map_atomic = whole,
                                .item = type_of(APPLY_TYPE_UNTYPED, NULL),
                                .rest =
                                    type_of(whole ? APPLY_TYPE_UNTYPED : APPLY_TYPE_DEDUCED, NULL)};
}

/* -- Built-in types -- */

static struct apply_rules rules_of_message(const struct kube_type *type, bool atomic)
{
    struct apply_rules rules = {.forms = APPLY_FORM_MAP, .map_atomic = atomic};
    /* An object without fields in the OpenAPI of Kubernetes may contain anything. */
    if (!type->field_count)
        rules.rest = type_of(APPLY_TYPE_DEDUCED, NULL);
    return rules;
}

static struct apply_rules rules_of_value(const struct kube_field *field, enum kube_list_type marked)
{
    const struct kube_type *type = kube_field_type(field);
    switch ((enum kube_value)field->value) {
    case KUBE_VALUE_MESSAGE:
        return rules_of_message(type, marked == KUBE_LIST_ATOMIC ||
                                          (type->atomic && marked != KUBE_LIST_GRANULAR));
    case KUBE_VALUE_STRING:
    case KUBE_VALUE_BYTES:
        return scalar(APPLY_SCALAR_STRING);
    case KUBE_VALUE_BOOL:
        return scalar(APPLY_SCALAR_BOOLEAN);
    case KUBE_VALUE_INT32:
    case KUBE_VALUE_INT64:
    case KUBE_VALUE_DOUBLE:
        return scalar(APPLY_SCALAR_NUMERIC);
    case KUBE_VALUE_TIME:
    case KUBE_VALUE_MICROTIME:
    case KUBE_VALUE_QUANTITY:
        return scalar(APPLY_SCALAR_ANY);
    case KUBE_VALUE_RAW:
        return anything(true);
    default:
        return anything(false);
    }
}

/* A list without a list type is atomic, unless strategic patches merge it. */
static struct apply_rules rules_of_list(const struct kube_field *field)
{
    enum kube_list_type list = kube_field_list_type(field);
    bool merged = list == KUBE_LIST_NONE && field->flags & KUBE_FIELD_MERGE;
    return (struct apply_rules){
        .forms = APPLY_FORM_LIST,
        .list_atomic = !merged && list != KUBE_LIST_SET && list != KUBE_LIST_MAP,
        .list_keyed = list == KUBE_LIST_MAP || (merged && kube_field_merge_key(field).len),
        .item = type_of(APPLY_TYPE_ITEM, field),
    };
}

static struct apply_rules rules_of_field(const struct kube_field *field)
{
    enum kube_list_type marked = kube_field_list_type(field);
    switch ((enum kube_field_shape)field->shape) {
    case KUBE_SHAPE_ONE:
        return rules_of_value(field, marked);
    case KUBE_SHAPE_LIST:
        return rules_of_list(field);
    default:
        return (struct apply_rules){.forms = APPLY_FORM_MAP,
                                    .map_atomic = marked == KUBE_LIST_ATOMIC,
                                    .rest = type_of(APPLY_TYPE_ITEM, field)};
    }
}

static struct apply_rules rules_of_item(const struct kube_field *field)
{
    /* The lists of such a map (extra of a user) have no list type, so they are owned as a whole. */
    if (field->shape == KUBE_SHAPE_MAP_OF_LISTS)
        return (struct apply_rules){.forms = APPLY_FORM_LIST,
                                    .list_atomic = true,
                                    .item = type_of(APPLY_TYPE_UNTYPED, NULL)};
    return rules_of_value(field, KUBE_LIST_NONE);
}

/* -- Schemas of custom resources -- */

static struct apply_type schema_type(const struct schema *schema, bool preserve)
{
    struct apply_type type = type_of(APPLY_TYPE_SCHEMA, schema);
    type.preserve = preserve;
    return type;
}

static struct apply_type schema_rest(const struct schema *schema, bool preserve)
{
    if (schema->additional)
        return schema_type(schema->additional, preserve);
    /* The schema says whether there may be other fields, and nothing about them. */
    if (schema->additional_given)
        return schema->additional_allowed ? type_of(APPLY_TYPE_DEDUCED, NULL) : nothing;
    return preserve || !schema->property_count ? type_of(APPLY_TYPE_DEDUCED, NULL) : nothing;
}

static struct apply_rules rules_of_schema(const struct schema *schema, bool preserve, bool resource)
{
    struct apply_rules rules = {0};
    preserve = preserve || schema->preserve_unknown;
    bool any = !schema->types || schema->int_or_string;
    if (any || resource || schema->types & SCHEMA_OBJECT) {
        rules.forms |= APPLY_FORM_MAP;
        rules.map_atomic = schema->map_atomic;
        rules.rest = schema_rest(schema, preserve);
    }
    if (!resource && (any || schema->types & SCHEMA_ARRAY)) {
        rules.forms |= APPLY_FORM_LIST;
        rules.list_atomic = schema->list_type == SCHEMA_LIST_ATOMIC;
        rules.list_keyed = schema->list_type == SCHEMA_LIST_MAP;
        rules.item = schema->items ? schema_type(schema->items, preserve)
                                   : type_of(APPLY_TYPE_UNTYPED, NULL);
    }
    /* A resource is always an object, whatever else its schema allows. */
    if (resource)
        return rules;
    if (any || schema->types & (SCHEMA_STRING | SCHEMA_NUMBER | SCHEMA_INTEGER | SCHEMA_BOOLEAN))
        rules.forms |= APPLY_FORM_SCALAR;
    if (schema->types == SCHEMA_BOOLEAN)
        rules.scalar = APPLY_SCALAR_BOOLEAN;
    else if (schema->types == SCHEMA_NUMBER || schema->types == SCHEMA_INTEGER)
        rules.scalar = APPLY_SCALAR_NUMERIC;
    else if (schema->types == SCHEMA_STRING && !schema->more->format.len)
        rules.scalar = APPLY_SCALAR_STRING;
    return rules;
}

/* -- Any type -- */

struct apply_rules apply_rules_of(struct apply_type type)
{
    switch (type.kind) {
    case APPLY_TYPE_DEDUCED:
        return anything(false);
    case APPLY_TYPE_TEXT:
        return scalar(APPLY_SCALAR_STRING);
    case APPLY_TYPE_MESSAGE:
        return rules_of_message(type.of, ((const struct kube_type *)type.of)->atomic);
    case APPLY_TYPE_FIELD:
        return rules_of_field(type.of);
    case APPLY_TYPE_ITEM:
        return rules_of_item(type.of);
    case APPLY_TYPE_SCHEMA:
    case APPLY_TYPE_RESOURCE:
        return rules_of_schema(type.of, type.preserve, type.kind == APPLY_TYPE_RESOURCE);
    default:
        return anything(true);
    }
}

unsigned apply_rules_forms(const struct apply_rules *rules, const struct json_node *value)
{
    if (!value || value->type == JSON_TYPE_NULL)
        return rules->forms;
    unsigned form = value->type == JSON_TYPE_OBJECT  ? APPLY_FORM_MAP
                    : value->type == JSON_TYPE_ARRAY ? APPLY_FORM_LIST
                                                     : APPLY_FORM_SCALAR;
    /* The value has a form that its type does not allow, which the caller reports. */
    return rules->forms & form ? form : rules->forms;
}

static const struct kube_type *message_of(struct apply_type type)
{
    if (type.kind == APPLY_TYPE_MESSAGE)
        return type.of;
    const struct kube_field *field = type.of;
    bool one = (type.kind == APPLY_TYPE_FIELD && field->shape == KUBE_SHAPE_ONE) ||
               (type.kind == APPLY_TYPE_ITEM && field->shape != KUBE_SHAPE_MAP_OF_LISTS);
    return one && field->value == KUBE_VALUE_MESSAGE ? kube_field_type(field) : NULL;
}

static bool schema_member(struct apply_type type, struct slice name, struct apply_type *ret_type)
{
    const struct schema *schema = type.of;
    /* The kind and the metadata of an object have the types that they have in built-in kinds. */
    if (type.kind == APPLY_TYPE_RESOURCE || schema->embedded) {
        if (slice_is(name, "kind") || slice_is(name, "apiVersion")) {
            *ret_type = type_of(APPLY_TYPE_TEXT, NULL);
            return true;
        }
        if (slice_is(name, "metadata")) {
            *ret_type = type_of(APPLY_TYPE_MESSAGE, kube_type_metadata());
            return true;
        }
    }
    const struct schema *property = schema_property(schema, name);
    if (!property)
        return false;
    *ret_type = schema_type(property, type.preserve || schema->preserve_unknown);
    return true;
}

struct apply_type apply_rules_member(struct apply_type type, const struct apply_rules *rules,
                                     struct slice name, bool *ret_named)
{
    struct apply_type member = rules->rest;
    const struct kube_type *message = NULL;
    *ret_named = false;
    if (type.kind == APPLY_TYPE_SCHEMA || type.kind == APPLY_TYPE_RESOURCE) {
        *ret_named = schema_member(type, name, &member);
        return member;
    }
    if (type.of)
        message = message_of(type);
    const struct kube_field *field = message ? kube_type_field(message, name) : NULL;
    *ret_named = field != NULL;
    return field ? type_of(APPLY_TYPE_FIELD, field) : member;
}

/* Returns the n-th nth_part of a text separated by commas; false: there are fewer. */
static bool nth_part(struct slice list, size_t n, struct slice *ret_part)
{
    for (;;) {
        const uint8_t *comma = list.len ? memchr(list.ptr, ',', list.len) : NULL;
        size_t len = comma ? (size_t)(comma - list.ptr) : list.len;
        *ret_part = slice_sub(list, 0, len);
        if (!n--)
            return true;
        if (!comma)
            return false;
        list = slice_sub(list, len + 1, list.len - len - 1);
    }
}

bool apply_type_key(struct apply_type type, size_t *at, struct apply_type_key *ret_key)
{
    size_t n = (*at)++;
    *ret_key = (struct apply_type_key){0};
    if (type.kind == APPLY_TYPE_SCHEMA) {
        const struct schema *schema = type.of;
        if (n >= schema->more->list_keys.count)
            return false;
        ret_key->name = schema->more->list_keys.names[n];
        const struct schema *key =
            schema->items ? schema_property(schema->items, ret_key->name) : NULL;
        ret_key->preset_node = key ? key->preset : NULL;
        return true;
    }
    const struct kube_field *field = type.of;
    struct slice keys = kube_field_list_keys(field);
    /* Without a map list's keys, the key by which strategic patches merge identifies an item. */
    if (!keys.len)
        keys = kube_field_merge_key(field);
    if (!keys.len || !nth_part(keys, n, &ret_key->name))
        return false;
    if (!nth_part(kube_field_list_defaults(field), n, &ret_key->preset))
        ret_key->preset = SLICE_EMPTY;
    return true;
}

/* Decoding into Go's types loses the value: a null, or a zero value that is omitted when empty,
 * unless the field is a pointer. */
static bool is_lost(struct apply_type type, const struct json_node *node)
{
    const struct kube_field *field = type.of;
    if (node->type == JSON_TYPE_NULL)
        return true;
    if (type.kind != APPLY_TYPE_FIELD || !(field->flags & KUBE_FIELD_OMIT_EMPTY) ||
        !kube_is_zero(node))
        return false;
    return field->shape != KUBE_SHAPE_ONE ||
           (!(field->flags & KUBE_FIELD_POINTER) && field->value < KUBE_VALUE_MESSAGE);
}

void apply_drop_lost(struct apply_type type, struct json_node *value)
{
    struct apply_rules rules = apply_rules_of(type);
    struct json_node *next;
    bool named;
    /* Nothing is decoded into a Go type here, so nothing is lost. */
    if (type.kind == APPLY_TYPE_UNTYPED || type.kind == APPLY_TYPE_DEDUCED)
        return;
    if (value->type == JSON_TYPE_ARRAY)
        for (struct json_node *item = json_node_first(value); item; item = json_node_next(item))
            apply_drop_lost(rules.item, item);
    if (value->type != JSON_TYPE_OBJECT)
        return;
    for (struct json_node *node = json_node_first(value); node; node = next) {
        struct apply_type member = apply_rules_member(type, &rules, node->key, &named);
        next = json_node_next(node);
        if (is_lost(member, node))
            json_node_remove(value, node);
        else
            apply_drop_lost(member, node);
    }
}
