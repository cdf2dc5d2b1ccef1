/*
 * A certificate made and signed by ourselves, for --auto-tls: it keeps listeners in the middle from
 * reading along, and proves nothing. Made once and found again at the next start.
 */
#ifndef VIGIL_NET_TLS_SELF_SIGNED_H
#define VIGIL_NET_TLS_SELF_SIGNED_H

#include "base/error.h"
#include "io/address.h"

#include <limits.h>

struct tls_auto {
    char cert_file[PATH_MAX], key_file[PATH_MAX];
    bool made;           /* by this call */
    int64_t not_after_s; /* when it was made: until when it is valid, since 1970 */
};

/*
 * Finds or makes DIRECTORY/cert.pem and key.pem; the directory and those above it are made as
 * needed. The certificate is for this machine's name, localhost, and the addresses given, for so
 * many years from now (now_s: since 1970).
 */
MUST_CHECK
enum status tls_auto_open(const char *directory, const struct address *addresses, size_t count,
                          int64_t now_s, int64_t years, struct tls_auto *ret_auto,
                          struct error *error);

#endif
