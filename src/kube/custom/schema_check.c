#include "kube/custom/schema_check.h"

#include "kube/custom/rule_check.h"
#include "kube/custom/rules/evaluate.h"
#include "kube/custom/schema/structural.h"
#include "kube/types/go_text.h"

#include <stdio.h>
#include <stdlib.h>

enum schema_level { LEVEL_ROOT, LEVEL_ITEM, LEVEL_FIELD };

/* -- Helpers -- */

static const struct json_node *object_of(const struct json_node *node, const char *key)
{
    const struct json_node *member = json_node_named(node, key);
    return member && member->type == JSON_TYPE_OBJECT ? member : NULL;
}

static bool has_type(const struct json_node *node, const char *type)
{
    return json_node_is_text(json_node_named(node, "type"), type);
}

static bool is_empty_text(const struct json_node *node, const char *key)
{
    const struct json_node *member = json_node_named(node, key);
    return !member || member->type != JSON_TYPE_STRING || !member->text.len;
}

static const char *const extensions[] = {"x-kubernetes-preserve-unknown-fields",
                                         "x-kubernetes-embedded-resource",
                                         "x-kubernetes-int-or-string"};

/* -- Structural: the types are known without values -- */

static void check_values(struct definition_check *c, const struct json_node *node, bool skip_any_of,
                         bool skip_first_all_of);

/* Schemas below allOf, anyOf, oneOf and not may not specify types. */
static void check_nested(struct definition_check *c, const struct json_node *node, bool skip_any_of)
{
    static const struct {
        const char *key, *why;
    } empty[] = {
        {"type", "must be empty to be structural"},
        {"additionalProperties", "must be undefined to be structural"},
        {"default", "must be undefined to be structural"},
        {"title", "must be empty to be structural"},
        {"description", "must be empty to be structural"},
        {"x-kubernetes-list-map-keys", "must be empty to be structural"},
        {"x-kubernetes-list-type", "must be undefined to be structural"},
        {"x-kubernetes-map-type", "must be undefined to be structural"},
        {"x-kubernetes-validations", "must be empty to be structural"},
    };
    const struct json_node *items = object_of(node, "items"),
                           *fields = object_of(node, "properties");
    check_values(c, node, skip_any_of, false);
    if (items) {
        size_t before = check_enter(c, ".items");
        check_nested(c, items, false);
        check_leave(c, before);
    }
    for (const struct json_node *field = fields ? fields->first : NULL; field;
         field = field->next) {
        size_t before = check_enter_property(c, field->key);
        check_nested(c, field, false);
        check_leave(c, before);
    }
    for (size_t i = 0; i < COUNT_OF(empty); i++)
        if (check_has(node, empty[i].key))
            check_forbidden(c, empty[i].key, empty[i].why);
    if (check_is_true(node, "nullable"))
        check_forbidden(c, "nullable", "must be false to be structural");
    for (size_t i = 0; i < COUNT_OF(extensions); i++)
        if (check_is_true(node, extensions[i]))
            check_forbidden(c, extensions[i], "must be false to be structural");
    if (fields && json_node_named(fields, "metadata"))
        check_forbidden(c, "properties[metadata]", "must not be specified in a nested context");
}

static void check_each(struct definition_check *c, const struct json_node *node, const char *key,
                       bool skip_first)
{
    const struct json_node *list = check_array(node, key);
    size_t at = 0;
    for (const struct json_node *item = list ? list->first : NULL; item; item = item->next, at++) {
        size_t before = check_enter(c, ".%s[%zu]", key, at);
        check_nested(c, item, skip_first && at == 0);
        check_leave(c, before);
    }
}

