#include "net/tls/context.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

struct tls_context {
    atomic_uint refs;
    SSL_CTX *ssl;            /* owned */
    struct tls_names *names; /* owned */
    int64_t expires_s;
};

/* -- certificate and key -- */

/* OpenSSL's last error, or the given text if it has none. */
static const char *openssl_reason(const char *otherwise)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    return reason ? reason : otherwise;
}

static enum status complain(struct error *error, const char *path, const char *what)
{
    enum status status = error_set(error, ST_INVALID, "%.300s: %s", path, what);
    ERR_clear_error();
    return status;
}

/* A key with a password is an error; the password is not requested. */
static int no_password(char *to, int bytes, int writing, void *ctx)
{
    (void)writing, (void)ctx;
    if (bytes > 0)
        to[0] = 0;
    return 0;
}

static BIO *open_bytes(const struct tls_files *files, enum tls_file file)
{
    const struct buf *bytes = &files->bytes[file];
    return BIO_new_mem_buf(bytes->len ? (const void *)bytes->ptr : "", (int)bytes->len);
}

/* True: reading ended because there is no further object of the kind. */
static bool was_the_last(void)
{
    unsigned long last = ERR_peek_last_error();
    return ERR_GET_LIB(last) == ERR_LIB_PEM && ERR_GET_REASON(last) == PEM_R_NO_START_LINE;
}

static enum status use_chain(SSL_CTX *ssl, const char *path, BIO *bytes, struct error *error)
{
    X509 *own = PEM_read_bio_X509(bytes, NULL, no_password, NULL);
    if (!own)
        return complain(error, path,
                        was_the_last() ? "no certificate in it (PEM)" : openssl_reason("damaged"));
    int used = SSL_CTX_use_certificate(ssl, own);
    X509_free(own);
    if (used != 1)
        return complain(error, path, openssl_reason("not usable"));
    for (X509 *next; (next = PEM_read_bio_X509(bytes, NULL, no_password, NULL));)
        if (SSL_CTX_add0_chain_cert(ssl, next) != 1) {
            X509_free(next);
            return complain(error, path, openssl_reason("its chain is not usable"));
        }
    if (!was_the_last())
        return complain(error, path, openssl_reason("its chain is damaged"));
    ERR_clear_error();
    return ST_OK;
}

static bool holds_key(struct slice bytes)
{
    static const char mark[] = "PRIVATE KEY-----";
    return bytes.len && memmem(bytes.ptr, bytes.len, mark, strlen(mark));
}

static enum status use_key(SSL_CTX *ssl, const char *path, BIO *bytes, bool holds,
                           struct error *error)
{
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bytes, NULL, no_password, NULL);
    if (!key)
        return complain(error, path,
                        holds ? "its key cannot be read, or has a password"
                              : "no private key in it (PEM)");
    int used = SSL_CTX_use_PrivateKey(ssl, key);
    EVP_PKEY_free(key);
    if (used != 1 || SSL_CTX_check_private_key(ssl) != 1)
        return complain(error, path, "tls: private key does not match public key");
    return ST_OK;
}

static enum status set_identity(SSL_CTX *ssl, const struct tls_options *options,
                                const struct tls_files *files, struct error *error)
{
    BIO *chain = open_bytes(files, TLS_FILE_CERT), *key = open_bytes(files, TLS_FILE_KEY);
    enum status status = chain && key ? use_chain(ssl, options->cert_file, chain, error)
                                      : error_set(error, ST_NOMEM, "out of memory");
    if (status == ST_OK)
        status = use_key(ssl, options->key_file, key,
                         holds_key(buf_slice(&files->bytes[TLS_FILE_KEY])), error);
    BIO_free(chain);
    BIO_free(key);
    return status;
}

/* -- authorities -- */

