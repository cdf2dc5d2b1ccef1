/*
 * The writer's tree: the way from the root to a leaf, and how nodes split and join along it. Inside
 * store/index only.
 */
#ifndef VIGIL_STORE_INDEX_TREE_H
#define VIGIL_STORE_INDEX_TREE_H

#include "store/index/node.h"

struct index {
    struct index_memory memory;
    struct index_node *root; /* NULL when empty */
    struct index_sum live;   /* of the root */
    uint64_t closed_number;  /* of the last state that index_publish closed */
};

/* node[0] is the root, node[depth] the leaf; at[i] is the place of node[i + 1] in node[i]. */
struct index_path {
    struct index_node *node[INDEX_DEPTH_MAX];
    unsigned at[INDEX_DEPTH_MAX];
    unsigned depth;
};

/* Goes to the leaf for the key. Inner nodes on the way are made writable, the leaf is not. */
void path_find(struct index *index, struct slice key, struct index_path *ret_path);
struct index_leaf *path_leaf(const struct index_path *path);
/* Puts a node where path->node[depth] was, in the path and in its parent. */
void path_replace(struct index *index, struct index_path *path, unsigned depth,
                  struct index_node *node);
/* Adds to the sums on the way, and to the whole's: wraps, so a loss is added as well. */
void path_add(struct index *index, const struct index_path *path, struct index_sum change);

/* The leaf is full: splits it and inserts the item. path_add has been called. */
void tree_split_leaf(struct index *index, struct index_path *path, unsigned at,
                     struct index_item *item);
/* Something was removed from the leaf, which is writable: restores the fill on the way up. */
void tree_shrink(struct index *index, struct index_path *path);

#endif
