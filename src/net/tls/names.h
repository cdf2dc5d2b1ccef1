/*
 * Which clients are admitted by their certificate, besides being signed by a trusted authority: the
 * allowed names and the revoked serial numbers. Immutable once made; any thread.
 */
#ifndef VIGIL_NET_TLS_NAMES_H
#define VIGIL_NET_TLS_NAMES_H

#include "base/slice.h"
#include "net/tls/options.h"

struct http_certificate;
struct x509_st;

struct tls_names;

/* crl: the bytes of the file, DER or PEM; may be empty. The texts of the options are borrowed. */
MUST_CHECK
enum status tls_names_new(const struct tls_options *options, struct slice crl,
                          struct tls_names **ret_names, struct error *error);
void tls_names_free(struct tls_names *names);
DEFINE_CLEANUP(struct tls_names *, tls_names_free)

/* As in etcd: by the serial number alone, whichever authority revoked it. */
bool tls_names_revoked(const struct tls_names *names, struct x509_st *certificate);
/* True also when every name is allowed. */
bool tls_names_allowed(const struct tls_names *names, struct x509_st *certificate);

/* The common name of the subject, which the caller frees; NULL: there is none, it is longer than a
 * user's name may be, or it contains a NUL. */
enum { TLS_COMMON_NAME_BYTES_MAX = 1024 };
char *tls_common_name(const struct x509_st *certificate);

/* More about the owner of the certificate, which the caller frees; NULL: no memory. */
struct http_certificate *tls_certificate_read(const struct x509_st *certificate);

/* True: one of its alternative names is the host, a name or an IP address. An address, also in
 * brackets, is compared only with addresses, and a name only with names. The subject's common name
 * is not used. */
bool tls_certificate_is_for(struct x509_st *certificate, struct slice host);
bool tls_host_is_ip(struct slice host); /* without brackets */

/* For the log: the names that a certificate is for, separated by commas, truncated to the size of
 * text. */
enum { TLS_NAMES_TEXT_BYTES = 512 };
void tls_names_format_dns(const struct x509_st *certificate, char text[TLS_NAMES_TEXT_BYTES]);
void tls_names_format_ips(const struct x509_st *certificate, char text[TLS_NAMES_TEXT_BYTES]);
/* Its serial number in hex without leading zeros, as etcd writes it. */
enum { TLS_SERIAL_TEXT_BYTES = 64 };
void tls_serial_format(const struct x509_st *certificate, char text[TLS_SERIAL_TEXT_BYTES]);

#endif
