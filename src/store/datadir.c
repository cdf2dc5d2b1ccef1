#include "store/datadir.h"

#include "store/repaired.h"

#include <stdio.h>

/* Numbers in the log are in the machine's byte order, so the format file names it. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define BYTE_ORDER_TEXT "little endian"
#else
#define BYTE_ORDER_TEXT "big endian"
#endif
#define FORMAT_OF(number) "vigil data directory, format " number ", " BYTE_ORDER_TEXT "\n"

/*
 * Format 2 has rows besides keys (store/record/row.h). In format 3 the checkpoint may have part of
 * a record, or part of the new locations of a cleaned segment, and it has a sum over its contents,
 * which an older program would not maintain. Earlier formats become 3 when they are opened.
 */
#define FORMAT_TEXT FORMAT_OF("3")
/* A mirror may lose its newest records, so it must not be taken for a store. */
#define FORMAT_TEXT_OF_MIRROR "vigil mirror of a cluster, format 3, " BYTE_ORDER_TEXT "\n"
static const char *const formats_before[] = {FORMAT_OF("1"), FORMAT_OF("2")};

struct datadir_contents {
    bool format;
    bool log, meta;
    bool etcd_member;
    bool mirror;
    bool import; /* an unfinished import */
    bool repair; /* an unfinished repair, whose result takes the place of the store */
    bool others;
};

static void note_name(void *ctx, const char *name)
{
    struct datadir_contents *contents = ctx;
    if (strcmp(name, "FORMAT") == 0)
        contents->format = true;
    else if (strcmp(name, "member") == 0)
        contents->etcd_member = true;
    else if (strcmp(name, "import.tmp") == 0)
        contents->import = true;
    else if (strcmp(name, REPAIR_DONE_NAME) == 0)
        contents->repair = true;
    else if (strcmp(name, "MIRROR") == 0)
        contents->mirror = true;
    else if (strcmp(name, "log") == 0)
        contents->log = true;
    else if (strcmp(name, "meta") == 0)
        contents->meta = true;
    else if (strcmp(name, "LOCK") != 0 && strcmp(name, "FORMAT.new") != 0 &&
             strcmp(name, "lost+found") != 0)
        contents->others = true;
}

static enum status join(char *to, size_t size, const char *dir, const char *name,
                        struct error *ret_error)
{
    int n = snprintf(to, size, "%s/%s", dir, name);
    if (n < 0 || (size_t)n >= size)
        return error_set(ret_error, ST_INVALID, "the path of the data directory is too long: %s",
                         dir);
    return ST_OK;
}

static enum status refuse_mirror(const char *path, struct error *ret_error)
{
    return error_set(ret_error, ST_WRONG_FORMAT,
                     "%s contains the mirror of an etcd cluster or a kube-apiserver, which is not "
                     "a store of its own and is used by vigil serve with --upstream-endpoints or "
                     "--upstream-kubeconfig; choose another directory",
                     path);
}

static enum status check_contents(const char *path, const struct datadir_contents *contents,
                                  struct error *ret_error)
{
    if (contents->repair)
        return error_set(ret_error, ST_WRONG_FORMAT,
                         "%s contains a repair that was not finished; run vigil repair --data-dir "
                         "%s --accept-loss again",
                         path, path);
    if (contents->format)
        return ST_OK;
    if (contents->mirror)
        return refuse_mirror(path, ret_error);
    if (contents->etcd_member)
        return error_set(
            ret_error, ST_WRONG_FORMAT,
            "%s contains the data of a real etcd (it has a member directory), which is "
            "left as it is; make a data directory of it with vigil import, or choose "
            "another directory",
            path);
    if (contents->import)
        return error_set(
            ret_error, ST_WRONG_FORMAT,
            "%s contains an import that was not finished; run the same vigil import or vigil "
            "snapshot restore again, which starts over, or remove the directory",
            path);
    if (contents->log && contents->meta)
        return error_set(ret_error, ST_WRONG_FORMAT,
                         "%s has a log and a checkpoint, but its FORMAT file is missing: vigil "
                         "repair --data-dir %s writes it again; to copy what can be read into a "
                         "new directory, use vigil salvage %s --to NEW",
                         path, path, path);
    if (contents->others)
        return error_set(ret_error, ST_WRONG_FORMAT,
                         "%s is not empty and is not a data directory of Vigil (it has no FORMAT "
                         "file); choose an empty or new directory",
                         path);
    return ST_OK;
}

