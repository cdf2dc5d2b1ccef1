/*
 * The order of a merged list: items told apart by their merge key or, as scalars, by themselves.
 * Used by strategic.c. Everything lies in the arena, lookups are by hash: a list of any length
 * takes its length in time.
 */
#ifndef VIGIL_KUBE_PATCH_MERGE_LIST_H
#define VIGIL_KUBE_PATCH_MERGE_LIST_H

#include "base/container/hash_map.h"
#include "codec/json/tree.h"

/* An item under the value that tells it apart. */
struct merge_item {
    struct slice key; /* type and value; of what has none: empty */
    struct json_node *node;
    size_t at; /* its place in its list */
};

struct merge_list {
    struct merge_item *items;
    size_t count;
    struct hash_map by_key; /* the first of each key; heap */
};

void merge_list_fini(struct merge_list *list);

/*
 * The items of an array, in its order, by the member `key` or, if that is empty, by themselves.
 * array NULL: none. ST_NOMEM.
 */
MUST_CHECK
enum status merge_list_make(struct arena *arena, struct json_node *array, struct slice key,
                            struct merge_list *ret_list);

/* NULL: none. */
struct merge_item *merge_list_find(const struct merge_list *list, struct slice key);

/*
 * Puts the items of `array` in order: those of `order` as they stand there, the others as they
 * stand in `server`, and both among each other by `server` as far as that goes.
 */
MUST_CHECK
enum status merge_list_sort(struct arena *arena, struct json_node *array, struct slice key,
                            const struct merge_list *order, const struct merge_list *server);

#endif
