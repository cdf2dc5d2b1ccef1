#include "import/target.h"

#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUILD_NAME "import.tmp"
#define LOCK_NAME "LOCK"
#define FORMAT_NAME "FORMAT"

/* The directories that are moved out of the build directory before FORMAT. */
static const char *const part_names[] = {"log", "meta"};

struct target_contents {
    bool build;
    bool parts;
    bool others;
};

static void note_name(void *ctx, const char *name)
{
    struct target_contents *contents = ctx;
    if (strcmp(name, BUILD_NAME) == 0)
        contents->build = true;
    else if (strcmp(name, part_names[0]) == 0 || strcmp(name, part_names[1]) == 0)
        contents->parts = true;
    else if (strcmp(name, LOCK_NAME) != 0 && strcmp(name, "lost+found") != 0)
        contents->others = true;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st;
    (void)kind;
    (void)ftw;
    return remove(path);
}

static bool remove_tree(const char *path)
{
    enum { DESCRIPTORS = 16 };
    return nftw(path, remove_one, DESCRIPTORS, FTW_DEPTH | FTW_PHYS) == 0;
}

static void remove_file(const struct import_target *target, const char *name)
{
    char path[4200];
    snprintf(path, sizeof(path), "%s/%s", target->data_dir, name);
    unlink(path);
}

static void remove_parts(const struct import_target *target)
{
    for (size_t i = 0; i < COUNT_OF(part_names); i++) {
        char path[4200];
        snprintf(path, sizeof(path), "%s/%s", target->data_dir, part_names[i]);
        remove_tree(path);
    }
}

static int remove_one_below(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    return ftw->level ? remove_one(path, st, kind, ftw) : 0;
}

/* Removes what an interrupted import left. A running one would hold the lock. The build directory
 * stays, so that the data directory is not taken for a new one meanwhile. */
static enum status clear(const struct import_target *target, struct error *ret_error)
{
    enum { DESCRIPTORS = 16 };
    remove_parts(target);
    if (nftw(target->build_dir, remove_one_below, DESCRIPTORS, FTW_DEPTH | FTW_PHYS) != 0)
        return error_set(
            ret_error, ST_IO,
            "cannot clear %s, which an import that was interrupted has left; remove it "
            "and try again",
            target->build_dir);
    return ST_OK;
}

/* A directory with other contents is left as it is. */
static enum status examine(const struct import_target *target, struct fs *fs,
                           struct target_contents *ret_contents, struct error *ret_error)
{
    *ret_contents = (struct target_contents){0};
    enum status status = fs_list(fs, target->data_dir, note_name, ret_contents);
    if (status != ST_OK)
        return error_set(ret_error, status, "cannot read the data directory %s: %s",
                         target->data_dir, status_reason(status));
    if (ret_contents->others || (ret_contents->parts && !ret_contents->build))
        return error_set(ret_error, ST_EXISTS,
                         "the data directory %s is there already and not empty; choose a new one "
                         "with --data-dir, or remove it first",
                         target->data_dir);
    return ST_OK;
}

static enum status take_lock(struct import_target *target, struct fs *fs, struct error *ret_error)
{
    char path[4200];
    snprintf(path, sizeof(path), "%s/" LOCK_NAME, target->data_dir);
    enum status status = fs_lock(fs, path, &target->lock);
    if (status == ST_IN_USE)
        return error_set(ret_error, ST_IN_USE,
                         "the data directory %s is in use: a server or another import is running "
                         "in it; stop that one, or choose another directory with --data-dir",
                         target->data_dir);
    if (status != ST_OK)
        return error_set(ret_error, status, "cannot lock %s: %s", path, status_reason(status));
    return ST_OK;
}

/*
 * The build directory is the first thing in the data directory and the last one that is removed: a
 * server that finds it without FORMAT knows that an import was not finished.
 */
