#include "io/whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static enum status fail(const char *path, struct error *error)
{
    enum status status = status_from_errno(errno);
    return error_set(error, status, "open %.300s: %s", path, strerror(errno));
}

static void closep(const int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

static enum status read_all(int fd, const char *path, size_t bytes_max, struct buf *to,
                            struct error *error)
{
    enum { PIECE_BYTES = 16 * 1024 };
    /* The size that fstat reports is 0 for pipes and for files of /proc, so only reading shows the
     * length. */
    for (size_t total = 0;;) {
        if (total > bytes_max)
            return error_set(error, ST_LIMIT, "%.300s: longer than %zu bytes", path, bytes_max);
        if (buf_reserve(to, PIECE_BYTES) != ST_OK)
            return error_set(error, ST_NOMEM, "%.300s: out of memory", path);
        ssize_t n = read(fd, to->ptr + to->len, PIECE_BYTES);
        if (n == 0)
            return ST_OK;
        if (n < 0 && errno != EINTR)
            return fail(path, error);
        to->len += n > 0 ? (size_t)n : 0;
        total += n > 0 ? (size_t)n : 0;
    }
}

enum status whole_file_read(const char *path, enum whole_file_kinds kinds, size_t bytes_max,
                            struct buf *to, struct error *error)
{
    /* Opening a FIFO waits for a writer, so it is opened without waiting and then refused. */
    int wait = kinds == WHOLE_FILE_REGULAR ? O_NONBLOCK : 0;
    AUTO(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | wait);
    struct stat found;
    if (fd < 0 || fstat(fd, &found) != 0)
        return fail(path, error);
    if (kinds == WHOLE_FILE_REGULAR && !S_ISREG(found.st_mode))
        return error_set(error, ST_INVALID, "open %.300s: not a file", path);
    return read_all(fd, path, bytes_max, to, error);
}
