/* The head of nine bytes before every HTTP/2 frame, and the numbers of RFC 9113. */
#ifndef VIGIL_WIRE_H2_FRAME_H
#define VIGIL_WIRE_H2_FRAME_H

#include "base/slice.h"

enum {
    H2_FRAME_HEAD_BYTES = 9,
    H2_FRAME_BYTES_MAX = 16384, /* the largest payload we accept: SETTINGS_MAX_FRAME_SIZE */
    H2_WINDOW_DEFAULT = 65535,
};
#define H2_WINDOW_MAX INT32_MAX
#define H2_STREAM_ID_MAX UINT32_C(0x7fffffff)
#define H2_PREFACE SLICE_LITERAL("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")

enum h2_frame_type {
    H2_DATA = 0,
    H2_HEADERS = 1,
    H2_PRIORITY = 2,
    H2_RST_STREAM = 3,
    H2_SETTINGS = 4,
    H2_PUSH_PROMISE = 5,
    H2_PING = 6,
    H2_GOAWAY = 7,
    H2_WINDOW_UPDATE = 8,
    H2_CONTINUATION = 9,
};

enum h2_flag {
    H2_FLAG_END_STREAM = 0x1,
    H2_FLAG_ACK = 0x1,
    H2_FLAG_END_HEADERS = 0x4,
    H2_FLAG_PADDED = 0x8,
    H2_FLAG_PRIORITY = 0x20,
};

enum h2_error {
    H2_NO_ERROR = 0x0,
    H2_PROTOCOL_ERROR = 0x1,
    H2_INTERNAL_ERROR = 0x2,
    H2_FLOW_CONTROL_ERROR = 0x3,
    H2_SETTINGS_TIMEOUT = 0x4,
    H2_STREAM_CLOSED = 0x5,
    H2_FRAME_SIZE_ERROR = 0x6,
    H2_REFUSED_STREAM = 0x7,
    H2_CANCEL = 0x8,
    H2_COMPRESSION_ERROR = 0x9,
    H2_CONNECT_ERROR = 0xa,
    H2_ENHANCE_YOUR_CALM = 0xb,
    H2_INADEQUATE_SECURITY = 0xc,
    H2_HTTP_1_1_REQUIRED = 0xd,
};

enum h2_setting {
    H2_SETTING_HEADER_TABLE_SIZE = 1,
    H2_SETTING_ENABLE_PUSH = 2,
    H2_SETTING_MAX_CONCURRENT_STREAMS = 3,
    H2_SETTING_INITIAL_WINDOW_SIZE = 4,
    H2_SETTING_MAX_FRAME_SIZE = 5,
    H2_SETTING_MAX_HEADER_LIST_SIZE = 6,
};

struct h2_frame {
    uint32_t len; /* length of the payload */
    uint32_t stream_id;
    uint8_t type;
    uint8_t flags;
};

static inline uint32_t h2_get32(const uint8_t *from)
{
    return (uint32_t)from[0] << 24 | (uint32_t)from[1] << 16 | (uint32_t)from[2] << 8 | from[3];
}

static inline uint8_t *h2_put32(uint8_t *to, uint32_t value)
{
    to[0] = (uint8_t)(value >> 24);
    to[1] = (uint8_t)(value >> 16);
    to[2] = (uint8_t)(value >> 8);
    to[3] = (uint8_t)value;
    return to + 4;
}

static inline struct h2_frame h2_frame_get(const uint8_t *from)
{
    return (struct h2_frame){
        .len = (uint32_t)from[0] << 16 | (uint32_t)from[1] << 8 | from[2],
        .type = from[3],
        .flags = from[4],
        .stream_id = h2_get32(from + 5) & H2_STREAM_ID_MAX,
    };
}

/* Returns where the payload begins. */
static inline uint8_t *h2_frame_put(uint8_t *to, size_t len, enum h2_frame_type type, uint8_t flags,
                                    uint32_t stream_id)
{
    to[0] = (uint8_t)(len >> 16);
    to[1] = (uint8_t)(len >> 8);
    to[2] = (uint8_t)len;
    to[3] = (uint8_t)type;
    to[4] = flags;
    return h2_put32(to + 5, stream_id);
}

#endif
