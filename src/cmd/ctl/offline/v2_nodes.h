/*
 * The keys of a v2 store in the order in which `etcdctl migrate` hands them on: each directory
 * before its children, these by their names, hidden ones left out.
 */
#ifndef VIGIL_CMD_CTL_OFFLINE_V2_NODES_H
#define VIGIL_CMD_CTL_OFFLINE_V2_NODES_H

#include "import/v2/tree.h"

#include <stdio.h>

struct v2_node {
    struct slice key; /* as clients know it: "/a/b"; valid during the call */
    const struct v2_tree_node *node;
    int64_t ttl_s; /* from now on; 0: it does not expire */
};

typedef enum status (*v2_nodes_fn)(void *ctx, const struct v2_node *node);

struct v2_nodes_options {
    bool without_expiring; /* nodes that expire are left out, but not the children of such */
    int64_t now_ns;        /* since 1970 */
};

/* Calls fn with each node from /1 on. ST_NOT_FOUND: there is no /1, so that no client has ever
 * written a key. Ends with the first failure of fn. */
MUST_CHECK
enum status v2_nodes_walk(const struct v2_tree *tree, const struct v2_nodes_options *options,
                          v2_nodes_fn fn, void *ctx);

/* The node as JSON, as etcd's v2 API shows it, without children. */
void v2_nodes_write(FILE *to, const struct v2_node *node);

#endif
