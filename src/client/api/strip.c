#include "client/api/strip.h"

#include "client/call/prefix.h"
#include "codec/pb/rpc.pb.h"

static void strip_kvs(struct pb_key_value *kvs, size_t count, size_t prefix_len)
{
    for (size_t i = 0; i < count; i++)
        prefix_strip(&kvs[i].key, prefix_len);
}

void strip_range(void *response, size_t prefix_len)
{
    struct pb_range_response *range = response;
    strip_kvs(range->kvs, range->kvs_count, prefix_len);
}

void strip_put(void *response, size_t prefix_len)
{
    struct pb_put_response *put = response;
    strip_kvs(put->prev_kv, put->prev_kv != NULL, prefix_len);
}

void strip_delete(void *response, size_t prefix_len)
{
    struct pb_delete_range_response *removal = response;
    strip_kvs(removal->prev_kvs, removal->prev_kvs_count, prefix_len);
}

void strip_txn(void *response, size_t prefix_len)
{
    struct pb_txn_response *txn = response;
    for (size_t i = 0; i < txn->responses_count; i++) {
        struct pb_response_op *op = &txn->responses[i];
        if (op->response_case == PB_RESPONSE_OP_RESPONSE_RANGE)
            strip_range(op->response_range, prefix_len);
        else if (op->response_case == PB_RESPONSE_OP_RESPONSE_PUT)
            strip_put(op->response_put, prefix_len);
        else if (op->response_case == PB_RESPONSE_OP_RESPONSE_DELETE_RANGE)
            strip_delete(op->response_delete_range, prefix_len);
        else if (op->response_case == PB_RESPONSE_OP_RESPONSE_TXN)
            strip_txn(op->response_txn, prefix_len); /* the decoder limits the depth */
    }
}

void strip_lease(void *response, size_t prefix_len)
{
    struct pb_lease_time_to_live_response *ttl = response;
    for (size_t i = 0; i < ttl->keys_count; i++)
        prefix_strip(&ttl->keys[i], prefix_len);
}