static void check_pattern(struct definition_check *c, const struct json_node *node)
{
    const struct json_node *pattern = json_node_named(node, "pattern");
    const struct regex *regex;
    struct slice text;
    struct error error = {0};
    char why[sizeof(error.text) + 80];
    if (json_node_text(pattern, c->arena, &text) != ST_OK)
        c->errors->no_memory = true;
    if (!text.len)
        return;
    switch (patterns_get(&c->patterns, text, &regex, &text, &error)) {
    case ST_INVALID:
    case ST_LIMIT:
        snprintf(why, sizeof(why), "must be a valid regular expression, but isn't: %s", error.text);
        check_invalid(c, "pattern", pattern, why);
        break;
    case ST_NOMEM:
        c->errors->no_memory = true;
        break;
    default:
        break;
    }
}

static void check_values(struct definition_check *c, const struct json_node *node, bool skip_any_of,
                         bool skip_first_all_of)
{
    const struct json_node *not = object_of(node, "not");
    if (!skip_any_of)
        check_each(c, node, "anyOf", false);
    check_each(c, node, "allOf", skip_first_all_of);
    check_each(c, node, "oneOf", false);
    if (not ) {
        size_t before = check_enter(c, ".not");
        check_nested(c, not, false);
        check_leave(c, before);
    }
    check_pattern(c, node);
}

/* anyOf: [{type: integer}, {type: string}], which is allowed beside x-kubernetes-int-or-string. */
static bool is_int_or_string(const struct json_node *node)
{
    const struct json_node *list = check_array(node, "anyOf");
    if (!list || list->count != 2)
        return false;
    return list->first->count == 1 && has_type(list->first, "integer") && list->last->count == 1 &&
           has_type(list->last, "string");
}

static void check_type_given(struct definition_check *c, const struct json_node *node,
                             enum schema_level level)
{
    static const char *const why[] = {
        [LEVEL_ROOT] = "must not be empty at the root",
        [LEVEL_ITEM] = "must not be empty for specified array items",
        [LEVEL_FIELD] = "must not be empty for specified object fields",
    };
    bool empty = is_empty_text(node, "type");
    if (check_is_true(node, "x-kubernetes-embedded-resource") && !has_type(node, "object")) {
        static const char embedded[] = "must be object if x-kubernetes-embedded-resource is true";
        if (empty)
            check_required(c, "type", embedded);
        else
            check_invalid(c, "type", json_node_named(node, "type"), embedded);
    } else if (empty && !check_is_true(node, "x-kubernetes-int-or-string") &&
               !check_is_true(node, "x-kubernetes-preserve-unknown-fields")) {
        check_required(c, "type", why[level]);
    }
    if (level == LEVEL_ROOT && !empty && !has_type(node, "object"))
        check_invalid(c, "type", json_node_named(node, "type"), "must be object at the root");
}

/* The root's metadata has a fixed schema; only name and generateName may be restricted. */
static void check_root_metadata(struct definition_check *c, const struct json_node *metadata)
{
    const struct json_node *fields = object_of(metadata, "properties");
    bool fine = true;
    for (const struct json_node *field = fields ? fields->first : NULL; field; field = field->next)
        fine = fine && (slice_equal(field->key, SLICE_LITERAL("name")) ||
                        slice_equal(field->key, SLICE_LITERAL("generateName")));
    for (const struct json_node *member = metadata->first; member; member = member->next)
        fine = fine && (slice_equal(member->key, SLICE_LITERAL("type")) ||
                        slice_equal(member->key, SLICE_LITERAL("properties")) ||
                        slice_equal(member->key, SLICE_LITERAL("default")));
    if (!fine)
        check_forbidden(c, "",
                        "must not specify anything other than name and generateName, but metadata "
                        "is implicitly specified");
}

