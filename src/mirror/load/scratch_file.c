#include "mirror/load/scratch_file.h"

#include "base/xalloc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BUFFER_BYTES = 1 << 20 };

struct spool {
    int fd;
    uint64_t written;
    size_t buffered;
    const uint8_t *mapped; /* NULL: it is still being appended to, or empty */
    uint8_t buffer[BUFFER_BYTES];
};

static int open_nameless(const char *directory)
{
    int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
        return fd;
    char path[4096];
    if (snprintf(path, sizeof(path), "%s/spool-XXXXXX", directory) >= (int)sizeof(path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        (void)unlink(path);
    return fd;
}

enum status spool_open(const char *directory, struct spool **ret_spool, struct error *error)
{
    int fd = open_nameless(directory);
    if (fd < 0)
        return error_set(error, ST_IO, "no file can be created in %s: %s", directory,
                         strerror(errno));
    struct spool *spool = xmalloc(sizeof(*spool));
    spool->fd = fd;
    spool->written = spool->buffered = 0;
    spool->mapped = NULL;
    *ret_spool = spool;
    return ST_OK;
}

void spool_close(struct spool *spool)
{
    if (!spool)
        return;
    if (spool->mapped)
        munmap((void *)spool->mapped, spool->written);
    close(spool->fd);
    free(spool);
}

uint64_t spool_bytes(const struct spool *spool)
{
    return spool->written + spool->buffered;
}

static enum status write_all(struct spool *spool, struct slice bytes)
{
    while (bytes.len) {
        ssize_t n = write(spool->fd, bytes.ptr, bytes.len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == ENOSPC || errno == EDQUOT ? ST_DISK_FULL : ST_IO;
        spool->written += (size_t)n;
        bytes = slice_sub(bytes, (size_t)n, bytes.len - (size_t)n);
    }
    return ST_OK;
}

static enum status flush(struct spool *spool)
{
    size_t len = spool->buffered;
    spool->buffered = 0;
    return write_all(spool, slice_of(spool->buffer, len));
}

enum status spool_append(struct spool *spool, struct slice bytes)
{
    assert(!spool->mapped);
    if (bytes.len > BUFFER_BYTES - spool->buffered)
        TRY(flush(spool));
    if (bytes.len > BUFFER_BYTES)
        return write_all(spool, bytes);
    slice_copy(spool->buffer + spool->buffered, bytes);
    spool->buffered += bytes.len;
    return ST_OK;
}

enum status spool_finish(struct spool *spool)
{
    TRY(flush(spool));
    if (spool->written == 0)
        return ST_OK;
    void *mapped = mmap(NULL, spool->written, PROT_READ, MAP_SHARED, spool->fd, 0);
    if (mapped == MAP_FAILED)
        return ST_NOMEM;
    spool->mapped = mapped;
    return ST_OK;
}

const uint8_t *spool_at(const struct spool *spool, uint64_t place)
{
    assert(spool->mapped && place <= spool->written);
    return spool->mapped + place;
}
