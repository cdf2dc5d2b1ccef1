/* Distinguishes HTTP/2 from HTTP/1 by the first bytes of a client. No method of HTTP/1 is "PRI". */
#ifndef VIGIL_WIRE_SNIFF_H
#define VIGIL_WIRE_SNIFF_H

#include "wire/h2/frame.h"

enum sniffed {
    SNIFFED_MORE, /* could still be either */
    SNIFFED_HTTP2,
    SNIFFED_HTTP1,
};

/* bytes: everything received so far. At most 24 bytes are needed. */
static inline enum sniffed sniff(struct slice bytes)
{
    struct slice preface = H2_PREFACE;
    size_t n = size_min(bytes.len, preface.len);
    if (n && memcmp(bytes.ptr, preface.ptr, n) != 0)
        return SNIFFED_HTTP1;
    return n == preface.len ? SNIFFED_HTTP2 : SNIFFED_MORE;
}

#endif
