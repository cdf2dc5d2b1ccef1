/* The items of a list by their path elements, for typed.c and typed_merge.c. */
#ifndef VIGIL_KUBE_MERGE_APPLY_TYPED_PRIVATE_H
#define VIGIL_KUBE_MERGE_APPLY_TYPED_PRIVATE_H

#include "kube/merge/apply/typed.h"

struct typed_item {
    struct field_element element;
    const struct json_node *node;
    size_t at; /* position in the list */
};

/* ST_INVALID with why set; the text does not name the position. */
MUST_CHECK
enum status typed_element(struct arena *arena, struct apply_type list,
                          const struct apply_rules *rules, const struct json_node *item,
                          struct field_element *ret_element, struct error *why);
/*
 * The items in the order of the list; none if list is NULL or not a list. An item that cannot be
 * identified is an error if `strict` is set; otherwise its element is [-1], which no other item
 * has.
 */
MUST_CHECK
enum status typed_items(const struct typed *typed, struct apply_type type,
                        const struct apply_rules *rules, const struct json_node *list, bool strict,
                        struct typed_item **ret_items, size_t *ret_count);
/* The same items sorted by element; items with equal elements keep their order. */
MUST_CHECK
enum status typed_sort(struct arena *arena, const struct typed_item *items, size_t count,
                       struct typed_item **ret_sorted);
/* The first item with that element among sorted items; `count` if there is none. */
size_t typed_find(const struct typed_item *sorted, size_t count,
                  const struct field_element *element);

/* Whether the node has this type and is not empty. */
static inline bool typed_has(const struct json_node *node, enum json_type type)
{
    return node && node->type == type && node->first;
}

#endif
