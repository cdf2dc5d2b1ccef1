/*
 * HTTP/2 frames as bytes: heads written and read, input cut into frames. No sockets, no streams.
 *
 * The generator frames by itself instead of using wire/: it must not pay for, or share the faults
 * of, the code it measures.
 */
#ifndef VIGIL_LOAD_FRAME_H
#define VIGIL_LOAD_FRAME_H

#include "base/buf.h"

enum bench_frame_type {
    BENCH_FRAME_DATA = 0,
    BENCH_FRAME_HEADERS = 1,
    BENCH_FRAME_RST_STREAM = 3,
    BENCH_FRAME_SETTINGS = 4,
    BENCH_FRAME_PING = 6,
    BENCH_FRAME_GOAWAY = 7,
    BENCH_FRAME_WINDOW_UPDATE = 8,
    BENCH_FRAME_CONTINUATION = 9,
};

enum {
    BENCH_FRAME_HEAD_BYTES = 9,
    BENCH_FRAME_PAYLOAD_MAX = 16384, /* the protocol's default; neither side of ours raises it */
    BENCH_FRAME_END_STREAM = 0x1,
    BENCH_FRAME_ACK = 0x1,
    BENCH_FRAME_END_HEADERS = 0x4,
    BENCH_FRAME_PADDED = 0x8,
    BENCH_FRAME_PRIORITY = 0x20,
};

enum bench_setting {
    BENCH_SETTING_HEADER_TABLE_SIZE = 1,
    BENCH_SETTING_MAX_CONCURRENT_STREAMS = 3,
    BENCH_SETTING_INITIAL_WINDOW_SIZE = 4,
    BENCH_SETTING_MAX_FRAME_SIZE = 5,
};

#define BENCH_PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#define BENCH_WINDOW_DEFAULT 65535
#define BENCH_WINDOW_MAX 0x7fffffff

static inline uint32_t bench_u32_read(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static inline void bench_u32_write(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)(value >> 24);
    at[1] = (uint8_t)(value >> 16);
    at[2] = (uint8_t)(value >> 8);
    at[3] = (uint8_t)value;
}

/* Where a frame's stream id stands, from the frame's first byte. */
enum { BENCH_FRAME_STREAM_AT = 5 };

static inline void bench_frame_head_write(uint8_t *at, size_t length, enum bench_frame_type type,
                                          unsigned flags, uint32_t stream)
{
    bench_u32_write(at, (uint32_t)length << 8 | (uint32_t)type);
    at[4] = (uint8_t)flags;
    bench_u32_write(at + BENCH_FRAME_STREAM_AT, stream);
}

MUST_CHECK
enum status bench_frame_append(struct buf *out, enum bench_frame_type type, unsigned flags,
                               uint32_t stream, struct slice payload);
MUST_CHECK
enum status bench_frame_append_window(struct buf *out, uint32_t stream, uint32_t increment);

/* What the reader found. DATA comes in pieces, as it arrives; every other frame comes whole. */
struct bench_frame {
    uint8_t type;
    uint8_t flags; /* flags of a DATA piece: END_STREAM only on the last one */
    uint32_t stream;
    struct slice payload; /* without padding and priority; points into the input */
};

/* A zeroed reader stands before a frame. */
struct bench_frame_reader {
    uint32_t data_left; /* bytes of the current DATA frame still to come */
    uint32_t data_stream;
    uint8_t data_flags;
};

/*
 * Takes the next frame or piece off the front of *input. ST_AGAIN: nothing complete is left; call
 * again with what remains and more behind it. ST_MALFORMED: too long, or padding beyond its frame.
 */
MUST_CHECK
enum status bench_frame_next(struct bench_frame_reader *reader, struct slice *input,
                             struct bench_frame *ret_frame);

#endif
