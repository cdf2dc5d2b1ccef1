#include "load/request.h"

#include "load/frame.h"

static enum status append_prefixed(struct buf *out, struct slice message)
{
    uint8_t prefix[BENCH_GRPC_PREFIX_BYTES] = {0};
    bench_u32_write(prefix + 1, (uint32_t)message.len);
    TRY(buf_append(out, slice_of(prefix, sizeof(prefix))));
    return buf_append(out, message);
}

static enum status append_frames(struct bench_request *request, struct slice header_block,
                                 struct slice body, bool end_stream)
{
    unsigned flags = end_stream && !body.len ? BENCH_FRAME_END_STREAM : 0;
    TRY(bench_frame_append(&request->frames, BENCH_FRAME_HEADERS, BENCH_FRAME_END_HEADERS | flags,
                           0, header_block));
    request->first_data_at = request->frames.len;
    request->body_bytes = body.len;
    for (size_t at = 0; at < body.len; at += BENCH_FRAME_PAYLOAD_MAX) {
        size_t len = size_min(body.len - at, BENCH_FRAME_PAYLOAD_MAX);
        bool last = at + len == body.len;
        TRY(bench_frame_append(&request->frames, BENCH_FRAME_DATA,
                               last && end_stream ? BENCH_FRAME_END_STREAM : 0, 0,
                               slice_sub(body, at, len)));
    }
    return ST_OK;
}

enum status bench_request_init(struct bench_request *request, struct slice header_block,
                               struct slice message, bool end_stream)
{
    *request = (struct bench_request){.prefix_bytes = BENCH_GRPC_PREFIX_BYTES};
    AUTO(buf_fini) struct buf body = {0};
    TRY(append_prefixed(&body, message));
    return append_frames(request, header_block, buf_slice(&body), end_stream);
}

enum status bench_request_init_plain(struct bench_request *request, struct slice header_block,
                                     struct slice body)
{
    *request = (struct bench_request){0};
    return append_frames(request, header_block, body, true);
}

void bench_request_fini(struct bench_request *request)
{
    buf_fini(&request->frames);
    *request = (struct bench_request){0};
}

size_t bench_request_place(const struct bench_request *request, size_t at)
{
    assert(request->prefix_bytes + at < BENCH_FRAME_PAYLOAD_MAX);
    return request->first_data_at + BENCH_FRAME_HEAD_BYTES + request->prefix_bytes + at;
}

enum status bench_request_append(const struct bench_request *request, uint32_t stream,
                                 struct buf *out, uint8_t **ret_at)
{
    enum { DATA_STEP = BENCH_FRAME_HEAD_BYTES + BENCH_FRAME_PAYLOAD_MAX };
    TRY(buf_reserve(out, request->frames.len));
    uint8_t *at = out->ptr + out->len;
    memcpy(at, request->frames.ptr, request->frames.len);
    bench_u32_write(at + BENCH_FRAME_STREAM_AT, stream);
    for (size_t frame = request->first_data_at; frame < request->frames.len; frame += DATA_STEP)
        bench_u32_write(at + frame + BENCH_FRAME_STREAM_AT, stream);
    out->len += request->frames.len;
    *ret_at = at;
    return ST_OK;
}

enum status bench_request_append_message(uint32_t stream, struct slice message, struct buf *out)
{
    if (message.len + BENCH_GRPC_PREFIX_BYTES > BENCH_FRAME_PAYLOAD_MAX)
        return ST_LIMIT;
    AUTO(buf_fini) struct buf body = {0};
    TRY(append_prefixed(&body, message));
    return bench_frame_append(out, BENCH_FRAME_DATA, 0, stream, buf_slice(&body));
}
