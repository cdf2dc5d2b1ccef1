/*
 * A self-signed certificate for --auto-tls: it prevents eavesdropping, but proves no identity. Made
 * once and reused at the next start.
 */
#ifndef VIGIL_NET_TLS_SELF_SIGNED_H
#define VIGIL_NET_TLS_SELF_SIGNED_H

#include "base/error.h"
#include "io/address.h"

#include <limits.h>

struct tls_auto {
    char cert_file[PATH_MAX], key_file[PATH_MAX];
    bool made;           /* created by this call */
    int64_t not_after_s; /* if it was created: until when it is valid, in seconds since 1970 */
};

/*
 * Finds or creates DIRECTORY/cert.pem and key.pem; directories are created as needed. The
 * certificate is for this machine's name, localhost and the given addresses, and valid for this
 * many years from now_s (seconds since 1970).
 */
MUST_CHECK
enum status tls_auto_open(const char *directory, const struct address *addresses, size_t count,
                          int64_t now_s, int64_t years, struct tls_auto *ret_auto,
                          struct error *error);

/* Writes a new private key (P-256, PEM) that only the owner may read, unless the file exists. The
 * directory must exist. */
MUST_CHECK
enum status tls_key_make(const char *path, struct error *error);

#endif
