/*
 * The managers of a new object: one update owns all its fields, except those that identify it,
 * those that the path resets, and those that every object of its type has. It is what apply_update
 * would say about an object that did not exist, but in one walk from the object and its type to
 * the text of fieldsV1, without sets or trees, because every create needs it.
 */
#ifndef VIGIL_KUBE_MERGE_APPLY_CREATED_H
#define VIGIL_KUBE_MERGE_APPLY_CREATED_H

#include "kube/merge/apply/apply_type.h"
#include "kube/merge/apply/managed.h"
#include "kube/types/kind.h"

struct created {
    struct arena *arena;
    struct apply_type type;
    const struct field_set *reset; /* as in struct apply_request */
    struct field_manager manager;
    struct slice now;
};

/*
 * The object has no managedFields. *ret_list NULL: nothing is owned. ST_NOT_FOUND: a list has items
 * that are the same or cannot be identified, and only a comparison can tell who owns what;
 * ST_NOMEM.
 */
MUST_CHECK
enum status created_list(const struct created *created, const struct json_node *object,
                         struct json_node **ret_list);

/* The fieldsV1 of such a list are only a text (json_node_new_raw). Makes a tree of those in an
 * object, for callers that look into it. ST_NOMEM, ST_LIMIT. */
MUST_CHECK
enum status created_expand(struct arena *arena, struct json_node *object);

/* Sets the managedFields of an object of a built-in kind that kube-apiserver itself would make.
 * ST_NOMEM, ST_LIMIT. */
MUST_CHECK
enum status created_by_server(struct arena *arena, const struct kube_kind *kind, int64_t now_s,
                              struct json_node *object);

#endif
