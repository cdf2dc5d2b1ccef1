#include "store/repaired.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <unistd.h>

enum { PATH_BYTES = 4300, LOST_NAMES_MAX = 1000 };

static void join(char to[static PATH_BYTES], const char *dir, const char *a, const char *b)
{
    snprintf(to, PATH_BYTES, "%s/%s%s%s", dir, a, *b ? "/" : "", b);
}

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

static enum status move(struct fs *fs, const char *dir, const char *from, const char *to,
                        struct error *ret_error)
{
    enum status status = fs_rename(fs, from, to);
    if (status == ST_OK)
        status = fs_sync_dir(fs, dir);
    if (status != ST_OK)
        return error_set(ret_error, status, "cannot move %s to %s: %s; run vigil repair again",
                         from, to, status_reason(status));
    return ST_OK;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st, (void)kind, (void)ftw;
    return remove(path);
}

enum status repaired_clear(const char *dir, struct error *ret_error)
{
    enum { DESCRIPTORS = 16 };
    char path[PATH_BYTES];
    join(path, dir, REPAIR_BUILD_NAME, "");
    if (nftw(path, remove_one, DESCRIPTORS, FTW_DEPTH | FTW_PHYS) == 0 || errno == ENOENT)
        return ST_OK;
    return error_set(ret_error, ST_IO,
                     "cannot remove %s, which a repair that was interrupted has left; remove it "
                     "and try again",
                     path);
}

/* The damaged part is kept, beside those of earlier repairs. */
static enum status set_aside(struct fs *fs, const char *dir, const char *part, const char *path,
                             struct error *ret_error)
{
    char name[64], lost[PATH_BYTES];
    for (int i = 0; i < LOST_NAMES_MAX; i++) {
        snprintf(name, sizeof(name), i ? "%s.lost-%d" : "%s.lost", part, i);
        join(lost, dir, name, "");
        if (!exists(lost))
            return move(fs, dir, path, lost, ret_error);
    }
    return error_set(ret_error, ST_EXISTS, "%s has too many parts of earlier repairs; remove them",
                     dir);
}

enum status repaired_finish(struct fs *fs, const char *dir, struct error *ret_error)
{
    static const char *const parts[] = {"log", "meta"};
    char done[PATH_BYTES], from[PATH_BYTES], to[PATH_BYTES];
    join(done, dir, REPAIR_DONE_NAME, "");
    /* No repair has reached the point from which it is finished. */
    if (!exists(done))
        return ST_OK;
    join(to, dir, "FORMAT", "");
    join(from, dir, REPAIR_DONE_NAME, "FORMAT");
    /* FORMAT comes last: with both, the parts have not been moved yet. */
    if (exists(from) && exists(to)) {
        enum status status = fs_unlink(fs, to);
        if (status == ST_OK)
            status = fs_sync_dir(fs, dir);
        if (status != ST_OK)
            return error_set(ret_error, status, "cannot remove %s: %s", to, status_reason(status));
    }
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        join(from, dir, REPAIR_DONE_NAME, parts[i]);
        join(to, dir, parts[i], "");
        /* This part was moved before the interruption. */
        if (!exists(from))
            continue;
        if (exists(to))
            TRY(set_aside(fs, dir, parts[i], to, ret_error));
        TRY(move(fs, dir, from, to, ret_error));
    }
    join(from, dir, REPAIR_DONE_NAME, "FORMAT");
    join(to, dir, "FORMAT", "");
    if (exists(from))
        TRY(move(fs, dir, from, to, ret_error));
    join(from, dir, REPAIR_DONE_NAME, "LOCK");
    (void)unlink(from);
    if (rmdir(done) != 0)
        return error_set(ret_error, status_from_errno(errno), "cannot remove %s: %s; remove it",
                         done, status_reason(status_from_errno(errno)));
    return ST_OK;
}

enum status repaired_install(struct fs *fs, const char *dir, struct error *ret_error)
{
    char built[PATH_BYTES], done[PATH_BYTES];
    join(built, dir, REPAIR_BUILD_NAME, "");
    join(done, dir, REPAIR_DONE_NAME, "");
    TRY(move(fs, dir, built, done, ret_error));
    return repaired_finish(fs, dir, ret_error);
}
