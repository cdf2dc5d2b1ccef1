#include "etcd/service/kv_check.h"

#include "codec/pb/rpc.pb.h"
#include "codec/pb/wire.h"
#include "etcd/service/txn_overlap.h"

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

/* The decoder's limit of depth also limits the recursion. */
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
    return ST_KEY_NOT_FOUND; /* etcd's error for an empty operation */
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

/* Skips the value after a tag; the value of a group's start tag is empty. NULL: malformed. */
static const uint8_t *value_skip(uint64_t tag, const uint8_t *p, const uint8_t *end,
                                 struct slice *ret_body)
{
    uint64_t value;
    size_t bytes = 0;
    *ret_body = SLICE_EMPTY;
    switch (tag & 7) {
    case PB_WIRE_VARINT:
        return pb_varint_read(p, end, &value);
    case PB_WIRE_LEN:
        if ((p = pb_len_read(p, end, &bytes)))
            *ret_body = slice_of(p, bytes);
        break;
    case PB_WIRE_I64:
        bytes = 8;
        break;
    case PB_WIRE_I32:
        bytes = 4;
        break;
    case PB_WIRE_GROUP:
    case PB_WIRE_GROUP_END:
        break;
    default:
        return NULL;
    }
    return p && bytes <= (size_t)(end - p) ? p + bytes : NULL;
}

/* The next field of a message. A group is one field without a body. False at the end, or if the
 * message is malformed. */
static bool field_next(struct slice *rest, uint32_t *ret_number, struct slice *ret_body)
{
    if (rest->len == 0)
        return false; /* its pointer may be NULL, to which nothing may be added */
    const uint8_t *p = rest->ptr, *end = p + rest->len;
    size_t groups = 0; /* open ones */
    uint64_t tag;
    do {
        if (p == end || !(p = pb_varint_read(p, end, &tag)) ||
            !(p = value_skip(tag, p, end, ret_body)))
            return false;
        if ((tag & 7) == PB_WIRE_GROUP)
            groups++;
        else if ((tag & 7) == PB_WIRE_GROUP_END && groups-- == 0)
            return false;
    } while (groups);
    *ret_number = (tag & 7) == PB_WIRE_GROUP_END ? 0 : (uint32_t)(tag >> 3);
    *rest = slice_of(p, (size_t)(end - p));
    return true;
}

/* The limits that remain during the walk. */
struct op_count {
    size_t list_max, total_left;
};

static bool lists_are_too_long(struct op_count *count, struct slice message, unsigned depth);

/* The decoder decodes every member of an operation although only the last one counts, so each of
 * them is counted here. */
static bool op_is_too_long(struct op_count *count, struct slice op, unsigned depth)
{
    enum { OP_TXN = 4 };
    uint32_t member;
    struct slice body;
    for (bool first = true; field_next(&op, &member, &body); first = false) {
        if (!first && count->total_left-- == 0)
            return true;
        if (member == OP_TXN && lists_are_too_long(count, body, depth))
            return true;
    }
    return false;
}

static bool lists_are_too_long(struct op_count *count, struct slice message, unsigned depth)
{
    enum { COMPARE = 1, SUCCESS = 2, FAILURE = 3 };
    size_t lengths[FAILURE + 1] = {0};
    uint32_t number;
    struct slice body;
    while (field_next(&message, &number, &body)) {
        if (count->total_left-- == 0)
            return true;
        if (number < COMPARE || number > FAILURE)
            continue;
        /* etcd checks the outermost lists before anything else, nested ones together with the other
         * checks. */
        if (++lengths[number] > count->list_max && depth == PB_DEPTH_MAX)
            return true;
        if (number != COMPARE && depth && op_is_too_long(count, body, depth - 1))
            return true;
    }
    return false;
}

bool kv_txn_is_too_long(struct slice message, size_t ops_max)
{
    size_t flat_max;
    if (__builtin_mul_overflow(ops_max, 3, &flat_max))
        flat_max = SIZE_MAX;
    struct op_count count = {.list_max = ops_max,
                             .total_left = size_max(KV_TXN_TOTAL_MAX, flat_max)};
    return lists_are_too_long(&count, message, PB_DEPTH_MAX);
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
