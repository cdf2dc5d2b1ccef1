/*
 * A node and the directories above it, read in one transaction: what a change depends on, and what
 * a node that is not there is missing.
 */
#ifndef VIGIL_ETCD_V2_ANCESTORS_H
#define VIGIL_ETCD_V2_ANCESTORS_H

#include "codec/pb/rpc.pb.h"
#include "engine/engine.h"
#include "etcd/v2/node.h"

struct v2_chain {
    struct engine_write write; /* the caller sets op.done and op.arena */
    const struct v2_key *key;
    struct pb_txn_request txn;
    struct pb_request_op ops[V2_DEPTH_MAX + 1];
    struct pb_range_request ranges[V2_DEPTH_MAX + 1];

    /* Of each part from 1 on; those with modified 0 are not there, or their time has passed. Values
     * are not kept but the last one's. */
    struct v2_node nodes[V2_DEPTH_MAX + 1];
    struct slice value; /* of the last, in the arena */
    bool has_children;  /* the last has */
    int64_t revision;
};

/* ST_NOMEM: not started. */
MUST_CHECK
enum status v2_chain_start(struct engine_shard *shard, struct v2_chain *chain,
                           const struct v2_key *key);
/* In done: takes what was read and closes the operation. */
MUST_CHECK
enum status v2_chain_take(struct v2_chain *chain, int64_t real_ns);

/* The first part at or above `depth` that cannot be gone through: missing, or, but for the last, no
 * directory. depth + 1: none. */
size_t v2_chain_broken(const struct v2_chain *chain, size_t depth);

#endif
