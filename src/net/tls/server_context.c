#include "net/tls/server_context.h"

#include "net/tls/names.h"
#include "net/tls/pem.h"

#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>

static struct tls_paths paths_of(const struct tls_options *options)
{
    return (struct tls_paths){{
        [TLS_FILE_CERT] = options->cert_file,
        [TLS_FILE_KEY] = options->key_file,
        [TLS_FILE_CA] = options->trusted_ca_file,
        [TLS_FILE_CRL] = options->crl_file,
    }};
}

static struct tls_pem pem_of(const struct tls_options *options, const struct tls_files *files,
                             enum tls_file file)
{
    return (struct tls_pem){paths_of(options).of[file], buf_slice(&files->bytes[file])};
}

/* -- clients -- */

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
    const struct tls_names *names = tls_context_names(ctx);
    if (X509_verify_cert(chain) != 1)
        return 0;
    SSL *ssl = X509_STORE_CTX_get_ex_data(chain, SSL_get_ex_data_X509_STORE_CTX_idx());
    struct tls_peer *peer = SSL_get_app_data(ssl);
    if (find_revoked(names, chain, peer)) {
        X509_STORE_CTX_set_error(chain, X509_V_ERR_CERT_REVOKED);
        return 0;
    }
    X509 *own = X509_STORE_CTX_get0_cert(chain);
    if (!tls_names_allowed(names, own)) {
        refuse(peer, own, "client certificate authentication failed");
        X509_STORE_CTX_set_error(chain, X509_V_ERR_APPLICATION_VERIFICATION);
        return 0;
    }
    return 1;
}

static enum status set_clients(struct tls_context *context, const struct tls_options *options,
                               const struct tls_files *files, struct error *error)
{
    SSL_CTX *ssl = tls_context_ssl(context);
    if (!options->client_cert_auth && !*options->trusted_ca_file)
        return ST_OK;
    if (*options->trusted_ca_file)
        TRY(tls_pem_trust(ssl, pem_of(options, files, TLS_FILE_CA), true, error));
    else
        TRY(tls_pem_trust_system(ssl, error));
    int needed = options->client_cert_optional ? 0 : SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
    SSL_CTX_set_verify(ssl, SSL_VERIFY_PEER | needed, NULL);
    SSL_CTX_set_cert_verify_callback(ssl, verify_client, context);
    return ST_OK;
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

static enum status set_protocol(struct tls_context *context, const struct tls_options *options,
                                struct error *error)
{
    SSL_CTX *ssl = tls_context_ssl(context);
    struct tls_suites suites;
    TRY(tls_suites_parse(options->cipher_suites, &suites, error));
    bool none = !*suites.list; /* TLS 1.2 has no cipher left */
    TRY(tls_context_set_versions(context, none ? TLS_VERSION_1_3 : options->min_version,
                                 options->max_version, error));
    if (!none && SSL_CTX_set_cipher_list(ssl, suites.list) != 1)
        return tls_complain(error, "TLS ciphers", "not possible");
    SSL_CTX_set_alpn_select_cb(ssl, choose_protocol, NULL);
    SSL_CTX_set_options(ssl, SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
    SSL_CTX_set_num_tickets(ssl, 0);
    return ST_OK;
}

/* -- the context -- */

static enum status make(const void *ctx, const struct tls_files *files,
                        struct tls_context **ret_context, struct error *error)
{
    const struct tls_options *options = ctx;
    AUTO(tls_context_unrefp) struct tls_context *context = NULL;
    struct tls_names *names;
    TRY(tls_context_new(TLS_server_method(), &context, error));
    TRY(tls_names_new(options, buf_slice(&files->bytes[TLS_FILE_CRL]), &names, error));
    tls_context_set_names(context, names);
    TRY(set_protocol(context, options, error));
    TRY(tls_pem_use_identity(tls_context_ssl(context), pem_of(options, files, TLS_FILE_CERT),
                             pem_of(options, files, TLS_FILE_KEY), error));
    TRY(set_clients(context, options, files, error));
    *ret_context = TAKE(context);
    return ST_OK;
}

enum status tls_server_recipe(const struct tls_options *options, struct tls_recipe *ret_recipe,
                              struct error *error)
{
    TRY(tls_options_check(options, error));
    *ret_recipe = (struct tls_recipe){
        .paths = paths_of(options),
        .make = make,
        .options = options,
    };
    return ST_OK;
}
