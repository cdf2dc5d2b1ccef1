/* The context of a TLS client: its options, and whether it accepts the server's certificate. */
#include "net/tls/bytes.h"
#include "net/tls/client_private.h"
#include "net/tls/names.h"
#include "net/tls/pem.h"

#include <openssl/crypto.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* -- why a certificate is refused -- */

static void format_time(time_t at, char text[32])
{
    struct tm utc;
    if (!gmtime_r(&at, &utc) || !strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &utc))
        text[0] = 0;
}

static void explain_time(const X509 *certificate, bool expired, char text[TLS_REASON_BYTES])
{
    char now[32], limit[32] = "";
    struct tm end;
    const ASN1_TIME *at =
        expired ? X509_get0_notAfter(certificate) : X509_get0_notBefore(certificate);
    format_time(time(NULL), now);
    if (ASN1_TIME_to_tm(at, &end) == 1)
        format_time(timegm(&end), limit);
    snprintf(text, TLS_REASON_BYTES,
             "certificate has expired or is not yet valid: current time %s is %s %s", now,
             expired ? "after" : "before", limit);
}

/* "a,b" becomes "a, b". */
static void space_out(const char *list, char *text, size_t bytes)
{
    size_t at = 0;
    for (; *list && at + 3 < bytes; list++) {
        text[at++] = *list;
        if (*list == ',')
            text[at++] = ' ';
    }
    text[at] = 0;
}

static bool relies_on_common_name(const X509 *certificate, const char *host)
{
    /* Go has ignored the common name since 1.15 and explains it in its error. */
    if (X509_get_ext_by_NID(certificate, NID_subject_alt_name, -1) >= 0)
        return false;
    char *name = tls_common_name(certificate);
    bool same = name && strcasecmp(name, host) == 0;
    free(name);
    return same;
}

static void explain_host(const X509 *certificate, const char *host, char text[TLS_REASON_BYTES])
{
    char list[TLS_NAMES_TEXT_BYTES], names[TLS_REASON_BYTES / 2];
    bool is_ip = tls_host_is_ip(slice_from_text(host));
    if (is_ip)
        tls_names_format_ips(certificate, list);
    else
        tls_names_format_dns(certificate, list);
    space_out(list, names, sizeof(names));
    if (relies_on_common_name(certificate, host))
        snprintf(text, TLS_REASON_BYTES,
                 "certificate relies on legacy Common Name field, use SANs instead");
    else if (is_ip && !*names)
        snprintf(text, TLS_REASON_BYTES,
                 "cannot validate certificate for %.100s because it doesn't contain any IP SANs",
                 host);
    else if (!*names)
        snprintf(text, TLS_REASON_BYTES,
                 "certificate is not valid for any names, but wanted to match %.100s", host);
    else
        snprintf(text, TLS_REASON_BYTES, "certificate is valid for %s, not %.100s", names, host);
}

static bool is_about_time(int error)
{
    return error == X509_V_ERR_CERT_HAS_EXPIRED || error == X509_V_ERR_CERT_NOT_YET_VALID;
}

/* In Go's order: first the time, then the name, then the authority. False: the certificate is
 * valid. */
static bool find_fault(X509_STORE_CTX *chain, const char *host, char text[TLS_REASON_BYTES])
{
    X509 *own = X509_STORE_CTX_get0_cert(chain);
    bool valid = X509_verify_cert(chain) == 1;
    int error = X509_STORE_CTX_get_error(chain);
    const X509 *at = X509_STORE_CTX_get_current_cert(chain);
    if (!valid && is_about_time(error)) {
        explain_time(at ? at : own, error == X509_V_ERR_CERT_HAS_EXPIRED, text);
    } else if (!tls_certificate_is_for(own, slice_from_text(host))) {
        explain_host(own, host, text);
        X509_STORE_CTX_set_error(chain, X509_V_ERR_HOSTNAME_MISMATCH);
    } else if (!valid) {
        snprintf(text, TLS_REASON_BYTES, "%s", tls_verify_text(error));
    } else {
        return false;
    }
    return true;
}

static int verify_server(X509_STORE_CTX *chain, void *ctx)
{
    (void)ctx;
    SSL *ssl = X509_STORE_CTX_get_ex_data(chain, SSL_get_ex_data_X509_STORE_CTX_idx());
    struct tls_peer *peer = SSL_get_app_data(ssl);
    char fault[TLS_REASON_BYTES], reason[TLS_REASON_BYTES + 64];
    if (!find_fault(chain, peer->host, fault))
        return 1;
    snprintf(reason, sizeof(reason), "tls: failed to verify certificate: x509: %s", fault);
    peer->refused = true;
    /* The callback may have run before on this connection. */
    free(peer->reason);
    peer->reason = strdup(reason);
    return 0;
}

/* -- the context -- */

static struct tls_pem pem_of(const struct tls_files *files, enum tls_file file, const char *path,
                             struct slice given, const char *name)
{
    return *path ? (struct tls_pem){path, buf_slice(&files->bytes[file])}
                 : (struct tls_pem){name, given};
}

