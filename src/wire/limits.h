/* All limits for the peer of one connection, in one place for the flags. Times are in ns. */
#ifndef VIGIL_WIRE_LIMITS_H
#define VIGIL_WIRE_LIMITS_H

#include "wire/grpc/limits.h"
#include "wire/h2/limits.h"
#include "wire/http/http1/limits.h"
#include "wire/http/limits.h"

struct wire_limits {
    struct h2_limits h2;
    struct grpc_limits grpc;
    struct http_limits http;
    struct http1_limits http1;
    int64_t handshake_ns; /* until the protocol is known and HTTP/2's first SETTINGS frame has
                             arrived */
};

#define WIRE_LIMITS_DEFAULT                       \
    ((struct wire_limits){                        \
        .h2 = H2_LIMITS_DEFAULT,                  \
        .grpc = GRPC_LIMITS_DEFAULT,              \
        .http = HTTP_LIMITS_DEFAULT,              \
        .http1 = HTTP1_LIMITS_DEFAULT,            \
        .handshake_ns = 10 * INT64_C(1000000000), \
    })

#endif