static void check_meta(struct definition_check *c, const struct json_node *fields,
                       enum schema_level level, bool embedded)
{
    static const char *const names[] = {"kind", "apiVersion", "metadata"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        const struct json_node *field = json_node_named(fields, names[i]);
        if (!field)
            continue;
        size_t before = check_enter(c, ".properties[%s]", names[i]);
        const char *type = i < 2 ? "string" : "object";
        if ((level == LEVEL_ROOT || embedded) && !has_type(field, type)) {
            const struct json_node *given = json_node_named(field, "type");
            check_invalid(c, "type", given, i < 2 ? "must be string" : "must be object");
        }
        /* Only at the root is this the metadata of the resource itself. */
        if (level == LEVEL_ROOT && i == 2)
            check_root_metadata(c, field);
        check_leave(c, before);
    }
}

static void check_structural(struct definition_check *c, const struct json_node *node,
                             enum schema_level level)
{
    const struct json_node *items = object_of(node, "items"),
                           *fields = object_of(node, "properties");
    const struct json_node *additional = json_node_named(node, "additionalProperties");
    bool embedded = check_is_true(node, "x-kubernetes-embedded-resource");
    bool either = check_is_true(node, "x-kubernetes-int-or-string");
    if (has_type(node, "array") && !check_has(node, "items"))
        check_required(c, "items", "must be specified");
    if (items) {
        size_t before = check_enter(c, ".items");
        check_structural(c, items, LEVEL_ITEM);
        check_leave(c, before);
    }
    for (const struct json_node *field = fields ? fields->first : NULL; field;
         field = field->next) {
        size_t before = check_enter_property(c, field->key);
        check_structural(c, field, LEVEL_FIELD);
        check_leave(c, before);
    }
    if (additional && level == LEVEL_ROOT)
        check_forbidden(c, "additionalProperties", "must not be used at the root");
    if (additional && additional->type == JSON_TYPE_OBJECT) {
        size_t before = check_enter(c, ".additionalProperties");
        check_structural(c, additional, LEVEL_FIELD);
        check_leave(c, before);
    }
    for (size_t i = 0; i < 2; i++)
        /* A value that is an integer or a string has no fields that could be kept or embedded. */
        if (either && check_is_true(node, extensions[i]))
            check_invalid(c, extensions[i], json_node_named(node, extensions[i]),
                          "must be false if x-kubernetes-int-or-string is true");
    const struct json_node *all_of = check_array(node, "allOf");
    check_values(c, node, is_int_or_string(node),
                 all_of && all_of->first && is_int_or_string(all_of->first));
    check_type_given(c, node, level);
    if (embedded && additional)
        check_forbidden(c, "additionalProperties",
                        "must not be used if x-kubernetes-embedded-resource is set");
    if (fields)
        check_meta(c, fields, level, embedded);
    if (embedded && !check_is_true(node, "x-kubernetes-preserve-unknown-fields") &&
        (!fields || !fields->count))
        check_required(c, "properties",
                       "must not be empty if x-kubernetes-embedded-resource is true without "
                       "x-kubernetes-preserve-unknown-fields");
}

/* -- Keywords -- */

static void check_keywords(struct definition_check *c, const struct json_node *node)
{
    static const char *const types[] = {"array",  "boolean", "integer",
                                        "number", "object",  "string"};
    static const char *const not_supported[] = {
        "id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"};
    bool known = is_empty_text(node, "type");
    for (size_t i = 0; i < COUNT_OF(types); i++)
        known = known || has_type(node, types[i]);
    if (!known)
        check_unsupported(c, "type", json_node_named(node, "type"),
                          "\"array\", \"boolean\", \"integer\", \"number\", \"object\", "
                          "\"string\"");
    for (size_t i = 0; i < COUNT_OF(not_supported); i++) {
        char why[64];
        snprintf(why, sizeof(why), "%s is not supported", not_supported[i]);
        if (check_has(node, not_supported[i]))
            check_forbidden(c, not_supported[i], why);
    }
    if (has_type(node, "null"))
        check_forbidden(c, "type", "type cannot be set to null, use nullable as an alternative");
    if (check_array(node, "items"))
        check_forbidden(c, "items", "items must be a schema object and not an array");
    if (check_is_true(node, "uniqueItems"))
        check_forbidden(c, "uniqueItems",
                        "uniqueItems cannot be set to true since the runtime complexity becomes "
                        "quadratic");
    const struct json_node *preserve =
        json_node_named(node, "x-kubernetes-preserve-unknown-fields");
    if (preserve && preserve->type == JSON_TYPE_BOOL && !preserve->truth)
        check_invalid(c, "x-kubernetes-preserve-unknown-fields",
                      json_node_named(node, "x-kubernetes-preserve-unknown-fields"),
                      "must be true or undefined");
}

