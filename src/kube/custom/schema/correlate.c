#include "kube/custom/schema/correlate.h"

#include <stdlib.h>

/* An item and its place, because the first of several items with the same keys is found. */
struct old_item {
    const struct json_node *node;
    const struct schema_names *names;
    size_t at;
};

static bool is_scalar(const struct json_node *node)
{
    return node && node->type != JSON_TYPE_NULL && node->type < JSON_TYPE_ARRAY;
}

static bool has_keys(const struct schema_names *names, const struct json_node *item)
{
    bool has = item->type == JSON_TYPE_OBJECT;
    for (size_t i = 0; i < names->count && has; i++)
        has = is_scalar(json_node_member(item, names->names[i]));
    return has;
}

/* Any order will do in which only equal values are equal. Integers come before other numbers. */
static int order_scalars(const struct json_node *a, const struct json_node *b)
{
    int64_t x = 0, y = 0;
    if (a->type != b->type)
        return (int)a->type - (int)b->type;
    if (a->type == JSON_TYPE_BOOL)
        return (int)a->truth - (int)b->truth;
    bool first = json_node_int(a, &x), second = json_node_int(b, &y);
    if (first != second)
        return first ? -1 : 1;
    return first ? (x > y) - (x < y) : slice_compare(a->text, b->text);
}

static int order_keys(const struct schema_names *names, const struct json_node *a,
                      const struct json_node *b)
{
    int order = 0;
    for (size_t i = 0; i < names->count && !order; i++)
        order = order_scalars(json_node_member(a, names->names[i]),
                              json_node_member(b, names->names[i]));
    return order;
}

static int order_items(const void *a, const void *b)
{
    const struct old_item *x = a, *y = b;
    int order = order_keys(x->names, x->node, y->node);
    return order ? order : (x->at > y->at) - (x->at < y->at);
}

void old_items_init(struct old_items *items, struct arena *arena, const struct schema *schema,
                    const struct json_node *old)
{
    const struct schema_names *names = &schema->more->list_keys;
    *items = (struct old_items){.schema = schema};
    /* Only the items of a map list have keys by which an update finds them again. */
    if (schema->list_type != SCHEMA_LIST_MAP || !names->count || !old ||
        old->type != JSON_TYPE_ARRAY || !old->count)
        return;
    items->list = arena_calloc(arena, old->count, sizeof(*items->list));
    if (!items->list)
        return;
    for (const struct json_node *item = old->first; item; item = item->next)
        /* An item without all of its keys corresponds to no other item. */
        if (has_keys(names, item)) {
            items->list[items->count] = (struct old_item){item, names, items->count};
            items->count++;
        }
    qsort(items->list, items->count, sizeof(*items->list), order_items);
}

const struct json_node *old_items_find(const struct old_items *items, const struct json_node *item)
{
    const struct schema_names *names = &items->schema->more->list_keys;
    size_t low = 0, high = items->count;
    if (!items->count || !has_keys(names, item))
        return NULL;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (order_keys(names, items->list[middle].node, item) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    /* The search ends at the place where the item would be. */
    if (low == items->count || order_keys(names, items->list[low].node, item) != 0)
        return NULL;
    return items->list[low].node;
}

const struct schema *schema_member(const struct schema *schema, struct slice name)
{
    const struct schema *property = schema_property(schema, name);
    return property ? property : schema->additional;
}

static bool is_same(const struct schema *schema, const struct json_node *value,
                    const struct json_node *old, struct arena *arena);

static bool lists_are_same(const struct schema *schema, const struct json_node *value,
                           const struct json_node *old, struct arena *arena)
{
    struct old_items items;
    if (value->count != old->count)
        return false;
    /* The items of other lists are known only by their place, so that their order counts. */
    if (schema->list_type != SCHEMA_LIST_MAP || !schema->items)
        return json_node_equal(value, old);
    old_items_init(&items, arena, schema, old);
    for (const struct json_node *item = value->first; item; item = item->next) {
        const struct json_node *before = old_items_find(&items, item);
        if (!before || !is_same(schema->items, item, before, arena))
            return false;
    }
    return true;
}

static bool is_same(const struct schema *schema, const struct json_node *value,
                    const struct json_node *old, struct arena *arena)
{
    if (value->type != old->type)
        return false;
    if (value->type == JSON_TYPE_ARRAY)
        return lists_are_same(schema, value, old, arena);
    if (value->type != JSON_TYPE_OBJECT)
        return json_node_equal(value, old);
    if (value->count != old->count)
        return false;
    for (const struct json_node *member = value->first; member; member = member->next) {
        const struct json_node *before = json_node_member(old, member->key);
        const struct schema *below = schema_member(schema, member->key);
        if (!before || !below || !is_same(below, member, before, arena))
            return false;
    }
    return true;
}

bool correlated_is_same(struct correlated *pair, struct arena *arena)
{
    if (pair->compared == CORRELATED_UNKNOWN)
        pair->compared = is_same(pair->schema, pair->value, pair->old, arena) ? CORRELATED_SAME
                                                                              : CORRELATED_CHANGED;
    return pair->compared == CORRELATED_SAME;
}
