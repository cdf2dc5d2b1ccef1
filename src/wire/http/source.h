/*
 * A body that is pulled: the bytes of a response, for a server, or of a request, for a client. It
 * is embedded in its owner's state.
 */
#ifndef VIGIL_WIRE_HTTP_SOURCE_H
#define VIGIL_WIRE_HTTP_SOURCE_H

#include <stddef.h>
#include <stdint.h>

enum http_fill {
    HTTP_FILL_MORE,   /* wrote something and has more: is called again when there is room */
    HTTP_FILL_PARKED, /* nothing to send now: is called again after it was woken */
    HTTP_FILL_DONE,   /* that was the last byte */
};

struct http_source {
    /* Writes at most room bytes (never 0) directly into the output, and may stop anywhere. */
    enum http_fill (*fill)(struct http_source *source, uint8_t *dst, size_t room, size_t *ret_len);
};

#endif