static enum status set_servers(SSL_CTX *ssl, const struct tls_client_options *o,
                               const struct tls_files *files, struct error *error)
{
    if (o->insecure_skip_verify) {
        SSL_CTX_set_verify(ssl, SSL_VERIFY_NONE, NULL);
        return ST_OK;
    }
    if (*o->ca_file || o->ca_pem.len)
        TRY(tls_pem_trust(
            ssl, pem_of(files, TLS_FILE_CA, o->ca_file, o->ca_pem, "the authorities (PEM)"), false,
            error));
    else
        TRY(tls_pem_trust_system(ssl, error));
    SSL_CTX_set_verify(ssl, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_cert_verify_callback(ssl, verify_server, NULL);
    return ST_OK;
}

static enum status set_identity(SSL_CTX *ssl, const struct tls_client_options *o,
                                const struct tls_files *files, struct error *error)
{
    if (!*o->cert_file && !o->cert_pem.len)
        return ST_OK;
    return tls_pem_use_identity(
        ssl, pem_of(files, TLS_FILE_CERT, o->cert_file, o->cert_pem, "the certificate (PEM)"),
        pem_of(files, TLS_FILE_KEY, o->key_file, o->key_pem, "the key (PEM)"), error);
}

static enum status make(const void *ctx, const struct tls_files *files,
                        struct tls_context **ret_context, struct error *error)
{
    static const unsigned char h2[] = "\x02h2";
    const struct tls_client_options *o = ctx;
    AUTO(tls_context_unrefp) struct tls_context *context = NULL;
    TRY(tls_context_new(TLS_client_method(), &context, error));
    SSL_CTX *ssl = tls_context_ssl(context);
    TRY(tls_context_set_versions(context, o->min_version, TLS_VERSION_DEFAULT, error));
    if (SSL_CTX_set_alpn_protos(ssl, h2, sizeof(h2) - 1) != 0) /* 0 is success here */
        return tls_complain(error, "ALPN", "out of memory");
    TRY(set_servers(ssl, o, files, error));
    TRY(set_identity(ssl, o, files, error));
    *ret_context = TAKE(context);
    return ST_OK;
}

/* -- the source -- */

static enum status check_options(const struct tls_client_options *o, struct error *error)
{
    bool has_cert = *o->cert_file || o->cert_pem.len, has_key = *o->key_file || o->key_pem.len;
    if (has_cert != has_key)
        return error_set(error, ST_INVALID,
                         "KeyFile and CertFile must both be present[key: %.200s, cert: %.200s]",
                         o->key_file, o->cert_file);
    if ((*o->cert_file && o->cert_pem.len) || (*o->key_file && o->key_pem.len) ||
        (*o->ca_file && o->ca_pem.len))
        return error_set(error, ST_INVALID, "a certificate or key is given as a file and as PEM");
    if (o->cert_pem.len > TLS_FILE_BYTES_MAX || o->key_pem.len > TLS_FILE_BYTES_MAX ||
        o->ca_pem.len > TLS_FILE_BYTES_MAX)
        return error_set(error, ST_LIMIT, "a certificate or key is longer than %d bytes",
                         TLS_FILE_BYTES_MAX);
    return ST_OK;
}

static bool copy_text(const char **text)
{
    *text = strdup(*text);
    return *text;
}

static bool copy_bytes(struct slice *bytes)
{
    uint8_t *copy = malloc(bytes->len ? bytes->len : 1);
    if (copy)
        slice_copy(copy, *bytes);
    bytes->ptr = copy;
    return copy;
}

/* Copies everything even if one copy fails, so that the fields are owned or NULL. */
static bool copy_options(struct tls_client_options *o)
{
    const char **const texts[] = {&o->ca_file, &o->cert_file, &o->key_file};
    struct slice *const bytes[] = {&o->ca_pem, &o->cert_pem, &o->key_pem};
    bool copied = true;
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        copied = copy_text(texts[i]) && copied;
    for (size_t i = 0; i < COUNT_OF(bytes); i++)
        copied = copy_bytes(bytes[i]) && copied;
    return copied;
}

static void free_options(struct tls_client_options *o)
{
    if (o->key_pem.ptr)
        OPENSSL_cleanse((void *)(uintptr_t)o->key_pem.ptr, o->key_pem.len);
    const void *const owned[] = {o->ca_file,    o->cert_file,    o->key_file,
                                 o->ca_pem.ptr, o->cert_pem.ptr, o->key_pem.ptr};
    for (size_t i = 0; i < COUNT_OF(owned); i++)
        free((void *)(uintptr_t)owned[i]);
}

enum status tls_client_source_new(const struct tls_client_options *options,
                                  struct tls_source_hooks hooks,
                                  struct tls_client_source **ret_source, struct error *error)
{
    TRY(check_options(options, error));
    AUTO(tls_client_source_freep) struct tls_client_source *s = calloc(1, sizeof(*s));
    if (!s)
        return error_no_memory(error);
    s->options = *options;
    bool copied = copy_options(&s->options);
    s->method = tls_bytes_method_new();
    if (!copied || !s->method)
        return error_no_memory(error);
    struct tls_recipe recipe = {
        .paths = {{
            [TLS_FILE_CERT] = s->options.cert_file,
            [TLS_FILE_KEY] = s->options.key_file,
            [TLS_FILE_CA] = s->options.insecure_skip_verify ? "" : s->options.ca_file,
            [TLS_FILE_CRL] = "",
        }},
        .make = make,
        .options = &s->options,
    };
    TRY(tls_source_new(&recipe, hooks, &s->source, error));
    *ret_source = TAKE(s);
    return ST_OK;
}

void tls_client_source_free(struct tls_client_source *s)
{
    if (!s)
        return;
    tls_source_free(s->source);
    BIO_meth_free(s->method);
    free_options(&s->options);
    free(s);
}

struct tls_stats tls_client_source_stats(struct tls_client_source *s)
{
    return tls_source_stats(s->source);
}
