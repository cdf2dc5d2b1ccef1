/* Certificates for the tests of TLS, created in a directory that is removed with the fixture. */
#ifndef VIGIL_NET_TLS_CERTS_TEST_H
#define VIGIL_NET_TLS_CERTS_TEST_H

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct test_identity {
    X509 *certificate;
    EVP_PKEY *key;
};

struct test_wish {
    const char *common_name; /* NULL: none */
    const char *names;       /* "DNS:localhost,IP:127.0.0.1"; NULL: none */
    const char *usage;       /* "serverAuth" */
    bool authority;          /* may sign others */
    long serial;             /* 0: 7 */
    long begin_s, end_s;     /* from now; 0: a minute ago, for a day */
    bool always;             /* instead: for decades, and the same in every run */
};

enum { TEST_DAY_S = 24 * 3600 };

#define TEST_WISH(...) ((struct test_wish){__VA_ARGS__})

static inline void test_must(bool ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "tls_certs: %s\n", what);
        abort();
    }
}

static inline void test_extend(X509 *certificate, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509V3_set_ctx(&ctx, issuer, certificate, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    test_must(extension && X509_add_ext(certificate, extension, -1) == 1, value);
    X509_EXTENSION_free(extension);
}

/* issuer NULL: self-signed. */
static inline struct test_identity test_identity_make(struct test_wish wish,
                                                      const struct test_identity *issuer)
{
    struct test_identity made = {X509_new(), EVP_EC_gen("P-256")};
    X509 *c = made.certificate;
    test_must(c && made.key, "memory");
    X509_set_version(c, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(c), wish.serial ? wish.serial : 7);
    X509_gmtime_adj(X509_getm_notBefore(c), wish.begin_s ? wish.begin_s : -60);
    X509_gmtime_adj(X509_getm_notAfter(c), wish.end_s ? wish.end_s : TEST_DAY_S);
    if (wish.always)
        test_must(ASN1_TIME_set_string(X509_getm_notBefore(c), "20200101000000Z") == 1 &&
                      ASN1_TIME_set_string(X509_getm_notAfter(c), "20491231000000Z") == 1,
                  "times");
    X509_set_pubkey(c, made.key);
    X509_NAME *subject = X509_get_subject_name(c);
    X509_NAME_add_entry_by_txt(subject, "O", MBSTRING_UTF8, (const unsigned char *)"tests", -1, -1,
                               0);
    if (wish.common_name)
        X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8,
                                   (const unsigned char *)wish.common_name, -1, -1, 0);
    X509 *by = issuer ? issuer->certificate : c;
    X509_set_issuer_name(c, X509_get_subject_name(by));
    test_extend(c, by, NID_basic_constraints, wish.authority ? "critical,CA:TRUE" : "CA:FALSE");
    test_extend(c, by, NID_subject_key_identifier, "hash");
    if (wish.usage)
        test_extend(c, by, NID_ext_key_usage, wish.usage);
    if (wish.names)
        test_extend(c, by, NID_subject_alt_name, wish.names);
    test_must(X509_sign(c, issuer ? issuer->key : made.key, EVP_sha256()) > 0, "sign");
    return made;
}

static inline void test_identity_free(struct test_identity *identity)
{
    X509_free(identity->certificate);
    EVP_PKEY_free(identity->key);
    *identity = (struct test_identity){0};
}

/* A directory and the paths in it. */
struct test_certs {
    char directory[64];
    char ca_file[96], cert_file[96], key_file[96], crl_file[96];
    struct test_identity ca, server;
};

static inline void test_write_certificate(const char *path, X509 *certificate)
{
    FILE *file = fopen(path, "w");
    test_must(file && PEM_write_X509(file, certificate) == 1, path);
    fclose(file);
}

static inline void test_write_key(const char *path, EVP_PKEY *key)
{
    FILE *file = fopen(path, "w");
    test_must(file && PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL) == 1, path);
    fclose(file);
}

static inline void test_write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    test_must(file && fputs(text, file) >= 0, path);
    fclose(file);
}

/* One serial number; as DER, which etcd expects, or as PEM. */
static inline void test_write_crl(const struct test_certs *certs, long serial, bool pem)
{
    X509_CRL *crl = X509_CRL_new();
    ASN1_TIME *now = X509_gmtime_adj(NULL, 0);
    X509_REVOKED *revoked = X509_REVOKED_new();
    ASN1_INTEGER *number = ASN1_INTEGER_new();
    ASN1_INTEGER_set(number, serial);
    X509_REVOKED_set_serialNumber(revoked, number);
    X509_REVOKED_set_revocationDate(revoked, now);
    X509_CRL_set_version(crl, 1);
    X509_CRL_set_issuer_name(crl, X509_get_subject_name(certs->ca.certificate));
    X509_CRL_set1_lastUpdate(crl, now);
    X509_CRL_add0_revoked(crl, revoked);
    test_must(X509_CRL_sign(crl, certs->ca.key, EVP_sha256()) > 0, "sign");
    FILE *file = fopen(certs->crl_file, "w");
    test_must(file && (pem ? PEM_write_X509_CRL(file, crl) : i2d_X509_CRL_fp(file, crl)) == 1,
              "crl");
    fclose(file);
    ASN1_INTEGER_free(number);
    ASN1_TIME_free(now);
    X509_CRL_free(crl);
}

static inline void test_certs_write_server(struct test_certs *certs)
{
    test_write_certificate(certs->cert_file, certs->server.certificate);
    test_write_key(certs->key_file, certs->server.key);
}

static inline void test_certs_init(struct test_certs *certs)
{
    snprintf(certs->directory, sizeof(certs->directory), "/tmp/vigil-tls-XXXXXX");
    test_must(mkdtemp(certs->directory), certs->directory);
    snprintf(certs->ca_file, sizeof(certs->ca_file), "%s/ca.pem", certs->directory);
    snprintf(certs->cert_file, sizeof(certs->cert_file), "%s/cert.pem", certs->directory);
    snprintf(certs->key_file, sizeof(certs->key_file), "%s/key.pem", certs->directory);
    snprintf(certs->crl_file, sizeof(certs->crl_file), "%s/crl.der", certs->directory);
    certs->ca = test_identity_make(TEST_WISH(.common_name = "ca", .authority = true), NULL);
    certs->server =
        test_identity_make(TEST_WISH(.common_name = "server", .names = "DNS:localhost,IP:127.0.0.1",
                                     .usage = "serverAuth"),
                           &certs->ca);
    test_write_certificate(certs->ca_file, certs->ca.certificate);
    test_certs_write_server(certs);
}

static inline void test_certs_fini(struct test_certs *certs)
{
    unlink(certs->ca_file);
    unlink(certs->cert_file);
    unlink(certs->key_file);
    unlink(certs->crl_file);
    rmdir(certs->directory);
    test_identity_free(&certs->ca);
    test_identity_free(&certs->server);
}

#endif
