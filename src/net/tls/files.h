/*
 * The files of a TLS listener or client, read completely: certificate, key, authorities,
 * revocations. Detects cheaply whether they changed, by the metadata of the file system.
 */
#ifndef VIGIL_NET_TLS_FILES_H
#define VIGIL_NET_TLS_FILES_H

#include "base/buf.h"
#include "base/error.h"

#include <sys/stat.h>

enum tls_file { TLS_FILE_CERT, TLS_FILE_KEY, TLS_FILE_CA, TLS_FILE_CRL, TLS_FILE_COUNT };

/* Borrowed; "" for a file that is not given. */
struct tls_paths {
    const char *of[TLS_FILE_COUNT];
};

/* The revocation list of a large authority has about 40 bytes per certificate. */
enum { TLS_FILE_BYTES_MAX = 16 << 20, TLS_DIGEST_BYTES = 32 };

/* Distinguishes one state of the files from another; all zero for a file that is not given or does
 * not exist. */
struct tls_files_mark {
    struct {
        dev_t device;
        ino_t inode;
        off_t size;
        struct timespec modified, changed;
    } of[TLS_FILE_COUNT];
};

struct tls_files {
    struct buf bytes[TLS_FILE_COUNT]; /* empty if not given */
    uint8_t digest[TLS_DIGEST_BYTES]; /* over all files */
};

void tls_files_look(const struct tls_paths *paths, struct tls_files_mark *ret_mark);
bool tls_files_same(const struct tls_files_mark *a, const struct tls_files_mark *b);
/* A file was written so recently that another write may not change the mark. */
bool tls_files_fresh(const struct tls_files_mark *mark);

/* The error names the file. */
MUST_CHECK
enum status tls_files_read(const struct tls_paths *paths, struct tls_files *ret_files,
                           struct error *error);
void tls_files_fini(struct tls_files *files); /* the key is wiped */

#endif