static bool is_listed(const struct json_node *list, const struct json_node *value,
                      const struct json_node *end)
{
    const struct json_node *item = list ? list->first : NULL;
    while (item && item != end && !json_node_equal(item, value))
        item = item->next;
    return item && item != end;
}

static void check_keys(struct definition_check *c, const struct json_node *keys,
                       const struct json_node *items)
{
    static const char child[] = "x-kubernetes-list-map-keys";
    const struct json_node *fields = object_of(items, "properties");
    for (const struct json_node *key = keys->first; key; key = key->next) {
        const struct json_node *field = json_node_member(fields, key->text);
        size_t before = check_enter(c, ".items.properties[%.*s]", SLICE_ARGS(key->text));
        if (field && (has_type(field, "array") || has_type(field, "object")))
            check_invalid(c, "type", json_node_named(items, "type"),
                          "must be a scalar type if parent array's x-kubernetes-list-type is map");
        check_leave(c, before);
        if (!field)
            check_invalid(c, child, keys, "entries must all be names of item properties");
        if (is_listed(keys, key, key))
            check_invalid(c, child, keys, "must not contain duplicate entries");
    }
}

/* What identifies an item is always there. */
static void check_key_fields(struct definition_check *c, const struct json_node *keys,
                             const struct json_node *items)
{
    const struct json_node *fields = object_of(items, "properties");
    const struct json_node *required = check_array(items, "required");
    for (const struct json_node *key = keys->first; key; key = key->next) {
        const struct json_node *field = json_node_member(fields, key->text);
        if (!field)
            continue;
        size_t before = check_enter(c, ".items.properties[%.*s]", SLICE_ARGS(key->text));
        if (!is_listed(required, key, NULL) && !check_has(field, "default"))
            check_required(c, "default",
                           "this property is in x-kubernetes-list-map-keys, so it must have a "
                           "default or be a required property");
        if (check_is_true(field, "nullable"))
            check_forbidden(c, "nullable",
                            "this property is in x-kubernetes-list-map-keys, so it cannot be "
                            "nullable");
        check_leave(c, before);
    }
}

static void check_map_type(struct definition_check *c, const struct json_node *node)
{
    static const char key[] = "x-kubernetes-map-type",
                      why[] = "must be object if x-kubernetes-map-type is specified";
    const struct json_node *type = json_node_named(node, key);
    if (!type || type->type == JSON_TYPE_NULL)
        return;
    if (is_empty_text(node, "type"))
        check_required(c, "type", why);
    else if (!has_type(node, "object"))
        check_invalid(c, "type", json_node_named(node, "type"), why);
    if (!json_node_is_text(type, "atomic") && !json_node_is_text(type, "granular"))
        check_unsupported(c, key, type, "\"atomic\", \"granular\"");
}

static bool merges_lists(const struct json_node *items)
{
    const struct json_node *type = json_node_named(items, "x-kubernetes-list-type");
    return has_type(items, "array") && json_node_is_set(type) && !json_node_is_text(type, "atomic");
}

static bool merges_fields(const struct json_node *items)
{
    const struct json_node *type = json_node_named(items, "x-kubernetes-map-type");
    return has_type(items, "object") &&
           !(json_node_is_set(type) && json_node_is_text(type, "atomic"));
}

