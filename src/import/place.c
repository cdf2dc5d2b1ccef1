#include "import/place.h"

#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUILD_NAME "import.tmp"
#define LOCK_NAME "LOCK"
#define FORMAT_NAME "FORMAT"

/* What is moved out of the place before FORMAT. */
static const char *const part_names[] = {"log", "meta"};

struct contents {
    bool build;
    bool parts;
    bool others;
};

static void note_name(void *ctx, const char *name)
{
    struct contents *contents = ctx;
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

static void remove_file(const struct import_place *place, const char *name)
{
    char path[4200];
    snprintf(path, sizeof(path), "%s/%s", place->data_dir, name);
    unlink(path);
}

static void remove_parts(const struct import_place *place)
{
    for (size_t i = 0; i < COUNT_OF(part_names); i++) {
        char path[4200];
        snprintf(path, sizeof(path), "%s/%s", place->data_dir, part_names[i]);
        remove_tree(path);
    }
}

/* What an import has left that was interrupted: one that runs has the lock. */
static enum status clear(const struct import_place *place, struct error *ret_error)
{
    remove_parts(place);
    if (!remove_tree(place->build_dir))
        return error_set(
            ret_error, ST_IO,
            "cannot remove %s, which an import that was interrupted has left; remove it "
            "and try again",
            place->build_dir);
    return ST_OK;
}

/* A directory that is somebody's is left as it is. */
static enum status look(const struct import_place *place, struct fs *fs,
                        struct contents *ret_contents, struct error *ret_error)
{
    *ret_contents = (struct contents){0};
    enum status status = fs_list(fs, place->data_dir, note_name, ret_contents);
    if (status != ST_OK)
        return error_set(ret_error, status, "cannot read the data directory %s: %s",
                         place->data_dir, status_reason(status));
    if (ret_contents->others || (ret_contents->parts && !ret_contents->build))
        return error_set(ret_error, ST_EXISTS,
                         "the data directory %s is there already and not empty; choose a new one "
                         "with --data-dir, or remove it first",
                         place->data_dir);
    return ST_OK;
}

static enum status take_lock(struct import_place *place, struct fs *fs, struct error *ret_error)
{
    char path[4200];
    snprintf(path, sizeof(path), "%s/" LOCK_NAME, place->data_dir);
    enum status status = fs_lock(fs, path, &place->lock);
    if (status == ST_IN_USE)
        return error_set(ret_error, ST_IN_USE,
                         "the data directory %s is in use: a server or another import is running "
                         "in it; stop that one, or choose another directory with --data-dir",
                         place->data_dir);
    if (status != ST_OK)
        return error_set(ret_error, status, "cannot lock %s: %s", path, status_reason(status));
    return ST_OK;
}

enum status import_place_begin(struct import_place *place, struct fs *fs, const char *data_dir,
                               struct error *ret_error)
{
    *place = (struct import_place){.data_dir = data_dir};
    int n = snprintf(place->build_dir, sizeof(place->build_dir), "%s/" BUILD_NAME, data_dir);
    if (n < 0 || (size_t)n >= sizeof(place->build_dir))
        return error_set(ret_error, ST_INVALID, "the path is too long: %.200s", data_dir);
    enum status status = fs_make_dir(fs, data_dir);
    place->made = status == ST_OK;
    if (status != ST_OK && status != ST_EXISTS)
        return error_set(ret_error, status, "cannot make the data directory %s: %s", data_dir,
                         status_reason(status));
    struct contents contents;
    TRY(look(place, fs, &contents, ret_error));
    TRY(take_lock(place, fs, ret_error));
    status = look(place, fs, &contents, ret_error); /* whoever had the lock before has ended */
    if (status == ST_OK && contents.build)
        status = clear(place, ret_error);
    if (status != ST_OK)
        file_close(TAKE(place->lock));
    return status;
}

static enum status move_out(const struct import_place *place, struct fs *fs, const char *name,
                            struct error *ret_error)
{
    char from[4200], to[4200];
    snprintf(from, sizeof(from), "%s/%s", place->build_dir, name);
    snprintf(to, sizeof(to), "%s/%s", place->data_dir, name);
    enum status status = fs_rename(fs, from, to);
    if (status == ST_OK)
        status = fs_sync_dir(fs, place->data_dir);
    if (status != ST_OK)
        return error_set(ret_error, status, "cannot move %s to %s: %s", from, to,
                         status_reason(status));
    return ST_OK;
}

static enum status sync_above(const struct import_place *place, struct fs *fs,
                              struct error *ret_error)
{
    char above[4300];
    snprintf(above, sizeof(above), "%s/..", place->data_dir);
    enum status status = fs_sync_dir(fs, above);
    if (status != ST_OK)
        return error_set(ret_error, status, "cannot sync %s: %s", above, status_reason(status));
    return ST_OK;
}

enum status import_place_commit(struct import_place *place, struct fs *fs, struct error *ret_error)
{
    TRY(sync_above(place, fs, ret_error));
    for (size_t i = 0; i < COUNT_OF(part_names); i++)
        TRY(move_out(place, fs, part_names[i], ret_error));
    char lock_path[4200]; /* the builder's own */
    snprintf(lock_path, sizeof(lock_path), "%s/" LOCK_NAME, place->build_dir);
    unlink(lock_path);
    TRY(move_out(place, fs, FORMAT_NAME, ret_error));
    rmdir(place->build_dir); /* empty, and harmless if it stays */
    file_close(TAKE(place->lock));
    return ST_OK;
}

void import_place_end(struct import_place *place)
{
    if (!place->lock)
        return;
    /* First: with it and without the rest the directory would be taken for an empty store. */
    remove_file(place, FORMAT_NAME);
    remove_tree(place->build_dir);
    remove_parts(place);
    remove_file(place, LOCK_NAME);
    if (place->made)
        rmdir(place->data_dir);
    file_close(TAKE(place->lock));
}
