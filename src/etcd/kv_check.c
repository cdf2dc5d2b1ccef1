#include "etcd/kv_check.h"

#include "codec/pb/rpc.pb.h"
#include "codec/pb/wire.h"
#include "etcd/txn_overlap.h"

static bool known_enum(int32_t value, int32_t last)
{
    return value >= 0 && value <= last;
}

enum status kv_check_range(const struct pb_range_request *request)
{
    if (request->key.len == 0)
        return ST_EMPTY_KEY;
    if (!known_enum(request->sort_order, PB_SORT_ORDER_DESCEND) ||
        !known_enum(request->sort_target, PB_SORT_TARGET_VALUE))
        return ST_INVALID_SORT_OPTION;
    return ST_OK;
}

const char *kv_check_range_stream(const struct pb_range_request *request)
{
    bool by_key =
        request->sort_order == PB_SORT_ORDER_NONE ||
        (request->sort_target == PB_SORT_TARGET_KEY && request->sort_order == PB_SORT_ORDER_ASCEND);
    if (!by_key)
        return "RangeStream does not support custom sort orders";
    if (request->min_mod_revision || request->max_mod_revision || request->min_create_revision ||
        request->max_create_revision)
        return "RangeStream does not support revision filters";
    return NULL;
}

enum status kv_check_put(const struct pb_put_request *request)
{
    if (request->key.len == 0)
        return ST_EMPTY_KEY;
    if (request->ignore_value && request->value.len != 0)
        return ST_VALUE_PROVIDED;
    if (request->ignore_lease && request->lease != 0)
        return ST_LEASE_PROVIDED;
    return ST_OK;
}

enum status kv_check_delete_range(const struct pb_delete_range_request *request)
{
    return request->key.len == 0 ? ST_EMPTY_KEY : ST_OK;
}

static enum status check_ops(const struct pb_request_op *ops, size_t count, size_t nested_ops_max);

/* Recursion ends with the decoder's limit on depth. */
static enum status check_lists(const struct pb_txn_request *request, size_t ops_max)
{
    size_t longest =
        size_max(request->compare_count, size_max(request->success_count, request->failure_count));
    if (longest > ops_max)
        return ST_TOO_MANY_OPS;
    for (size_t i = 0; i < request->compare_count; i++) {
        if (request->compare[i].key.len == 0)
            return ST_EMPTY_KEY;
    }
    TRY(check_ops(request->success, request->success_count, ops_max - longest));
    return check_ops(request->failure, request->failure_count, ops_max - longest);
}

static enum status check_op(const struct pb_request_op *op, size_t nested_ops_max)
{
    switch (op->request_case) {
    case PB_REQUEST_OP_REQUEST_RANGE:
        return kv_check_range(op->request_range);
    case PB_REQUEST_OP_REQUEST_PUT:
        return kv_check_put(op->request_put);
    case PB_REQUEST_OP_REQUEST_DELETE_RANGE:
        return kv_check_delete_range(op->request_delete_range);
    case PB_REQUEST_OP_REQUEST_TXN:
        return check_lists(op->request_txn, nested_ops_max);
    case PB_REQUEST_OP_REQUEST_NONE:
        break;
    }
    return ST_KEY_NOT_FOUND; /* what etcd says of an empty operation */
}

static enum status check_ops(const struct pb_request_op *ops, size_t count, size_t nested_ops_max)
{
    for (size_t i = 0; i < count; i++)
        TRY(check_op(&ops[i], nested_ops_max));
    return ST_OK;
}

enum status kv_check_txn(const struct pb_txn_request *request, size_t ops_max, struct arena *arena)
{
    TRY(check_lists(request, ops_max));
    TRY(txn_overlap_check(request->success, request->success_count, arena));
    return txn_overlap_check(request->failure, request->failure_count, arena);
}

/* -- Before decoding -- */

/* The next field of a message. False at the end, or where it is malformed. */
static bool field_next(struct slice *rest, uint32_t *ret_number, struct slice *ret_body)
{
    const uint8_t *p = rest->ptr, *end = p + rest->len;
    uint64_t tag, value;
    if (!rest->len || !(p = pb_varint_read(p, end, &tag)))
        return false;
    *ret_body = SLICE_EMPTY;
    switch (tag & 7) {
    case PB_WIRE_VARINT:
        if (!(p = pb_varint_read(p, end, &value)))
            return false;
        break;
    case PB_WIRE_LEN:
        if (!(p = pb_varint_read(p, end, &value)) || value > (size_t)(end - p))
            return false;
        *ret_body = slice_of(p, (size_t)value);
        p += value;
        break;
    case PB_WIRE_I64:
    case PB_WIRE_I32:
        value = (tag & 7) == PB_WIRE_I64 ? 8 : 4;
        if (value > (size_t)(end - p))
            return false;
        p += value;
        break;
    default:
        return false;
    }
    *ret_number = (uint32_t)(tag >> 3);
    *rest = slice_of(p, (size_t)(end - p));
    return true;
}

static bool lists_are_too_long(struct slice message, size_t ops_max, unsigned depth)
{
    enum { COMPARE = 1, SUCCESS = 2, FAILURE = 3, OP_TXN = 4 };
    size_t counts[FAILURE + 1] = {0};
    uint32_t number, inner;
    struct slice body, nested;
    while (field_next(&message, &number, &body)) {
        if (number < COMPARE || number > FAILURE)
            continue;
        if (++counts[number] > ops_max)
            return true;
        while (number != COMPARE && depth && field_next(&body, &inner, &nested))
            if (inner == OP_TXN && lists_are_too_long(nested, ops_max, depth - 1))
                return true;
    }
    return false;
}

bool kv_txn_is_too_long(struct slice message, size_t ops_max)
{
    return lists_are_too_long(message, ops_max, PB_DEPTH_MAX);
}

static bool ranges_only(const struct pb_request_op *ops, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (ops[i].request_case != PB_REQUEST_OP_REQUEST_RANGE)
            return false;
    }
    return true;
}

bool kv_txn_reads_only(const struct pb_txn_request *request)
{
    return ranges_only(request->success, request->success_count) &&
           ranges_only(request->failure, request->failure_count);
}
