#include "net/tls/names.h"

#include "base/options/value.h"
#include "wire/http/certificate.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>

struct tls_names {
    const char *common_names, *hostnames; /* borrowed lists */
    X509_CRL *crl;                        /* owned; may be NULL */
};

/* -- revocations -- */

static enum status read_crl(struct slice bytes, const char *path, X509_CRL **ret_crl,
                            struct error *error)
{
    const unsigned char *at = bytes.ptr;
    X509_CRL *crl = d2i_X509_CRL(NULL, &at, (long)bytes.len);
    BIO *text = crl ? NULL : BIO_new_mem_buf(bytes.ptr, (int)bytes.len);
    if (text) {
        crl = PEM_read_bio_X509_CRL(text, NULL, NULL, NULL);
        BIO_free(text);
    }
    ERR_clear_error();
    if (!crl)
        return error_set(error, ST_INVALID,
                         "%.300s: not a certificate revocation list (DER or PEM)", path);
    *ret_crl = crl;
    return ST_OK;
}

enum status tls_names_new(const struct tls_options *options, struct slice crl,
                          struct tls_names **ret_names, struct error *error)
{
    AUTO(tls_names_freep) struct tls_names *names = calloc(1, sizeof(*names));
    if (!names)
        return error_no_memory(error);
    names->common_names = options->allowed_cns;
    names->hostnames = options->allowed_hostnames;
    if (*options->crl_file)
        TRY(read_crl(crl, options->crl_file, &names->crl, error));
    if (names->crl) { /* sorts the list now, before several threads use it */
        X509_REVOKED *unused;
        ASN1_INTEGER *zero = ASN1_INTEGER_new();
        if (zero)
            (void)X509_CRL_get0_by_serial(names->crl, &unused, zero);
        ASN1_INTEGER_free(zero);
    }
    *ret_names = TAKE(names);
    return ST_OK;
}

void tls_names_free(struct tls_names *names)
{
    if (!names)
        return;
    X509_CRL_free(names->crl);
    free(names);
}

bool tls_names_revoked(const struct tls_names *names, X509 *certificate)
{
    X509_REVOKED *entry;
    return names->crl &&
           X509_CRL_get0_by_serial(names->crl, &entry, X509_get_serialNumber(certificate)) != 0;
}

/* -- names -- */

