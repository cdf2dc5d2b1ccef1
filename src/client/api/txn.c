#include "client/api/kv.h"
#include "client/api/methods.h"
#include "codec/pb/wire.h"

#include <stdlib.h>
#include <vigil/txn.h>

/* The fields of a TxnRequest. */
enum { TXN_COMPARE = 1, TXN_SUCCESS = 2, TXN_FAILURE = 3 };

/* The message is built piece by piece, encoded: every comparison and operation is one field. */
struct vigil_txn {
    struct vigil_client *client; /* a reference */
    struct buf message;
    uint32_t branch; /* TXN_SUCCESS or TXN_FAILURE */
    bool failed;     /* out of memory: it has no call */
};

vigil_txn *vigil_txn_new(vigil_client *client)
{
    struct vigil_txn *txn = client ? calloc(1, sizeof(*txn)) : NULL;
    if (!txn)
        return NULL;
    txn->client = client;
    txn->branch = TXN_SUCCESS;
    driver_ref(&client->driver);
    return txn;
}

void vigil_txn_free(vigil_txn *txn)
{
    if (!txn)
        return;
    buf_fini(&txn->message);
    driver_unref(&txn->client->driver);
    free(txn);
}

static enum status append_field(struct buf *to, uint32_t number, const struct pb_message *type,
                                const void *message)
{
    size_t size = pb_size(type, message), head = pb_message_head_size(number, size);
    TRY(buf_reserve(to, head + size));
    uint8_t *dst = pb_message_head_write(to->ptr + to->len, number, size);
    pb_encode(type, message, dst, size);
    to->len += head + size;
    return ST_OK;
}

/* -- Comparisons -- */

static void compare(vigil_txn *txn, vigil_bytes key, int comparison, struct pb_compare what)
{
    AUTO(prefixed_range_fini) struct prefixed_range memory = {0};
    struct slice no_end = SLICE_EMPTY;
    if (!txn)
        return;
    what.key = slice_of_bytes(key);
    what.result = comparison;
    if (kv_request_prefix(txn->client, &what.key, &no_end, &memory) != ST_OK ||
        append_field(&txn->message, TXN_COMPARE, &pb_compare_table, &what) != ST_OK)
        txn->failed = true;
}

void vigil_txn_if_version(vigil_txn *txn, vigil_bytes key, int comparison, int64_t version)
{
    compare(txn, key, comparison,
            (struct pb_compare){.target = PB_COMPARE_TARGET_VERSION,
                                .target_union_case = PB_COMPARE_VERSION,
                                .version = version});
}

void vigil_txn_if_create_revision(vigil_txn *txn, vigil_bytes key, int comparison, int64_t revision)
{
    compare(txn, key, comparison,
            (struct pb_compare){.target = PB_COMPARE_TARGET_CREATE,
                                .target_union_case = PB_COMPARE_CREATE_REVISION,
                                .create_revision = revision});
}

void vigil_txn_if_mod_revision(vigil_txn *txn, vigil_bytes key, int comparison, int64_t revision)
{
    compare(txn, key, comparison,
            (struct pb_compare){.target = PB_COMPARE_TARGET_MOD,
                                .target_union_case = PB_COMPARE_MOD_REVISION,
                                .mod_revision = revision});
}

void vigil_txn_if_value(vigil_txn *txn, vigil_bytes key, int comparison, vigil_bytes value)
{
    compare(txn, key, comparison,
            (struct pb_compare){.target = PB_COMPARE_TARGET_VALUE,
                                .target_union_case = PB_COMPARE_VALUE,
                                .value = slice_of_bytes(value)});
}

void vigil_txn_if_lease(vigil_txn *txn, vigil_bytes key, int comparison, int64_t lease)
{
    compare(txn, key, comparison,
            (struct pb_compare){.target = PB_COMPARE_TARGET_LEASE,
                                .target_union_case = PB_COMPARE_LEASE,
                                .lease = lease});
}

/* -- Operations -- */

void vigil_txn_else(vigil_txn *txn)
{
    if (txn)
        txn->branch = TXN_FAILURE;
}

