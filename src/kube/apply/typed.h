/*
 * Values walked by their types: which fields there are, what differs, how an applied configuration
 * is merged, what is left without some fields. As structured-merge-diff does it; atoms
 * (kube/apply/apply_type.h) say what is owned as a whole. Works on trees in one arena and changes
 * none of those given. As deep as the trees are, which is JSON_TREE_DEPTH_MAX.
 *
 * Each: ST_NOMEM; ST_INVALID: an item of a list has no place in it, `why` says so.
 */
#ifndef VIGIL_KUBE_APPLY_TYPED_H
#define VIGIL_KUBE_APPLY_TYPED_H

#include "kube/apply/apply_type.h"
#include "kube/apply/field_set.h"

struct typed {
    struct arena *arena;
    struct error *why;
};

/* Every field that is there. */
MUST_CHECK
enum status typed_fields(const struct typed *typed, struct apply_type type,
                         const struct json_node *value, const struct field_set **ret_set);

/* What of `after` is not as in `before`, marked as added, modified or removed. */
MUST_CHECK
enum status typed_compare(const struct typed *typed, struct apply_type type,
                          const struct json_node *before, const struct json_node *after,
                          const struct field_set **ret_marked);

/* `live` with all that `config` says. NULL: there is nothing. */
MUST_CHECK
enum status typed_merge(const struct typed *typed, struct apply_type type,
                        const struct json_node *live, const struct json_node *config,
                        struct json_node **ret_merged);

/* A copy without these fields and items; what a container has lost all of becomes null. */
MUST_CHECK
enum status typed_without(const struct typed *typed, struct apply_type type,
                          const struct json_node *value, const struct field_set *fields,
                          struct json_node **ret_value);

/* With the fields of types that only lead to members as members themselves. */
MUST_CHECK
enum status typed_with_named(const struct typed *typed, struct apply_type type,
                             const struct field_set *set, const struct field_set **ret_set);

/* A set from a time when items were owned that are now owned as a whole: the whole is owned. */
MUST_CHECK
enum status typed_reconcile(const struct typed *typed, struct apply_type type,
                            const struct field_set *set, const struct field_set **ret_set);

/*
 * The value is as its type says. Appends what is not, a line each, TYPED_ERRORS_MAX at most:
 * ".spec.a: field not declared in schema". *ret_count: how many. ST_NOMEM.
 */
enum { TYPED_ERRORS_MAX = 64 };
MUST_CHECK
enum status typed_validate(struct arena *arena, struct apply_type type,
                           const struct json_node *value, struct buf *errors, size_t *ret_count);

/* -- For typed*.c: the items of a list by what tells them apart -- */

struct typed_item {
    struct field_element element;
    const struct json_node *node;
    size_t at; /* its number in the list */
};

/* ST_INVALID with why; the text has no place in it. */
MUST_CHECK
enum status typed_element(struct arena *arena, struct apply_type list,
                          const struct apply_rules *rules, const struct json_node *item,
                          struct field_element *ret_element, struct error *why);
/* In the order of the list. list may be NULL, or no list: there are none. Items that have no place
 * in it are an error if that is to be told; else they are [-1], which no other is. */
MUST_CHECK
enum status typed_items(const struct typed *typed, struct apply_type type,
                        const struct apply_rules *rules, const struct json_node *list, bool told,
                        struct typed_item **ret_items, size_t *ret_count);
/* The same items by element, those of the same element in their order. */
MUST_CHECK
enum status typed_sort(struct arena *arena, const struct typed_item *items, size_t count,
                       struct typed_item **ret_sorted);
/* The first of that element among sorted ones; count: there is none. */
size_t typed_find(const struct typed_item *sorted, size_t count,
                  const struct field_element *element);

/* It is an object or array with something in it. */
static inline bool typed_has(const struct json_node *node, enum json_type type)
{
    return node && node->type == type && node->first;
}

#endif
