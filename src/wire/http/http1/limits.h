/* Limits for one HTTP/1.1 peer, besides those of bodies and answers. Times are in ns. */
#ifndef VIGIL_WIRE_HTTP_HTTP1_LIMITS_H
#define VIGIL_WIRE_HTTP_HTTP1_LIMITS_H

#include <stddef.h>
#include <stdint.h>

struct http1_limits {
    uint32_t head_bytes_max; /* request line and fields */
    uint32_t fields_max;     /* header fields */
    int64_t head_ns;         /* from the first byte of a request to the end of its fields */
    int64_t idle_ns;         /* between requests */
};

#define HTTP1_LIMITS_DEFAULT                  \
    ((struct http1_limits){                   \
        .head_bytes_max = 64 * 1024,          \
        .fields_max = 100,                    \
        .head_ns = 10 * INT64_C(1000000000),  \
        .idle_ns = 300 * INT64_C(1000000000), \
    })

#endif
