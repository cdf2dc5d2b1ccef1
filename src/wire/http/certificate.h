/*
 * What the certificate of a client whom we trust says of him, besides the name in
 * http_request.peer_name: for who has users and groups. Made where TLS is; lives as long as the
 * connection and does not change.
 */
#ifndef VIGIL_WIRE_HTTP_CERTIFICATE_H
#define VIGIL_WIRE_HTTP_CERTIFICATE_H

#include <stddef.h>

enum {
    HTTP_CERTIFICATE_ID_BYTES = 80,
    HTTP_CERTIFICATE_GROUPS_BYTES_MAX = 4096, /* those behind that are left out */
};

struct http_certificate {
    char id[HTTP_CERTIFICATE_ID_BYTES]; /* "X509SHA256=" and its digest in hexadecimal */
    size_t groups_bytes;
    char groups[]; /* the subject's organizations in their order, a zero behind each */
};

#endif
