/* For tests: writes what a client sends and reads what a server answers. */
#ifndef VIGIL_WIRE_H2_CLIENT_TEST_H
#define VIGIL_WIRE_H2_CLIENT_TEST_H

#include "base/buf.h"
#include "wire/h2/frame.h"
#include "wire/h2/session.h"

#include <stdlib.h>

/* POST http / with authority x, from the static table and one literal that is not indexed. */
#define TEST_REQUEST "\x83\x86\x84\x01\x01x"

static inline void test_put(struct buf *to, struct slice bytes)
{
    if (buf_append(to, bytes) != ST_OK)
        abort();
}

static inline void test_frame(struct buf *to, enum h2_frame_type type, uint8_t flags, uint32_t id,
                              struct slice payload)
{
    uint8_t head[H2_FRAME_HEAD_BYTES];
    h2_frame_put(head, payload.len, type, flags, id);
    test_put(to, slice_of(head, sizeof(head)));
    test_put(to, payload);
}

static inline void test_hello(struct buf *to)
{
    test_put(to, H2_PREFACE);
    test_frame(to, H2_SETTINGS, 0, 0, SLICE_EMPTY);
    test_frame(to, H2_SETTINGS, H2_FLAG_ACK, 0, SLICE_EMPTY);
}

static inline void test_headers(struct buf *to, uint32_t id, uint8_t flags, struct slice block)
{
    test_frame(to, H2_HEADERS, flags | H2_FLAG_END_HEADERS, id, block);
}

static inline void test_window(struct buf *to, uint32_t id, uint32_t n)
{
    uint8_t payload[4];
    h2_put32(payload, n);
    test_frame(to, H2_WINDOW_UPDATE, 0, id, slice_of(payload, 4));
}

static inline void test_setting(struct buf *to, unsigned setting, uint32_t value)
{
    uint8_t payload[6] = {0, (uint8_t)setting};
    h2_put32(payload + 2, value);
    test_frame(to, H2_SETTINGS, 0, 0, slice_of(payload, 6));
}

/* Removes one frame from the front. False: there is no complete one. */
static inline bool test_next(struct slice *bytes, struct h2_frame *frame, struct slice *payload)
{
    *frame = (struct h2_frame){0};
    *payload = SLICE_EMPTY;
    if (bytes->len < H2_FRAME_HEAD_BYTES)
        return false;
    *frame = h2_frame_get(bytes->ptr);
    if (bytes->len < H2_FRAME_HEAD_BYTES + frame->len)
        return false;
    *payload = slice_sub(*bytes, H2_FRAME_HEAD_BYTES, frame->len);
    *bytes = slice_sub(*bytes, H2_FRAME_HEAD_BYTES + frame->len,
                       bytes->len - H2_FRAME_HEAD_BYTES - frame->len);
    return true;
}

/* The nth (from 0) frame of that type and stream. */
static inline bool test_find(struct slice bytes, enum h2_frame_type type, uint32_t id, size_t nth,
                             struct h2_frame *frame, struct slice *payload)
{
    do {
        if (!test_next(&bytes, frame, payload))
            return false;
    } while (frame->type != type || frame->stream_id != id || nth-- != 0);
    return true;
}

static inline size_t test_count(struct slice bytes, enum h2_frame_type type, uint32_t id)
{
    struct h2_frame frame;
    struct slice payload;
    size_t n = 0;
    while (test_find(bytes, type, id, n, &frame, &payload))
        n++;
    return n;
}

static inline size_t test_data_bytes(struct slice bytes, uint32_t id)
{
    struct h2_frame frame;
    struct slice payload;
    size_t n = 0;
    while (test_next(&bytes, &frame, &payload))
        n += frame.type == H2_DATA && frame.stream_id == id ? frame.len : 0;
    return n;
}

/* The error code of the GOAWAY (id 0) or of the stream's RST_STREAM; -1: there is none. */
static inline int64_t test_error(struct slice bytes, uint32_t id)
{
    struct h2_frame frame;
    struct slice payload;
    if (id == 0 && test_find(bytes, H2_GOAWAY, 0, 0, &frame, &payload))
        return h2_get32(payload.ptr + 4);
    if (id != 0 && test_find(bytes, H2_RST_STREAM, id, 0, &frame, &payload))
        return h2_get32(payload.ptr);
    return -1;
}

/* Feeds and empties `in`, in pieces of `step` bytes. */
static inline void test_feed(struct h2_session *session, struct buf *in, size_t step,
                             int64_t now_ns)
{
    for (size_t i = 0; i < in->len; i += step) {
        h2_session_feed(session, slice_of(in->ptr + i, size_min(step, in->len - i)), now_ns);
        h2_session_check(session);
    }
    in->len = 0;
}

/* Appends all output to `out`. */
static inline void test_drain(struct h2_session *session, struct buf *out, int64_t now_ns)
{
    uint8_t room[H2_FILL_ROOM_MIN * 2];
    while (h2_session_wants_write(session)) {
        size_t n = h2_session_fill(session, room, sizeof(room), now_ns);
        test_put(out, slice_of(room, n));
        h2_session_check(session);
        if (n == 0)
            break;
    }
}

#endif
