/*
 * A sorted map of which many versions exist at once: a change makes a new version, which shares
 * with the old one all that is equal in both. So a thread may read a version while another thread
 * makes the next one, without a lock.
 *
 *     version 1: root ─► node ─► node ─► item        a put copies the nodes on the path to the item,
 *     version 2: root'─► node'┘                      about log2(count) of them
 *
 * The handle (struct version_map) belongs to one thread; nodes and items are reference-counted,
 * never change, and are freed on whichever thread releases them last. A weight-balanced tree.
 */
#ifndef VIGIL_KUBE_POLICY_LOOKUP_VERSION_MAP_H
#define VIGIL_KUBE_POLICY_LOOKUP_VERSION_MAP_H

#include "base/slice.h"

#include <stdatomic.h>

/* Embedded at the head of what is stored in a map. */
struct version_item {
    struct slice key; /* owned by the item */
    _Atomic size_t refs;
    void (*free)(struct version_item *item);
};

struct version_node;

/* A zeroed map is empty. */
struct version_map {
    struct version_node *root;
};

enum { VERSION_NODE_BYTES = 64 }; /* what an item takes in a map, for those who count memory */

void version_item_ref(struct version_item *item);
void version_item_unref(struct version_item *item); /* accepts NULL */

/* Another handle of the same version. */
struct version_map version_map_dup(const struct version_map *map);
void version_map_fini(struct version_map *map);

size_t version_map_count(const struct version_map *map);
/* NULL: there is none with this key. Borrowed from the version. */
struct version_item *version_map_get(const struct version_map *map, struct slice key);
/* Adds the item or replaces the one with its key; takes over the caller's reference. */
void version_map_put(struct version_map *map, struct version_item *item);
/* False: there is none. */
bool version_map_remove(struct version_map *map, struct slice key);

/* Calls fn for each item in the order of keys until it returns false; false: it has. */
bool version_map_each(const struct version_map *map,
                      bool (*fn)(void *ctx, struct version_item *item), void *ctx);

/* A place in a version, which must outlive it. */
enum { VERSION_DEPTH_MAX = 80 }; /* depth of a tree with more items than there is memory for */
struct version_cursor {
    const struct version_node *path[VERSION_DEPTH_MAX]; /* nodes that are still to be visited */
    size_t depth;
};
/* Before the first item whose key is not smaller. */
void version_cursor_seek(struct version_cursor *cursor, const struct version_map *map,
                         struct slice key);
/* The next item; NULL at the end. */
struct version_item *version_cursor_next(struct version_cursor *cursor);

/* For tests: the keys are in order, and the tree is balanced. */
void version_map_check(const struct version_map *map);

#endif
