/*
 * Reads the users and roles of v2 (etcd/v2/policy.h) from the store, and writes them back on the
 * condition that they have not changed meanwhile. Embedded in the state of a call, on the shard's
 * thread.
 */
#ifndef VIGIL_ETCD_V2_POLICY_STORE_H
#define VIGIL_ETCD_V2_POLICY_STORE_H

#include "codec/pb/rpc.pb.h"
#include "engine/engine.h"
#include "etcd/v2/policy.h"

struct v2_policy_store {
    union {
        struct engine_range range;
        struct engine_write write;
    };
    int64_t revision; /* revision of the key when it was read; 0: it did not exist */
    struct buf text;  /* the new value */
    struct pb_range_request request;
    struct pb_txn_request txn;
    struct pb_compare compare;
    struct pb_request_op op;
    struct pb_put_request put;
};

/* No operation may be under way. */
void v2_policy_store_fini(struct v2_policy_store *store);

/* done gets range.op. The engine uses the arena until then, and the policy will refer to it. */
void v2_policy_store_read(struct v2_policy_store *store, struct engine_shard *shard,
                          struct arena *arena, void (*done)(struct engine_op *op));
/* Called from done. ST_MALFORMED: a client of v3 has written a value that is not a policy. */
MUST_CHECK
enum status v2_policy_store_take(struct v2_policy_store *store, struct v2_policy *ret_policy);

/* Called after a read. done gets write.op. ST_LIMIT: the policy is too long. After ST_LIMIT and
 * ST_NOMEM nothing was started. */
MUST_CHECK
enum status v2_policy_store_write(struct v2_policy_store *store, struct engine_shard *shard,
                                  struct arena *arena, const struct v2_policy *policy,
                                  void (*done)(struct engine_op *op));
/* Called from done. ST_AGAIN: the policy has changed since it was read. */
MUST_CHECK
enum status v2_policy_store_written(struct v2_policy_store *store);

#endif
