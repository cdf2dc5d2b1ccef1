/*
 * The objects of one kind in one namespace, or all objects of a kind that has no namespaces: what
 * decisions are made from. A shelf that others can see never changes; the next version of it shares
 * with it what is equal in both (kube/policy/lookup/version_map.h). Any thread may read it.
 *
 *     shelf ─┬─► objects by name ─► what `read` has kept of each
 *            └─► an index that the kind makes of them, such as bindings by subject
 *
 * Each version of an object is parsed once. One that cannot be used stays on the shelf without
 * data, so that its successor takes its place, and is counted.
 */
#ifndef VIGIL_KUBE_POLICY_LOOKUP_SHELF_H
#define VIGIL_KUBE_POLICY_LOOKUP_SHELF_H

#include "codec/json/tree.h"
#include "kube/policy/lookup/version_map.h"
#include "kube/types/storage.h"

/* Valid as long as its shelf, or while it is held. */
struct kube_lookup_object {
    struct slice namespace, name; /* the namespace of a cluster-scoped object is empty */
    int64_t revision;
    const void *data; /* as `read` has returned it, or the tree */
};

/* Static. */
struct kube_lookup_kind {
    const char *prefix; /* "/registry/roles/" */
    bool namespaced;
    /* Makes what is kept of an object, in the arena, which is freed with this version of the
     * object. The tree and its text are gone afterwards. NULL: the object is not usable, or the
     * arena ran out. Without the function, the whole tree is kept. */
    const void *(*read)(struct arena *arena, const struct json_node *object);
    /* Which objects are kept; the lookup has no part of others. NULL: all of them. */
    bool (*keeps)(const void *data);
    /* Which field has limits, and in a sentence for the user who exceeds them, which; NULL: none.
     */
    const char *limited, *limits;
    bool denies; /* one that exceeds them denies what it concerns; others have no effect */
    /* For an index of the objects of a shelf; all or none. They are called with each object that
     * is added, and when it is replaced or removed. */
    void (*added)(struct version_map *index, const struct kube_lookup_object *object);
    void (*removed)(struct version_map *index, const struct kube_lookup_object *object);
    size_t (*index_bytes)(const struct kube_lookup_object *object); /* that it takes there */
};

struct kube_shelf {
    struct version_item item; /* its key is the namespace */
    struct version_map objects, index;
    size_t bytes;      /* size of the objects, with their part of the index */
    size_t unreadable; /* objects without data */
    bool held;         /* false: the objects are not here, and must be read when they are needed */
    uint8_t namespace[];
};

struct kube_shelf *kube_shelf_new(struct slice namespace);
/* The same objects, for a change. */
struct kube_shelf *kube_shelf_dup(const struct kube_shelf *shelf);
static inline void kube_shelf_unref(struct kube_shelf *shelf) /* accepts NULL */
{
    version_item_unref(shelf ? &shelf->item : NULL);
}
DEFINE_CLEANUP(struct kube_shelf *, kube_shelf_unref)

/* Adds or replaces an object, unless the shelf has this version of it already. wants NULL, or only
 * if it returns true. The shelf must not have been published. ST_NOMEM: nothing has changed. */
MUST_CHECK
enum status kube_shelf_put(struct kube_shelf *shelf, const struct kube_lookup_kind *kind,
                           struct slice name, struct kube_kv kv,
                           bool (*wants)(void *ctx, const struct kube_lookup_object *object),
                           void *ctx);
void kube_shelf_remove(struct kube_shelf *shelf, const struct kube_lookup_kind *kind,
                       struct slice name);

/* NULL: there is none that can be used. */
const struct kube_lookup_object *kube_shelf_get(const struct kube_shelf *shelf, struct slice name);
/* Also if it cannot be used. */
static inline bool kube_shelf_has(const struct kube_shelf *shelf, struct slice name)
{
    return version_map_get(&shelf->objects, name);
}
/* Calls fn for each object that can be used, in the order of names, until it returns false. */
void kube_shelf_each(const struct kube_shelf *shelf,
                     bool (*fn)(void *ctx, const struct kube_lookup_object *object), void *ctx);
static inline size_t kube_shelf_count(const struct kube_shelf *shelf)
{
    return version_map_count(&shelf->objects);
}

/* Keeps this version of an object until it is released as often. Any thread. */
void kube_lookup_hold(const struct kube_lookup_object *object);
void kube_lookup_release(const struct kube_lookup_object *object); /* accepts NULL */

/* For tests: the objects are in order, and the counts are right. */
void kube_shelf_check(const struct kube_shelf *shelf);

#endif
