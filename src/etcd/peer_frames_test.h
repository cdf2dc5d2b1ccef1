/* For tests: the frames that the server sends to a client. */
#ifndef VIGIL_ETCD_PEER_FRAMES_TEST_H
#define VIGIL_ETCD_PEER_FRAMES_TEST_H

#include "etcd/peer_fixture_test.h"

static inline void note_trailers(struct peer *p, struct peer_stream *stream, struct slice block,
                                 bool last)
{
    struct hpack_limits limits = {.list_bytes = 16384, .fields_max = 100};
    struct h2_headers *headers;
    struct slice value;
    assert_int_equal(hpack_decode(&p->hpack, block, true, &limits, &headers), ST_OK);
    if (h2_headers_get(headers, SLICE_LITERAL("grpc-status"), &value))
        stream->code =
            (int)strtol((const char *)memcpy((char[8]){0}, value.ptr, value.len), NULL, 10);
    if (h2_headers_get(headers, SLICE_LITERAL("grpc-message"), &value)) {
        assert_true(value.len < sizeof(stream->text));
        memcpy(stream->text, value.ptr, value.len);
    }
    stream->ended |= last;
    h2_headers_unref(headers);
}

static inline void note_frame(struct peer *p, struct h2_frame frame, struct slice payload)
{
    if (frame.stream_id == 0) {
        assert_int_not_equal(frame.type, H2_GOAWAY);
        return;
    }
    struct peer_stream *stream = peer_stream(p, frame.stream_id);
    if (frame.type == H2_RST_STREAM) { /* also after an answer, if the client is still sending */
        stream->ended = true;
        return;
    }
    assert_false(stream->ended);
    bool last = frame.flags & H2_FLAG_END_STREAM;
    if (frame.type == H2_HEADERS)
        note_trailers(p, stream, payload, last);
    else if (frame.type == H2_DATA)
        assert_int_equal(buf_append(&stream->body, payload), ST_OK);
    else if (frame.type == H2_WINDOW_UPDATE)
        p->window_used[frame.stream_id / 2] -= h2_get32(payload.ptr);
}

/* Receives everything that the server has to send. */
static inline void peer_pump(struct peer *p)
{
    uint8_t bytes[PEER_FILL_BYTES];
    wire_connection_check(p->connection);
    while (wire_connection_wants_write(p->connection)) {
        size_t n = wire_connection_fill(p->connection, bytes, sizeof(bytes), p->now_ns + 1);
        if (n == 0)
            break;
        assert_int_equal(buf_append(&p->in, slice_of(bytes, n)), ST_OK);
        while (p->in.len >= H2_FRAME_HEAD_BYTES) {
            struct h2_frame frame = h2_frame_get(p->in.ptr);
            if (p->in.len < H2_FRAME_HEAD_BYTES + frame.len)
                break;
            note_frame(p, frame, slice_of(p->in.ptr + H2_FRAME_HEAD_BYTES, frame.len));
            buf_consume(&p->in, H2_FRAME_HEAD_BYTES + frame.len);
        }
    }
}

#endif
