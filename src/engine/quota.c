#include "engine/quota.h"

static int64_t cost_of(const struct pb_request_op *ops, size_t count)
{
    int64_t cost = 0;
    for (size_t i = 0; i < count; i++) {
        if (ops[i].request_case == PB_REQUEST_OP_REQUEST_PUT)
            cost += quota_cost_put(ops[i].request_put);
        else if (ops[i].request_case == PB_REQUEST_OP_REQUEST_TXN)
            cost += quota_cost_txn(ops[i].request_txn);
    }
    return cost;
}

int64_t quota_cost_txn(const struct pb_txn_request *request)
{
    int64_t success = cost_of(request->success, request->success_count);
    int64_t failure = cost_of(request->failure, request->failure_count);
    return success > failure ? success : failure;
}