static void note_any(void *ctx, const char *name)
{
    (void)name;
    *(bool *)ctx = true;
}

/*
 * An interrupted start may leave the directory without a FORMAT file, but then with nothing in it.
 * What cannot be listed is not ours.
 */
static bool is_empty(struct fs *fs, const char *path, const char *name)
{
    char part[4200];
    bool any = false;
    snprintf(part, sizeof(part), "%s/%s", path, name);
    return fs_list(fs, part, note_any, &any) == ST_OK && !any;
}

static enum status examine(struct fs *fs, const char *path, struct datadir_contents *ret_contents,
                           struct error *ret_error)
{
    *ret_contents = (struct datadir_contents){0};
    enum status status = fs_list(fs, path, note_name, ret_contents);
    if (status != ST_OK)
        return error_set(ret_error, status, "cannot read the data directory %s: %s", path,
                         status_reason(status));
    if (!ret_contents->format) {
        ret_contents->log = ret_contents->log && !is_empty(fs, path, "log");
        ret_contents->meta = ret_contents->meta && !is_empty(fs, path, "meta");
        ret_contents->others |= ret_contents->log || ret_contents->meta;
    }
    return check_contents(path, ret_contents, ret_error);
}

/* The text with which a directory is marked, without the end of the line. */
static const char *format_text(bool is_mirror)
{
    return is_mirror ? FORMAT_TEXT_OF_MIRROR : FORMAT_TEXT;
}

enum { TEXT_MAX = 2 * sizeof(FORMAT_TEXT) }; /* with room to detect excess text */

static enum status read_format(struct fs *fs, const char *file_path, char text[static TEXT_MAX])
{
    AUTO(file_closep) struct file *file = NULL;
    uint64_t bytes = 0;
    memset(text, 0, TEXT_MAX);
    TRY(fs_open(fs, file_path, FILE_READ_ONLY, &file));
    TRY(file_size(file, &bytes));
    return file_pread(file, text, bytes < TEXT_MAX ? (size_t)bytes : TEXT_MAX - 1, 0);
}

/* Whether some version of this program, on some machine, writes such a text. */
static bool is_format_text(const char *text)
{
    static const char *const beginnings[] = {"vigil data directory, format ",
                                             "vigil mirror of a cluster, format "};
    for (size_t i = 0; i < COUNT_OF(beginnings); i++) {
        size_t len = strlen(beginnings[i]);
        if (strncmp(text, beginnings[i], len) != 0)
            continue;
        size_t digits = strspn(text + len, "0123456789");
        const char *rest = text + len + digits;
        return digits && (!strcmp(rest, ", little endian\n") || !strcmp(rest, ", big endian\n"));
    }
    return false;
}

static enum status refuse_format(const char *path, const char *text, const char *wanted,
                                 struct error *ret_error)
{
    if (!is_format_text(text))
        return error_set(ret_error, ST_WRONG_FORMAT,
                         "%s/FORMAT is damaged and should say \"%.*s\": vigil repair --data-dir %s "
                         "writes it again; to copy what can be read into a new directory, use "
                         "vigil salvage %s --to NEW",
                         path, (int)strlen(wanted) - 1, wanted, path, path);
    return error_set(ret_error, ST_WRONG_FORMAT,
                     "%s was written in another format than this version of Vigil reads: its "
                     "FORMAT file says \"%.*s\" and should say \"%.*s\". Start it with the "
                     "version of Vigil that wrote it; to bring the data here, save a snapshot "
                     "there and use vigil snapshot restore. If no other version has used it, the "
                     "file is damaged: remove it, and vigil repair writes it again",
                     path, (int)strcspn(text, "\n"), text, (int)strlen(wanted) - 1, wanted);
}

static bool is_earlier_format(const char *text)
{
    for (size_t i = 0; i < COUNT_OF(formats_before); i++) {
        if (strcmp(text, formats_before[i]) == 0)
            return true;
    }
    return false;
}

