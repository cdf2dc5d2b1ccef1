/* Files of the operating system. errno is translated here. */
#include "io/file.h"

#include "io/patched.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

struct posix_file {
    struct file file;
    int fd;     /* owned; never -1 */
    int dir_fd; /* owned: the locked directory of a lock file; otherwise -1 */
    char *path; /* owned: of a file with FILE_PATCHED; otherwise NULL */
};

static int fd_of(struct file *file)
{
    return CONTAINER_OF(file, struct posix_file, file)->fd;
}

static enum status status_from_last_error(void)
{
    return status_from_errno(errno);
}

static enum status posix_pread(struct file *file, void *to, size_t len, uint64_t offset)
{
    uint8_t *at = to;
    while (len) {
        ssize_t got = pread(fd_of(file), at, len, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return status_from_last_error();
        /* The file ends before the bytes that the caller knows to be there. */
        if (got == 0)
            return ST_IO;
        at += got;
        len -= (size_t)got;
        offset += (uint64_t)got;
    }
    return ST_OK;
}

static enum status posix_pwrite(struct file *file, struct slice bytes, uint64_t offset)
{
    while (bytes.len) {
        ssize_t put = pwrite(fd_of(file), bytes.ptr, bytes.len, (off_t)offset);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return status_from_last_error();
        bytes = slice_sub(bytes, (size_t)put, bytes.len - (size_t)put);
        offset += (uint64_t)put;
    }
    return ST_OK;
}

static enum status posix_sync(struct file *file)
{
    /* An interrupted call is repeated; any other failure is final. */
    int result;
    do
        result = fdatasync(fd_of(file));
    while (result < 0 && errno == EINTR);
    return result < 0 ? status_from_last_error() : ST_OK;
}

static enum status posix_size(struct file *file, uint64_t *ret_bytes)
{
    struct stat st;
    if (fstat(fd_of(file), &st) < 0)
        return status_from_last_error();
    *ret_bytes = (uint64_t)st.st_size;
    return ST_OK;
}

static enum status posix_map(struct file *file, size_t len, const uint8_t **ret_base)
{
    const char *patched = CONTAINER_OF(file, struct posix_file, file)->path;
    if (patched)
        return patched_map(patched, fd_of(file), len, ret_base);
    void *base = mmap(NULL, len, PROT_READ, MAP_SHARED, fd_of(file), 0);
    if (base == MAP_FAILED)
        return status_from_last_error();
    *ret_base = base;
    return ST_OK;
}

static void posix_unmap(struct file *file, const uint8_t *base, size_t len)
{
    if (CONTAINER_OF(file, struct posix_file, file)->path) {
        patched_unmap(base);
        return;
    }
    int result = munmap((void *)(uintptr_t)base, len);
    assert(result == 0);
}

static void posix_close(struct file *file)
{
    /* What must be durable was synced before, so an error of close cannot be acted on. */
    int dir_fd = CONTAINER_OF(file, struct posix_file, file)->dir_fd;
    if (dir_fd >= 0)
        close(dir_fd);
    close(fd_of(file));
    free(CONTAINER_OF(file, struct posix_file, file)->path);
    free(CONTAINER_OF(file, struct posix_file, file));
}

static const struct file_ops posix_file_ops = {
    .pread = posix_pread,
    .pwrite = posix_pwrite,
    .sync = posix_sync,
    .size = posix_size,
    .map = posix_map,
    .unmap = posix_unmap,
    .close = posix_close,
};

static enum status open_with(const char *path, int open_flags, struct file **ret_file)
{
    struct posix_file *file = malloc(sizeof(*file));
    if (!file)
        return ST_NOMEM;
    file->file.ops = &posix_file_ops;
    file->dir_fd = -1;
    file->path = NULL;
    file->fd = open(path, open_flags | O_CLOEXEC, 0600);
    if (file->fd < 0) {
        enum status failed = status_from_last_error();
        free(file);
        return failed;
    }
    *ret_file = &file->file;
    return ST_OK;
}

static enum status posix_open(struct fs *fs, const char *path, int flags, struct file **ret_file)
{
    (void)fs;
    AUTO(file_closep) struct file *file = NULL;
    int open_flags = flags & FILE_READ_ONLY ? O_RDONLY : O_RDWR;
    if (flags & FILE_CREATE)
        open_flags |= O_CREAT | O_EXCL;
    TRY(open_with(path, open_flags, &file));
    if (flags & FILE_SHARE && flock(fd_of(file), LOCK_SH | LOCK_NB) < 0)
        return errno == EWOULDBLOCK ? ST_IN_USE : status_from_last_error();
    if (flags & FILE_PATCHED) {
        char *copy = strdup(path);
        if (!copy)
            return ST_NOMEM;
        CONTAINER_OF(file, struct posix_file, file)->path = copy;
    }
    *ret_file = TAKE(file);
    return ST_OK;
}

static enum status posix_rename(struct fs *fs, const char *from, const char *to)
{
    (void)fs;
    return rename(from, to) < 0 ? status_from_last_error() : ST_OK;
}

static enum status posix_unlink(struct fs *fs, const char *path)
{
    (void)fs;
    return unlink(path) < 0 ? status_from_last_error() : ST_OK;
}

static enum status posix_make_dir(struct fs *fs, const char *path)
{
    (void)fs;
    return mkdir(path, 0700) < 0 ? status_from_last_error() : ST_OK;
}

static enum status posix_sync_dir(struct fs *fs, const char *path)
{
    (void)fs;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return status_from_last_error();
    /* A new or renamed file survives a power failure only when its directory was synced, too. */
    enum status status = fsync(fd) < 0 ? status_from_last_error() : ST_OK;
    close(fd);
    return status;
}

static enum status posix_list(struct fs *fs, const char *path,
                              void (*fn)(void *ctx, const char *name), void *ctx)
{
    (void)fs;
    DIR *dir = opendir(path);
    if (!dir)
        return status_from_last_error();
    struct dirent *entry;
    errno = 0;
    while ((entry = readdir(dir))) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            fn(ctx, entry->d_name);
        errno = 0;
    }
    enum status status = status_from_last_error();
    closedir(dir);
    return status;
}

