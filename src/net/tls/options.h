/*
 * Options of listeners that use TLS: files, admitted clients, versions, ciphers. Names and rules
 * are those of etcd's flags. Everything is borrowed; "" means "not given".
 */
#ifndef VIGIL_NET_TLS_OPTIONS_H
#define VIGIL_NET_TLS_OPTIONS_H

#include "base/error.h"

#include <stdbool.h>

enum tls_version { TLS_VERSION_DEFAULT, TLS_VERSION_1_2, TLS_VERSION_1_3 };

struct tls_options {
    const char *cert_file; /* PEM: our certificate first, then the chain to a known authority */
    const char *key_file;  /* PEM, without a password */
    const char *
        trusted_ca_file; /* PEM: authorities of clients' certificates; if given, clients need one */
    bool client_cert_auth; /* clients need a certificate; without a CA file, of the system's CAs */
    bool client_cert_optional; /* with a CA file: clients without one are admitted, and one that is
                                  presented must be valid */
    const char *crl_file;      /* DER or PEM: serial numbers that are refused */
    const char *allowed_cns;   /* separated by commas: a client's name must be one of them */
    const char *allowed_hostnames;
    const char *cipher_suites; /* Go's names of TLS 1.2 ciphers, separated by commas */
    enum tls_version min_version, max_version;
};

#define TLS_OPTIONS_NONE         \
    ((struct tls_options){       \
        .cert_file = "",         \
        .key_file = "",          \
        .trusted_ca_file = "",   \
        .crl_file = "",          \
        .allowed_cns = "",       \
        .allowed_hostnames = "", \
        .cipher_suites = "",     \
    })

/* "TLS1.2", "TLS1.3" or "". The error's text is etcd's. */
MUST_CHECK
enum status tls_version_parse(const char *text, enum tls_version *ret_version, struct error *error);

/* Checks that involve several options, with etcd's errors: crossed versions, unknown ciphers, one
 * file of a pair, names of two kinds. Opens no file. */
MUST_CHECK
enum status tls_options_check(const struct tls_options *options, struct error *error);

/* --cipher-suites in OpenSSL's names. */
enum { TLS_SUITES_BYTES = 1024 };
struct tls_suites {
    char list[TLS_SUITES_BYTES]; /* for TLS 1.2; "": none of the names is a cipher of TLS 1.2 */
    char missing[256];           /* names that Go knows and this OpenSSL does not have */
};

/* An empty list of names gives Go's defaults. */
MUST_CHECK
enum status tls_suites_parse(const char *names, struct tls_suites *ret_suites, struct error *error);

#endif