enum status datadir_examine_format(struct fs *fs, const char *path, enum datadir_format *ret_format,
                                   struct error *ret_error)
{
    char file_path[4200], text[TEXT_MAX];
    struct datadir_contents contents = {0};
    snprintf(file_path, sizeof(file_path), "%s/FORMAT", path);
    enum status status = fs_list(fs, path, note_name, &contents);
    if (status != ST_OK)
        return error_set(ret_error, status, "cannot read the data directory %s: %s", path,
                         status_reason(status));
    if (contents.repair)
        return check_contents(path, &contents, ret_error);
    if (contents.mirror)
        return refuse_mirror(path, ret_error);
    status = read_format(fs, file_path, text);
    /* It has no FORMAT because it is not complete. */
    if (status == ST_NOT_FOUND && contents.import)
        return check_contents(path, &contents, ret_error);
    if (status == ST_NOT_FOUND && !contents.log)
        return error_set(ret_error, ST_WRONG_FORMAT,
                         "%s is not a data directory of Vigil: it has no FORMAT file and no log",
                         path);
    *ret_format = status == ST_NOT_FOUND ? DATADIR_FORMAT_MISSING : DATADIR_FORMAT_DAMAGED;
    if (status != ST_OK || !is_format_text(text))
        return ST_OK; /* what cannot be read is damaged */
    *ret_format = DATADIR_FORMAT_INTACT;
    if (strcmp(text, FORMAT_TEXT_OF_MIRROR) == 0)
        return refuse_mirror(path, ret_error);
    if (strcmp(text, FORMAT_TEXT) == 0 || is_earlier_format(text))
        return ST_OK;
    return refuse_format(path, text, FORMAT_TEXT, ret_error);
}

static enum status check_format(struct fs *fs, const char *path, const char *file_path,
                                bool is_mirror, bool *ret_before, struct error *ret_error)
{
    char text[TEXT_MAX];
    enum status status = read_format(fs, file_path, text);
    if (status != ST_OK)
        return error_set(ret_error, status, "cannot read %s: %s", file_path, status_reason(status));
    *ret_before = !is_mirror && is_earlier_format(text);
    if (!is_mirror && strcmp(text, FORMAT_TEXT_OF_MIRROR) == 0)
        return refuse_mirror(path, ret_error);
    const char *wanted = format_text(is_mirror);
    if (!*ret_before && strcmp(text, wanted) != 0)
        return refuse_format(path, text, wanted, ret_error);
    return ST_OK;
}

static enum status write_format(struct fs *fs, const char *path, bool is_mirror)
{
    enum status removed = fs_unlink(fs, path);
    if (removed != ST_OK && removed != ST_NOT_FOUND)
        return removed;
    AUTO(file_closep) struct file *file = NULL;
    TRY(fs_open(fs, path, FILE_CREATE, &file));
    TRY(file_pwrite(file, slice_from_text(format_text(is_mirror)), 0));
    return file_sync(file);
}

static enum status make_dir(struct fs *fs, const char *path)
{
    enum status status = fs_make_dir(fs, path);
    return status == ST_EXISTS ? ST_OK : status;
}

static enum status sync_parent(struct fs *fs, const char *path)
{
    char above[4096];
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/')
        len--;
    while (len > 0 && path[len - 1] != '/')
        len--;
    snprintf(above, sizeof(above), "%.*s", (int)len, len ? path : "");
    return fs_sync_dir(fs, len ? above : ".");
}

static enum status take_lock(struct datadir *dir, struct fs *fs, const char *path,
                             struct error *ret_error)
{
    char lock_path[4096];
    TRY(join(lock_path, sizeof(lock_path), path, "LOCK", ret_error));
    enum status status = fs_lock(fs, lock_path, &dir->lock);
    if (status == ST_IN_USE)
        return error_set(ret_error, ST_IN_USE,
                         "the data directory %s is in use by another process; stop that one or "
                         "choose another directory",
                         path);
    if (status != ST_OK)
        return error_set(ret_error, status, "cannot lock %s: %s", lock_path, status_reason(status));
    return ST_OK;
}

/*
 * The parent is synced after the first file, with which most file systems have made the new
 * directory durable, too, so that it takes no time. A directory that was there before is synced as
 * well, because a start may have been interrupted; its parent need not be readable.
 */
