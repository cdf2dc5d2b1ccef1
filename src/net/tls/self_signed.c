#include "net/tls/self_signed.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SERIAL_BYTES = 16, YEAR_S = 365 * 24 * 3600, NAMES_BYTES = 4096 };

/* -- the certificate -- */

/* "DNS:localhost,IP:127.0.0.1", the form that OpenSSL reads. */
static void list_names(const struct address *addresses, size_t count, char names[NAMES_BYTES])
{
    char host[256] = "";
    size_t used = (size_t)snprintf(names, NAMES_BYTES, "DNS:localhost,IP:127.0.0.1,IP:::1");
    if (gethostname(host, sizeof(host) - 1) == 0 && *host && !strpbrk(host, ",:"))
        used += (size_t)snprintf(names + used, NAMES_BYTES - used, ",DNS:%s", host);
    for (size_t i = 0; i < count && used < NAMES_BYTES - INET6_ADDRSTRLEN - 8; i++) {
        char ip[INET6_ADDRSTRLEN];
        const void *at = &addresses[i].as.storage;
        int family = addresses[i].as.any.sa_family;
        if (family == AF_INET)
            at = &((const struct sockaddr_in *)at)->sin_addr;
        else if (family == AF_INET6)
            at = &((const struct sockaddr_in6 *)at)->sin6_addr;
        else
            continue;
        if (inet_ntop(family, at, ip, sizeof(ip)))
            used += (size_t)snprintf(names + used, NAMES_BYTES - used, ",IP:%s", ip);
    }
}

static bool extend(X509 *certificate, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509V3_set_ctx(&ctx, certificate, certificate, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    bool ok = extension && X509_add_ext(certificate, extension, -1) == 1;
    X509_EXTENSION_free(extension);
    return ok;
}

static bool set_serial(X509 *certificate)
{
    uint8_t bytes[SERIAL_BYTES];
    if (RAND_bytes(bytes, sizeof(bytes)) != 1)
        return false;
    bytes[0] &= 0x7f; /* the number is not negative */
    BIGNUM *number = BN_bin2bn(bytes, sizeof(bytes), NULL);
    bool ok = number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate));
    BN_free(number);
    return ok;
}

static bool build(X509 *certificate, EVP_PKEY *key, const char *names, int64_t now_s, int64_t years)
{
    /* Version 2 stands for X.509 v3, which extensions need. The certificate is its own authority,
     * so that clients can trust it by its file. */
    X509_NAME *name = X509_get_subject_name(certificate);
    return X509_set_version(certificate, 2) == 1 && set_serial(certificate) &&
           ASN1_TIME_set(X509_getm_notBefore(certificate), now_s) &&
           ASN1_TIME_set(X509_getm_notAfter(certificate), now_s + years * YEAR_S) &&
           X509_set_pubkey(certificate, key) == 1 &&
           X509_NAME_add_entry_by_txt(name, "O", MBSTRING_ASC, (const uint8_t *)"vigil", -1, -1,
                                      0) == 1 &&
           X509_set_issuer_name(certificate, name) == 1 &&
           extend(certificate, NID_basic_constraints, "critical,CA:TRUE") &&
           extend(certificate, NID_key_usage,
                  "critical,digitalSignature,keyEncipherment,cRLSign,keyCertSign") &&
           extend(certificate, NID_ext_key_usage, "serverAuth") &&
           extend(certificate, NID_subject_key_identifier, "hash") &&
           extend(certificate, NID_subject_alt_name, names) &&
           X509_sign(certificate, key, EVP_sha256()) > 0;
}

/* -- files -- */

static enum status fail_at(const char *path, struct error *error)
{
    return error_set(error, status_from_errno(errno), "%.300s: %s", path, strerror(errno));
}

static enum status make_directories(const char *directory, struct error *error)
{
    char path[PATH_MAX];
    size_t len = strlen(directory);
    for (size_t i = 0; i <= len; i++) {
        path[i] = directory[i];
        if (i == 0 || (directory[i] != '/' && directory[i] != 0))
            continue;
        path[i] = 0;
        if (mkdir(path, 0700) != 0 && errno != EEXIST)
            return fail_at(path, error);
        path[i] = directory[i];
    }
    return ST_OK;
}

/* Written under another name first, so that the file is complete or absent. */
static enum status write_pem(const char *path, X509 *certificate, EVP_PKEY *key,
                             struct error *error)
{
    char draft[PATH_MAX + 8];
    snprintf(draft, sizeof(draft), "%s.new", path);
    (void)unlink(draft);
    int fd = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, key ? 0600 : 0644);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (!file) {
        enum status status = fail_at(draft, error);
        if (fd >= 0)
            close(fd);
        return status;
    }
    int written = certificate ? PEM_write_X509(file, certificate)
                              : PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL);
    bool ok = written == 1 && fflush(file) == 0 && fsync(fd) == 0;
    ok = fclose(file) == 0 && ok;
    if (ok && rename(draft, path) == 0)
        return ST_OK;
    return fail_at(path, error);
}

static const char *last_reason(void)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    return reason ? reason : "OpenSSL does not say why";
}

static enum status make(const struct tls_auto *paths, const char *names, int64_t now_s,
                        int64_t years, struct error *error)
{
    X509 *certificate = X509_new();
    EVP_PKEY *key = EVP_EC_gen("P-256");
    enum status status = ST_OK;
    if (!certificate || !key || !build(certificate, key, names, now_s, years))
        status = error_set(error, ST_INTERNAL, "cannot make a certificate: %s", last_reason());
    if (status == ST_OK)
        status = write_pem(paths->key_file, NULL, key, error);
    if (status == ST_OK)
        status = write_pem(paths->cert_file, certificate, NULL, error);
    X509_free(certificate);
    EVP_PKEY_free(key);
    ERR_clear_error();
    return status;
}

static bool exists(const char *path)
{
    struct stat found;
    return stat(path, &found) == 0;
}

enum status tls_auto_open(const char *directory, const struct address *addresses, size_t count,
                          int64_t now_s, int64_t years, struct tls_auto *ret_auto,
                          struct error *error)
{
    struct tls_auto result = {.made = false};
    if (years <= 0)
        return error_set(error, ST_INVALID,
                         "selfSignedCertValidity is invalid,it should be greater than 0");
    if (strlen(directory) > PATH_MAX - 16)
        return error_set(error, ST_INVALID, "%.100s…: too long a path", directory);
    snprintf(result.cert_file, sizeof(result.cert_file), "%.*s/cert.pem", PATH_MAX - 16, directory);
    snprintf(result.key_file, sizeof(result.key_file), "%.*s/key.pem", PATH_MAX - 16, directory);
    if (!exists(result.cert_file) || !exists(result.key_file)) {
        char names[NAMES_BYTES];
        list_names(addresses, count, names);
        TRY(make_directories(directory, error));
        TRY(make(&result, names, now_s, years, error));
        result.made = true;
        result.not_after_s = now_s + years * YEAR_S;
    }
    *ret_auto = result;
    return ST_OK;
}

enum status tls_key_make(const char *path, struct error *error)
{
    if (exists(path))
        return ST_OK;
    EVP_PKEY *key = EVP_EC_gen("P-256");
    enum status status =
        key ? write_pem(path, NULL, key, error)
            : error_set(error, ST_INTERNAL, "cannot make a key: %s", last_reason());
    EVP_PKEY_free(key);
    ERR_clear_error();
    return status;
}
