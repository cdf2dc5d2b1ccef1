/*
 * A library for LD_PRELOAD that records what a server does to the files of its data directory, and
 * that makes calls fail.
 *
 *   POWER_DIR    the data directory; calls for other files pass through
 *   POWER_LOG    the recording (entry.h); the counter of tickets is in the same path with ".seq"
 *   POWER_LIE    N: from the Nth on, syncs of the log's files do nothing and report success, as on
 *                a disk that ignores them
 *   POWER_FAIL   CLASS:N:HOW[:always] makes the Nth call of a class fail, or all from the Nth on.
 *                Classes: open, write, sync, sync_dir, rename, unlink, mkdir, truncate.
 *                HOW: EIO, ENOSPC, EINTR, or short (a write ends in its middle, without an error).
 *                A write that fails has been done in part.
 *   POWER_COUNT  a file to which the number of calls of each class is written at exit
 *
 * System calls are made directly, so nothing of the C library is replaced that this one uses. Of
 * LMDB and of our own code these are all calls that change files (seen with strace); memory that is
 * mapped is only read, except LMDB's table of readers, which every start initializes.
 */
#include "entry.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum { FD_MAX = 65536, WRITE_PARTS_MAX = IOV_MAX };

enum call_class {
    CALL_OPEN,
    CALL_WRITE,
    CALL_SYNC,
    CALL_SYNC_DIR,
    CALL_RENAME,
    CALL_UNLINK,
    CALL_MKDIR,
    CALL_TRUNCATE,
    CALL_CLASSES
};
static const char *const class_names[CALL_CLASSES] = {
    "open", "write", "sync", "sync_dir", "rename", "unlink", "mkdir", "truncate",
};

/* What is known of a descriptor; handle 0: not of the data directory. */
struct descriptor {
    _Atomic uint64_t handle;
    bool is_dir;
    bool is_dsync;
    bool is_log;
};

static struct descriptor descriptors[FD_MAX];
static char dir[PATH_MAX];
static size_t dir_bytes; /* 0: nothing is recorded */
static int log_fd = -1;
static _Atomic uint64_t *tickets;
static atomic_flag log_lock = ATOMIC_FLAG_INIT;
static uint64_t lies_from; /* 0: never */

static struct {
    int class; /* -1: none */
    uint64_t nth;
    int error; /* 0: short */
    bool always;
} fault = {.class = -1};
static _Atomic uint64_t calls[CALL_CLASSES];

/* -- Settings -- */

static void give_up(const char *what)
{
    dprintf(STDERR_FILENO, "power: %s: %s\n", what, strerror(errno));
    _exit(97);
}

static void read_fault(const char *text)
{
    char class[32], nth[32], how[32], always[32] = "";
    if (sscanf(text, "%31[a-z_]:%31[0-9]:%31[A-Za-z]:%31s", class, nth, how, always) < 3)
        give_up("POWER_FAIL is not CLASS:N:HOW");
    for (int i = 0; i < CALL_CLASSES; i++) {
        if (strcmp(class, class_names[i]) == 0)
            fault.class = i;
    }
    fault.nth = strtoull(nth, NULL, 10);
    fault.error = strcmp(how, "EIO") == 0      ? EIO
                  : strcmp(how, "ENOSPC") == 0 ? ENOSPC
                  : strcmp(how, "EINTR") == 0  ? EINTR
                                               : 0;
    fault.always = strcmp(always, "always") == 0;
}