/* Whether there is a set whose items are merged, which Kubernetes once accepted. */
static bool has_merged_items(const struct json_node *node)
{
    const struct json_node *type = json_node_named(node, "x-kubernetes-list-type"),
                           *items = object_of(node, "items");
    if (type && items && json_node_is_text(type, "set") &&
        (merges_lists(items) || merges_fields(items)))
        return true;
    for (const struct json_node *child = node->first; child; child = child->next)
        if ((child->type == JSON_TYPE_OBJECT || child->type == JSON_TYPE_ARRAY) &&
            has_merged_items(child))
            return true;
    return false;
}

/* A definition that was accepted with such a set may be updated. */
static bool may_merge_items(struct definition_check *c)
{
    /* The old definition is searched once, and only if a set of the new one needs it. */
    if (!c->sets_searched)
        c->sets_merge = c->old_versions && has_merged_items(c->old_versions);
    c->sets_searched = true;
    return c->sets_merge;
}

/* The items of a set are compared as a whole, so they may not be merged. */
static void check_set_items(struct definition_check *c, const struct json_node *items)
{
    static const struct json_node null = {.type = JSON_TYPE_NULL};
    static const char why[] = "must be atomic as item of a list with x-kubernetes-list-type=set";
    const struct json_node *list = json_node_named(items, "x-kubernetes-list-type");
    if (merges_lists(items))
        check_invalid(c, "items.x-kubernetes-list-type", list, why);
    /* Kubernetes shows the type of a list here, too. */
    if (merges_fields(items))
        check_invalid(c, "items.x-kubernetes-map-type", list ? list : &null, why);
}

static void check_list(struct definition_check *c, const struct json_node *node)
{
    static const char key[] = "x-kubernetes-list-type";
    const struct json_node *type = json_node_named(node, key), *items = object_of(node, "items");
    const struct json_node *keys = check_array(node, "x-kubernetes-list-map-keys");
    bool map = json_node_is_text(type, "map"), set = json_node_is_text(type, "set");
    if (type && !has_type(node, "array")) {
        static const char why[] = "must be array if x-kubernetes-list-type is specified";
        if (is_empty_text(node, "type"))
            check_required(c, "type", why);
        else
            check_invalid(c, "type", json_node_named(node, "type"), why);
    } else if (set && items && (merges_lists(items) || merges_fields(items)) && !may_merge_items(c))
        check_set_items(c, items);
    if (type && !map && !set && !json_node_is_text(type, "atomic"))
        check_unsupported(c, key, type, "\"atomic\", \"set\", \"map\"");
    if (keys && keys->count && !type)
        check_required(c, key, "must be map if x-kubernetes-list-map-keys is non-empty");
    else if (keys && keys->count && !map)
        check_invalid(c, key, type, "must be map if x-kubernetes-list-map-keys is non-empty");
    if (map && (!keys || !keys->count))
        check_required(c, "x-kubernetes-list-map-keys",
                       "must not be empty if x-kubernetes-list-type is map");
    if (map && items && !has_type(items, "object"))
        check_invalid(c, "items.type", json_node_named(items, "type"),
                      "must be object if parent array's x-kubernetes-list-type is map");
    bool few = keys && check_few(c, "x-kubernetes-list-map-keys", keys, KUBE_LIST_KEYS_MAX);
    if (map && items && few && has_type(items, "object"))
        check_keys(c, keys, items);
    if ((map || set) && items && check_is_true(items, "nullable"))
        check_forbidden(c, "items.nullable",
                        map ? "cannot be nullable when x-kubernetes-list-type is map"
                            : "cannot be nullable when x-kubernetes-list-type is set");
    if (map && items && few)
        check_key_fields(c, keys, items);
}

static void check_openapi(struct definition_check *c, const struct json_node *node,
                          const struct rule_scope *scope, const char *no_default);

