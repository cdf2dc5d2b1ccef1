/* Distinguishes protocols by the first bytes of a client. No method of HTTP/1 is "PRI", and none
 * begins with the byte of a TLS handshake. */
#ifndef VIGIL_WIRE_SNIFF_H
#define VIGIL_WIRE_SNIFF_H

#include "wire/h2/frame.h"

enum { TLS_HANDSHAKE_BYTE = 0x16 };

enum sniffed {
    SNIFFED_MORE, /* could still be either */
    SNIFFED_HTTP2,
    SNIFFED_HTTP1,
    SNIFFED_TLS, /* where it is not expected */
};

/* bytes: everything received so far. At most 24 bytes are needed. */
static inline enum sniffed sniff(struct slice bytes)
{
    struct slice preface = H2_PREFACE;
    size_t n = size_min(bytes.len, preface.len);
    if (n && bytes.ptr[0] == TLS_HANDSHAKE_BYTE)
        return SNIFFED_TLS;
    if (n && memcmp(bytes.ptr, preface.ptr, n) != 0)
        return SNIFFED_HTTP1;
    return n == preface.len ? SNIFFED_HTTP2 : SNIFFED_MORE;
}

#endif
