/* The grpc-timeout field: at most eight digits and a unit. */
#ifndef VIGIL_WIRE_GRPC_TIMEOUT_H
#define VIGIL_WIRE_GRPC_TIMEOUT_H

#include "base/slice.h"

enum grpc_timeout_fault {
    GRPC_TIMEOUT_FINE,
    GRPC_TIMEOUT_SHORT,
    GRPC_TIMEOUT_LONG,
    GRPC_TIMEOUT_UNIT,
    GRPC_TIMEOUT_DIGITS,
};

enum grpc_timeout_fault grpc_timeout_parse(struct slice text, int64_t *ret_ns);

/* Writes the timeout in the smallest unit in which it fits, rounded up. Returns the length. */
enum { GRPC_TIMEOUT_BYTES = 9 };
size_t grpc_timeout_write(int64_t ns, uint8_t text[GRPC_TIMEOUT_BYTES]);

#endif
