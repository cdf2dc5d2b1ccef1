/*
 * Certificates and keys in PEM, as a listener and a client give them to OpenSSL. The error begins
 * with the name of the input: a path, or words such as "the client's certificate". Any thread.
 */
#ifndef VIGIL_NET_TLS_PEM_H
#define VIGIL_NET_TLS_PEM_H

#include "base/error.h"
#include "base/slice.h"

struct ssl_ctx_st;

/* What is read, and its name in errors; both are borrowed. */
struct tls_pem {
    const char *name;
    struct slice bytes;
};

/* Our certificate with its chain, and its key, which has no password. */
MUST_CHECK
enum status tls_pem_use_identity(struct ssl_ctx_st *ssl, struct tls_pem chain, struct tls_pem key,
                                 struct error *error);

/* Every certificate may sign, also one that is not its own issuer, as in Go. announce: a server
 * names them to its clients. */
MUST_CHECK
enum status tls_pem_trust(struct ssl_ctx_st *ssl, struct tls_pem authorities, bool announce,
                          struct error *error);
/* The same with the authorities that the system trusts. */
MUST_CHECK
enum status tls_pem_trust_system(struct ssl_ctx_st *ssl, struct error *error);

/* Fills the error with OpenSSL's last error, or with `otherwise` if there is none, and empties
 * OpenSSL's error queue. ST_NOMEM if that was the reason, otherwise ST_INVALID. */
enum status tls_complain(struct error *error, const char *name, const char *otherwise);

#endif
