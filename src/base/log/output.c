#include "base/log/output.h"

#include "base/clock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, BACKUPS_SEEN_MAX = 4096, SECONDS_PER_DAY = 86400 };

const char *log_journal_socket = "/run/systemd/journal/socket";

/* -- Opening -- */

static int open_file(const char *path)
{
    return open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
}

static int64_t size_of(int fd)
{
    struct stat stat;
    return fstat(fd, &stat) == 0 && S_ISREG(stat.st_mode) ? stat.st_size : 0;
}

/* -1: the journal does not listen. */
static int connect_journal(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(log_journal_socket) >= sizeof(address.sun_path))
        return -1;
    memcpy(address.sun_path, log_journal_socket, strlen(log_journal_socket));
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

enum status log_output_open(struct log_output *output, struct slice name,
                            const struct log_rotation *rotation, struct error *error)
{
    char path[PATH_BYTES];
    if (name.len >= sizeof(path))
        return error_set(error, ST_INVALID, "the path of a log output is too long");
    slice_copy(path, name);
    path[name.len] = 0;
    *output = (struct log_output){.kind = LOG_TO_DESCRIPTOR, .fd = STDERR_FILENO};
    if (strcmp(path, "stdout") == 0) {
        output->fd = STDOUT_FILENO;
    } else if (strcmp(path, "systemd/journal") == 0) {
        int fd = connect_journal(); /* without a journal: stderr, which a service manager keeps */
        if (fd >= 0)
            *output = (struct log_output){.kind = LOG_TO_JOURNAL, .fd = fd};
    } else if (strcmp(path, "stderr") != 0 && strcmp(path, "default") != 0) {
        int fd = open_file(path);
        if (fd < 0)
            return error_set(error, status_from_errno(errno), "cannot log to %s: %s", path,
                             strerrordesc_np(errno));
        *output = (struct log_output){
            .kind = LOG_TO_FILE, .fd = fd, .path = strdup(path), .bytes = size_of(fd)};
        if (rotation)
            output->rotation = *rotation;
        if (!output->path) {
            log_output_close(output);
            return error_set(error, ST_NOMEM, "no memory for a log output");
        }
    }
    return ST_OK;
}

void log_output_close(struct log_output *output)
{
    if (output->kind != LOG_TO_DESCRIPTOR)
        close(output->fd);
    free(output->path);
    *output = (struct log_output){.kind = LOG_TO_DESCRIPTOR, .fd = STDERR_FILENO};
}

/* Keeps the old file when no new one can be created, so that logging continues. */
void log_output_reopen(struct log_output *output)
{
    int fd = output->kind == LOG_TO_FILE ? open_file(output->path) : -1;
    if (fd < 0)
        return;
    close(output->fd);
    output->fd = fd;
    output->bytes = size_of(fd);
}

/* -- Rotation -- */

/* DIRECTORY/STEM-TIME.EXTENSION, as in etcd. */
struct backup_name {
    size_t directory_len; /* with its slash */
    size_t stem_len;      /* from the start of the path */
};

static struct backup_name split_path(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    const char *dot = strrchr(base, '.');
    return (struct backup_name){
        .directory_len = (size_t)(base - path),
        .stem_len = (size_t)((dot ? dot : base + strlen(base)) - path),
    };
}

static bool is_backup(const char *path, struct backup_name parts, const char *file)
{
    size_t stem = parts.stem_len - parts.directory_len, len = strlen(file);
    const char *extension = path + parts.stem_len;
    size_t extension_len = strlen(extension);
    return len > stem + 1 + extension_len && strncmp(file, path + parts.directory_len, stem) == 0 &&
           file[stem] == '-' && file[stem + 1] >= '0' && file[stem + 1] <= '9' &&
           strcmp(file + len - extension_len, extension) == 0;
}

static int compare_names(const void *a, const void *b)
{
    return -strcmp(*(char *const *)a, *(char *const *)b); /* newest first: names contain the time */
}

static void remove_old(const struct log_output *output, int dir, char **names, size_t count)
{
    const struct log_rotation *rotation = &output->rotation;
    time_t oldest = time(NULL) - (time_t)rotation->age_days_max * SECONDS_PER_DAY;
    qsort(names, count, sizeof(*names), compare_names);
    for (size_t i = 0; i < count; i++) {
        struct stat stat;
        bool many = rotation->backups_max && i >= rotation->backups_max;
        bool old = rotation->age_days_max && fstatat(dir, names[i], &stat, 0) == 0 &&
                   stat.st_mtime < oldest;
        if (many || old)
            unlinkat(dir, names[i], 0);
    }
}

