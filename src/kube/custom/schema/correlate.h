/*
 * Which old value belongs to a new one: that of the same property or map entry, and in lists of
 * type map the item with the same keys. Items of other lists have none. Mirrors Kubernetes'
 * correlated objects, which decide whether a failed rule is a refusal or only a warning.
 */
#ifndef VIGIL_KUBE_CUSTOM_SCHEMA_CORRELATE_H
#define VIGIL_KUBE_CUSTOM_SCHEMA_CORRELATE_H

#include "base/memory/arena.h"
#include "kube/custom/schema/structural.h"

/* The items of an old list by their keys; zeroed: none. */
struct old_items {
    const struct schema *schema;
    struct old_item *list; /* sorted */
    size_t count;
};

/* Without memory there are no items. */
void old_items_init(struct old_items *items, struct arena *arena, const struct schema *schema,
                    const struct json_node *old);
/* The first item with the keys of this one; NULL: there is none. */
const struct json_node *old_items_find(const struct old_items *items, const struct json_node *item);

/* A value and the old one, of one schema. On the stack of the walk. */
struct correlated {
    const struct schema *schema;
    const struct json_node *value, *old;
    enum { CORRELATED_UNKNOWN, CORRELATED_SAME, CORRELATED_CHANGED } compared;
};

/* Whether the value has not changed. The order of lists of type map does not count, and an object
 * with fields that its schema does not declare has always changed, as in Kubernetes. */
bool correlated_is_same(struct correlated *pair, struct arena *arena);

/* The schema of a member of an object; NULL: it has none. */
const struct schema *schema_member(const struct schema *schema, struct slice name);

#endif
