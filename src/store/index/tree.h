/*
 * The writer's tree: the path from the root to a leaf, and how nodes split and join along it. Used
 * within store/index only.
 */
#ifndef VIGIL_STORE_INDEX_TREE_H
#define VIGIL_STORE_INDEX_TREE_H

#include "store/index/node.h"
#include "store/index/path.h"

struct index {
    struct index_memory memory;
    struct index_node *root; /* NULL when empty */
    struct index_sum live;   /* sums of the whole tree */
    uint64_t closed_number;  /* number of the last state that index_publish closed */
};

/* Finds the leaf for the key. The inner nodes on the path are made writable, the leaf is not. */
void path_find(struct index *index, struct slice key, struct index_path *ret_path);
struct index_leaf *path_leaf(const struct index_path *path);
/* Whether the key's place is in the leaf. May be false for a key beyond both its ends. */
bool path_leads_to(const struct index_path *path, struct slice key);
/* Replaces path->node[depth], in the path and in its parent. */
void path_replace(struct index *index, struct index_path *path, unsigned depth,
                  struct index_node *node);
/*
 * Adds to the sums along the path and to those of the tree. Unsigned, so a decrease wraps around.
 */
void path_add(struct index *index, const struct index_path *path, struct index_sum change);

/* The leaf is full: splits it and inserts the item. path_add was called before. */
void tree_split_leaf(struct index *index, struct index_path *path, unsigned at,
                     struct index_item *item);
/* An entry was removed from the leaf, which is writable: joins nodes that have too few, upwards. */
void tree_shrink(struct index *index, struct index_path *path);

#endif
