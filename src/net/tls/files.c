#include "net/tls/files.h"

#include "base/clock.h"
#include "io/whole_file.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <string.h>

/* More than the coarsest time stamp of a file system. */
#define FRESH_NS (2 * NS_PER_S)

void tls_files_look(const struct tls_paths *paths, struct tls_files_mark *ret_mark)
{
    memset(ret_mark, 0, sizeof(*ret_mark));
    for (int i = 0; i < TLS_FILE_COUNT; i++) {
        struct stat found;
        const char *path = paths->of[i];
        if (!*path || stat(path, &found) != 0)
            continue;
        ret_mark->of[i].device = found.st_dev;
        ret_mark->of[i].inode = found.st_ino;
        ret_mark->of[i].size = found.st_size;
        ret_mark->of[i].modified = found.st_mtim;
        ret_mark->of[i].changed = found.st_ctim;
    }
}

static bool same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

bool tls_files_same(const struct tls_files_mark *a, const struct tls_files_mark *b)
{
    for (int i = 0; i < TLS_FILE_COUNT; i++)
        if (a->of[i].device != b->of[i].device || a->of[i].inode != b->of[i].inode ||
            a->of[i].size != b->of[i].size || !same_time(a->of[i].modified, b->of[i].modified) ||
            !same_time(a->of[i].changed, b->of[i].changed))
            return false;
    return true;
}

bool tls_files_fresh(const struct tls_files_mark *mark)
{
    int64_t now = clock_real_ns(clock_system()); /* file systems use the real-time clock */
    for (int i = 0; i < TLS_FILE_COUNT; i++) {
        struct timespec at = mark->of[i].changed;
        int64_t age = now - (at.tv_sec * NS_PER_S + at.tv_nsec);
        /* With a time stamp in the future, because the clock was set back, every change is visible.
         */
        if (at.tv_sec != 0 && age > -FRESH_NS && age < FRESH_NS)
            return true;
    }
    return false;
}

static enum status digest(struct tls_files *files)
{
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    bool ok = md && EVP_DigestInit_ex(md, EVP_sha256(), NULL) == 1;
    for (int i = 0; ok && i < TLS_FILE_COUNT; i++) {
        uint64_t len = files->bytes[i].len; /* so that bytes cannot move from one file to the next
                                               without changing the digest */
        ok = EVP_DigestUpdate(md, &len, sizeof(len)) == 1 &&
             EVP_DigestUpdate(md, files->bytes[i].ptr, files->bytes[i].len) == 1;
    }
    ok = ok && EVP_DigestFinal_ex(md, files->digest, NULL) == 1;
    EVP_MD_CTX_free(md);
    return ok ? ST_OK : ST_NOMEM;
}

enum status tls_files_read(const struct tls_paths *paths, struct tls_files *ret_files,
                           struct error *error)
{
    struct tls_files files = {{{0}}, {0}};
    enum status status = ST_OK;
    for (int i = 0; status == ST_OK && i < TLS_FILE_COUNT; i++) {
        const char *path = paths->of[i];
        if (*path)
            status = whole_file_read(path, WHOLE_FILE_REGULAR, TLS_FILE_BYTES_MAX, &files.bytes[i],
                                     error);
    }
    if (status == ST_OK && digest(&files) != ST_OK)
        status = error_no_memory(error);
    if (status != ST_OK) {
        tls_files_fini(&files);
        return status;
    }
    *ret_files = files;
    return ST_OK;
}

void tls_files_fini(struct tls_files *files)
{
    if (files->bytes[TLS_FILE_KEY].ptr)
        OPENSSL_cleanse(files->bytes[TLS_FILE_KEY].ptr, files->bytes[TLS_FILE_KEY].capacity);
    for (int i = 0; i < TLS_FILE_COUNT; i++)
        buf_fini(&files->bytes[i]);
}