static enum status make_build_dir(const struct import_target *target, struct fs *fs, bool *ret_made,
                                  struct error *ret_error)
{
    struct target_contents contents;
    TRY(examine(target, fs, &contents, ret_error));
    enum status status = fs_make_dir(fs, target->build_dir);
    *ret_made = status == ST_OK;
    if (status == ST_OK)
        status = fs_sync_dir(fs, target->data_dir);
    if (status != ST_OK && status != ST_EXISTS)
        return error_set(ret_error, status, "cannot make %s: %s", target->build_dir,
                         status_reason(status));
    return ST_OK;
}

enum status import_target_begin(struct import_target *target, struct fs *fs, const char *data_dir,
                                struct error *ret_error)
{
    *target = (struct import_target){.data_dir = data_dir};
    int n = snprintf(target->build_dir, sizeof(target->build_dir), "%s/" BUILD_NAME, data_dir);
    if (n < 0 || (size_t)n >= sizeof(target->build_dir))
        return error_set(ret_error, ST_INVALID, "the path is too long: %.200s", data_dir);
    enum status status = fs_make_dir(fs, data_dir);
    target->made = status == ST_OK;
    if (status != ST_OK && status != ST_EXISTS)
        return error_set(ret_error, status, "cannot make the data directory %s: %s", data_dir,
                         status_reason(status));
    bool made_build = false;
    status = make_build_dir(target, fs, &made_build, ret_error);
    if (status == ST_OK)
        status = take_lock(target, fs, ret_error);
    if (status == ST_OK) {
        struct target_contents contents; /* again: a previous holder of the lock has ended */
        status = examine(target, fs, &contents, ret_error);
        if (status == ST_OK)
            status = clear(target, ret_error);
        if (status != ST_OK)
            file_close(TAKE(target->lock));
    }
    /* A directory that is new and that no other process has taken is removed again. */
    if (status != ST_OK && status != ST_IN_USE && status != ST_EXISTS && target->made)
        remove_file(target, LOCK_NAME);
    if (status != ST_OK && made_build)
        rmdir(target->build_dir);
    if (status != ST_OK && target->made)
        rmdir(data_dir);
    return status;
}

static enum status move_out(const struct import_target *target, struct fs *fs, const char *name,
                            struct error *ret_error)
{
    char from[4200], to[4200];
    snprintf(from, sizeof(from), "%s/%s", target->build_dir, name);
    snprintf(to, sizeof(to), "%s/%s", target->data_dir, name);
    enum status status = fs_rename(fs, from, to);
    if (status == ST_OK)
        status = fs_sync_dir(fs, target->data_dir);
    if (status != ST_OK)
        return error_set(ret_error, status, "cannot move %s to %s: %s", from, to,
                         status_reason(status));
    return ST_OK;
}

static enum status sync_above(const struct import_target *target, struct fs *fs,
                              struct error *ret_error)
{
    char above[4300];
    snprintf(above, sizeof(above), "%s/..", target->data_dir);
    enum status status = fs_sync_dir(fs, above);
    if (status != ST_OK)
        return error_set(ret_error, status, "cannot sync %s: %s", above, status_reason(status));
    return ST_OK;
}

enum status import_target_commit(struct import_target *target, struct fs *fs,
                                 struct error *ret_error)
{
    TRY(sync_above(target, fs, ret_error));
    for (size_t i = 0; i < COUNT_OF(part_names); i++)
        TRY(move_out(target, fs, part_names[i], ret_error));
    char lock_path[4200]; /* the store builder's own lock */
    snprintf(lock_path, sizeof(lock_path), "%s/" LOCK_NAME, target->build_dir);
    unlink(lock_path);
    TRY(move_out(target, fs, FORMAT_NAME, ret_error));
    rmdir(target->build_dir); /* empty, and harmless if it stays */
    file_close(TAKE(target->lock));
    return ST_OK;
}

void import_target_end(struct import_target *target)
{
    if (!target->lock)
        return;
    /* First: with FORMAT and without the rest, the directory would be taken for an empty store. */
    remove_file(target, FORMAT_NAME);
    remove_parts(target);
    remove_file(target, LOCK_NAME);
    /* Last: without it and without FORMAT, the directory would be taken for a new one. */
    remove_tree(target->build_dir);
    if (target->made)
        rmdir(target->data_dir);
    file_close(TAKE(target->lock));
}
