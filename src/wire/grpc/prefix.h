/* The five bytes before every gRPC message: a flag for compression, and the length. */
#ifndef VIGIL_WIRE_GRPC_PREFIX_H
#define VIGIL_WIRE_GRPC_PREFIX_H

#include <stdint.h>

enum { GRPC_PREFIX_BYTES = 5 };

static inline void grpc_prefix_write(uint8_t *dst, uint32_t message_len)
{
    dst[0] = 0; /* not compressed */
    dst[1] = (uint8_t)(message_len >> 24);
    dst[2] = (uint8_t)(message_len >> 16);
    dst[3] = (uint8_t)(message_len >> 8);
    dst[4] = (uint8_t)message_len;
}

#endif
