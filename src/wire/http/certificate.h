/*
 * The user and groups in a client's verified certificate, besides the common name in
 * http_request.peer_name. Made by net/tls; lives as long as the connection and does not change.
 */
#ifndef VIGIL_WIRE_HTTP_CERTIFICATE_H
#define VIGIL_WIRE_HTTP_CERTIFICATE_H

#include <stddef.h>

enum { HTTP_CERTIFICATE_ID_BYTES = 80 };

struct http_certificate {
    char id[HTTP_CERTIFICATE_ID_BYTES]; /* "X509SHA256=" and the digest in hexadecimal */
    size_t groups_bytes;
    char groups[]; /* the subject's organizations in order, each followed by a zero byte */
};

#endif
