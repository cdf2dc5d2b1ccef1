/* Writes the frame of a chunk whose length is known only when its bytes have been written: those
 * are put at an offset, and the frame around them afterwards. */
#ifndef VIGIL_WIRE_HTTP_HTTP1_CHUNK_H
#define VIGIL_WIRE_HTTP_HTTP1_CHUNK_H

#include "base/slice.h"

enum {
    HTTP1_CHUNK_HEAD_BYTES = 6, /* "xxxx\r\n"; the bytes follow it */
    HTTP1_CHUNK_FRAME_BYTES = HTTP1_CHUNK_HEAD_BYTES + 2,
    HTTP1_CHUNK_BYTES_MAX = 0xffff,
    HTTP1_PULL_ROOM_MIN = 256, /* with less room no chunk is begun */
};

/* n bytes, at least 1, were put at dst + HTTP1_CHUNK_HEAD_BYTES. Returns the length of the chunk.
 */
static inline size_t http1_chunk_close(uint8_t *dst, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    /* Leading zeros keep the space for the length constant. */
    for (size_t i = 0; i < 4; i++)
        dst[i] = (uint8_t)digits[(n >> (12 - 4 * i)) & 15];
    slice_copy(dst + 4, SLICE_LITERAL("\r\n"));
    slice_copy(dst + HTTP1_CHUNK_HEAD_BYTES + n, SLICE_LITERAL("\r\n"));
    return n + HTTP1_CHUNK_FRAME_BYTES;
}

#endif
