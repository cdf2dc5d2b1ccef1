/* Limits of the calls of one connection. Times are in ns. */
#ifndef VIGIL_WIRE_GRPC_LIMITS_H
#define VIGIL_WIRE_GRPC_LIMITS_H

#include <stddef.h>
#include <stdint.h>

struct grpc_limits {
    uint32_t receive_bytes_max; /* one request message: etcd's max-request-bytes + 512 KiB */
    /* For flow control: when the requests of unanswered calls exceed this, the peer gets no more
     * window. Their memory is limited by the connection's account. */
    size_t held_bytes_soft;
    size_t arena_bytes_max;      /* memory of one call besides its messages */
    size_t queued_bytes_soft;    /* responses that could be sent but are not read: reading stops */
    uint32_t recycled_calls_max; /* ended calls whose memory is kept, per thread */
    int64_t message_ns; /* time for a request message to arrive (wire/peer/arrival_timeout.h) */
    int64_t stall_ns;   /* a response without progress for this long is ended */
};

#define GRPC_LIMITS_DEFAULT                            \
    ((struct grpc_limits){                             \
        .receive_bytes_max = 1536 * 1024 + 512 * 1024, \
        .held_bytes_soft = 16 * 1024 * 1024,           \
        .arena_bytes_max = 256 * 1024 * 1024,          \
        .queued_bytes_soft = 1024 * 1024,              \
        .recycled_calls_max = 1024,                    \
        .message_ns = 60 * INT64_C(1000000000),        \
        .stall_ns = 60 * INT64_C(1000000000),          \
    })

#endif
