/* Pruning and defaulting: makes an object conform to its schema. */
#include "kube/custom/schema/structural.h"

#include "codec/json/field_fault.h"

#include <stdlib.h>

/* -- Unknown fields -- */

struct prune_step {
    const struct prune_step *up;
    struct slice key;
    size_t index;
    bool is_item;
};

struct pruner {
    struct buf *unknown;
    struct buf texts[SCHEMA_UNKNOWN_MAX];
    size_t count;
};

static enum status append_path(const struct prune_step *step, struct buf *to)
{
    if (!step)
        return ST_OK;
    TRY(append_path(step->up, to));
    if (step->is_item)
        return buf_append_format(to, "[%zu]", step->index);
    return buf_append_format(to, "%s%.*s", to->len ? "." : "", SLICE_ARGS(step->key));
}

static enum status report_unknown(struct pruner *p, const struct prune_step *up, struct slice key)
{
    struct prune_step step = {.up = up, .key = key};
    if (!p->unknown || p->count == SCHEMA_UNKNOWN_MAX)
        return ST_OK;
    return append_path(&step, &p->texts[p->count++]);
}

static bool is_meta(struct slice key)
{
    return slice_equal(key, SLICE_LITERAL("apiVersion")) ||
           slice_equal(key, SLICE_LITERAL("kind")) || slice_equal(key, SLICE_LITERAL("metadata"));
}

/* How unknown fields are treated, besides what the schema itself says. */
enum prune_mode {
    MODE_PLAIN,
    MODE_ROOT /* root of a resource */,
    MODE_KEEP /* below a schema that preserves unknown fields */
};

static enum status prune(struct pruner *p, const struct schema *schema, struct json_node *value,
                         const struct prune_step *up, enum prune_mode mode);

/*
 * A member without its own schema may match additionalProperties; otherwise it is pruned or kept by
 * mode.
 */
static enum status prune_member(struct pruner *p, const struct schema *schema,
                                struct json_node *object, struct json_node *member,
                                const struct prune_step *up, enum prune_mode mode)
{
    struct prune_step step = {.up = up, .key = member->key};
    const struct schema *property = schema ? schema_property(schema, member->key) : NULL;
    if (schema && (mode == MODE_ROOT || schema->embedded) && is_meta(member->key))
        return ST_OK;
    if (property)
        return prune(p, property, member, &step, MODE_PLAIN);
    if (schema && schema->additional_given)
        return prune(p, schema->additional, member, &step, MODE_PLAIN);
    if (schema && (schema->preserve_unknown || mode == MODE_KEEP))
        return ST_OK;
    TRY(report_unknown(p, up, member->key));
    json_node_remove(object, member);
    return ST_OK;
}

static enum status prune_items(struct pruner *p, const struct schema *schema,
                               struct json_node *array, const struct prune_step *up, bool keep)
{
    size_t at = 0;
    const struct schema *items = schema ? schema->items : NULL;
    if (keep && !items)
        return ST_OK;
    for (struct json_node *item = json_node_first(array); item; item = json_node_next(item)) {
        struct prune_step step = {.up = up, .index = at, .is_item = true};
        TRY(prune(p, items, item, &step, keep ? MODE_KEEP : MODE_PLAIN));
        at++;
    }
    return ST_OK;
}

/* A null that the schema does not allow is removed, unless a default will replace it. */
static bool is_stray_null(const struct schema *schema, const struct json_node *member)
{
    if (member->type != JSON_TYPE_NULL || !schema)
        return false;
    const struct schema *of = schema_property(schema, member->key);
    if (!of)
        of = schema->additional;
    return of && !of->nullable && !of->preset;
}

/* schema: NULL if the value is not allowed. */
static enum status prune(struct pruner *p, const struct schema *schema, struct json_node *value,
                         const struct prune_step *up, enum prune_mode mode)
{
    struct json_node *next;
    bool keep = schema && (schema->preserve_unknown || mode == MODE_KEEP);
    if (value->type == JSON_TYPE_ARRAY)
        return prune_items(p, schema, value, up, keep);
    if (value->type != JSON_TYPE_OBJECT)
        return ST_OK;
    for (struct json_node *member = json_node_first(value); member; member = next) {
        next = json_node_next(member);
        if (is_stray_null(schema, member))
            json_node_remove(value, member);
        else
            TRY(prune_member(p, schema, value, member, up, mode));
    }
    return ST_OK;
}

static int text_order(const void *a, const void *b)
{
    return slice_compare(buf_slice(a), buf_slice(b));
}

static enum status append_unknown(struct pruner *p)
{
    qsort(p->texts, p->count, sizeof(p->texts[0]), text_order);
    for (size_t i = 0; i < p->count; i++)
        TRY(field_fault_append(p->unknown, "unknown field", buf_slice(&p->texts[i])));
    return ST_OK;
}

enum status schema_prune(const struct schema *schema, struct json_node *value, bool root,
                         struct buf *unknown)
{
    struct pruner p = {.unknown = unknown};
    enum status status = prune(&p, schema, value, NULL, root ? MODE_ROOT : MODE_PLAIN);
    if (status == ST_OK && unknown)
        status = append_unknown(&p);
    for (size_t i = 0; i < p.count; i++)
        buf_fini(&p.texts[i]);
    return status;
}

/* -- Defaults -- */

static bool is_default_due(const struct schema *schema, const struct json_node *value)
{
    if (!schema || !schema->preset)
        return false;
    return !value || (value->type == JSON_TYPE_NULL && !schema->nullable);
}

static enum status put_default(struct arena *arena, const struct schema *schema,
                               struct json_node *object, struct slice key)
{
    struct json_node *copy = json_node_copy(arena, schema->preset);
    return copy ? json_node_set(arena, object, key, copy) : ST_NOMEM;
}

static enum status default_members(struct arena *arena, const struct schema *schema,
                                   struct json_node *object)
{
    for (size_t i = 0; i < schema->property_count; i++) {
        const struct schema_property *p = &schema->properties[i];
        if (is_default_due(p->schema, json_node_member(object, p->name)))
            TRY(put_default(arena, p->schema, object, p->name));
    }
    for (struct json_node *member = json_node_first(object), *next; member; member = next) {
        const struct schema *of = schema_property(schema, member->key);
        next = json_node_next(member);
        struct slice key = member->key;
        if (!of)
            of = schema->additional;
        if (of && is_default_due(of, member))
            TRY(put_default(arena, of, object, key));
        if (of)
            TRY(schema_default(arena, of, json_node_member(object, key)));
    }
    return ST_OK;
}

static enum status default_items(struct arena *arena, const struct schema *items,
                                 struct json_node *array)
{
    for (struct json_node *item = json_node_first(array), *next; item; item = next) {
        next = json_node_next(item);
        struct json_node *value = item;
        if (is_default_due(items, item)) {
            value = json_node_copy(arena, items->preset);
            if (!value)
                return ST_NOMEM;
            TRY(json_node_insert(array, item, value));
            json_node_remove(array, item);
        }
        TRY(schema_default(arena, items, value));
    }
    return ST_OK;
}

enum status schema_default(struct arena *arena, const struct schema *schema,
                           struct json_node *value)
{
    if (value->type == JSON_TYPE_OBJECT)
        return default_members(arena, schema, value);
    if (value->type == JSON_TYPE_ARRAY && schema->items)
        return default_items(arena, schema->items, value);
    return ST_OK;
}
