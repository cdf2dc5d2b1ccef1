/*
 * Everything that connections of a TLS listener need to begin: certificate and key, authorities,
 * names, versions, ciphers. Made from files, then immutable; reference-counted, so that a
 * connection keeps its context when the files change. Any thread.
 *
 * No renegotiation, no compression, no early data, and no resumption: the relevant clients do not
 * use it, and a resumed session would skip the check for revoked certificates.
 */
#ifndef VIGIL_NET_TLS_CONTEXT_H
#define VIGIL_NET_TLS_CONTEXT_H

#include "net/tls/files.h"
#include "net/tls/names.h"

struct ssl_st;

struct tls_context;

/* The options are borrowed; the files are not needed afterwards. */
MUST_CHECK
enum status tls_context_new(const struct tls_options *options, const struct tls_files *files,
                            struct tls_context **ret_context, struct error *error);
struct tls_context *tls_context_ref(struct tls_context *context);
void tls_context_unref(struct tls_context *context);
DEFINE_CLEANUP(struct tls_context *, tls_context_unref)

/* When our certificate expires, in seconds since 1970. */
int64_t tls_context_expiry(const struct tls_context *context);

/* What the context learns about the peer of a connection. Owned by the connection. */
struct tls_peer {
    unsigned messages; /* handshake messages since the last byte of data, on an open connection */
    bool renegotiates; /* it requested another handshake */
    bool refused;      /* its certificate is valid, but it is refused: the texts below say why */
    char *reason, *dns_names, *ip_addresses; /* owned; NULL if unknown */
};
void tls_peer_fini(struct tls_peer *peer);

/* A new server-side SSL, without bytes to read or write yet. NULL: no memory. */
struct ssl_st *tls_context_accept(struct tls_context *context, struct tls_peer *peer);

/* Why the last step of a handshake failed, in Go's words where Go has them. Empties OpenSSL's error
 * queue. */
enum { TLS_REASON_BYTES = 256 };
void tls_reason_format(const struct ssl_st *ssl, const struct tls_peer *peer,
                       char text[TLS_REASON_BYTES]);

#endif
