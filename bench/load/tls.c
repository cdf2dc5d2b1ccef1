#include "load/tls.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdlib.h>

enum { RECORD_BYTES = 16 * 1024 };

struct bench_tls {
    SSL_CTX *ctx; /* owned */
};

static enum status complain(struct error *error, const char *what)
{
    const char *why = ERR_reason_error_string(ERR_peek_last_error());
    enum status status = error_set(error, ST_INVALID, "%s: %s", what, why ? why : "not possible");
    ERR_clear_error();
    return status;
}

static enum status set_trust(SSL_CTX *ctx, const char *cacert, bool insecure, struct error *error)
{
    if (insecure)
        return ST_OK;
    int ok = *cacert ? SSL_CTX_load_verify_locations(ctx, cacert, NULL)
                     : SSL_CTX_set_default_verify_paths(ctx);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    return ok == 1 ? ST_OK : complain(error, "--cacert");
}

static enum status set_identity(SSL_CTX *ctx, const char *cert, const char *key,
                                struct error *error)
{
    if (!*cert && !*key)
        return ST_OK;
    if (SSL_CTX_use_certificate_chain_file(ctx, cert) != 1)
        return complain(error, "--cert");
    if (SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) != 1)
        return complain(error, "--key");
    return ST_OK;
}

static enum status set_up(SSL_CTX *ctx, const char *cacert, const char *cert, const char *key,
                          bool insecure, struct error *error)
{
    static const unsigned char h2[] = "\x02h2";
    SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                              SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
    if (SSL_CTX_set_alpn_protos(ctx, h2, sizeof(h2) - 1) != 0)
        return complain(error, "TLS");
    TRY(set_trust(ctx, cacert, insecure, error));
    return set_identity(ctx, cert, key, error);
}

enum status bench_tls_new(const char *cacert, const char *cert, const char *key, bool insecure,
                          struct bench_tls **ret_tls, struct error *error)
{
    struct bench_tls *tls = calloc(1, sizeof(*tls));
    if (!tls)
        return error_set(error, ST_NOMEM, "out of memory");
    tls->ctx = SSL_CTX_new(TLS_client_method());
    enum status status =
        tls->ctx ? set_up(tls->ctx, cacert, cert, key, insecure, error) : complain(error, "TLS");
    if (status != ST_OK) {
        bench_tls_free(tls);
        return status;
    }
    *ret_tls = tls;
    return ST_OK;
}

void bench_tls_free(struct bench_tls *tls)
{
    if (!tls)
        return;
    SSL_CTX_free(tls->ctx);
    free(tls);
}

enum status bench_tls_dial(struct bench_tls *tls, int fd, SSL **ret_ssl, struct error *error)
{
    SSL *ssl = SSL_new(tls->ctx);
    ERR_clear_error();
    if (!ssl || SSL_set_fd(ssl, fd) != 1 || SSL_connect(ssl) != 1) {
        enum status status = complain(error, "TLS handshake");
        SSL_free(ssl);
        return status;
    }
    if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0) {
        SSL_free(ssl);
        return error_set(error, ST_IO, "a socket cannot be made not to wait");
    }
    *ret_ssl = ssl;
    return ST_OK;
}

void bench_tls_hang_up(SSL *ssl)
{
    SSL_free(ssl);
}

/* n <= 0: what it means, in errno. */
static ssize_t outcome(SSL *ssl, int n)
{
    switch (SSL_get_error(ssl, n)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
        errno = EAGAIN;
        return -1;
    case SSL_ERROR_ZERO_RETURN:
        return 0;
    default:
        ERR_clear_error();
        errno = EPROTO;
        return -1;
    }
}

ssize_t bench_tls_read(SSL *ssl, void *to, size_t len)
{
    size_t have = 0;
    ERR_clear_error();
    while (len - have >= RECORD_BYTES) { /* what is left inside shows on no socket */
        int n = SSL_read(ssl, (char *)to + have, (int)(len - have));
        if (n <= 0)
            return have ? (ssize_t)have : outcome(ssl, n);
        have += (size_t)n;
    }
    return (ssize_t)have;
}

ssize_t bench_tls_write(SSL *ssl, const void *from, size_t len)
{
    size_t sent = 0;
    ERR_clear_error();
    while (sent < len) {
        int n = SSL_write(ssl, (const char *)from + sent, (int)(len - sent));
        if (n <= 0)
            return sent ? (ssize_t)sent : outcome(ssl, n);
        sent += (size_t)n;
    }
    return (ssize_t)sent;
}
