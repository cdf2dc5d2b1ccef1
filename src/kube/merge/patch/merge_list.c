#include "kube/merge/patch/merge_list.h"

#include "base/random.h"

#include <stdio.h>
#include <stdlib.h>

static struct slice key_of(const void *value)
{
    return ((const struct merge_item *)value)->key;
}

void merge_list_fini(struct merge_list *list)
{
    hash_map_fini(&list->by_key);
}

/* Makes a key of a byte for the Go type, and the value. */
static enum status make_key(struct arena *arena, const struct json_node *value,
                            struct slice *ret_key)
{
    struct slice text = SLICE_EMPTY;
    char digits[32], type = 'n';
    int64_t number;
    if (value->type == JSON_TYPE_STRING) {
        type = 's';
        TRY(json_node_text(value, arena, &text));
    } else if (value->type == JSON_TYPE_BOOL) {
        type = value->truth ? 't' : 'f';
    } else if (json_node_int(value, &number)) {
        type = 'i';
        text =
            slice_of(digits, (size_t)snprintf(digits, sizeof(digits), "%lld", (long long)number));
    } else if (value->type != JSON_TYPE_NULL) {
        type = 'd'; /* numbers that are not integers, as they are written */
        text = value->type == JSON_TYPE_NUMBER ? value->text : SLICE_EMPTY;
    }
    uint8_t *bytes = arena_alloc(arena, text.len + 1);
    if (!bytes)
        return ST_NOMEM;
    bytes[0] = (uint8_t)type;
    slice_copy(bytes + 1, text);
    *ret_key = slice_of(bytes, text.len + 1);
    return ST_OK;
}

static enum status add_item(struct arena *arena, struct json_node *node, struct slice key,
                            struct merge_list *list)
{
    struct merge_item *item = &list->items[list->count];
    struct json_node *value = key.len ? json_node_member(node, key) : node;
    void *replaced;
    *item = (struct merge_item){.node = node, .at = list->count++};
    if (!value)
        return ST_OK;
    TRY(make_key(arena, value, &item->key));
    if (hash_map_get(&list->by_key, item->key))
        return ST_OK;
    return hash_map_put(&list->by_key, item, &replaced);
}

enum status merge_list_make(struct arena *arena, struct json_node *array, struct slice key,
                            struct merge_list *ret_list)
{
    size_t count = array ? array->count : 0;
    *ret_list = (struct merge_list){0};
    hash_map_init(&ret_list->by_key, key_of, random_seed_system());
    ret_list->items = arena_calloc(arena, count + 1, sizeof(*ret_list->items));
    if (!ret_list->items)
        return ST_NOMEM;
    for (struct json_node *node = count ? json_node_first(array) : NULL; node;
         node = json_node_next(node))
        TRY(add_item(arena, node, key, ret_list));
    return ST_OK;
}

struct merge_item *merge_list_find(const struct merge_list *list, struct slice key)
{
    return key.len ? hash_map_get(&list->by_key, key) : NULL;
}

/* -- Order -- */

/* An item to sort: the position of its key in the list that gives the order, and on the server. */
struct merge_position {
    struct json_node *node;
    size_t at, server_at; /* SIZE_MAX: not in that list */
    size_t was;           /* original position, which keeps the sort stable */
};

static int compare(const void *a, const void *b)
{
    const struct merge_position *x = a, *y = b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return (x->was > y->was) - (x->was < y->was);
}

static size_t at_of(const struct merge_list *list, struct slice key)
{
    const struct merge_item *item = merge_list_find(list, key);
    return item ? item->at : SIZE_MAX;
}

/* Inserts the server's items before the first ordered item that comes after them on the server. */
static enum status interleave(struct json_node *array, const struct merge_position *left,
                              size_t left_count, const struct merge_position *right,
                              size_t right_count)
{
    size_t i = 0, j = 0;
    while (i < left_count || j < right_count) {
        bool takes_left = j == right_count;
        if (i < left_count && j < right_count)
            takes_left = left[i].server_at != SIZE_MAX && right[j].server_at != SIZE_MAX &&
                         left[i].server_at < right[j].server_at;
        struct json_node *node = takes_left ? left[i++].node : right[j++].node;
        TRY(json_node_insert(array, NULL, node));
    }
    return ST_OK;
}

enum status merge_list_sort(struct arena *arena, struct json_node *array, struct slice key,
                            const struct merge_list *order, const struct merge_list *server)
{
    AUTO(merge_list_fini) struct merge_list all = {0};
    TRY(merge_list_make(arena, array, key, &all));
    struct merge_position *left = arena_calloc(arena, all.count + 1, sizeof(*left));
    struct merge_position *right = arena_calloc(arena, all.count + 1, sizeof(*right));
    size_t left_count = 0, right_count = 0;
    if (!left || !right)
        return ST_NOMEM;
    for (size_t i = 0; i < all.count; i++) {
        struct merge_position position = {.node = all.items[i].node,
                                          .at = at_of(order, all.items[i].key),
                                          .server_at = at_of(server, all.items[i].key),
                                          .was = i};
        if (position.at != SIZE_MAX) {
            right[right_count++] = position;
            continue;
        }
        position.at = position.server_at;
        left[left_count++] = position;
    }
    qsort(left, left_count, sizeof(*left), compare);
    qsort(right, right_count, sizeof(*right), compare);
    return interleave(array, left, left_count, right, right_count);
}
