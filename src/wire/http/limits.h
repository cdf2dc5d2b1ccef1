/* Limits of the HTTP requests of one connection, over HTTP/1.1 or HTTP/2. Times are in ns. */
#ifndef VIGIL_WIRE_HTTP_LIMITS_H
#define VIGIL_WIRE_HTTP_LIMITS_H

#include <stddef.h>
#include <stdint.h>

struct http_limits {
    size_t body_bytes_max; /* the body of a request, unless its route allows less */
    int64_t message_ns;    /* time for a body to arrive (wire/peer/arrival_timeout.h) */
    int64_t stall_ns;      /* a response without progress for this long is ended */
};

#define HTTP_LIMITS_DEFAULT                     \
    ((struct http_limits){                      \
        .body_bytes_max = 2 * 1024 * 1024,      \
        .message_ns = 60 * INT64_C(1000000000), \
        .stall_ns = 60 * INT64_C(1000000000),   \
    })

#endif
