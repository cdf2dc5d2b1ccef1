/*
 * What a request may add to the store, as etcd reckons it when it holds a request against the
 * quota: more than is true for small ones, and the dearer branch of a transaction.
 */
#ifndef VIGIL_ENGINE_QUOTA_H
#define VIGIL_ENGINE_QUOTA_H

#include <stdint.h>

struct pb_put_request;
struct pb_txn_request;

enum { QUOTA_LEASE_COST = 64 };

int64_t quota_cost_put(const struct pb_put_request *request);
/* 0: it puts nothing. */
int64_t quota_cost_txn(const struct pb_txn_request *request);

#endif
