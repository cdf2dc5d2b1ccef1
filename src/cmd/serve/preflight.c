#include "cmd/serve/preflight.h"

#include "base/log/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum {
    PATH_BYTES = 4096,
    USER_BYTES = 64,
    NFS_MAGIC = 0x6969,
    FILES_BESIDE_CONNECTIONS = 128, /* segments, checkpoint, log, listeners, threads' own */
    FILES_FEW = 4096,               /* with fewer than these an ordinary load may run out */
};

/* The name, or the number where there is none. */
static const char *user_name(uid_t uid, char text[USER_BYTES])
{
    char buffer[1024];
    struct passwd entry, *found = NULL;
    if (getpwuid_r(uid, &entry, buffer, sizeof(buffer), &found) == 0 && found)
        snprintf(text, USER_BYTES, "%s", entry.pw_name);
    else
        snprintf(text, USER_BYTES, "%u", (unsigned)uid);
    return text;
}

static enum status no_permission(const char *path, const struct stat *stat, struct error *error)
{
    char owner[USER_BYTES], us[USER_BYTES];
    return error_set(error, ST_INVALID,
                     "no permission to use %.200s: it belongs to %s (mode %04o) and this process "
                     "runs as %s. Give it away (chown -R %s) or choose another with --data-dir",
                     path, user_name(stat->st_uid, owner), (unsigned)(stat->st_mode & 07777),
                     user_name(geteuid(), us), us);
}

/* A directory that exists: the data directory itself, or the one it would be made in. */
static enum status check_directory(const char *path, struct error *error)
{
    struct stat status;
    struct statfs filesystem;
    if (stat(path, &status) != 0)
        return error_set(error, ST_INVALID, "cannot look at %.200s: %s", path,
                         strerrordesc_np(errno));
    if (!S_ISDIR(status.st_mode))
        return error_set(error, ST_INVALID,
                         "%.200s is not a directory; choose another with --data-dir", path);
    /* The log and the checkpoint are mapped into memory, and a file on NFS can change or vanish
     * under its mapping. */
    if (statfs(path, &filesystem) == 0 && filesystem.f_type == NFS_MAGIC)
        return error_set(error, ST_INVALID,
                         "%.200s is on NFS, where files that are mapped into memory are not safe; "
                         "choose a local disk with --data-dir",
                         path);
    if (faccessat(AT_FDCWD, path, R_OK | W_OK | X_OK, AT_EACCESS) == 0)
        return ST_OK;
    if (errno == EROFS)
        return error_set(error, ST_INVALID,
                         "%.200s is on a file system that is mounted read-only; mount it for "
                         "writing or choose another with --data-dir",
                         path);
    return no_permission(path, &status, error);
}

/* A lock file that another user created, as when root ran an import for a service. */
static enum status check_lock(const char *path, struct error *error)
{
    char lock[PATH_BYTES + 8];
    struct stat status;
    snprintf(lock, sizeof(lock), "%s/LOCK", path);
    if (stat(lock, &status) != 0 || faccessat(AT_FDCWD, lock, R_OK | W_OK, AT_EACCESS) == 0)
        return ST_OK;
    return no_permission(lock, &status, error);
}

/* Creates all parent directories. */
static enum status make_above(const char *path, struct error *error)
{
    char above[PATH_BYTES];
    for (const char *slash = path; (slash = strchr(slash + 1, '/'));) {
        snprintf(above, sizeof(above), "%.*s", (int)(slash - path), path);
        /* A slash at the end of the path is not followed by another directory. */
        if (slash[1] && mkdir(above, 0700) != 0 && errno != EEXIST)
            return error_set(error, ST_INVALID, "cannot make the directory %.200s: %s", above,
                             strerrordesc_np(errno));
    }
    return ST_OK;
}

/* Checks that the directory can be created, which some file systems (/proc, /sys) refuse even to
 * root. The store creates it later, durably. */
static enum status try_making(const char *path, struct error *error)
{
    if (mkdir(path, 0700) == 0)
        (void)rmdir(path);
    else if (errno != EEXIST)
        return error_set(error, ST_INVALID,
                         "cannot make the data directory %.200s: %s. Choose another place with "
                         "--data-dir",
                         path, strerrordesc_np(errno));
    return ST_OK;
}

enum status preflight_data_dir(const char *path, struct error *error)
{
    char parent[PATH_BYTES];
    if (strlen(path) >= sizeof(parent))
        return error_set(error, ST_INVALID, "the path of the data directory is too long");
    /* With these errors something is in the way, and check_directory names it. Only a path that is
     * missing (ENOENT) can be created. */
    if (access(path, F_OK) == 0 || errno == ENOTDIR || errno == EACCES || errno == ELOOP) {
        TRY(check_directory(path, error));
        return check_lock(path, error);
    }
    memcpy(parent, path, strlen(path) + 1);
    /* Missing parents are created as well: the first one that exists decides. */
    while (access(parent, F_OK) != 0) {
        char *slash = strrchr(parent, '/');
        if (slash)
            slash[slash == parent] = 0;
        else
            memcpy(parent, ".", sizeof("."));
        if (strcmp(parent, "/") == 0)
            break;
    }
    TRY(check_directory(parent, error));
    TRY(make_above(path, error));
    return try_making(path, error);
}

void preflight_privacy(const char *path)
{
    struct stat status;
    char mode[8];
    if (stat(path, &status) != 0 || !(status.st_mode & (S_IRWXG | S_IRWXO)))
        return;
    snprintf(mode, sizeof(mode), "%04o", (unsigned)(status.st_mode & 07777));
    log_warn("other users of this machine may look into the data directory; close it to them with "
             "chmod 700",
             LOG_TEXT("data-dir", path), LOG_TEXT("mode", mode));
}

void preflight_files(uint64_t connections_max, bool given)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    if (limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
            log_warn("cannot raise the limit of open files", LOG_TEXT("error", strerror(errno)));
        (void)getrlimit(RLIMIT_NOFILE, &limit);
    }
    /* The default of --max-connections exceeds what many systems allow. That alone does not justify
     * a warning, unless even an ordinary load may run out of files. */
    bool enough = limit.rlim_cur >= connections_max + FILES_BESIDE_CONNECTIONS;
    if (!enough && (given || limit.rlim_cur < FILES_FEW))
        log_warn("fewer files may be open than connections are allowed; raise LimitNOFILE (ulimit "
                 "-n) or lower --max-connections",
                 LOG_U64("open-files", limit.rlim_cur),
                 LOG_U64("max-connections", connections_max));
}