static void check_openapi_each(struct definition_check *c, const struct json_node *node,
                               const char *key, const char *no_default)
{
    const struct json_node *list = check_array(node, key);
    size_t at = 0;
    for (const struct json_node *item = list ? list->first : NULL; item; item = item->next, at++) {
        size_t before = check_enter(c, ".%s[%zu]", key, at);
        check_openapi(c, item, &(struct rule_scope){0}, no_default);
        check_leave(c, before);
    }
}

static void check_openapi_fields(struct definition_check *c, const struct json_node *fields,
                                 const struct rule_scope *scope, const char *no_default)
{
    const struct schema *schema = scope->schema;
    bool root = scope->root;
    static const char *const metas[] = {"in top-level metadata", "in top-level kind",
                                        "in top-level apiVersion"};
    for (const struct json_node *field = fields->first; field; field = field->next) {
        const char *why = no_default;
        for (size_t i = 0; root && i < COUNT_OF(metas); i++)
            if (slice_equal(field->key, slice_from_text(metas[i] + strlen("in top-level "))))
                why = metas[i];
        struct rule_scope below =
            rule_scope_below(c, scope, schema ? schema_property(schema, field->key) : NULL, true);
        size_t before = check_enter_property(c, field->key);
        check_openapi(c, field, &below, why);
        check_leave(c, before);
    }
}

/* no_default: why a default is not allowed; NULL: it is allowed. */
static void check_openapi(struct definition_check *c, const struct json_node *node,
                          const struct rule_scope *scope, const char *no_default)
{
    const struct schema *schema = scope->schema;
    size_t errors = c->errors->count;
    const struct json_node *fields = object_of(node, "properties");
    const struct json_node *additional = json_node_named(node, "additionalProperties");
    static const char *const below[] = {"items", "not", "additionalProperties"};
    check_keywords(c, node);
    if (no_default && check_has(node, "default")) {
        char why[128];
        snprintf(why, sizeof(why), "must not be set %s", no_default);
        check_forbidden(c, "default", why);
    }
    if (additional && fields && fields->count &&
        !(additional->type == JSON_TYPE_BOOL && additional->truth))
        check_forbidden(c, "additionalProperties",
                        "additionalProperties and properties are mutual exclusive");
    if (fields)
        check_openapi_fields(c, fields, scope, no_default);
    for (size_t i = 0; i < COUNT_OF(below); i++) {
        const struct json_node *child = object_of(node, below[i]);
        if (!child)
            continue;
        bool items = i == 0;
        const struct schema *its = !schema  ? NULL
                                   : items  ? schema->items
                                   : i == 2 ? schema->additional
                                            : NULL;
        struct rule_scope below_it = rule_scope_below(
            c, scope, its, !items || !schema || schema->list_type == SCHEMA_LIST_MAP);
        size_t before = check_enter(c, ".%s", below[i]);
        check_openapi(c, child, &below_it, no_default);
        check_leave(c, before);
    }
    check_openapi_each(c, node, "allOf", no_default);
    check_openapi_each(c, node, "oneOf", no_default);
    check_openapi_each(c, node, "anyOf", no_default);
    check_map_type(c, node);
    check_list(c, node);
    check_rule_texts(c, node);
    if (c->errors->count == errors)
        check_rules(c, node, scope);
}

/* -- Defaults -- */

/* All rules for the defaults of a schema. */
struct default_rules {
    int64_t budget; /* left of RULE_WRITE_COST_MAX; negative: no further defaults are checked */
};

/* As a new value, and as one that stays, because a rule may distinguish them. */
static void check_default_rules(struct definition_check *c, const struct rule_node *rules,
                                const struct json_node *value, struct default_rules *all)
{
    struct arena scratch;
    int64_t least = all->budget;
    arena_init(&scratch, NULL, 0, c->arena->limit_bytes);
    for (size_t i = 0; i < 2; i++) {
        size_t before = c->errors->count;
        struct rule_evaluation evaluation = {.arena = &scratch,
                                             .errors = c->errors,
                                             .call_max = RULE_CALL_COST_MAX,
                                             .budget = all->budget};
        rules_evaluate(rules, value, i ? NULL : value, buf_slice(&c->path), &evaluation);
        least = evaluation.budget < least ? evaluation.budget : least;
        if (c->errors->count != before)
            break;
    }
    all->budget = least;
    arena_fini(&scratch);
}

