/*
 * The directories of keys, with the number of keys below each and their bytes:
 *
 *     /registry/            3 keys
 *       pods/               2 keys
 *         default/          2 keys
 *       services/           1 key
 *
 * Keys are added in their order, so only the directories on the way to the last key are open.
 * Memory is bounded: when there are too many directories, the deepest level is given up and only
 * counted in the one above it; at last also those of the first level. Server-only allocation. One
 * owner.
 */
#ifndef VIGIL_CMD_CTL_EXPLORE_KEY_TREE_H
#define VIGIL_CMD_CTL_EXPLORE_KEY_TREE_H

#include "base/slice.h"

enum {
    KEY_TREE_NODES_MAX = 100 * 1000,
    KEY_TREE_NAME_BYTES_MAX = 32 << 20, /* limit on the size of all names */
    KEY_TREE_DEPTH_MAX = 64,
};

struct key_tree_node {
    struct key_tree_node *parent, *next; /* next: of the same parent */
    struct key_tree_node *first, *last;  /* children, in the order of their names */
    uint64_t keys, bytes; /* keys and bytes of it and everything below, with values */
    struct slice name;    /* with the separator at its end if it is a directory; owned */
    unsigned depth;       /* 0: the root */
};

struct key_tree {
    struct key_tree_node root; /* its name is the prefix */
    struct slice separator;    /* borrowed; not empty */
    unsigned depth;            /* the deepest level that is kept */
    bool is_cut;               /* a level was given up, or names of the first one are not kept */
    uint64_t nodes, name_bytes;
    struct key_tree_node *open; /* the one that the last key was counted in */
};

/* depth: of the deepest level that is kept; 0: KEY_TREE_DEPTH_MAX. The prefix is borrowed. */
void key_tree_init(struct key_tree *tree, struct slice prefix, struct slice separator,
                   unsigned depth);
void key_tree_fini(struct key_tree *tree);

/* Keys come in their order and have the prefix. */
void key_tree_add(struct key_tree *tree, struct slice key, uint64_t bytes);

enum key_tree_order { KEY_TREE_BY_NAME, KEY_TREE_BY_KEYS, KEY_TREE_BY_BYTES };
/* Orders the children of every node, the largest first. */
void key_tree_sort(struct key_tree *tree, enum key_tree_order order);

/* Asserts every invariant; for tests. */
void key_tree_check(const struct key_tree *tree);

#endif
