#include "kube/custom/schema/structural.h"

#include "base/random.h"
#include "codec/json/number.h"
#include "kube/custom/schema/formats.h"
#include "kube/custom/schema/patterns.h"

#include <stdlib.h>

/*
 * Every part is made once for each content, from the leaves up, so that fields with equal schemas
 * share one. Real schemas repeat themselves a lot.
 */
struct compiler {
    struct arena *arena;  /* for the result */
    struct arena scratch; /* for temporary memory */
    struct hash_map made; /* struct schema_part by its bytes */
    struct patterns *patterns;
    struct schema_traits *traits;
    struct error *error;
};

struct schema_part {
    struct slice bytes;
    const struct json_node *node; /* a value whose text was read as JSON */
};

/* Shared by all schemas that have none of these keywords. */
static const struct schema_more nothing_more = {
    .min_length = -1,
    .max_length = -1,
    .min_items = -1,
    .max_items = -1,
    .min_properties = -1,
    .max_properties = -1,
};

/* -- Parts -- */

static struct slice part_key(const void *value)
{
    return ((const struct schema_part *)value)->bytes;
}

static enum status find_part(struct compiler *c, struct slice bytes, struct schema_part **ret_part)
{
    struct schema_part *part = hash_map_get(&c->made, bytes);
    void *replaced;
    if (!part) {
        part = arena_calloc(&c->scratch, 1, sizeof(*part));
        if (!part)
            return ST_NOMEM;
        TRY(arena_dup(c->arena, bytes, &part->bytes));
        TRY(hash_map_put(&c->made, part, &replaced));
    }
    *ret_part = part;
    return ST_OK;
}

static enum status keep(struct compiler *c, const void *bytes, size_t len, const void **ret_kept)
{
    struct schema_part *part;
    TRY(find_part(c, slice_of(bytes, len), &part));
    *ret_kept = part->bytes.ptr;
    return ST_OK;
}

static enum status keep_text(struct compiler *c, struct slice text, struct slice *ret_text)
{
    const void *kept = NULL;
    if (text.len)
        TRY(keep(c, text.ptr, text.len, &kept));
    *ret_text = slice_of(kept, text.len);
    return ST_OK;
}

/* Copies a value with its texts, because the tree is freed. */
static enum status keep_value(struct compiler *c, const struct json_node *node,
                              const struct json_node **ret_value)
{
    AUTO(buf_fini) struct buf json = {0};
    struct schema_part *part;
    TRY(json_tree_write(node, &json));
    TRY(find_part(c, buf_slice(&json), &part));
    /* This value is kept for the first time. */
    if (!part->node) {
        struct json_node *read;
        TRY(json_tree_read(c->arena, part->bytes, &read, c->error));
        part->node = read;
    }
    *ret_value = part->node;
    return ST_OK;
}

/* -- Helpers -- */

static bool get_bool(const struct json_node *node, const char *key)
{
    const struct json_node *member = json_node_named(node, key);
    return member && member->type == JSON_TYPE_BOOL && member->truth;
}

static int64_t get_int(const struct json_node *node, const char *key)
{
    int64_t value;
    return json_node_int(json_node_named(node, key), &value) && value >= 0 ? value : -1;
}

/* Numbers in checked schemas are short; longer ones are ignored. */
static bool get_number(const struct json_node *node, const char *key, double *ret_number)
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

static enum status get_text(struct compiler *c, const struct json_node *node, const char *key,
                            struct slice *ret_text)
{
    struct slice text = SLICE_EMPTY;
    TRY(json_node_text(json_node_named(node, key), &c->scratch, &text));
    return keep_text(c, text, ret_text);
}

static const struct json_node *get_array(const struct json_node *node, const char *key)
{
    const struct json_node *member = json_node_named(node, key);
    return member && member->type == JSON_TYPE_ARRAY ? member : NULL;
}

static const struct json_node *get_object(const struct json_node *node, const char *key)
{
    const struct json_node *member = json_node_named(node, key);
    return member && member->type == JSON_TYPE_OBJECT ? member : NULL;
}

