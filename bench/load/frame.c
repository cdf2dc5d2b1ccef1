#include "load/frame.h"

enum status bench_frame_append(struct buf *out, enum bench_frame_type type, unsigned flags,
                               uint32_t stream, struct slice payload)
{
    assert(payload.len <= BENCH_FRAME_PAYLOAD_MAX);
    TRY(buf_reserve(out, BENCH_FRAME_HEAD_BYTES + payload.len));
    bench_frame_head_write(out->ptr + out->len, payload.len, type, flags, stream);
    out->len += BENCH_FRAME_HEAD_BYTES;
    return buf_append(out, payload);
}

enum status bench_frame_append_window(struct buf *out, uint32_t stream, uint32_t increment)
{
    uint8_t payload[4];
    bench_u32_write(payload, increment);
    return bench_frame_append(out, BENCH_FRAME_WINDOW_UPDATE, 0, stream,
                              slice_of(payload, sizeof(payload)));
}

static void slice_skip(struct slice *s, size_t n)
{
    *s = slice_sub(*s, n, s->len - n);
}

static struct bench_frame take_data(struct bench_frame_reader *reader, struct slice *input)
{
    size_t take = size_min(reader->data_left, input->len);
    struct bench_frame frame = {
        .type = BENCH_FRAME_DATA,
        .stream = reader->data_stream,
        .payload = slice_sub(*input, 0, take),
    };
    reader->data_left -= (uint32_t)take;
    if (reader->data_left == 0)
        frame.flags = reader->data_flags;
    slice_skip(input, take);
    return frame;
}

/* Removes what PADDED and PRIORITY put around a payload. */
static enum status strip(struct bench_frame *frame)
{
    struct slice *payload = &frame->payload;
    size_t padding = 0;
    if (frame->flags & BENCH_FRAME_PADDED) {
        if (payload->len < 1)
            return ST_MALFORMED;
        padding = payload->ptr[0];
        slice_skip(payload, 1);
    }
    if (frame->type == BENCH_FRAME_HEADERS && (frame->flags & BENCH_FRAME_PRIORITY)) {
        if (payload->len < 5)
            return ST_MALFORMED;
        slice_skip(payload, 5);
    }
    if (padding > payload->len)
        return ST_MALFORMED;
    payload->len -= padding;
    return ST_OK;
}

enum status bench_frame_next(struct bench_frame_reader *reader, struct slice *input,
                             struct bench_frame *ret_frame)
{
    if (reader->data_left) {
        if (input->len == 0)
            return ST_AGAIN;
        *ret_frame = take_data(reader, input);
        return ST_OK;
    }
    if (input->len < BENCH_FRAME_HEAD_BYTES)
        return ST_AGAIN;
    const uint8_t *head = input->ptr;
    uint32_t length = bench_u32_read(head) >> 8;
    if (length > BENCH_FRAME_PAYLOAD_MAX)
        return ST_MALFORMED;
    struct bench_frame frame = {
        .type = head[3],
        .flags = head[4],
        .stream = bench_u32_read(head + BENCH_FRAME_STREAM_AT) & BENCH_WINDOW_MAX,
    };
    bool padded = frame.flags & BENCH_FRAME_PADDED;
    if (frame.type == BENCH_FRAME_DATA && !padded && length > 0) {
        slice_skip(input, BENCH_FRAME_HEAD_BYTES);
        *reader = (struct bench_frame_reader){length, frame.stream, frame.flags};
        return bench_frame_next(reader, input, ret_frame);
    }
    if (input->len - BENCH_FRAME_HEAD_BYTES < length)
        return ST_AGAIN;
    frame.payload = slice_sub(*input, BENCH_FRAME_HEAD_BYTES, length);
    if (frame.type == BENCH_FRAME_DATA || frame.type == BENCH_FRAME_HEADERS)
        TRY(strip(&frame));
    slice_skip(input, BENCH_FRAME_HEAD_BYTES + length);
    *ret_frame = frame;
    return ST_OK;
}
