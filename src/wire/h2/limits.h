/*
 * Limits for one HTTP/2 peer. Every field has a flag or a fixed default, and a test that exceeds
 * it. Times are in nanoseconds of the caller's monotonic clock.
 */
#ifndef VIGIL_WIRE_H2_LIMITS_H
#define VIGIL_WIRE_H2_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define H2_SECOND_NS INT64_C(1000000000)

struct h2_limits {
    uint32_t streams_max;        /* open at the same time; a server refuses more of them */
    uint32_t header_list_bytes;  /* size of the fields of one message, decoded, plus 32 per field as
                                    HPACK counts */
    uint32_t header_fields_max;  /* fields of one message */
    uint32_t headers_bytes_max;  /* size of the fields of all open streams: more are refused */
    uint32_t continuations_max;  /* CONTINUATION frames of one header block */
    uint32_t control_bytes_soft; /* queued control frames: reading stops */
    uint32_t control_bytes_hard; /* at this size the connection ends: ENHANCE_YOUR_CALM */
    uint32_t empty_data_max;     /* empty DATA frames without END_STREAM, and 1xx responses, in a
                                    row */
    uint32_t reset_burst;    /* streams reset by the peer before we answer, or reset because of its
                                faults */
    uint32_t reset_per_s;    /* refill rate of reset_burst */
    uint32_t settings_burst; /* SETTINGS frames; refilled at one per second */
    uint32_t stream_window;  /* bytes that a peer may send ahead on one stream */
    uint32_t connection_window;   /* and on the connection */
    uint32_t ping_strikes;        /* tolerated pings that come too early */
    int64_t ping_interval_ns;     /* minimum time between pings while a stream is open */
    int64_t ping_idle_ns;         /* the same without an open stream */
    int64_t keepalive_ns;         /* after this long without input we send a ping; 0: never */
    int64_t keepalive_timeout_ns; /* without an answer to it for this long the connection ends */
    bool keepalive_streams_only;  /* no ping is sent while no stream is open */
    int64_t frame_ns; /* time for a header block, or a frame other than DATA, to arrive */
    int64_t drain_ns; /* time until a graceful shutdown sends its last GOAWAY */
};

/* The values of grpc-go and etcd where they have one; header_list_bytes as for HTTP/1.1. */
#define H2_LIMITS_DEFAULT                          \
    ((struct h2_limits){                           \
        .streams_max = 32768,                      \
        .header_list_bytes = 64 * 1024,            \
        .header_fields_max = 128,                  \
        .headers_bytes_max = 64 * 1024 * 1024,     \
        .continuations_max = 8,                    \
        .control_bytes_soft = 16 * 1024,           \
        .control_bytes_hard = 64 * 1024,           \
        .empty_data_max = 100,                     \
        .reset_burst = 1000,                       \
        .reset_per_s = 33,                         \
        .settings_burst = 100,                     \
        .stream_window = 64 * 1024,                \
        .connection_window = 1024 * 1024,          \
        .ping_strikes = 2,                         \
        .ping_interval_ns = 5 * H2_SECOND_NS,      \
        .ping_idle_ns = 7200 * H2_SECOND_NS,       \
        .keepalive_ns = 7200 * H2_SECOND_NS,       \
        .keepalive_timeout_ns = 20 * H2_SECOND_NS, \
        .frame_ns = 60 * H2_SECOND_NS,             \
        .drain_ns = 5 * H2_SECOND_NS,              \
    })

/* What a server may send ahead on one stream of a client. */
enum { H2_CLIENT_STREAM_WINDOW = 256 * 1024 };

/* What a client grants its server. The windows let one stream receive at full speed. */
#define H2_CLIENT_LIMITS_DEFAULT                   \
    ((struct h2_limits){                           \
        .streams_max = 32768,                      \
        .header_list_bytes = 16 * 1024,            \
        .header_fields_max = 128,                  \
        .continuations_max = 8,                    \
        .control_bytes_soft = 256 * 1024,          \
        .control_bytes_hard = 1024 * 1024,         \
        .empty_data_max = 100,                     \
        .reset_burst = 1000,                       \
        .reset_per_s = 33,                         \
        .settings_burst = 100,                     \
        .stream_window = H2_CLIENT_STREAM_WINDOW,  \
        .connection_window = 4 * 1024 * 1024,      \
        .keepalive_timeout_ns = 20 * H2_SECOND_NS, \
        .keepalive_streams_only = true,            \
        .frame_ns = 60 * H2_SECOND_NS,             \
    })

#endif