char *tls_common_name(const X509 *certificate)
{
    const X509_NAME *subject = X509_get_subject_name(certificate);
    int at = -1;
    for (int next; (next = X509_NAME_get_index_by_NID(subject, NID_commonName, at)) >= 0;)
        at = next; /* the last of several counts, as in Go */
    if (at < 0)
        return NULL;
    unsigned char *utf8 = NULL;
    int len =
        ASN1_STRING_to_UTF8(&utf8, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
    char *name = NULL;
    if (len > 0 && len <= TLS_COMMON_NAME_BYTES_MAX && !memchr(utf8, 0, (size_t)len))
        name = malloc((size_t)len + 1);
    if (name) {
        memcpy(name, utf8, (size_t)len);
        name[len] = 0;
    }
    OPENSSL_free(utf8);
    ERR_clear_error();
    return name;
}

/* A name with a NUL could be mistaken for another one, so it is omitted. */
static size_t append_name(const X509_NAME *subject, int at, char *groups, size_t room)
{
    unsigned char *utf8 = NULL;
    int len =
        ASN1_STRING_to_UTF8(&utf8, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
    size_t taken = 0;
    if (len > 0 && (size_t)len < room && !memchr(utf8, 0, (size_t)len)) {
        memcpy(groups, utf8, (size_t)len);
        groups[len] = '\0';
        taken = (size_t)len + 1;
    }
    OPENSSL_free(utf8);
    return taken;
}

/* The uid is behind the groups. Kubernetes accepts one that is not empty, or none. */
static void append_uid(const X509_NAME *subject, struct http_certificate *made, size_t room)
{
    ASN1_OBJECT *type = OBJ_txt2obj("1.3.6.1.4.1.57683.2", 1);
    int at = type ? X509_NAME_get_index_by_OBJ(subject, type, -1) : -1;
    if (at >= 0) {
        size_t len = append_name(subject, at, made->groups + made->groups_bytes, room);
        made->has_bad_uid = !len || X509_NAME_get_index_by_OBJ(subject, type, at) >= 0;
        made->uid_bytes = len ? len - 1 : 0;
    }
    made->has_bad_uid |= !type;
    ASN1_OBJECT_free(type);
}

struct http_certificate *tls_certificate_read(const X509 *certificate)
{
    const X509_NAME *subject = X509_get_subject_name(certificate);
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned digest_len = 0;
    /* A byte of the subject becomes at most two in UTF-8, and a zero byte takes less than what
     * surrounds a name there. The size of the whole is that of a handshake. */
    int der = i2d_X509_NAME(subject, NULL);
    size_t room = der > 0 ? 3 * (size_t)der : 0, len = 0;
    struct http_certificate *made = calloc(1, sizeof(*made) + room);
    if (!made || !room || X509_digest(certificate, EVP_sha256(), digest, &digest_len) != 1) {
        free(made);
        made = NULL;
    }
    if (made) {
        for (int at = -1;
             (at = X509_NAME_get_index_by_NID(subject, NID_organizationName, at)) >= 0;)
            len += append_name(subject, at, made->groups + len, room - len);
        made->groups_bytes = len;
        append_uid(subject, made, room - len);
        struct http_certificate *smaller = realloc(made, sizeof(*made) + len + made->uid_bytes);
        made = smaller ? smaller : made;
        int at = snprintf(made->id, sizeof(made->id), "X509SHA256=");
        for (unsigned i = 0; i < digest_len && at + 3 <= (int)sizeof(made->id); i++)
            at += snprintf(made->id + at, sizeof(made->id) - (size_t)at, "%02x", digest[i]);
    }
    ERR_clear_error();
    return made;
}

static bool is_listed(const char *list, const char *name)
{
    struct slice item;
    for (const char *rest = list; name && option_list_next(&rest, &item);)
        if (slice_equal(item, slice_from_text(name)))
            return true;
    return false;
}

enum { HOST_BYTES_MAX = 256 };

bool tls_host_is_ip(struct slice host)
{
    char text[HOST_BYTES_MAX];
    struct in6_addr address;
    if (host.len >= sizeof(text))
        return false;
    slice_copy(text, host);
    text[host.len] = 0;
    return inet_pton(AF_INET, text, &address) == 1 || inet_pton(AF_INET6, text, &address) == 1;
}

bool tls_certificate_is_for(X509 *certificate, struct slice host)
{
    char text[HOST_BYTES_MAX];
    if (host.len >= 2 && host.ptr[0] == '[' && host.ptr[host.len - 1] == ']')
        host = slice_sub(host, 1, host.len - 2);
    if (host.len == 0 || host.len >= sizeof(text) || host.ptr[0] == '.')
        return false;
    memcpy(text, host.ptr, host.len);
    text[host.len] = 0;
    if (tls_host_is_ip(host))
        return X509_check_ip_asc(certificate, text, 0) == 1;
    return X509_check_host(certificate, text, host.len,
                           X509_CHECK_FLAG_NEVER_CHECK_SUBJECT |
                               X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS,
                           NULL) == 1;
}

bool tls_names_allowed(const struct tls_names *names, X509 *certificate)
{
    if (*names->common_names) {
        char *name = tls_common_name(certificate);
        bool listed = is_listed(names->common_names, name);
        free(name);
        return listed;
    }
    struct slice host;
    for (const char *rest = names->hostnames; option_list_next(&rest, &host);)
        if (tls_certificate_is_for(certificate, host))
            return true;
    return !*names->hostnames;
}

/* -- for the log -- */

static void append(char *text, const char *item, size_t len)
{
    size_t used = strlen(text);
    snprintf(text + used, TLS_NAMES_TEXT_BYTES - used, "%s%.*s", used ? "," : "", (int)len, item);
}

static void format_ip(const ASN1_OCTET_STRING *bytes, char *text)
{
    char ip[INET6_ADDRSTRLEN];
    int len = ASN1_STRING_length(bytes);
    if (len == 4 || len == 16)
        if (inet_ntop(len == 4 ? AF_INET : AF_INET6, ASN1_STRING_get0_data(bytes), ip, sizeof(ip)))
            append(text, ip, strlen(ip));
}

static void format(const X509 *certificate, int type, char *text)
{
    text[0] = 0;
    GENERAL_NAMES *all = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    for (int i = 0; i < sk_GENERAL_NAME_num(all); i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(all, i);
        if (name->type != type)
            continue;
        if (type == GEN_IPADD)
            format_ip(name->d.iPAddress, text);
        else
            append(text, (const char *)ASN1_STRING_get0_data(name->d.dNSName),
                   (size_t)ASN1_STRING_length(name->d.dNSName));
    }
    GENERAL_NAMES_free(all);
    ERR_clear_error();
}

void tls_names_format_dns(const X509 *certificate, char text[TLS_NAMES_TEXT_BYTES])
{
    format(certificate, GEN_DNS, text);
}

void tls_names_format_ips(const X509 *certificate, char text[TLS_NAMES_TEXT_BYTES])
{
    format(certificate, GEN_IPADD, text);
}

void tls_serial_format(const X509 *certificate, char text[TLS_SERIAL_TEXT_BYTES])
{
    const ASN1_INTEGER *serial = X509_get0_serialNumber(certificate);
    const unsigned char *bytes = ASN1_STRING_get0_data(serial);
    size_t len = (size_t)ASN1_STRING_length(serial);
    text[0] = 0;
    for (size_t i = 0; i < len && 2 * i + 3 <= TLS_SERIAL_TEXT_BYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
}
