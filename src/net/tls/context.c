#include "net/tls/context.h"

#include "net/tls/names.h"
#include "net/tls/pem.h"

#include <openssl/ssl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

struct tls_context {
    atomic_uint refs;
    SSL_CTX *ssl;            /* owned */
    struct tls_names *names; /* owned; NULL for a client */
};

/* Handshake messages on an open connection cost us work and the peer nearly nothing. */
static void on_info(const SSL *ssl, int where, int value)
{
    struct tls_peer *peer = SSL_get_app_data(ssl);
    if (where & SSL_CB_LOOP)
        peer->messages++;
    /* OpenSSL only answers a renegotiation with an alert. The connection is closed instead. */
    if ((where & SSL_CB_WRITE_ALERT) == SSL_CB_WRITE_ALERT &&
        (value & 0xff) == SSL_AD_NO_RENEGOTIATION)
        peer->renegotiates = true;
}

static void set_defaults(SSL_CTX *ssl)
{
    SSL_CTX_set_info_callback(ssl, on_info);
    /* Renegotiation and compression are refused for security (compression leaks secrets: CRIME). */
    SSL_CTX_set_options(ssl, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET);
    SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
    /* Without RELEASE_BUFFERS an idle connection holds about 34 KB. */
    SSL_CTX_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_NO_AUTO_CHAIN);
    /* As in Go, every certificate of the CA file is trusted by itself, also an intermediate one. */
    X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(ssl), X509_V_FLAG_PARTIAL_CHAIN);
}

enum status tls_context_new(const SSL_METHOD *method, struct tls_context **ret_context,
                            struct error *error)
{
    AUTO(tls_context_unrefp) struct tls_context *context = calloc(1, sizeof(*context));
    if (!context)
        return error_no_memory(error);
    atomic_init(&context->refs, 1);
    context->ssl = SSL_CTX_new(method);
    if (!context->ssl)
        return tls_complain(error, "OpenSSL", "out of memory");
    set_defaults(context->ssl);
    *ret_context = TAKE(context);
    return ST_OK;
}

int64_t tls_context_expiry(const struct tls_context *context)
{
    struct tm end;
    const X509 *own = SSL_CTX_get0_certificate(context->ssl);
    return own && ASN1_TIME_to_tm(X509_get0_notAfter(own), &end) == 1 ? timegm(&end) : 0;
}

SSL_CTX *tls_context_ssl(const struct tls_context *context)
{
    return context->ssl;
}

static int openssl_version(enum tls_version version, int otherwise)
{
    return version == TLS_VERSION_1_3   ? TLS1_3_VERSION
           : version == TLS_VERSION_1_2 ? TLS1_2_VERSION
                                        : otherwise;
}

enum status tls_context_set_versions(struct tls_context *context, enum tls_version min,
                                     enum tls_version max, struct error *error)
{
    SSL_CTX *ssl = context->ssl;
    if (SSL_CTX_set_min_proto_version(ssl, openssl_version(min, TLS1_2_VERSION)) != 1 ||
        SSL_CTX_set_max_proto_version(ssl, openssl_version(max, 0)) != 1)
        return tls_complain(error, "TLS versions", "not possible");
    return ST_OK;
}

const struct tls_names *tls_context_names(const struct tls_context *context)
{
    return context->names;
}

void tls_context_set_names(struct tls_context *context, struct tls_names *names)
{
    assert(!context->names);
    context->names = names;
}

struct tls_context *tls_context_ref(struct tls_context *context)
{
    atomic_fetch_add_explicit(&context->refs, 1, memory_order_relaxed);
    return context;
}

void tls_context_unref(struct tls_context *context)
{
    if (!context || atomic_fetch_sub_explicit(&context->refs, 1, memory_order_acq_rel) > 1)
        return;
    SSL_CTX_free(context->ssl);
    tls_names_free(context->names);
    free(context);
}

static SSL *new_ssl(struct tls_context *context, struct tls_peer *peer)
{
    SSL *ssl = SSL_new(context->ssl);
    if (!ssl || SSL_set_app_data(ssl, peer) != 1) { /* on_info and the verification rely on it */
        SSL_free(ssl);
        return NULL;
    }
    return ssl;
}

SSL *tls_context_accept(struct tls_context *context, struct tls_peer *peer)
{
    SSL *ssl = new_ssl(context, peer);
    if (ssl)
        SSL_set_accept_state(ssl);
    return ssl;
}

SSL *tls_context_connect(struct tls_context *context, struct tls_peer *peer)
{
    SSL *ssl = new_ssl(context, peer);
    if (ssl)
        SSL_set_connect_state(ssl);
    return ssl;
}

void tls_peer_fini(struct tls_peer *peer)
{
    free(peer->reason);
    free(peer->dns_names);
    free(peer->ip_addresses);
    *peer = (struct tls_peer){.host = peer->host};
}