static void purge(const struct log_output *output)
{
    char directory[PATH_BYTES] = ".";
    struct backup_name parts = split_path(output->path);
    if (!output->rotation.backups_max && !output->rotation.age_days_max)
        return;
    if (parts.directory_len)
        snprintf(directory, sizeof(directory), "%.*s", (int)parts.directory_len, output->path);
    DIR *dir = opendir(directory);
    char **names = calloc(BACKUPS_SEEN_MAX, sizeof(*names));
    size_t count = 0;
    for (struct dirent *entry; dir && names && count < BACKUPS_SEEN_MAX && (entry = readdir(dir));)
        if (is_backup(output->path, parts, entry->d_name) && (names[count] = strdup(entry->d_name)))
            count++;
    if (dir && names)
        remove_old(output, dirfd(dir), names, count);
    for (size_t i = 0; i < count; i++)
        free(names[i]);
    free(names);
    if (dir)
        closedir(dir);
}

static void rotate(struct log_output *output)
{
    char backup[PATH_BYTES + 32], stamp[32];
    struct backup_name parts = split_path(output->path);
    struct timespec now;
    struct tm t;
    clock_gettime(CLOCK_REALTIME, &now);
    if (output->rotation.local_time)
        localtime_r(&now.tv_sec, &t);
    else
        gmtime_r(&now.tv_sec, &t);
    strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H-%M-%S", &t);
    snprintf(backup, sizeof(backup), "%.*s-%s.%03d%s", (int)parts.stem_len, output->path, stamp,
             (int)(now.tv_nsec / NS_PER_MS), output->path + parts.stem_len);
    if (rename(output->path, backup) != 0) {
        output->bytes = 0; /* tried again after as many bytes, not for every line */
        return;
    }
    log_output_reopen(output);
    purge(output);
}

/* -- Writing -- */

/* A pipe that is writable takes LOG_LINE_BYTES without blocking. */
static bool takes_a_line(struct log_output *output, int wait_ms)
{
    struct pollfd one = {.fd = output->fd, .events = POLLOUT};
    bool ready = poll(&one, 1, output->stuck ? 0 : wait_ms) == 1 && one.revents & POLLOUT;
    output->stuck = !ready;
    return ready;
}

static bool write_line(int fd, struct slice line)
{
    ssize_t n;
    do
        n = write(fd, line.ptr, line.len);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)line.len;
}

/* The journal's own protocol: one field per line. Our fields contain no line breaks. */
static bool send_journal(int fd, enum log_level level, struct slice line)
{
    static const char *const heads[] = {
        [LOG_DEBUG] = "PRIORITY=7\nSYSLOG_IDENTIFIER=vigil\nMESSAGE=",
        [LOG_INFO] = "PRIORITY=6\nSYSLOG_IDENTIFIER=vigil\nMESSAGE=",
        [LOG_WARN] = "PRIORITY=4\nSYSLOG_IDENTIFIER=vigil\nMESSAGE=",
        [LOG_ERROR] = "PRIORITY=3\nSYSLOG_IDENTIFIER=vigil\nMESSAGE=",
        [LOG_FATAL] = "PRIORITY=2\nSYSLOG_IDENTIFIER=vigil\nMESSAGE=",
    };
    struct iovec parts[] = {
        {.iov_base = (void *)(uintptr_t)heads[level], .iov_len = strlen(heads[level])},
        {.iov_base = (void *)(uintptr_t)line.ptr, .iov_len = line.len},
    };
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = COUNT_OF(parts)};
    return sendmsg(fd, &message, MSG_NOSIGNAL) > 0;
}

bool log_output_write(struct log_output *output, enum log_level level, struct slice line,
                      int wait_ms)
{
    if (!takes_a_line(output, wait_ms))
        return false;
    if (output->kind == LOG_TO_JOURNAL)
        return send_journal(output->fd, level, line);
    int64_t max = output->rotation.file_bytes_max;
    if (output->kind == LOG_TO_FILE && max && output->bytes &&
        output->bytes + (int64_t)line.len > max)
        rotate(output);
    bool written = write_line(output->fd, line);
    output->bytes += written ? (int64_t)line.len : 0;
    return written;
}
