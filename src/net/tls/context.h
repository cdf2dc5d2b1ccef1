/*
 * Everything that TLS connections need to begin: certificate and key, authorities, names, versions,
 * ciphers. Made from options and files, then immutable; reference-counted, so that a connection
 * keeps its context when the files change. Any thread. server_context.h makes those of listeners,
 * client.h those of clients.
 *
 * No renegotiation, no compression, no early data, and no resumption: the relevant clients do not
 * use it, and a resumed session would skip the check for revoked certificates.
 */
#ifndef VIGIL_NET_TLS_CONTEXT_H
#define VIGIL_NET_TLS_CONTEXT_H

#include "net/tls/files.h"
#include "net/tls/options.h"

struct ssl_ctx_st;
struct ssl_method_st;
struct ssl_st;
struct tls_context;
struct tls_names;

/* How a source (net/tls/source.h) makes its contexts. The options are borrowed. */
struct tls_recipe {
    struct tls_paths paths; /* the files to read */
    enum status (*make)(const void *options, const struct tls_files *files,
                        struct tls_context **ret_context, struct error *error);
    const void *options;
};

/* With the settings that listeners and clients share. */
MUST_CHECK
enum status tls_context_new(const struct ssl_method_st *method, struct tls_context **ret_context,
                            struct error *error);
struct tls_context *tls_context_ref(struct tls_context *context);
void tls_context_unref(struct tls_context *context);
DEFINE_CLEANUP(struct tls_context *, tls_context_unref)

/* When our certificate expires, in seconds since 1970; 0: we have none. */
int64_t tls_context_expiry(const struct tls_context *context);

/* Borrowed, to be changed only while the context is made. */
struct ssl_ctx_st *tls_context_ssl(const struct tls_context *context);
/* The default is TLS 1.2 as the lowest version, and no highest version. */
MUST_CHECK
enum status tls_context_set_versions(struct tls_context *context, enum tls_version min,
                                     enum tls_version max, struct error *error);
/* The clients that a listener admits; NULL for a client. The setter takes ownership. */
const struct tls_names *tls_context_names(const struct tls_context *context);
void tls_context_set_names(struct tls_context *context, struct tls_names *names);

/* What the context learns about the peer of a connection. Owned by the connection. */
struct tls_peer {
    unsigned messages; /* handshake messages since the last byte of data, on an open connection */
    bool renegotiates; /* it requested another handshake */
    bool refused;      /* its certificate is refused, and the reason below says why */
    char *reason, *dns_names, *ip_addresses; /* owned; NULL if unknown */
    const char *host; /* borrowed: the name or address that it must have; NULL: any */
};
void tls_peer_fini(struct tls_peer *peer);

/* A new SSL, without bytes to read or write yet. NULL: no memory. */
struct ssl_st *tls_context_connect(struct tls_context *context, struct tls_peer *peer);
struct ssl_st *tls_context_accept(struct tls_context *context, struct tls_peer *peer);

/* Why the last step of a handshake failed, in Go's words where Go has them. Empties OpenSSL's error
 * queue. */
enum { TLS_REASON_BYTES = 384 };
void tls_reason_format(const struct ssl_st *ssl, const struct tls_peer *peer,
                       char text[TLS_REASON_BYTES]);
/* Why a certificate is not valid, as Go says it: "certificate signed by unknown authority". */
const char *tls_verify_text(long result);

#endif
