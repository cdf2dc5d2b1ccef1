#include "embed/request.h"

#include "codec/pb/wire.h"

/* Reads a field of bytes if it is at p. Returns what follows; NULL: it is truncated. */
static const uint8_t *bytes_read(const uint8_t *p, const uint8_t *end, uint32_t number,
                                 struct slice *ret_bytes)
{
    size_t len = 0;
    if (!p || p == end || *p != PB_TAG(number, PB_WIRE_LEN))
        return p;
    p = pb_len_read(p + 1, end, &len);
    if (!p)
        return NULL;
    *ret_bytes = slice_of(p, len);
    return p + len;
}

enum status embed_request_range(struct vigil_call *call, struct pb_range_request *ret_request)
{
    struct slice message = client_call_request(call);
    const uint8_t *end = message.ptr + message.len;
    *ret_request = (struct pb_range_request){0};
    if (LIKELY(bytes_read(message.ptr, end, 1, &ret_request->key) == end))
        return ST_OK;
    return pb_decode(&pb_range_request_table, message, &call->arena, ret_request);
}

enum status embed_request_put(struct vigil_call *call, struct pb_put_request *ret_request)
{
    struct slice message = client_call_request(call);
    const uint8_t *end = message.ptr + message.len;
    *ret_request = (struct pb_put_request){0};
    const uint8_t *p = bytes_read(message.ptr, end, 1, &ret_request->key);
    p = bytes_read(p, end, 2, &ret_request->value);
    if (p && p != end && *p == PB_TAG(3, PB_WIRE_VARINT)) {
        uint64_t lease = 0;
        p = pb_varint_read(p + 1, end, &lease);
        ret_request->lease = (int64_t)lease;
    }
    if (LIKELY(p == end))
        return ST_OK;
    return pb_decode(&pb_put_request_table, message, &call->arena, ret_request);
}
