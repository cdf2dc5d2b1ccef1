/* The grpc-timeout field: at most eight digits and a unit. */
#ifndef VIGIL_WIRE_GRPC_TIMEOUT_H
#define VIGIL_WIRE_GRPC_TIMEOUT_H

#include "base/slice.h"

/* NULL on success, otherwise what is wrong with it in grpc-go's words. */
const char *grpc_timeout_parse(struct slice text, int64_t *ret_ns);

#endif
