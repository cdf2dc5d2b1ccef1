/*
 * The users and roles of v2 (etcd/v2/policy.h) as they lie in the store: read as of now, and put
 * back if nobody has changed them meanwhile. Embedded in what waits for it; a shard's thread.
 */
#ifndef VIGIL_ETCD_V2_POLICY_STORE_H
#define VIGIL_ETCD_V2_POLICY_STORE_H

#include "codec/pb/rpc.pb.h"
#include "engine/engine.h"
#include "etcd/v2/policy.h"

struct v2_vault {
    union {
        struct engine_range range;
        struct engine_write write;
    };
    int64_t revision; /* of what was read; 0: nothing was there */
    struct buf text;  /* what is put back */
    struct pb_range_request request;
    struct pb_txn_request txn;
    struct pb_compare compare;
    struct pb_request_op op;
    struct pb_put_request put;
};

/* Frees; nothing may be under way. */
void v2_vault_fini(struct v2_vault *vault);

/* done is given range.op; what it takes lies in the arena, which is the engine's until then. */
void v2_vault_read(struct v2_vault *vault, struct engine_shard *shard, struct arena *arena,
                   void (*done)(struct engine_op *op));
/* In done. ST_MALFORMED: what a client of v3 has put there is nothing that could be obeyed. */
MUST_CHECK
enum status v2_vault_take(struct v2_vault *vault, struct v2_policy *ret_policy);

/* After a read. done is given write.op. ST_LIMIT: it is too long; not started, as ST_NOMEM. */
MUST_CHECK
enum status v2_vault_write(struct v2_vault *vault, struct engine_shard *shard, struct arena *arena,
                           const struct v2_policy *policy, void (*done)(struct engine_op *op));
/* In done. ST_AGAIN: somebody else was first. */
MUST_CHECK
enum status v2_vault_written(struct v2_vault *vault);

#endif
