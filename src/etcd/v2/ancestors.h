/*
 * A node and the directories above it, read in one transaction. A write depends on all of them, and
 * for a missing node they show which part of its path does not exist.
 */
#ifndef VIGIL_ETCD_V2_ANCESTORS_H
#define VIGIL_ETCD_V2_ANCESTORS_H

#include "codec/pb/rpc.pb.h"
#include "engine/engine.h"
#include "etcd/v2/node.h"

struct v2_ancestors {
    struct engine_write write; /* the caller sets op.done and op.arena */
    const struct v2_key *key;
    struct pb_txn_request txn;
    struct pb_request_op ops[V2_DEPTH_MAX + 1];
    struct pb_range_request ranges[V2_DEPTH_MAX + 1];

    /* The node of each part of the path, from 1 on. modified is 0 if the node does not exist or has
     * expired. Only the last node has its value. */
    struct v2_node nodes[V2_DEPTH_MAX + 1];
    struct slice value; /* value of the last node, in the arena */
    bool has_children;  /* whether the last node has children */
    int64_t revision;
};

/* ST_NOMEM: not started. */
MUST_CHECK
enum status v2_ancestors_start(struct engine_shard *shard, struct v2_ancestors *ancestors,
                               const struct v2_key *key);
/* Called from done: copies what was read and closes the operation. */
MUST_CHECK
enum status v2_ancestors_take(struct v2_ancestors *ancestors, int64_t real_ns);

/* The first part of the path, up to `depth`, that does not exist or, except for the last one, is
 * not a directory. depth + 1: there is none. */
size_t v2_ancestors_first_gap(const struct v2_ancestors *ancestors, size_t depth);

#endif