/* All defaults of a definition together have the step limit of one validated object. */
static void check_default(struct definition_check *c, const struct schema *schema,
                          const struct rule_node *rules, struct default_rules *all)
{
    if (c->steps <= 0)
        return; /* already reported */
    struct json_node *copy = json_node_copy(c->arena, schema->preset);
    size_t before = check_enter(c, ".default"), errors;
    if (!copy || schema_prune(schema, copy, schema->embedded, NULL) != ST_OK)
        c->errors->no_memory = true;
    else if (!json_node_equal(copy, schema->preset))
        check_invalid(c, "", schema->preset, "must not have unknown fields");
    errors = c->errors->count;
    if (copy)
        schema_validate_within(schema, schema->preset, NULL, buf_slice(&c->path), c->arena,
                               &c->steps, c->errors);
    if (c->errors->count == errors && rules)
        check_default_rules(c, rules, schema->preset, all);
    check_leave(c, before);
}

static void check_defaults(struct definition_check *c, const struct schema *schema,
                           const struct rule_node *rules, struct default_rules *all)
{
    if (schema->preset)
        check_default(c, schema, rules, all);
    if (schema->items && all->budget >= 0) {
        size_t before = check_enter(c, ".items");
        check_defaults(c, schema->items, rules ? rules->items : NULL, all);
        check_leave(c, before);
    }
    /* Both are sorted by name. */
    uint32_t at = 0;
    for (size_t i = 0; i < schema->property_count && all->budget >= 0; i++) {
        const struct schema_property *property = &schema->properties[i];
        const struct rule_branch *branches = rules ? rules->properties : NULL;
        const struct rule_node *below = NULL;
        if (branches && at < rules->property_count &&
            slice_equal(branches[at].name, property->name))
            below = branches[at++].node;
        size_t before = check_enter_property(c, property->name);
        check_defaults(c, property->schema, below, all);
        check_leave(c, before);
    }
}

/* Rules that do not compile are reported for a default as well, if there is one. */
static void check_all_defaults(struct definition_check *c, const struct schema *schema,
                               const struct schema_traits *traits)
{
    struct default_rules all = {.budget = RULE_WRITE_COST_MAX};
    const struct rule_node *rules = NULL;
    struct arena arena;
    if (!traits->has_defaults)
        return;
    arena_init(&arena, NULL, 0, c->arena->limit_bytes);
    if (traits->has_rules && rule_tree_new(&arena, schema, true, &rules) != ST_OK)
        c->errors->no_memory = true;
    else
        check_defaults(c, schema, rules, &all);
    arena_fini(&arena);
}

/* -- The schema -- */

/* With a status subresource, few keywords are allowed at the root. */
static void check_root(struct definition_check *c, const struct json_node *schema)
{
    static const char *const forbidden[] = {"default", "enum",  "maxProperties", "minProperties",
                                            "allOf",   "oneOf", "anyOf",         "not"};
    for (size_t i = 0; i < COUNT_OF(forbidden); i++) {
        if (!check_has(schema, forbidden[i]))
            continue;
        check_invalid(c, "", schema,
                      "only [Description Type Format Title Maximum ExclusiveMaximum Minimum "
                      "ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems UniqueItems "
                      "MultipleOf Required Items Properties ExternalDocs Example "
                      "XPreserveUnknownFields XValidations] fields are allowed at the root of the "
                      "schema if the status subresource is enabled");
        return;
    }
}

