/*
 * The order of a merged list, whose items are identified by their merge key or, if they are
 * scalars, by their value. Used by strategic.c. Everything is in the arena except the hash maps;
 * lookups are by hash, so the time is linear in the length of the list.
 */
#ifndef VIGIL_KUBE_MERGE_PATCH_MERGE_LIST_H
#define VIGIL_KUBE_MERGE_PATCH_MERGE_LIST_H

#include "base/container/hash_map.h"
#include "codec/json/tree.h"

/* An item with its identifying value. */
struct merge_item {
    struct slice key; /* type and value; empty if the item has no key */
    struct json_node *node;
    size_t at; /* its index in the list */
};

struct merge_list {
    struct merge_item *items;
    size_t count;
    struct hash_map by_key; /* the first item of each key; heap */
};

void merge_list_fini(struct merge_list *list);

/*
 * Collects the items of an array in its order, by the member `key` or, if that is empty, by value.
 * array: may be NULL. ST_NOMEM.
 */
MUST_CHECK
enum status merge_list_make(struct arena *arena, struct json_node *array, struct slice key,
                            struct merge_list *ret_list);

/* NULL if there is none. */
struct merge_item *merge_list_find(const struct merge_list *list, struct slice key);

/*
 * Sorts the items of `array`: those in `order` as they are ordered there, the others as in
 * `server`, and both relative to each other by `server` where possible.
 */
MUST_CHECK
enum status merge_list_sort(struct arena *arena, struct json_node *array, struct slice key,
                            const struct merge_list *order, const struct merge_list *server);

#endif