__attribute__((constructor)) static void start(void)
{
    const char *path = getenv("POWER_DIR"), *log = getenv("POWER_LOG");
    if (!path || !log)
        return;
    if (getenv("POWER_FAIL"))
        read_fault(getenv("POWER_FAIL"));
    lies_from = getenv("POWER_LIE") ? strtoull(getenv("POWER_LIE"), NULL, 10) : 0;
    char counter[PATH_MAX];
    snprintf(counter, sizeof(counter), "%s.seq", log);
    log_fd =
        (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    int fd = (int)syscall(SYS_openat, AT_FDCWD, counter, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (log_fd < 0 || fd < 0 || syscall(SYS_ftruncate, fd, sizeof(*tickets)) < 0)
        give_up(log);
    void *map = mmap(NULL, sizeof(*tickets), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        give_up(counter);
    syscall(SYS_close, fd);
    tickets = map;
    uint64_t none = 0;
    atomic_compare_exchange_strong(tickets, &none, 1); /* a handle is a ticket and not 0 */
    snprintf(dir, sizeof(dir), "%s", path);
    dir_bytes = strlen(dir);
}

__attribute__((destructor)) static void stop(void)
{
    const char *path = getenv("POWER_COUNT");
    FILE *file = path && dir_bytes ? fopen(path, "we") : NULL;
    if (!file)
        return;
    for (int i = 0; i < CALL_CLASSES; i++)
        fprintf(file, "%s %llu\n", class_names[i], (unsigned long long)atomic_load(&calls[i]));
    fclose(file);
}

/* The part of a path below the data directory; NULL if it is elsewhere. */
static const char *below(const char *path)
{
    if (!dir_bytes || strncmp(path, dir, dir_bytes) != 0)
        return NULL;
    if (!path[dir_bytes])
        return "";
    if (path[dir_bytes] != '/')
        return NULL;
    const char *rest = path + dir_bytes;
    while (*rest == '/')
        rest++;
    return rest;
}

static struct descriptor *known(int fd)
{
    if (fd < 0 || fd >= FD_MAX || !atomic_load(&descriptors[fd].handle))
        return NULL;
    return &descriptors[fd];
}

/* -- Recording -- */

static uint64_t take_ticket(void)
{
    return atomic_fetch_add(tickets, 1);
}

static void put_all(struct iovec *parts, int count)
{
    while (count > 0) {
        ssize_t done = syscall(SYS_writev, log_fd, parts, count > IOV_MAX ? IOV_MAX : count);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            give_up("the recording");
        size_t left = (size_t)done;
        while (count > 0 && left >= parts->iov_len) {
            left -= parts->iov_len;
            parts++;
            count--;
        }
        if (count > 0) {
            parts->iov_base = (char *)parts->iov_base + left;
            parts->iov_len -= left;
        }
    }
}

static bool is_zero(const struct iovec *parts, int count)
{
    for (int i = 0; i < count; i++) {
        const char *at = parts[i].iov_base;
        size_t len = parts[i].iov_len;
        if (len && (*at || memcmp(at, at + 1, len - 1) != 0))
            return false;
    }
    return true;
}

static struct iovec text_part(const char *text)
{
    return (struct iovec){(void *)(uintptr_t)text, text ? strlen(text) : 0};
}

/* Takes the second ticket and adds the entry; keeps errno. */
static void record(struct entry entry, const char *text, const char *text_to,
                   const struct iovec *data, int data_count)
{
    int error = errno;
    static const char zeros[ENTRY_ALIGN];
    struct iovec parts[4 + WRITE_PARTS_MAX] = {
        {&entry, sizeof(entry)}, text_part(text), text_part(text_to)};
    int count = 3;
    entry.magic = ENTRY_MAGIC;
    entry.text_bytes = (uint32_t)parts[1].iov_len;
    entry.text_to_bytes = (uint32_t)parts[2].iov_len;
    if (is_zero(data, data_count))
        entry.flags |= ENTRY_ZEROS;
    uint64_t left = entry.flags & ENTRY_ZEROS ? 0 : entry.length;
    for (int i = 0; i < data_count && left; i++) {
        parts[count] = data[i];
        if (parts[count].iov_len > left)
            parts[count].iov_len = left;
        left -= parts[count].iov_len;
        entry.data_bytes += parts[count++].iov_len;
    }
    uint64_t bytes = sizeof(entry) + entry.text_bytes + entry.text_to_bytes + entry.data_bytes;
    parts[count++] = (struct iovec){(void *)(uintptr_t)zeros, entry_bytes(&entry) - bytes};
    entry.end = take_ticket();
    while (atomic_flag_test_and_set(&log_lock))
        syscall(SYS_sched_yield);
    put_all(parts, count);
    atomic_flag_clear(&log_lock);
    errno = error;
}

/* Whether this call of a class is to fail. */
static bool is_faulty(enum call_class class)
{
    uint64_t nth = atomic_fetch_add(&calls[class], 1) + 1;
    return fault.class == (int)class && (fault.always ? nth >= fault.nth : nth == fault.nth);
}

/* The result of a call that is to fail before it has done anything. */
static long fail(struct entry *entry)
{
    entry->flags |= ENTRY_FAILED;
    if (fault.error == EINTR)
        entry->flags |= ENTRY_INTERRUPTED;
    errno = fault.error ? fault.error : EIO;
    return -1;
}

static long note_result(struct entry *entry, long result)
{
    if (result < 0)
        entry->flags |= ENTRY_FAILED;
    return result;
}

/* -- Opening -- */

static int open_any(const char *path, int flags, mode_t mode)
{
    const char *name = below(path);
    if (!name)
        return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    struct entry entry = {
        .kind = ENTRY_OPEN, .flags = flags & O_CREAT ? ENTRY_CREATES : 0, .begin = take_ticket()};
    entry.handle = entry.begin;
    int fd = (int)(is_faulty(CALL_OPEN) ? fail(&entry)
                                        : syscall(SYS_openat, AT_FDCWD, path, flags, mode));
    if (fd >= FD_MAX)
        give_up("too many descriptors");
    note_result(&entry, fd);
    if (fd >= 0) {
        struct stat st;
        descriptors[fd].is_dir = fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
        descriptors[fd].is_dsync = flags & O_DSYNC;
        descriptors[fd].is_log = strncmp(name, "log/", strlen("log/")) == 0;
        atomic_store(&descriptors[fd].handle, entry.handle);
    }
    record(entry, name, NULL, NULL, 0);
    return fd;
}

static mode_t mode_of(int flags, va_list arguments)
{
    return flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
}

EXPORT int open(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    return open_any(path, flags, mode);
}

EXPORT int open64(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    return open_any(path, flags, mode);
}

int __open_2(const char *path, int flags);
EXPORT int __open_2(const char *path, int flags)
{
    return open_any(path, flags, 0);
}

int __open64_2(const char *path, int flags);
EXPORT int __open64_2(const char *path, int flags)
{
    return open_any(path, flags, 0);
}

EXPORT int close(int fd)
{
    struct descriptor *descriptor = known(fd);
    if (descriptor)
        atomic_store(&descriptor->handle, 0);
    return (int)syscall(SYS_close, fd);
}

/* -- Writing -- */

static size_t parts_bytes(const struct iovec *parts, int count)
{
    size_t bytes = 0;
    for (int i = 0; i < count; i++)
        bytes += parts[i].iov_len;
    return bytes;
}

/* Writes the first bytes of the parts. */
static ssize_t write_first(int fd, const struct iovec *parts, int count, size_t bytes, off_t offset)
{
    struct iovec cut[WRITE_PARTS_MAX];
    int n = 0;
    for (int i = 0; i < count && bytes; i++) {
        cut[n] = parts[i];
        if (cut[n].iov_len > bytes)
            cut[n].iov_len = bytes;
        bytes -= cut[n++].iov_len;
    }
    return syscall(SYS_pwritev, fd, cut, n, offset, 0);
}

/* offset -1: where the descriptor is. */
static ssize_t write_any(int fd, const struct iovec *parts, int count, off_t offset)
{
    const struct descriptor *descriptor = known(fd);
    if (!descriptor)
        return offset < 0 ? syscall(SYS_writev, fd, parts, count)
                          : syscall(SYS_pwritev, fd, parts, count, offset, 0);
    off_t at = offset < 0 ? (off_t)syscall(SYS_lseek, fd, 0, SEEK_CUR) : offset;
    struct entry entry = {.kind = ENTRY_WRITE,
                          .flags = descriptor->is_dsync ? ENTRY_DSYNC : 0,
                          .begin = take_ticket(),
                          .handle = atomic_load(&descriptor->handle),
                          .offset = (uint64_t)at};
    ssize_t done;
    if (is_faulty(CALL_WRITE)) {
        size_t half = fault.error == EINTR ? 0 : parts_bytes(parts, count) / 2;
        done = write_first(fd, parts, count, half, at);
        entry.length = done > 0 ? (uint64_t)done : 0;
        if (fault.error)
            done = fail(&entry);
    } else {
        done = syscall(SYS_pwritev, fd, parts, count, at, 0);
        entry.length = note_result(&entry, done) > 0 ? (uint64_t)done : 0;
    }
    if (offset < 0 && done > 0)
        syscall(SYS_lseek, fd, at + done, SEEK_SET);
    record(entry, NULL, NULL, parts, count);
    return done;
}

static struct iovec one_part(const void *bytes, size_t len)
{
    return (struct iovec){(void *)(uintptr_t)bytes, len};
}

EXPORT ssize_t write(int fd, const void *bytes, size_t len)
{
    if (!known(fd))
        return syscall(SYS_write, fd, bytes, len);
    struct iovec part = one_part(bytes, len);
    return write_any(fd, &part, 1, -1);
}

EXPORT ssize_t pwrite(int fd, const void *bytes, size_t len, off_t offset)
{
    struct iovec part = one_part(bytes, len);
    return write_any(fd, &part, 1, offset);
}

EXPORT ssize_t pwrite64(int fd, const void *bytes, size_t len, off64_t offset)
{
    struct iovec part = one_part(bytes, len);
    return write_any(fd, &part, 1, offset);
}

EXPORT ssize_t writev(int fd, const struct iovec *parts, int count)
{
    return write_any(fd, parts, count, -1);
}

EXPORT ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset)
{
    return write_any(fd, parts, count, offset);
}

EXPORT ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t offset)
{
    return write_any(fd, parts, count, offset);
}

static int truncate_any(int fd, off_t bytes)
{
    const struct descriptor *descriptor = known(fd);
    if (!descriptor)
        return (int)syscall(SYS_ftruncate, fd, bytes);
    struct entry entry = {.kind = ENTRY_TRUNCATE,
                          .begin = take_ticket(),
                          .handle = atomic_load(&descriptor->handle),
                          .offset = (uint64_t)bytes};
    int result = (int)(is_faulty(CALL_TRUNCATE) ? fail(&entry) : syscall(SYS_ftruncate, fd, bytes));
    note_result(&entry, result);
    record(entry, NULL, NULL, NULL, 0);
    return result;
}

EXPORT int ftruncate(int fd, off_t bytes)
{
    return truncate_any(fd, bytes);
}

EXPORT int ftruncate64(int fd, off64_t bytes)
{
    return truncate_any(fd, bytes);
}

/* -- Calls that nothing uses today: one that is used would be missing in every image -- */

static int refuse(int fd, const char *name)
{
    if (!known(fd))
        return 0;
    dprintf(STDERR_FILENO, "power: %s is used on the data directory, and is not recorded\n", name);
    abort();
}

EXPORT int fallocate(int fd, int mode, off_t offset, off_t len)
{
    refuse(fd, "fallocate");
    return (int)syscall(SYS_fallocate, fd, mode, offset, len);
}

EXPORT int posix_fallocate(int fd, off_t offset, off_t len)
{
    refuse(fd, "posix_fallocate");
    return syscall(SYS_fallocate, fd, 0, offset, len) < 0 ? errno : 0;
}

EXPORT ssize_t pwritev2(int fd, const struct iovec *parts, int count, off_t offset, int flags)
{
    refuse(fd, "pwritev2");
    return syscall(SYS_pwritev2, fd, parts, count, offset, 0, flags);
}

EXPORT int sync_file_range(int fd, off64_t offset, off64_t bytes, unsigned flags)
{
    refuse(fd, "sync_file_range"); /* no promise: nothing would be synced by it */
    return (int)syscall(SYS_sync_file_range, fd, offset, bytes, flags);
}

EXPORT int link(const char *from, const char *to)
{
    if (below(from) || below(to))
        abort();
    return (int)syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
}

EXPORT int renameat(int from_dir, const char *from, int to_dir, const char *to)
{
    if (below(from) || below(to))
        abort();
    return (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, 0);
}

/* -- Syncing -- */

static int sync_any(int fd, long number)
{
    const struct descriptor *descriptor = known(fd);
    if (!descriptor)
        return (int)syscall(number, fd);
    struct entry entry = {
        .kind = ENTRY_SYNC, .begin = take_ticket(), .handle = atomic_load(&descriptor->handle)};
    bool faulty = is_faulty(descriptor->is_dir ? CALL_SYNC_DIR : CALL_SYNC);
    if (lies_from && descriptor->is_log && atomic_load(&calls[CALL_SYNC]) >= lies_from)
        return 0;
    int result = (int)(faulty ? fail(&entry) : syscall(number, fd));
    note_result(&entry, result);
    record(entry, NULL, NULL, NULL, 0);
    return result;
}

EXPORT int fsync(int fd)
{
    return sync_any(fd, SYS_fsync);
}

EXPORT int fdatasync(int fd)
{
    return sync_any(fd, SYS_fdatasync);
}

/* -- Names -- */

EXPORT int rename(const char *from, const char *to)
{
    const char *name = below(from), *name_to = below(to);
    if (!name || !name_to)
        return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
    struct entry entry = {.kind = ENTRY_RENAME, .begin = take_ticket()};
    int result =
        (int)(is_faulty(CALL_RENAME) ? fail(&entry)
                                     : syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
    note_result(&entry, result);
    record(entry, name, name_to, NULL, 0);
    return result;
}

EXPORT int unlink(const char *path)
{
    const char *name = below(path);
    if (!name)
        return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
    struct entry entry = {.kind = ENTRY_UNLINK, .begin = take_ticket()};
    int result =
        (int)(is_faulty(CALL_UNLINK) ? fail(&entry) : syscall(SYS_unlinkat, AT_FDCWD, path, 0));
    note_result(&entry, result);
    record(entry, name, NULL, NULL, 0);
    return result;
}

EXPORT int rmdir(const char *path)
{
    const char *name = below(path);
    if (!name)
        return (int)syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR);
    struct entry entry = {.kind = ENTRY_UNLINK, .begin = take_ticket()};
    int result =
        (int)(is_faulty(CALL_UNLINK) ? fail(&entry)
                                     : syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR));
    note_result(&entry, result);
    record(entry, name, NULL, NULL, 0);
    return result;
}

EXPORT int mkdir(const char *path, mode_t mode)
{
    const char *name = below(path);
    if (!name)
        return (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
    struct entry entry = {.kind = ENTRY_MAKE_DIR, .begin = take_ticket()};
    int result =
        (int)(is_faulty(CALL_MKDIR) ? fail(&entry) : syscall(SYS_mkdirat, AT_FDCWD, path, mode));
    note_result(&entry, result);
    record(entry, name, NULL, NULL, 0);
    return result;
}
