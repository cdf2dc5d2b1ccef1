/*
 * The files behind a TLS listener, read whole: certificate, key, authorities, revocations. Knows
 * cheaply whether they changed since: by what the file system says of them, not by reading.
 */
#ifndef VIGIL_NET_TLS_FILES_H
#define VIGIL_NET_TLS_FILES_H

#include "base/buf.h"
#include "net/tls/options.h"

#include <sys/stat.h>

enum tls_file { TLS_FILE_CERT, TLS_FILE_KEY, TLS_FILE_CA, TLS_FILE_CRL, TLS_FILE_COUNT };

/* A revocation list of a large authority has some 40 bytes for each certificate. */
enum { TLS_FILE_BYTES_MAX = 16 << 20, TLS_DIGEST_BYTES = 32 };

/* What tells one state of the files from another; all zero for a file that is not given or not
 * there. */
struct tls_files_mark {
    struct {
        dev_t device;
        ino_t inode;
        off_t size;
        struct timespec modified, changed;
    } of[TLS_FILE_COUNT];
};

struct tls_files {
    struct buf bytes[TLS_FILE_COUNT]; /* empty when not given */
    uint8_t digest[TLS_DIGEST_BYTES]; /* of all of them */
};

const char *tls_file_path(const struct tls_options *options, enum tls_file file);

void tls_files_look(const struct tls_options *options, struct tls_files_mark *ret_mark);
bool tls_files_same(const struct tls_files_mark *a, const struct tls_files_mark *b);
/* A file written so lately that writing it once more may not show in the mark. */
bool tls_files_fresh(const struct tls_files_mark *mark);

/* The error names the file. */
MUST_CHECK
enum status tls_files_read(const struct tls_options *options, struct tls_files *ret_files,
                           struct error *error);
void tls_files_fini(struct tls_files *files); /* the key is wiped */

#endif
