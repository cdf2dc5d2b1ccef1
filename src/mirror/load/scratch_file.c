#include "mirror/load/scratch_file.h"

#include "base/xalloc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BUFFER_BYTES = 1 << 20 };

struct scratch_file {
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
    if (snprintf(path, sizeof(path), "%s/scratch-XXXXXX", directory) >= (int)sizeof(path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        (void)unlink(path);
    return fd;
}

enum status scratch_file_open(const char *directory, struct scratch_file **ret_file,
                              struct error *error)
{
    int fd = open_nameless(directory);
    if (fd < 0)
        return error_set(error, ST_IO, "no file can be created in %s: %s", directory,
                         strerror(errno));
    struct scratch_file *file = xmalloc(sizeof(*file));
    file->fd = fd;
    file->written = file->buffered = 0;
    file->mapped = NULL;
    *ret_file = file;
    return ST_OK;
}

void scratch_file_close(struct scratch_file *file)
{
    if (!file)
        return;
    if (file->mapped)
        munmap((void *)file->mapped, file->written);
    close(file->fd);
    free(file);
}

uint64_t scratch_file_bytes(const struct scratch_file *file)
{
    return file->written + file->buffered;
}

static enum status write_all(struct scratch_file *file, struct slice bytes)
{
    while (bytes.len) {
        ssize_t n = write(file->fd, bytes.ptr, bytes.len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == ENOSPC || errno == EDQUOT ? ST_DISK_FULL : ST_IO;
        file->written += (size_t)n;
        bytes = slice_sub(bytes, (size_t)n, bytes.len - (size_t)n);
    }
    return ST_OK;
}

static enum status flush(struct scratch_file *file)
{
    size_t len = file->buffered;
    file->buffered = 0;
    return write_all(file, slice_of(file->buffer, len));
}

enum status scratch_file_append(struct scratch_file *file, struct slice bytes)
{
    assert(!file->mapped);
    if (bytes.len > BUFFER_BYTES - file->buffered)
        TRY(flush(file));
    if (bytes.len > BUFFER_BYTES)
        return write_all(file, bytes);
    slice_copy(file->buffer + file->buffered, bytes);
    file->buffered += bytes.len;
    return ST_OK;
}

enum status scratch_file_finish(struct scratch_file *file)
{
    TRY(flush(file));
    if (file->written == 0)
        return ST_OK;
    void *mapped = mmap(NULL, file->written, PROT_READ, MAP_SHARED, file->fd, 0);
    if (mapped == MAP_FAILED)
        return ST_NOMEM;
    file->mapped = mapped;
    return ST_OK;
}

const uint8_t *scratch_file_at(const struct scratch_file *file, uint64_t place)
{
    assert(file->mapped && place <= file->written);
    return file->mapped + place;
}
