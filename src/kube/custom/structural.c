#include "kube/custom/structural.h"

#include "codec/json/number.h"
#include "kube/custom/formats.h"
#include "kube/custom/regex.h"

#include <stdlib.h>

struct compiler {
    struct arena *arena;
    struct schema_traits *traits;
    struct error *error;
};

/* -- Small parts -- */

static bool get_bool(struct json_node *node, const char *key)
{
    const struct json_node *member = json_node_named(node, key);
    return member && member->type == JSON_TYPE_BOOL && member->truth;
}

static int64_t get_int(struct json_node *node, const char *key)
{
    int64_t value;
    return json_node_int(json_node_named(node, key), &value) && value >= 0 ? value : -1;
}

/* Digits of a number are short in what was checked; longer ones mean nothing. */
static bool get_number(struct json_node *node, const char *key, double *ret_number)
{
    char digits[64];
    const struct json_node *member = json_node_named(node, key);
    if (!member || member->type != JSON_TYPE_NUMBER || member->text.len >= sizeof(digits))
        return false;
    slice_copy(digits, member->text);
    digits[member->text.len] = '\0';
    *ret_number = strtod(digits, NULL);
    return true;
}

static enum status get_text(struct compiler *c, struct json_node *node, const char *key,
                            struct slice *ret_text)
{
    *ret_text = SLICE_EMPTY;
    return json_node_text(json_node_named(node, key), c->arena, ret_text);
}

static struct json_node *get_array(struct json_node *node, const char *key)
{
    struct json_node *member = json_node_named(node, key);
    return member && member->type == JSON_TYPE_ARRAY ? member : NULL;
}

static struct json_node *get_object(struct json_node *node, const char *key)
{
    struct json_node *member = json_node_named(node, key);
    return member && member->type == JSON_TYPE_OBJECT ? member : NULL;
}

static enum status get_names(struct compiler *c, struct json_node *node, const char *key,
                             struct schema_names *ret_names)
{
    struct json_node *list = get_array(node, key);
    if (!list || !list->count)
        return ST_OK;
    ret_names->names = arena_calloc(c->arena, list->count, sizeof(struct slice));
    if (!ret_names->names)
        return ST_NOMEM;
    for (struct json_node *item = list->first; item; item = item->next) {
        if (item->type == JSON_TYPE_STRING)
            TRY(json_node_text(item, c->arena, &ret_names->names[ret_names->count++]));
    }
    return ST_OK;
}

/* -- Types, patterns, formats -- */

static const struct {
    const char *name;
    enum schema_type type;
} types[] = {
    {"string", SCHEMA_STRING},   {"number", SCHEMA_NUMBER}, {"integer", SCHEMA_INTEGER},
    {"boolean", SCHEMA_BOOLEAN}, {"array", SCHEMA_ARRAY},   {"object", SCHEMA_OBJECT},
};

static void set_types(struct schema *s, struct json_node *node)
{
    const struct json_node *type = json_node_named(node, "type");
    for (size_t i = 0; i < COUNT_OF(types); i++)
        if (json_node_is_text(type, types[i].name))
            s->types = types[i].type;
    s->int_or_string = get_bool(node, "x-kubernetes-int-or-string");
    if (s->int_or_string)
        s->types = SCHEMA_INTEGER | SCHEMA_STRING;
}

static enum status set_pattern(struct compiler *c, struct schema *s, struct json_node *node)
{
    TRY(get_text(c, node, "pattern", &s->pattern));
    if (!s->pattern.len)
        return ST_OK;
    enum status status = regex_compile(c->arena, s->pattern, &s->regex, c->error);
    if (status == ST_UNIMPLEMENTED) {
        c->traits->has_odd_patterns = true;
        return ST_OK;
    }
    return status;
}

static bool is_one_of(struct slice text, const char *a, const char *b)
{
    return slice_equal(text, slice_from_text(a)) || slice_equal(text, slice_from_text(b));
}

static enum status set_format(struct compiler *c, struct schema *s, struct json_node *node)
{
    struct slice format;
    TRY(get_text(c, node, "format", &format));
    if (!format.len)
        return ST_OK;
    bool known = false;
    if (s->types == SCHEMA_INTEGER) {
        known = is_one_of(format, "int32", "int64");
    } else if (s->types == SCHEMA_NUMBER) {
        known = is_one_of(format, "float", "double");
    } else if (!s->types || s->types == SCHEMA_STRING) {
        s->checks = schema_format_find(format);
        known = s->checks;
    }
    if (known)
        s->format = format;
    else if (!c->traits->odd_format.len)
        c->traits->odd_format = format;
    if (!s->checks || !s->checks->shape)
        return ST_OK;
    return regex_compile(c->arena, slice_from_text(s->checks->shape), &s->shape, c->error);
}

static void set_bounds(struct schema *s, struct json_node *node)
{
    s->has_minimum = get_number(node, "minimum", &s->minimum);
    s->has_maximum = get_number(node, "maximum", &s->maximum);
    s->has_multiple = get_number(node, "multipleOf", &s->multiple_of);
    s->exclusive_minimum = get_bool(node, "exclusiveMinimum");
    s->exclusive_maximum = get_bool(node, "exclusiveMaximum");
    s->min_length = get_int(node, "minLength");
    s->max_length = get_int(node, "maxLength");
    s->min_items = get_int(node, "minItems");
    s->max_items = get_int(node, "maxItems");
    s->min_properties = get_int(node, "minProperties");
    s->max_properties = get_int(node, "maxProperties");
}

