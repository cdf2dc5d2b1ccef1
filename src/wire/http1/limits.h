/* What one HTTP/1.1 peer may make us hold. Times in ns. */
#ifndef VIGIL_WIRE_HTTP1_LIMITS_H
#define VIGIL_WIRE_HTTP1_LIMITS_H

#include <stddef.h>
#include <stdint.h>

struct http1_limits {
    uint32_t head_bytes_max; /* request line and fields */
    uint32_t fields_max;     /* header fields */
    size_t body_bytes_max;   /* a request's body, unless its route says less */
    size_t queued_bytes_max; /* response bytes not yet sent; a write past it fails */
    int64_t head_ns;         /* from the first byte of a request to the end of its fields */
    int64_t idle_ns;         /* between requests */
    int64_t stall_ns;        /* a body or response without progress for so long is ended */
};

#define HTTP1_LIMITS_DEFAULT                   \
    ((struct http1_limits){                    \
        .head_bytes_max = 64 * 1024,           \
        .fields_max = 100,                     \
        .body_bytes_max = 2 * 1024 * 1024,     \
        .queued_bytes_max = 256 * 1024 * 1024, \
        .head_ns = 10 * INT64_C(1000000000),   \
        .idle_ns = 300 * INT64_C(1000000000),  \
        .stall_ns = 60 * INT64_C(1000000000),  \
    })

#endif
