/*
 * The v2 store of etcd, rebuilt from a snapshot and the requests in its log: a tree of directories
 * and files, each with the indexes at which it was created and last changed. Every request that
 * changes something takes the next index.
 *
 *   /          the root, which cannot be changed
 *   /0         etcd's own: members and the cluster's version
 *   /1         the keys of clients
 *
 * A request that etcd refuses is refused here as well, without an error and without an index: the
 * only failure is ST_LIMIT, for a path with too many levels or a tree with too many nodes. Names
 * may be any bytes but '/'; one that begins with '_' is hidden, with everything below it.
 *
 * Owns all nodes. One owner, one thread. Aborts without memory.
 */
#ifndef VIGIL_IMPORT_V2_TREE_H
#define VIGIL_IMPORT_V2_TREE_H

#include "base/container/hash_map.h"
#include "base/container/heap.h"

/* Levels below the root. Go reads a snapshot with at most 5,000: two levels of JSON for each. */
enum { V2_TREE_DEPTH_MAX = 4000 };
/* Files and directories: some gigabytes of memory. */
enum { V2_TREE_NODES_MAX = 20 * 1000 * 1000 };

struct v2_tree_node {
    struct v2_tree_node *parent; /* NULL: the root, or a node that is not in the tree yet */
    struct slice name;           /* owned; the key in its directory */
    struct slice value;          /* owned; of a file */
    struct hash_map *children;   /* owned, with its nodes; NULL: a file */
    uint64_t created, modified;  /* indexes */
    int64_t expires_ns;          /* since 1970; 0: never */
    struct heap_link in_expiry;  /* links v2_tree.expiry if it expires and is in the tree */
};

struct v2_tree {
    struct v2_tree_node *root;
    struct heap expiry;
    uint64_t index;               /* index of the last change */
    uint64_t seed;                /* seed of the maps */
    size_t node_count, nodes_max; /* without the root */
};

void v2_tree_init(struct v2_tree *tree, uint64_t seed);
void v2_tree_fini(struct v2_tree *tree); /* accepts a zeroed one */

/* What a request to change a file has in common. Everything is borrowed. */
struct v2_tree_change {
    struct slice path;
    struct slice value;
    bool is_dir;
    int64_t expires_ns;
    bool is_refresh; /* the value stays */
    struct slice prev_value;
    uint64_t prev_index; /* 0: not compared; the same with an empty prev_value */
};

/* Creates or replaces a file, or creates a directory. */
MUST_CHECK
enum status v2_tree_set(struct v2_tree *tree, const struct v2_tree_change *change);
/* Creates what must not exist. With is_unique the path names a directory, and the name in it is
 * the next index. */
MUST_CHECK
enum status v2_tree_create(struct v2_tree *tree, const struct v2_tree_change *change,
                           bool is_unique);
/* Changes what must exist. */
MUST_CHECK
enum status v2_tree_update(struct v2_tree *tree, const struct v2_tree_change *change);
/* Changes or removes a file that is as expected. */
MUST_CHECK
enum status v2_tree_compare_and_swap(struct v2_tree *tree, const struct v2_tree_change *change);
MUST_CHECK
enum status v2_tree_compare_and_delete(struct v2_tree *tree, const struct v2_tree_change *change);
MUST_CHECK
enum status v2_tree_delete(struct v2_tree *tree, struct slice path, bool is_dir, bool is_recursive);
/* Removes everything that expires until then. Each takes an index. */
void v2_tree_expire(struct v2_tree *tree, int64_t until_ns);

/* NULL: there is none. */
const struct v2_tree_node *v2_tree_find(const struct v2_tree *tree, const char *path);
/* The children of a directory in the order of their names, hidden ones left out. The caller frees
 * the array. */
const struct v2_tree_node **v2_tree_children(const struct v2_tree_node *dir, size_t *ret_count);

/* -- For the reader of a snapshot: a tree is put together from above -- */

/* Adds a file without a value; NULL: the directory has a child of this name. The name is copied. */
struct v2_tree_node *v2_tree_add(struct v2_tree *tree, struct v2_tree_node *dir, struct slice name);
void v2_tree_make_dir(struct v2_tree *tree, struct v2_tree_node *node);
void v2_tree_set_value(struct v2_tree_node *node, struct slice value); /* copied */
/* 0: it does not expire. */
void v2_tree_set_expiry(struct v2_tree *tree, struct v2_tree_node *node, int64_t expires_ns);

/* For tests: parents, names and the queue of what expires. */
void v2_tree_check(const struct v2_tree *tree);

#endif