/* Every certificate in the file may sign, also one that is not its own issuer, as in Go. */
static enum status trust_all(SSL_CTX *ssl, const char *path, BIO *bytes, struct error *error)
{
    unsigned count = 0;
    for (X509 *ca; (ca = PEM_read_bio_X509(bytes, NULL, no_password, NULL)); count++) {
        int taken = X509_STORE_add_cert(SSL_CTX_get_cert_store(ssl), ca) == 1 &&
                    SSL_CTX_add_client_CA(ssl, ca) == 1;
        X509_free(ca);
        if (!taken)
            return complain(error, path, openssl_reason("a certificate in it is not usable"));
    }
    if (!was_the_last())
        return complain(error, path, openssl_reason("a certificate in it is damaged"));
    ERR_clear_error();
    return count ? ST_OK : complain(error, path, "no certificate in it (PEM)");
}

static int verify_client(X509_STORE_CTX *chain, void *ctx);

static enum status set_clients(struct tls_context *context, const struct tls_options *options,
                               const struct tls_files *files, struct error *error)
{
    SSL_CTX *ssl = context->ssl;
    if (!options->client_cert_auth && !*options->trusted_ca_file)
        return ST_OK;
    if (*options->trusted_ca_file) {
        BIO *bytes = open_bytes(files, TLS_FILE_CA);
        enum status status = bytes ? trust_all(ssl, options->trusted_ca_file, bytes, error)
                                   : error_set(error, ST_NOMEM, "out of memory");
        BIO_free(bytes);
        TRY(status);
    } else if (SSL_CTX_set_default_verify_paths(ssl) != 1) {
        return complain(error, "the system's authorities", openssl_reason("not readable"));
    }
    X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(ssl), X509_V_FLAG_PARTIAL_CHAIN);
    SSL_CTX_set_verify(ssl, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    SSL_CTX_set_cert_verify_callback(ssl, verify_client, context);
    return ST_OK;
}

static void refuse(struct tls_peer *peer, const X509 *certificate, const char *reason)
{
    char dns[TLS_NAMES_TEXT_BYTES], ips[TLS_NAMES_TEXT_BYTES];
    tls_names_format_dns(certificate, dns);
    tls_names_format_ips(certificate, ips);
    tls_peer_fini(peer);
    peer->refused = true;
    peer->reason = strdup(reason);
    peer->dns_names = strdup(dns);
    peer->ip_addresses = strdup(ips);
}

/* Includes the intermediate authorities: what a revoked one has signed is not valid. */
static bool find_revoked(const struct tls_names *names, X509_STORE_CTX *chain,
                         struct tls_peer *peer)
{
    STACK_OF(X509) *certificates = X509_STORE_CTX_get0_chain(chain);
    for (int i = 0; i < sk_X509_num(certificates); i++) {
        X509 *certificate = sk_X509_value(certificates, i);
        if (!tls_names_revoked(names, certificate))
            continue;
        char serial[TLS_SERIAL_TEXT_BYTES], reason[TLS_REASON_BYTES];
        tls_serial_format(certificate, serial);
        snprintf(reason, sizeof(reason), "transport: certificate serial %s revoked", serial);
        refuse(peer, X509_STORE_CTX_get0_cert(chain), reason);
        return true;
    }
    return false;
}

static int verify_client(X509_STORE_CTX *chain, void *ctx)
{
    const struct tls_context *context = ctx;
    if (X509_verify_cert(chain) != 1)
        return 0;
    SSL *ssl = X509_STORE_CTX_get_ex_data(chain, SSL_get_ex_data_X509_STORE_CTX_idx());
    struct tls_peer *peer = SSL_get_app_data(ssl);
    if (find_revoked(context->names, chain, peer)) {
        X509_STORE_CTX_set_error(chain, X509_V_ERR_CERT_REVOKED);
        return 0;
    }
    X509 *own = X509_STORE_CTX_get0_cert(chain);
    if (!tls_names_allowed(context->names, own)) {
        refuse(peer, own, "client certificate authentication failed");
        X509_STORE_CTX_set_error(chain, X509_V_ERR_APPLICATION_VERIFICATION);
        return 0;
    }
    return 1;
}

/* -- protocols -- */