static enum status set_extensions(struct compiler *c, struct schema *s, struct json_node *node)
{
    const struct json_node *list = json_node_named(node, "x-kubernetes-list-type");
    const struct json_node *rules = json_node_named(node, "x-kubernetes-validations");
    s->nullable = get_bool(node, "nullable");
    s->preserve_unknown = get_bool(node, "x-kubernetes-preserve-unknown-fields");
    s->embedded = get_bool(node, "x-kubernetes-embedded-resource");
    s->has_rules = rules && rules->type == JSON_TYPE_ARRAY && rules->count;
    c->traits->has_rules |= s->has_rules;
    s->list_type = json_node_is_text(list, "set")   ? SCHEMA_LIST_SET
                   : json_node_is_text(list, "map") ? SCHEMA_LIST_MAP
                                                    : SCHEMA_LIST_ATOMIC;
    return get_names(c, node, "x-kubernetes-list-map-keys", &s->list_keys);
}

/* -- The tree -- */

static enum status compile(struct compiler *c, struct json_node *node, struct schema **ret_schema);

static enum status compile_list(struct compiler *c, struct json_node *node, const char *key,
                                struct schema_list *ret_list)
{
    struct json_node *list = get_array(node, key);
    if (!list || !list->count)
        return ST_OK;
    ret_list->schemas = arena_calloc(c->arena, list->count, sizeof(struct schema *));
    if (!ret_list->schemas)
        return ST_NOMEM;
    for (struct json_node *item = list->first; item; item = item->next)
        TRY(compile(c, item, &ret_list->schemas[ret_list->count++]));
    return ST_OK;
}

static int property_order(const void *a, const void *b)
{
    return slice_compare(((const struct schema_property *)a)->name,
                         ((const struct schema_property *)b)->name);
}

static enum status compile_properties(struct compiler *c, struct schema *s, struct json_node *node)
{
    struct json_node *object = get_object(node, "properties");
    if (!object || !object->count)
        return ST_OK;
    s->properties = arena_calloc(c->arena, object->count, sizeof(*s->properties));
    if (!s->properties)
        return ST_NOMEM;
    for (struct json_node *member = object->first; member; member = member->next) {
        struct schema_property *property = &s->properties[s->property_count++];
        property->name = member->key;
        TRY(compile(c, member, &property->schema));
    }
    qsort(s->properties, s->property_count, sizeof(*s->properties), property_order);
    return ST_OK;
}

static enum status compile_additional(struct compiler *c, struct schema *s, struct json_node *node)
{
    struct json_node *additional = json_node_named(node, "additionalProperties");
    if (!additional)
        return ST_OK;
    s->additional_given = true;
    s->additional_allowed = additional->type != JSON_TYPE_BOOL || additional->truth;
    return additional->type == JSON_TYPE_OBJECT ? compile(c, additional, &s->additional) : ST_OK;
}

static enum status compile_children(struct compiler *c, struct schema *s, struct json_node *node)
{
    struct json_node *items = get_object(node, "items"), *not = get_object(node, "not");
    TRY(compile_properties(c, s, node));
    TRY(compile_additional(c, s, node));
    if (items)
        TRY(compile(c, items, &s->items));
    if (not )
        TRY(compile(c, not, &s->not ));
    TRY(compile_list(c, node, "allOf", &s->all_of));
    TRY(compile_list(c, node, "anyOf", &s->any_of));
    return compile_list(c, node, "oneOf", &s->one_of);
}

static enum status compile(struct compiler *c, struct json_node *node, struct schema **ret_schema)
{
    struct schema *s = arena_calloc(c->arena, 1, sizeof(*s));
    if (!s)
        return ST_NOMEM;
    *ret_schema = s;
    set_types(s, node);
    set_bounds(s, node);
    TRY(set_extensions(c, s, node));
    TRY(get_names(c, node, "required", &s->required));
    TRY(set_pattern(c, s, node));
    TRY(set_format(c, s, node));
    s->values = get_array(node, "enum");
    s->preset = json_node_named(node, "default");
    if (s->preset && s->preset->type == JSON_TYPE_NULL && !s->nullable)
        s->preset = NULL;
    c->traits->has_defaults |= s->preset != NULL;
    return compile_children(c, s, node);
}

enum status schema_compile(struct arena *arena, struct json_node *node, struct schema **ret_schema,
                           struct schema_traits *traits, struct error *error)
{
    struct compiler c = {.arena = arena, .traits = traits, .error = error};
    return compile(&c, node, ret_schema);
}

struct schema *schema_property(const struct schema *schema, struct slice name)
{
    struct schema_property wanted = {.name = name};
    if (!schema->property_count)
        return NULL;
    const struct schema_property *found = bsearch(
        &wanted, schema->properties, schema->property_count, sizeof(wanted), property_order);
    return found ? found->schema : NULL;
}