static enum status get_names(struct compiler *c, const struct json_node *node, const char *key,
                             struct schema_names *ret_names)
{
    const struct json_node *list = get_array(node, key);
    if (!list || !list->count)
        return ST_OK;
    struct slice *names = arena_alloc(&c->scratch, list->count * sizeof(*names)), text;
    const void *kept;
    if (!names)
        return ST_NOMEM;
    for (const struct json_node *item = list->first; item; item = item->next) {
        if (item->type != JSON_TYPE_STRING)
            continue;
        TRY(json_node_text(item, &c->scratch, &text));
        TRY(keep_text(c, text, &names[ret_names->count++]));
    }
    TRY(keep(c, names, ret_names->count * sizeof(*names), &kept));
    ret_names->names = kept;
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

static void set_types(struct schema *s, const struct json_node *node)
{
    const struct json_node *type = json_node_named(node, "type");
    for (size_t i = 0; i < COUNT_OF(types); i++)
        if (json_node_is_text(type, types[i].name))
            s->types = (uint8_t)types[i].type;
    s->int_or_string = get_bool(node, "x-kubernetes-int-or-string");
    /* Such a value has no type in the schema, and one of these two. */
    if (s->int_or_string)
        s->types = SCHEMA_INTEGER | SCHEMA_STRING;
}

static enum status set_pattern(struct compiler *c, struct schema_more *more,
                               const struct json_node *node)
{
    const struct json_node *pattern = json_node_named(node, "pattern");
    struct slice text = SLICE_EMPTY;
    TRY(json_node_text(pattern, &c->scratch, &text));
    if (!text.len)
        return ST_OK;
    return patterns_get(c->patterns, text, &more->regex, &more->pattern, c->error);
}

static bool is_one_of(struct slice text, const char *a, const char *b)
{
    return slice_equal(text, slice_from_text(a)) || slice_equal(text, slice_from_text(b));
}

static void add_unknown_format(struct schema_traits *traits, struct slice format)
{
    for (size_t i = 0; i < traits->unknown_format_count; i++)
        if (slice_equal(traits->unknown_formats[i], format))
            return;
    if (traits->unknown_format_count < SCHEMA_FORMATS_MAX)
        traits->unknown_formats[traits->unknown_format_count++] = format;
}

static enum status set_format(struct compiler *c, const struct schema *s, struct schema_more *more,
                              const struct json_node *node)
{
    struct slice format, shape;
    TRY(get_text(c, node, "format", &format));
    if (!format.len)
        return ST_OK;
    bool known = false;
    if (s->types == SCHEMA_INTEGER) {
        known = is_one_of(format, "int32", "int64");
    } else if (s->types == SCHEMA_NUMBER) {
        known = is_one_of(format, "float", "double");
    } else if (!s->types || s->types == SCHEMA_STRING) {
        more->checks = schema_format_find(format);
        known = more->checks;
    }
    /* Formats that Kubernetes does not know are ignored; the writer of the definition is warned of
     * them. */
    if (known)
        more->format = format;
    else
        add_unknown_format(c->traits, format);
    if (!more->checks || !more->checks->shape)
        return ST_OK;
    return patterns_get(c->patterns, slice_from_text(more->checks->shape), &more->shape, &shape,
                        c->error);
}

static void set_bounds(struct schema_more *more, const struct json_node *node)
{
    more->has_minimum = get_number(node, "minimum", &more->minimum);
    more->has_maximum = get_number(node, "maximum", &more->maximum);
    more->has_multiple = get_number(node, "multipleOf", &more->multiple_of);
    more->exclusive_minimum = get_bool(node, "exclusiveMinimum");
    more->exclusive_maximum = get_bool(node, "exclusiveMaximum");
    more->min_length = get_int(node, "minLength");
    more->max_length = get_int(node, "maxLength");
    more->min_items = get_int(node, "minItems");
    more->max_items = get_int(node, "maxItems");
    more->min_properties = get_int(node, "minProperties");
    more->max_properties = get_int(node, "maxProperties");
}

static enum status set_extensions(struct compiler *c, struct schema *s,
                                  const struct json_node *node)
{
    const struct json_node *list = json_node_named(node, "x-kubernetes-list-type");
    s->nullable = get_bool(node, "nullable");
    s->preserve_unknown = get_bool(node, "x-kubernetes-preserve-unknown-fields");
    s->embedded = get_bool(node, "x-kubernetes-embedded-resource");
    s->map_atomic = json_node_is_text(json_node_named(node, "x-kubernetes-map-type"), "atomic");
    s->list_type = json_node_is_text(list, "set")   ? SCHEMA_LIST_SET
                   : json_node_is_text(list, "map") ? SCHEMA_LIST_MAP
                                                    : SCHEMA_LIST_ATOMIC;
    s->preset = NULL;
    /* As in Kubernetes, null does not count as a default, even where it is allowed as a value. */
    const struct json_node *preset = json_node_named(node, "default");
    if (preset && preset->type != JSON_TYPE_NULL)
        TRY(keep_value(c, preset, &s->preset));
    c->traits->has_defaults |= s->preset != NULL;
    return ST_OK;
}

/* -- Rules -- */

static enum schema_reason reason_of(const struct json_node *node)
{
    static const char *const names[] = {
        [SCHEMA_INVALID] = "FieldValueInvalid",
        [SCHEMA_FORBIDDEN] = "FieldValueForbidden",
        [SCHEMA_REQUIRED] = "FieldValueRequired",
        [SCHEMA_DUPLICATE] = "FieldValueDuplicate",
    };
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (json_node_is_text(node, names[i]))
            return (enum schema_reason)i;
    return SCHEMA_INVALID;
}

static enum status get_rules(struct compiler *c, const struct json_node *node,
                             struct schema_more *more)
{
    const struct json_node *list = get_array(node, "x-kubernetes-validations");
    if (!list || !list->count)
        return ST_OK;
    /* Zeroed including padding, because parts are compared as bytes. */
    struct schema_rule *rules = arena_calloc(&c->scratch, list->count, sizeof(*rules));
    const void *kept;
    if (!rules)
        return ST_NOMEM;
    for (const struct json_node *item = list->first; item; item = item->next) {
        struct schema_rule *rule = &rules[more->rule_count++];
        TRY(get_text(c, item, "rule", &rule->rule));
        TRY(get_text(c, item, "message", &rule->message));
        TRY(get_text(c, item, "messageExpression", &rule->message_expression));
        TRY(get_text(c, item, "fieldPath", &rule->field_path));
        rule->reason = reason_of(json_node_named(item, "reason"));
        rule->optional_old = get_bool(item, "optionalOldSelf");
    }
    TRY(keep(c, rules, more->rule_count * sizeof(*rules), &kept));
    more->rules = kept;
    return ST_OK;
}

/* -- The schema tree -- */

static enum status compile(struct compiler *c, const struct json_node *node,
                           const struct schema **ret_schema);

static enum status compile_list(struct compiler *c, const struct json_node *node, const char *key,
                                struct schema_list *ret_list)
{
    const struct json_node *list = get_array(node, key);
    if (!list || !list->count)
        return ST_OK;
    const struct schema **schemas = arena_alloc(&c->scratch, list->count * sizeof(*schemas));
    const void *kept;
    if (!schemas)
        return ST_NOMEM;
    for (const struct json_node *item = list->first; item; item = item->next)
        TRY(compile(c, item, &schemas[ret_list->count++]));
    TRY(keep(c, schemas, ret_list->count * sizeof(*schemas), &kept));
    ret_list->schemas = kept;
    return ST_OK;
}

static int property_order(const void *a, const void *b)
{
    return slice_compare(((const struct schema_property *)a)->name,
                         ((const struct schema_property *)b)->name);
}

static enum status compile_properties(struct compiler *c, struct schema *s,
                                      const struct json_node *node)
{
    const struct json_node *object = get_object(node, "properties");
    const void *kept;
    if (!object || !object->count)
        return ST_OK;
    struct schema_property *properties =
        arena_alloc(&c->scratch, object->count * sizeof(*properties));
    if (!properties)
        return ST_NOMEM;
    for (const struct json_node *member = object->first; member; member = member->next) {
        struct schema_property *property = &properties[s->property_count++];
        TRY(keep_text(c, member->key, &property->name));
        TRY(compile(c, member, &property->schema));
    }
    qsort(properties, s->property_count, sizeof(*properties), property_order);
    TRY(keep(c, properties, s->property_count * sizeof(*properties), &kept));
    s->properties = kept;
    return ST_OK;
}

static enum status compile_additional(struct compiler *c, struct schema *s,
                                      const struct json_node *node)
{
    const struct json_node *additional = json_node_named(node, "additionalProperties");
    if (!additional)
        return ST_OK;
    s->additional_given = true;
    s->additional_allowed = additional->type != JSON_TYPE_BOOL || additional->truth;
    return additional->type == JSON_TYPE_OBJECT ? compile(c, additional, &s->additional) : ST_OK;
}

static enum status compile_more(struct compiler *c, struct schema *s, const struct json_node *node)
{
    struct schema_more more;
    const void *kept;
    const struct json_node *not = get_object(node, "not"), *values = get_array(node, "enum");
    memcpy(&more, &nothing_more, sizeof(more));
    set_bounds(&more, node);
    TRY(set_pattern(c, &more, node));
    TRY(set_format(c, s, &more, node));
    TRY(get_names(c, node, "x-kubernetes-list-map-keys", &more.list_keys));
    TRY(get_rules(c, node, &more));
    s->has_rules = more.rule_count > 0;
    c->traits->has_rules |= s->has_rules;
    if (values)
        TRY(keep_value(c, values, &more.values));
    if (not )
        TRY(compile(c, not, &more.not ));
    TRY(compile_list(c, node, "allOf", &more.all_of));
    TRY(compile_list(c, node, "anyOf", &more.any_of));
    TRY(compile_list(c, node, "oneOf", &more.one_of));
    if (slice_equal(slice_of(&more, sizeof(more)), slice_of(&nothing_more, sizeof(more)))) {
        s->more = &nothing_more;
        return ST_OK;
    }
    TRY(keep(c, &more, sizeof(more), &kept));
    s->more = kept;
    return ST_OK;
}

static enum status compile_children(struct compiler *c, struct schema *s,
                                    const struct json_node *node)
{
    const struct json_node *items = get_object(node, "items");
    TRY(compile_properties(c, s, node));
    TRY(compile_additional(c, s, node));
    return items ? compile(c, items, &s->items) : ST_OK;
}

/* -- Cost of validation -- */

static uint64_t count_nodes(const struct json_node *node)
{
    uint64_t count = 1;
    if (node->type < JSON_TYPE_ARRAY)
        return count + node->text.len / 16;
    for (const struct json_node *child = node->first; child; child = child->next)
        count += count_nodes(child);
    return count;
}

static uint64_t effort_of_regex(const struct regex *regex)
{
    return regex ? regex_effort(regex) : 0;
}

static uint64_t effort_of_list(const struct schema_list *list)
{
    uint64_t effort = 0;
    for (size_t i = 0; i < list->count; i++)
        effort += 1 + list->schemas[i]->effort;
    return effort;
}

/* The cost of the value itself, without its members and items. */
static uint64_t own_effort(const struct schema *s)
{
    const struct schema_more *more = s->more;
    return s->required.count + (more->values ? count_nodes(more->values) : 0) +
           effort_of_regex(more->regex) + effort_of_regex(more->shape) +
           (more->not ? 1 + more->not ->effort : 0) + effort_of_list(&more->all_of) +
           effort_of_list(&more->any_of) + effort_of_list(&more->one_of);
}

/*
 * Each byte of a value belongs to one member or item. An object of two bytes can receive all
 * defaults, which are validated like values of the client.
 */
static uint32_t effort_of(const struct schema *s)
{
    uint64_t most = s->items ? s->items->effort : 0, presets = 0;
    most = size_max(most, s->additional ? s->additional->effort : 0);
    for (size_t i = 0; i < s->property_count; i++) {
        const struct schema *property = s->properties[i].schema;
        most = size_max(most, property->effort);
        if (property->preset)
            presets += count_nodes(property->preset) * (1 + property->effort);
    }
    return (uint32_t)size_min(own_effort(s) + presets + most, SCHEMA_EFFORT_MAX);
}

/* -- The size of the shortest value -- */

static uint32_t least_of_string(struct slice format)
{
    static const struct {
        const char *format;
        uint32_t bytes;
    } rows[] = {{"duration", 3}, {"date", 12}, {"date-time", 21}};
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (slice_equal(format, slice_from_text(rows[i].format)))
            return rows[i].bytes;
    return 2;
}

static bool has_property(const struct schema *schema, const char *name, enum schema_type type)
{
    const struct schema *property = schema ? schema_property(schema, slice_from_text(name)) : NULL;
    return property && property->types == type && !property->int_or_string;
}

/* What resources have besides the properties of their schemas. */
static bool has_meta(const struct schema *schema)
{
    const struct schema *metadata = schema_property(schema, SLICE_LITERAL("metadata"));
    return has_property(schema, "kind", SCHEMA_STRING) &&
           has_property(schema, "apiVersion", SCHEMA_STRING) &&
           has_property(schema, "metadata", SCHEMA_OBJECT) &&
           has_property(metadata, "name", SCHEMA_STRING) &&
           has_property(metadata, "generateName", SCHEMA_STRING);
}

static bool is_meta(struct slice name)
{
    return slice_equal(name, SLICE_LITERAL("kind")) ||
           slice_equal(name, SLICE_LITERAL("apiVersion")) ||
           slice_equal(name, SLICE_LITERAL("metadata"));
}

static int name_order(const void *a, const void *b)
{
    return slice_compare(*(const struct slice *)a, *(const struct slice *)b);
}

/* With the required properties that have no default. */
static enum status least_of_object(struct compiler *c, const struct schema *s, uint32_t *ret_bytes)
{
    uint64_t sum = 2;
    size_t size = s->required.count * sizeof(struct slice);
    struct slice *names = size ? arena_alloc(&c->scratch, size) : NULL;
    if (size && !names)
        return ST_NOMEM;
    slice_copy((uint8_t *)names, slice_of(s->required.names, size));
    if (size)
        qsort(names, s->required.count, sizeof(*names), name_order);
    for (size_t i = 0; i < s->required.count; i++) {
        const struct schema *property = schema_property(s, names[i]);
        if (i && slice_equal(names[i], names[i - 1]))
            continue;
        /* A resource has strings and an object there, whatever the schema says. */
        if (s->embedded && !s->has_meta && is_meta(names[i]))
            sum += names[i].len + 2 + 4;
        else if (property && property->least_bytes && !property->preset)
            sum += names[i].len + property->least_bytes + 4;
    }
    *ret_bytes = (uint32_t)size_min(sum, UINT32_MAX);
    return ST_OK;
}

static enum status set_least(struct compiler *c, struct schema *s)
{
    const struct schema *below = s->types & SCHEMA_ARRAY ? s->items : s->additional;
    s->has_meta = has_meta(s);
    if (s->int_or_string || s->types & (SCHEMA_NUMBER | SCHEMA_INTEGER))
        s->least_bytes = 1;
    else if (s->types & SCHEMA_BOOLEAN)
        s->least_bytes = 4;
    else if (s->types & SCHEMA_STRING)
        s->least_bytes = least_of_string(s->more->format);
    else if (s->types & SCHEMA_OBJECT && !s->additional)
        return least_of_object(c, s, &s->least_bytes);
    else if (s->types && below && below->least_bytes)
        s->least_bytes = 2;
    return ST_OK;
}

static enum status compile(struct compiler *c, const struct json_node *node,
                           const struct schema **ret_schema)
{
    struct schema s;
    const void *kept;
    memset(&s, 0, sizeof(s)); /* including padding, because parts are compared as bytes */
    set_types(&s, node);
    TRY(set_extensions(c, &s, node));
    TRY(get_names(c, node, "required", &s.required));
    TRY(compile_more(c, &s, node));
    TRY(compile_children(c, &s, node));
    TRY(set_least(c, &s));
    s.effort = effort_of(&s);
    TRY(keep(c, &s, sizeof(s), &kept));
    *ret_schema = kept;
    return ST_OK;
}

enum status schema_compile(struct arena *arena, struct patterns *patterns,
                           const struct json_node *node, const struct schema **ret_schema,
                           struct schema_traits *traits, struct error *error)
{
    struct compiler c = {.arena = arena, .patterns = patterns, .traits = traits, .error = error};
    arena_init(&c.scratch, NULL, 0, arena->limit_bytes);
    hash_map_init(&c.made, part_key, random_seed_system());
    enum status status = compile(&c, node, ret_schema);
    hash_map_fini(&c.made);
    arena_fini(&c.scratch);
    return status;
}

const struct schema *schema_property(const struct schema *schema, struct slice name)
{
    struct schema_property key = {.name = name};
    if (!schema->property_count)
        return NULL;
    const struct schema_property *found =
        bsearch(&key, schema->properties, schema->property_count, sizeof(key), property_order);
    return found ? found->schema : NULL;
}