/* gRPC needs h2. A client that offers neither protocol gets an error, as in Go. */
static int choose_protocol(SSL *ssl, const unsigned char **ret_name, unsigned char *ret_len,
                           const unsigned char *offered, unsigned offered_len, void *ctx)
{
    static const unsigned char ours[] = "\x02h2\x08http/1.1";
    (void)ssl, (void)ctx;
    unsigned char *name;
    if (SSL_select_next_proto(&name, ret_len, ours, sizeof(ours) - 1, offered, offered_len) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *ret_name = name;
    return SSL_TLSEXT_ERR_OK;
}

/* Handshake messages on an open connection cost us work and the peer nearly nothing. */
static void on_info(const SSL *ssl, int where, int value)
{
    struct tls_peer *peer = SSL_get_app_data(ssl);
    if (where & SSL_CB_LOOP)
        peer->messages++;
    if ((where & SSL_CB_WRITE_ALERT) == SSL_CB_WRITE_ALERT &&
        (value & 0xff) == SSL_AD_NO_RENEGOTIATION)
        peer->renegotiates = true;
}

static int openssl_version(enum tls_version version)
{
    return version == TLS_VERSION_1_3   ? TLS1_3_VERSION
           : version == TLS_VERSION_1_2 ? TLS1_2_VERSION
                                        : 0;
}

static enum status set_protocol(SSL_CTX *ssl, const struct tls_options *options,
                                struct error *error)
{
    struct tls_suites suites;
    TRY(tls_suites_parse(options->cipher_suites, &suites, error));
    int lowest = openssl_version(options->min_version);
    if (!lowest)
        lowest = TLS1_2_VERSION;
    if (!*suites.list)
        lowest = TLS1_3_VERSION; /* TLS 1.2 has no cipher left */
    bool ok = SSL_CTX_set_min_proto_version(ssl, lowest) == 1 &&
              SSL_CTX_set_max_proto_version(ssl, openssl_version(options->max_version)) == 1 &&
              (!*suites.list || SSL_CTX_set_cipher_list(ssl, suites.list) == 1);
    if (!ok)
        return complain(error, "TLS versions and ciphers", openssl_reason("not possible"));
    SSL_CTX_set_alpn_select_cb(ssl, choose_protocol, NULL);
    SSL_CTX_set_info_callback(ssl, on_info);
    SSL_CTX_set_options(ssl, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET |
                                 SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
    SSL_CTX_set_num_tickets(ssl, 0);
    SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_NO_AUTO_CHAIN);
    return ST_OK;
}

/* -- the context -- */

static int64_t expiry_of(const X509 *certificate)
{
    struct tm end;
    return ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &end) == 1 ? timegm(&end) : 0;
}

enum status tls_context_new(const struct tls_options *options, const struct tls_files *files,
                            struct tls_context **ret_context, struct error *error)
{
    AUTO(tls_context_unrefp) struct tls_context *context = calloc(1, sizeof(*context));
    if (!context)
        return error_set(error, ST_NOMEM, "out of memory");
    atomic_init(&context->refs, 1);
    context->ssl = SSL_CTX_new(TLS_server_method());
    if (!context->ssl)
        return complain(error, "OpenSSL", openssl_reason("out of memory"));
    TRY(tls_names_new(options, buf_slice(&files->bytes[TLS_FILE_CRL]), &context->names, error));
    TRY(set_protocol(context->ssl, options, error));
    TRY(set_identity(context->ssl, options, files, error));
    TRY(set_clients(context, options, files, error));
    context->expires_s = expiry_of(SSL_CTX_get0_certificate(context->ssl));
    *ret_context = TAKE(context);
    return ST_OK;
}

int64_t tls_context_expiry(const struct tls_context *context)
{
    return context->expires_s;
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

SSL *tls_context_accept(struct tls_context *context, struct tls_peer *peer)
{
    SSL *ssl = SSL_new(context->ssl);
    if (!ssl)
        return NULL;
    SSL_set_app_data(ssl, peer);
    SSL_set_accept_state(ssl);
    return ssl;
}

void tls_peer_fini(struct tls_peer *peer)
{
    free(peer->reason);
    free(peer->dns_names);
    free(peer->ip_addresses);
    *peer = (struct tls_peer){0};
}
