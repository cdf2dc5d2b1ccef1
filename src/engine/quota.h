/*
 * The cost of a request for the check of the quota, computed as in etcd: an estimate that is too
 * high for small requests; for a transaction, the more expensive branch.
 */
#ifndef VIGIL_ENGINE_QUOTA_H
#define VIGIL_ENGINE_QUOTA_H

#include "codec/pb/rpc.pb.h"

enum { QUOTA_LEASE_COST = 64, QUOTA_PUT_COST = 256 };

static inline int64_t quota_cost_put(const struct pb_put_request *request)
{
    return (int64_t)(QUOTA_PUT_COST + request->key.len + request->value.len);
}
/* 0: the transaction puts nothing. */
int64_t quota_cost_txn(const struct pb_txn_request *request);

#endif
