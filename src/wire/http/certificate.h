/*
 * The groups and the uid in a client's verified certificate, besides the common name in
 * http_request.peer_name. Made by net/tls; lives as long as the connection and does not change.
 */
#ifndef VIGIL_WIRE_HTTP_CERTIFICATE_H
#define VIGIL_WIRE_HTTP_CERTIFICATE_H

#include <stdbool.h>
#include <stddef.h>

enum { HTTP_CERTIFICATE_ID_BYTES = 80 };

struct http_certificate {
    char id[HTTP_CERTIFICATE_ID_BYTES]; /* "X509SHA256=" and the digest in hexadecimal */
    bool has_bad_uid; /* it is empty, no text, or one of several: it identifies no user */
    size_t groups_bytes, uid_bytes;
    /* The subject's organizations in order, each followed by a zero byte; and then its uid (the
     * attribute 1.3.6.1.4.1.57683.2, as in Kubernetes). */
    char groups[];
};

#endif
