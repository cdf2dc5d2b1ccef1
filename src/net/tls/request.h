/* Whether certificate requests and certificates that clients store are what they claim to be. */
#ifndef VIGIL_NET_TLS_REQUEST_H
#define VIGIL_NET_TLS_REQUEST_H

#include "base/slice.h"

enum tls_request {
    TLS_REQUEST_FINE,
    TLS_REQUEST_OTHER_PEM, /* no PEM, or the first block has another type */
    TLS_REQUEST_DAMAGED,
    TLS_REQUEST_RSA_SIGNATURE, /* the signature is not that of its key */
    TLS_REQUEST_EC_SIGNATURE,
    TLS_REQUEST_ED_SIGNATURE,
    TLS_REQUEST_UNKNOWN_SIGNATURE, /* cannot be verified */
    TLS_REQUEST_NO_MEMORY,
};

/* A PKCS#10 request as PEM. Verifies its signature. */
enum tls_request tls_request_check(struct slice pem);

/* Whether an organization of the subject has this name. Does not verify the signature;
 * TLS_REQUEST_OTHER_PEM and TLS_REQUEST_DAMAGED if it cannot be read. */
enum tls_request tls_request_has_organization(struct slice pem, struct slice name, bool *ret_has);

/* The same for its common name, of which the last counts. */
enum tls_request tls_request_has_name(struct slice pem, struct slice name, bool *ret_has);

enum tls_chain {
    TLS_CHAIN_FINE,
    TLS_CHAIN_EMPTY,
    TLS_CHAIN_OTHER_PEM,
    TLS_CHAIN_HAS_HEADERS,
    TLS_CHAIN_DAMAGED,
    TLS_CHAIN_NO_MEMORY,
};

enum { TLS_PEM_TYPE_BYTES = 64 };

/* Certificates as PEM. TLS_CHAIN_OTHER_PEM: ret_type is the type of the block, possibly cut. */
enum tls_chain tls_chain_check(struct slice pem, char ret_type[TLS_PEM_TYPE_BYTES]);

#endif
