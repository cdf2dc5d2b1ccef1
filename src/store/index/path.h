/* The way from the root of the writer's tree to the place of a key, until the next change. */
#ifndef VIGIL_STORE_INDEX_PATH_H
#define VIGIL_STORE_INDEX_PATH_H

#include "store/index/item.h"

struct index_node;

/* node[0] is the root, node[depth] the leaf; at[i] is the position of node[i + 1] in node[i]. */
struct index_path {
    struct index_node *node[INDEX_DEPTH_MAX];
    unsigned at[INDEX_DEPTH_MAX];
    unsigned depth;
    unsigned in_leaf; /* position of the first item whose key is not less */
    bool found;       /* its key is equal */
    bool is_kept;     /* while loading: it is valid for the next put, too */
};

#endif