/* key and range_end are those of the message in the operation. */
static void add_op(vigil_txn *txn, const struct pb_request_op *op, struct slice *key,
                   struct slice *range_end)
{
    AUTO(prefixed_range_fini) struct prefixed_range memory = {0};
    if (kv_request_prefix(txn->client, key, range_end, &memory) != ST_OK ||
        append_field(&txn->message, txn->branch, &pb_request_op_table, op) != ST_OK)
        txn->failed = true;
}

void vigil_txn_range(vigil_txn *txn, const vigil_range_request *request)
{
    struct pb_range_request message;
    struct pb_request_op op = {
        .request_case = PB_REQUEST_OP_REQUEST_RANGE,
        .request_range = &message,
    };
    kv_request_copy(&message, sizeof(message), request);
    if (txn)
        add_op(txn, &op, &message.key, &message.range_end);
}

void vigil_txn_get(vigil_txn *txn, vigil_bytes key)
{
    vigil_range_request request = {.size = sizeof(request), .key = key};
    vigil_txn_range(txn, &request);
}

void vigil_txn_put_with(vigil_txn *txn, const vigil_put_request *request)
{
    struct pb_put_request message;
    struct slice no_end = SLICE_EMPTY;
    struct pb_request_op op = {
        .request_case = PB_REQUEST_OP_REQUEST_PUT,
        .request_put = &message,
    };
    kv_request_copy(&message, sizeof(message), request);
    if (txn)
        add_op(txn, &op, &message.key, &no_end);
}

void vigil_txn_put(vigil_txn *txn, vigil_bytes key, vigil_bytes value, int64_t lease)
{
    vigil_put_request request = {
        .size = sizeof(request), .key = key, .value = value, .lease = lease};
    vigil_txn_put_with(txn, &request);
}

void vigil_txn_delete_with(vigil_txn *txn, const vigil_delete_request *request)
{
    struct pb_delete_range_request message;
    struct pb_request_op op = {
        .request_case = PB_REQUEST_OP_REQUEST_DELETE_RANGE,
        .request_delete_range = &message,
    };
    kv_request_copy(&message, sizeof(message), request);
    if (txn)
        add_op(txn, &op, &message.key, &message.range_end);
}

void vigil_txn_delete(vigil_txn *txn, vigil_bytes key)
{
    vigil_delete_request request = {.size = sizeof(request), .key = key};
    vigil_txn_delete_with(txn, &request);
}

/* A RequestOp with field 4, whose bytes are those of the inner transaction. */
static enum status append_nested(struct buf *to, uint32_t branch, struct slice inner)
{
    size_t op_size = pb_message_head_size(PB_REQUEST_OP_REQUEST_TXN, inner.len) + inner.len;
    size_t total = pb_message_head_size(branch, op_size) + op_size;
    TRY(buf_reserve(to, total));
    uint8_t *dst = pb_message_head_write(to->ptr + to->len, branch, op_size);
    dst = pb_message_head_write(dst, PB_REQUEST_OP_REQUEST_TXN, inner.len);
    slice_copy(dst, inner);
    to->len += total;
    return ST_OK;
}

void vigil_txn_nest(vigil_txn *txn, const vigil_txn *inner)
{
    if (!txn)
        return;
    if (!inner || inner->failed ||
        append_nested(&txn->message, txn->branch, buf_slice(&inner->message)) != ST_OK)
        txn->failed = true;
}

vigil_call *vigil_txn_call(const vigil_txn *txn)
{
    if (!txn || txn->failed)
        return NULL;
    struct vigil_call *call = client_call_new(txn->client, &client_methods[METHOD_TXN]);
    if (!call)
        return NULL;
    if (grpc_client_call_send(&call->grpc, buf_slice(&txn->message)) != ST_OK) {
        vigil_call_free(call);
        return NULL;
    }
    grpc_client_call_half_close(&call->grpc);
    return call;
}

const vigil_txn_response *vigil_txn_result(const vigil_call *call)
{
    return client_result(call, METHOD_TXN);
}