static enum status mark(struct fs *fs, const char *path, const char *format_path, bool made,
                        bool is_mirror, struct error *ret_error)
{
    char new_path[4200];
    snprintf(new_path, sizeof(new_path), "%s.new", format_path);
    enum status status = write_format(fs, new_path, is_mirror);
    if (status == ST_OK) {
        enum status synced = sync_parent(fs, path);
        status = made ? synced : ST_OK;
    }
    if (status == ST_OK)
        status = fs_rename(fs, new_path, format_path);
    if (status != ST_OK)
        return error_set(ret_error, status, "cannot write %s: %s", format_path,
                         status_reason(status));
    return ST_OK;
}

enum status datadir_mend_format(struct fs *fs, const char *path, struct error *ret_error)
{
    char format_path[4200];
    enum datadir_format format;
    struct datadir dir = {0};
    snprintf(format_path, sizeof(format_path), "%s/FORMAT", path);
    TRY(take_lock(&dir, fs, path, ret_error));
    enum status status = datadir_examine_format(fs, path, &format, ret_error);
    if (status == ST_OK && format != DATADIR_FORMAT_INTACT)
        status = mark(fs, path, format_path, false, false, ret_error);
    datadir_close(&dir);
    return status;
}

static enum status prepare(struct datadir *dir, struct fs *fs, const char *path, bool made,
                           bool marked, bool is_mirror, struct error *ret_error)
{
    char format_path[4096];
    TRY(join(format_path, sizeof(format_path), path, "FORMAT", ret_error));
    bool before = false;
    if (marked)
        TRY(check_format(fs, path, format_path, is_mirror, &before, ret_error));
    if (!marked || before)
        TRY(mark(fs, path, format_path, made, is_mirror, ret_error));
    enum status status = make_dir(fs, dir->log_path);
    if (status == ST_OK)
        status = make_dir(fs, dir->meta_path);
    if (status == ST_OK)
        status = fs_sync_dir(fs, path);
    if (status != ST_OK)
        return error_set(ret_error, status, "cannot prepare the data directory %s: %s", path,
                         status_reason(status));
    return ST_OK;
}

static enum status make_data_dir(struct fs *fs, const char *path, bool *ret_made,
                                 struct error *ret_error)
{
    enum status status = fs_make_dir(fs, path);
    *ret_made = status == ST_OK;
    if (status == ST_OK || status == ST_EXISTS)
        return ST_OK;
    return error_set(ret_error, status, "cannot make the data directory %s: %s", path,
                     status_reason(status));
}

enum status datadir_make(struct fs *fs, const char *path, struct error *ret_error)
{
    bool made;
    TRY(make_data_dir(fs, path, &made, ret_error));
    enum status status = made ? sync_parent(fs, path) : ST_OK;
    if (status != ST_OK)
        return error_set(ret_error, status, "cannot make the data directory %s: %s", path,
                         status_reason(status));
    return ST_OK;
}

enum status datadir_open(struct datadir *dir, struct fs *fs, const char *path, bool is_mirror,
                         struct error *ret_error)
{
    bool made;
    *dir = (struct datadir){0};
    TRY(join(dir->log_path, sizeof(dir->log_path), path, "log", ret_error));
    TRY(join(dir->meta_path, sizeof(dir->meta_path), path, "meta", ret_error));
    TRY(make_data_dir(fs, path, &made, ret_error));
    struct datadir_contents contents;
    /* Checked before the lock, so that nothing is left in a directory that is not ours. */
    TRY(examine(fs, path, &contents, ret_error));
    enum status status = take_lock(dir, fs, path, ret_error);
    if (status == ST_OK) /* again, because an import may have held the lock */
        status = examine(fs, path, &contents, ret_error);
    if (status == ST_OK)
        status = prepare(dir, fs, path, made, contents.format, is_mirror, ret_error);
    if (status != ST_OK)
        datadir_close(dir);
    return status;
}

void datadir_close(struct datadir *dir)
{
    file_close(dir->lock);
    dir->lock = NULL;
}

enum status datadir_advise(const char *path, bool is_repair, struct error *error)
{
    if (error->status != ST_DAMAGED && error->status != ST_IO)
        return error->status;
    if (!is_repair)
        error_append(
            error,
            "; check the disk, then run vigil repair --data-dir %s, which shows what would "
            "be lost and changes nothing, or restore a backup or a snapshot",
            path);
    error_append(error,
                 "; vigil salvage %s --to NEW copies everything that can be read into a new "
                 "directory, which is best on another disk",
                 path);
    return error->status;
}
