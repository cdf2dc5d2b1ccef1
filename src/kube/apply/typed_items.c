#include "kube/apply/fields_v1.h"
#include "kube/apply/typed.h"

#include <stdlib.h>

static enum status invalid(struct error *why, const char *text)
{
    return error_set(why, ST_INVALID, "%s", text);
}

/* The keys of a list as Go prints them: ["name" "port"]. */
static enum status omits_keys(struct apply_type list, struct error *why)
{
    AUTO(buf_fini) struct buf names = {0};
    struct apply_type_key key;
    for (size_t at = 0; apply_type_key(list, &at, &key);)
        TRY(buf_append_format(&names, "%s\"%.*s\"", names.len ? " " : "", SLICE_ARGS(key.name)));
    return error_set(why, ST_INVALID,
                     "associative list with keys has an element that omits all key fields [%.*s] "
                     "(and doesn't have default values for any key fields)",
                     SLICE_ARGS(buf_slice(&names)));
}

static enum status key_value(struct arena *arena, const struct apply_type_key *key,
                             const struct json_node *item, struct json_node **ret_value)
{
    struct error error;
    const struct json_node *value = json_node_member(item, key->name);
    struct json_node *preset;
    *ret_value = NULL;
    if (!value)
        value = key->preset_node;
    if (!value && key->preset.len) {
        TRY(json_tree_read(arena, key->preset, &preset, &error));
        value = preset;
    }
    if (!value)
        return ST_OK;
    if (value->type == JSON_TYPE_ARRAY || value->type == JSON_TYPE_OBJECT)
        return ST_INVALID;
    *ret_value = field_scalar(arena, value);
    return *ret_value ? ST_OK : ST_NOMEM;
}

/* Inserts a key member sorted by name. */
static enum status put_key(struct arena *arena, struct json_node *to, struct slice name,
                           struct json_node *value)
{
    struct json_node *next[FIELD_KEY_MEMBERS_MAX];
    size_t count = 0;
    if (to->count >= FIELD_KEY_MEMBERS_MAX)
        return ST_LIMIT;
    for (struct json_node *member = json_node_first(to); member; member = json_node_next(member)) {
        if (slice_compare(member->key, name) > 0)
            next[count++] = member;
    }
    TRY(json_node_set(arena, to, name, value));
    for (size_t i = 0; i < count; i++) {
        json_node_remove(to, next[i]);
        TRY(json_node_set(arena, to, next[i]->key, next[i]));
    }
    return ST_OK;
}

static enum status keyed(struct arena *arena, struct apply_type list, const struct json_node *item,
                         struct field_element *ret_element, struct error *why)
{
    struct json_node *keys = json_node_new(arena, JSON_TYPE_OBJECT);
    struct apply_type_key key;
    if (item->type == JSON_TYPE_NULL)
        return invalid(why, "associative list with keys may not have a null element");
    if (item->type != JSON_TYPE_OBJECT)
        return invalid(why, "associative list with keys may not have non-map elements");
    if (!keys)
        return ST_NOMEM;
    for (size_t at = 0; apply_type_key(list, &at, &key);) {
        struct json_node *value;
        enum status status = key_value(arena, &key, item, &value);
        if (status == ST_INVALID)
            return invalid(why, "associative list with keys has a key that is not a scalar");
        TRY(status);
        if (value)
            TRY(put_key(arena, keys, key.name, value));
    }
    if (!keys->count)
        return omits_keys(list, why);
    *ret_element = (struct field_element){.step = FIELD_KEY, .value = keys};
    return ST_OK;
}

enum status typed_element(struct arena *arena, struct apply_type list,
                          const struct apply_rules *rules, const struct json_node *item,
                          struct field_element *ret_element, struct error *why)
{
    if (rules->list_keyed)
        return keyed(arena, list, item, ret_element, why);
    switch (item->type) {
    case JSON_TYPE_OBJECT:
        return invalid(why, "associative list without keys has an element that's a map type");
    case JSON_TYPE_ARRAY:
        return invalid(why, "not supported: associative list with lists as elements");
    case JSON_TYPE_NULL:
        return invalid(why, "associative list without keys has an element that's an explicit null");
    default:
        *ret_element =
            (struct field_element){.step = FIELD_VALUE, .value = field_scalar(arena, item)};
        return ret_element->value ? ST_OK : ST_NOMEM;
    }
}

enum status typed_items(const struct typed *typed, struct apply_type type,
                        const struct apply_rules *rules, const struct json_node *list, bool strict,
                        struct typed_item **ret_items, size_t *ret_count)
{
    *ret_items = NULL;
    *ret_count = 0;
    if (!typed_has(list, JSON_TYPE_ARRAY))
        return ST_OK;
    struct typed_item *items = arena_calloc(typed->arena, list->count, sizeof(*items));
    if (!items)
        return ST_NOMEM;
    size_t at = 0;
    for (const struct json_node *node = list->first; node; node = node->next, at++) {
        struct error why = {0};
        struct typed_item *item = &items[at];
        enum status status = typed_element(typed->arena, type, rules, node, &item->element, &why);
        if (status == ST_INVALID && strict)
            return error_set(typed->why, status, "element %zu: %s", at, why.text);
        if (status == ST_INVALID)
            item->element = (struct field_element){.step = FIELD_INDEX, .index = -1};
        else
            TRY(status);
        item->node = node;
        item->at = at;
    }
    *ret_items = items;
    *ret_count = at;
    return ST_OK;
}

static int item_order(const void *a, const void *b)
{
    const struct typed_item *m = a, *n = b;
    int order = field_element_compare(&m->element, &n->element);
    return order ? order : (m->at > n->at) - (m->at < n->at);
}

enum status typed_sort(struct arena *arena, const struct typed_item *items, size_t count,
                       struct typed_item **ret_sorted)
{
    *ret_sorted = NULL;
    if (!count)
        return ST_OK;
    *ret_sorted = arena_calloc(arena, count, sizeof(**ret_sorted));
    if (!*ret_sorted)
        return ST_NOMEM;
    memcpy(*ret_sorted, items, count * sizeof(*items));
    qsort(*ret_sorted, count, sizeof(**ret_sorted), item_order);
    return ST_OK;
}

size_t typed_find(const struct typed_item *sorted, size_t count,
                  const struct field_element *element)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (field_element_compare(&sorted[middle].element, element) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && !field_element_compare(&sorted[low].element, element) ? low : count;
}
