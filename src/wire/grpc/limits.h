/* What the calls of one connection may take. Times in ns. */
#ifndef VIGIL_WIRE_GRPC_LIMITS_H
#define VIGIL_WIRE_GRPC_LIMITS_H

#include <stddef.h>
#include <stdint.h>

struct grpc_limits {
    uint32_t receive_bytes_max; /* one request message: etcd's max-request-bytes + 512 KiB */
    /* Flow control, not memory: requests of unanswered calls beyond which the peer gets no more
     * window. What all of them hold is charged to the connection's account. */
    size_t held_bytes_soft;
    size_t arena_bytes_max;      /* what one call may hold besides its messages */
    size_t queued_bytes_soft;    /* responses that could be sent but are not: reading stops */
    uint32_t recycled_calls_max; /* ended calls kept for the next ones, per thread */
    int64_t message_ns;          /* for a request message to arrive (wire/arrival_timeout.h) */
    int64_t stall_ns;            /* a response without progress for so long is ended */
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