static int error_order(const void *a, const void *b)
{
    const struct kube_field_error *x = *(struct kube_field_error *const *)a;
    const struct kube_field_error *y = *(struct kube_field_error *const *)b;
    int order = slice_compare(x->field, y->field);
    return order ? order : slice_compare(x->message, y->message);
}

/* Sorts the errors after `before` as Kubernetes does. */
static void sort_errors(struct kube_field_errors *errors, struct kube_field_error *before)
{
    struct kube_field_error *list[KUBE_FIELD_ERRORS_MAX] = {NULL},
                            **at = before ? &before->next : &errors->first;
    size_t count = 0;
    for (struct kube_field_error *error = *at; error; error = error->next)
        list[count++] = error;
    qsort(list, count, sizeof(list[0]), error_order);
    for (size_t i = 0; i < count; i++) {
        *at = errors->last = list[i];
        at = &list[i]->next;
    }
    *at = NULL;
}

static bool has_format(const struct json_node *schema, struct slice format)
{
    const struct json_node *own = json_node_named(schema, "format");
    if (own && own->type == JSON_TYPE_STRING && slice_equal(own->text, format))
        return true;
    for (const struct json_node *member = schema->first; member; member = member->next)
        if ((member->type == JSON_TYPE_OBJECT || member->type == JSON_TYPE_ARRAY) &&
            has_format(member, format))
            return true;
    return false;
}

/* A line, once even if several versions have the format. None if an update keeps it. */
static void warn_of_format(struct definition_check *c, struct buf *warning, struct slice format)
{
    AUTO(buf_fini) struct buf line = {0};
    if (c->old_versions && has_format(c->old_versions, format))
        return;
    if (buf_append_text(&line, "unrecognized format ") != ST_OK ||
        go_quote(format, &line) != ST_OK || buf_append_text(&line, "\n") != ST_OK)
        c->errors->no_memory = true;
    else if (!warning->len || !memmem(warning->ptr, warning->len, line.ptr, line.len))
        c->errors->no_memory |= buf_append(warning, buf_slice(&line)) != ST_OK;
}

/* NULL: the schema does not compile. */
static const struct schema *check_compiled(struct definition_check *c,
                                           const struct json_node *schema, struct buf *warning)
{
    const struct schema *compiled = NULL;
    struct schema_traits traits = {0};
    struct error error = {0};
    enum status status = schema_compile(c->arena, &c->patterns, schema, &compiled, &traits, &error);
    if (status != ST_OK) {
        check_invalid(c, "", NULL,
                      status == ST_NOMEM ? "the schema exceeds the memory limit" : error.text);
        return NULL;
    }
    check_all_defaults(c, compiled, &traits);
    for (size_t i = 0; i < traits.unknown_format_count; i++)
        warn_of_format(c, warning, traits.unknown_formats[i]);
    return compiled;
}

void check_schema(struct definition_check *c, const struct json_node *schema, bool has_status,
                  struct buf *warning)
{
    size_t before = check_enter(c, ".openAPIV3Schema");
    struct kube_field_error *last = c->errors->last;
    if (has_status)
        check_root(c, schema);
    if (check_is_true(schema, "nullable"))
        check_forbidden(c, "nullable", "nullable cannot be true at the root");
    struct kube_field_error *outer = c->errors->last;
    check_structural(c, schema, LEVEL_ROOT);
    sort_errors(c->errors, outer);
    const struct schema *compiled = NULL;
    if (c->errors->last == last)
        compiled = check_compiled(c, schema, warning);
    /* Rules are only compiled if the types of all values are known. */
    if (c->errors->last != last)
        compiled = NULL;
    struct rule_costs costs = {.errors = {.arena = c->errors->arena}};
    struct rule_scope scope = {.schema = compiled, .root = true, .occurrences = 1, .costs = &costs};
    check_openapi(c, schema, &scope, NULL);
    check_rule_costs(c, &costs);
    check_leave(c, before);
}