/*
 * Locks the directory of the file too, because the file may be removed while it is locked, and the
 * next process would make and lock another one. Not every file system can lock a directory; then
 * the lock of the file has to do.
 */
static enum status lock_dir_of(const char *path, struct file *file)
{
    char dir[4200];
    const char *slash = strrchr(path, '/');
    int len = slash ? (int)(slash - path) : 0;
    snprintf(dir, sizeof(dir), "%.*s", len ? len : 1, len ? path : slash ? "/" : ".");
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return ST_OK;
    CONTAINER_OF(file, struct posix_file, file)->dir_fd = fd;
    return flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK ? ST_IN_USE : ST_OK;
}

static enum status posix_lock(struct fs *fs, const char *path, struct file **ret_file)
{
    (void)fs;
    AUTO(file_closep) struct file *file = NULL;
    TRY(open_with(path, O_RDWR | O_CREAT, &file));
    if (flock(fd_of(file), LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK ? ST_IN_USE : status_from_last_error();
    TRY(lock_dir_of(path, file));
    *ret_file = TAKE(file);
    return ST_OK;
}

static enum status posix_space(struct fs *fs, const char *path, uint64_t *ret_bytes)
{
    (void)fs;
    struct statvfs st;
    if (statvfs(path, &st) < 0)
        return status_from_last_error();
    /* Some file systems do not know their size and report 0. */
    *ret_bytes = st.f_blocks ? (uint64_t)st.f_bavail * st.f_frsize : UINT64_MAX;
    return ST_OK;
}

static const struct fs_ops posix_fs_ops = {
    .open = posix_open,
    .rename = posix_rename,
    .unlink = posix_unlink,
    .make_dir = posix_make_dir,
    .sync_dir = posix_sync_dir,
    .list = posix_list,
    .lock = posix_lock,
    .space = posix_space,
};

struct fs *fs_posix(void)
{
    static struct fs fs = {.ops = &posix_fs_ops};
    return &fs;
}
