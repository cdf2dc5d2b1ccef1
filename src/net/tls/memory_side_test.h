/* For tests: OpenSSL's server over memory. Encrypted bytes go in and out, and so do plain ones. */
#ifndef VIGIL_NET_TLS_MEMORY_SIDE_TEST_H
#define VIGIL_NET_TLS_MEMORY_SIDE_TEST_H

#include <openssl/ssl.h>
#include <stdint.h>

static inline SSL_CTX *memory_side_context(const char *cert_file, const char *key_file)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    if (!ctx || SSL_CTX_use_certificate_chain_file(ctx, cert_file) != 1 ||
        SSL_CTX_use_PrivateKey_file(ctx, key_file, SSL_FILETYPE_PEM) != 1)
        abort();
    return ctx;
}

static inline void memory_side_context_free(SSL_CTX *ctx)
{
    SSL_CTX_free(ctx);
}

static inline SSL *memory_side_new(SSL_CTX *ctx)
{
    SSL *ssl = SSL_new(ctx);
    SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_accept_state(ssl);
    return ssl;
}

static inline void memory_side_free(SSL *ssl)
{
    SSL_free(ssl);
}

/* Bytes of the client arrived. */
static inline void memory_side_feed(SSL *ssl, const uint8_t *bytes, size_t len)
{
    if (BIO_write(SSL_get_rbio(ssl), bytes, (int)len) != (int)len)
        abort();
}

/* The next plain bytes of what was fed; 0: there are no more. */
static inline size_t memory_side_read(SSL *ssl, uint8_t *dst, size_t room)
{
    int n = SSL_read(ssl, dst, (int)room);
    return n > 0 ? (size_t)n : 0;
}

static inline void memory_side_write(SSL *ssl, const uint8_t *bytes, size_t len)
{
    if (len && SSL_write(ssl, bytes, (int)len) != (int)len)
        abort();
}

/* The next encrypted bytes for the client; 0: there are no more. */
static inline size_t memory_side_drain(SSL *ssl, uint8_t *dst, size_t room)
{
    int n = BIO_read(SSL_get_wbio(ssl), dst, (int)room);
    return n > 0 ? (size_t)n : 0;
}

#endif
