#include "mirror/directory/directory.h"

#include "base/xalloc.h"
#include "engine/local/local.h"
#include "engine/local/mirror/mirror_store.h"
#include "mirror/directory/mirror_file.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PATH_BYTES = 4096, REASON_BYTES = 700 };

static struct fs *fs_of(const struct mirror_options *options)
{
    return options->mirror.fs ? options->mirror.fs : fs_posix();
}

static const char *dir_of(const struct mirror_options *options)
{
    return options->mirror.data_dir;
}

static void warn(const struct mirror_options *options, const char *what, const char *why)
{
    char text[sizeof(((struct error *)NULL)->text) + 100];
    snprintf(text, sizeof(text), "%s: %s", what, why);
    if (options->mirror.on_warning)
        options->mirror.on_warning(options->mirror.ctx, text);
}

/* -- The directory -- */

struct found {
    bool mirror, store, etcd, others;
};

static void note_name(void *ctx, const char *name)
{
    static const char *const ours[] = {
        "MIRROR.new", "LOCK", "lost+found", "mirror", "mirror.old",
    };
    struct found *found = ctx;
    if (strcmp(name, MIRROR_FILE_NAME) == 0)
        found->mirror = true;
    else if (strcmp(name, "FORMAT") == 0)
        found->store = true;
    else if (strcmp(name, "member") == 0)
        found->etcd = true;
    else {
        bool known = false;
        for (size_t i = 0; i < COUNT_OF(ours); i++)
            known |= strcmp(name, ours[i]) == 0;
        found->others |= !known;
    }
}

/* So that neither a store nor any other data is taken for a mirror, which may be thrown away. */
static enum status check_names(const char *dir, const struct found *found, struct error *error)
{
    if (found->store)
        return error_set(
            error, ST_WRONG_FORMAT,
            "%s is the data directory of a server that stores data itself, and is left as it is; "
            "choose another directory for the mirror with --data-dir",
            dir);
    if (found->etcd)
        return error_set(error, ST_WRONG_FORMAT,
                         "%s contains the data of a real etcd (it has a member directory), and is "
                         "left as it is; choose another directory for the mirror with --data-dir",
                         dir);
    if (!found->mirror && found->others)
        return error_set(error, ST_WRONG_FORMAT,
                         "%s is not empty and has no mirror; choose an empty or new directory with "
                         "--data-dir",
                         dir);
    return ST_OK;
}

static enum status examine(const struct mirror_options *options, struct error *error)
{
    struct found found = {0};
    enum status status = fs_list(fs_of(options), dir_of(options), note_name, &found);
    if (status != ST_OK)
        return error_set(error, status, "cannot read the data directory %s: %s", dir_of(options),
                         status_reason(status));
    return check_names(dir_of(options), &found, error);
}

static enum status lock_dir(const struct mirror_options *options, struct file **ret_lock,
                            struct error *error)
{
    char path[PATH_BYTES];
    const char *dir = dir_of(options);
    if ((size_t)snprintf(path, sizeof(path), "%s/LOCK", dir) >= sizeof(path) - 100)
        return error_set(error, ST_INVALID, "the path of the data directory is too long: %.200s",
                         dir);
    enum status status = fs_make_dir(fs_of(options), dir);
    if (status != ST_OK && status != ST_EXISTS)
        return error_set(error, status, "cannot make the data directory %s: %s", dir,
                         status_reason(status));
    TRY(examine(options, error));
    status = fs_lock(fs_of(options), path, ret_lock);
    if (status == ST_OK)
        return ST_OK;
    return error_set(error, status, "cannot lock the data directory %s: %s", dir,
                     status == ST_IN_USE ? "another process uses it" : status_reason(status));
}

/* -- Throwing away -- */

static int remove_one(const char *path, const struct stat *stat, int type, struct FTW *at)
{
    (void)stat;
    (void)type;
    (void)at;
    return remove(path);
}

static enum status remove_tree(const char *path)
{
    enum { FILES_OPEN = 16 };
    if (nftw(path, remove_one, FILES_OPEN, FTW_DEPTH | FTW_PHYS) == 0 || errno == ENOENT)
        return ST_OK;
    return status_from_errno(errno);
}

/*
 * Takes the name away first: what is only half removed must not be opened again. Works if there is
 * nothing.
 */
static enum status throw_away(const struct mirror_options *options, struct error *error)
{
    char path[PATH_BYTES], old_path[PATH_BYTES];
    snprintf(path, sizeof(path), "%s/mirror", dir_of(options));
    snprintf(old_path, sizeof(old_path), "%s/mirror.old", dir_of(options));
    enum status status = remove_tree(old_path);
    if (status == ST_OK)
        status = fs_rename(fs_of(options), path, old_path);
    if (status == ST_OK)
        status = fs_sync_dir(fs_of(options), dir_of(options));
    if (status == ST_OK)
        status = remove_tree(old_path);
    if (status != ST_OK && status != ST_NOT_FOUND)
        return error_set(error, status, "cannot remove %s: %s", path, status_reason(status));
    return ST_OK;
}

static enum status write_file(const struct mirror_options *options,
                              const struct mirror_directory *mirror, bool is_clean,
                              struct error *error)
{
    struct mirror_file file = {
        .cluster_id = mirror->cluster_id,
        .raft_term = mirror->raft_term,
        .raft = mirror->raft,
        .void_until = mirror->void_until,
        .is_clean = is_clean,
        .prefixes = mirror_file_prefixes(options->prefixes, options->prefix_count),
    };
    mirror_file_boot(file.boot);
    enum status status = mirror_file_write(fs_of(options), dir_of(options), &file);
    mirror_file_fini(&file);
    if (status != ST_OK)
        return error_set(error, status, "cannot write %s/" MIRROR_FILE_NAME ": %s", dir_of(options),
                         status_reason(status));
    return ST_OK;
}

/* -- Opening -- */

/* Why the content cannot be used; NULL if it can. */
static const char *fault_of(const struct mirror_options *options, const struct mirror_file *file)
{
    char boot[MIRROR_BOOT_BYTES];
    mirror_file_boot(boot);
    if (!file->is_clean && (!*boot || strcmp(boot, file->boot) != 0))
        return "the machine stopped before the server did, so the last changes may be lost";
    char *prefixes = mirror_file_prefixes(options->prefixes, options->prefix_count);
    bool same = strcmp(prefixes, file->prefixes) == 0;
    free(prefixes);
    return same ? NULL : "it has other prefixes than those that are to be mirrored now";
}

/* Reads what is known of the content. *ret_fault: it cannot be used. */
static enum status read_file(const struct mirror_options *options, struct mirror_directory *mirror,
                             const char **ret_fault, struct error *error)
{
    struct mirror_file file = {0};
    enum status status = mirror_file_read(fs_of(options), dir_of(options), &file);
    *ret_fault = NULL;
    if (status == ST_OK) {
        mirror->cluster_id = file.cluster_id;
        mirror->raft_term = file.raft_term;
        mirror->raft = file.raft;
        mirror->void_until = file.void_until;
        if (file.cluster_id)
            *ret_fault = fault_of(options, &file);
    } else if (status == ST_DAMAGED || status == ST_WRONG_FORMAT) {
        *ret_fault = "its file " MIRROR_FILE_NAME " cannot be understood";
    } else if (status != ST_NOT_FOUND) {
        return error_set(error, status, "cannot read %s/" MIRROR_FILE_NAME ": %s", dir_of(options),
                         status_reason(status));
    }
    mirror_file_fini(&file);
    return ST_OK;
}

static enum status open_engine(const struct mirror_options *options,
                               struct mirror_directory *mirror, struct error *error)
{
    struct engine_local_options local = options->mirror;
    local.data_dir = mirror->path;
    local.is_mirror = true;
    local.quota_bytes = 0;
    return engine_local_open(&local, &mirror->engine, error);
}

/* Without a cluster id the content belongs to no cluster. */
static enum status throw_away_all(const struct mirror_options *options,
                                  struct mirror_directory *mirror, const char *fault,
                                  struct error *error)
{
    if (fault)
        warn(options, "the mirror of the cluster is thrown away and will be loaded again", fault);
    mirror->cluster_id = mirror->raft_term = 0;
    mirror->raft = (struct raft_mark){0};
    TRY(write_file(options, mirror, false, error));
    return throw_away(options, error);
}

static enum status open_content(const struct mirror_options *options,
                                struct mirror_directory *mirror, struct error *error)
{
    const char *fault;
    TRY(read_file(options, mirror, &fault, error));
    if (!mirror->cluster_id || fault)
        TRY(throw_away_all(options, mirror, fault, error));
    else
        TRY(write_file(options, mirror, false, error));
    enum status status = open_engine(options, mirror, error);
    if (status != ST_OK && status != ST_IN_USE) {
        /* The content is damaged. Whatever it is, it can be loaded from the cluster again. */
        struct error damage = *error;
        TRY(throw_away_all(options, mirror, damage.text, error));
        status = open_engine(options, mirror, error);
    }
    TRY(status);
    int64_t revision = local_mirror_revision(mirror->engine);
    mirror->is_warm = mirror->cluster_id && revision > 1;
    if (mirror->void_until <= revision)
        mirror->void_until = 0;
    return ST_OK;
}

static void mirror_fini(struct mirror_directory *mirror)
{
    file_close(mirror->lock);
    free(mirror->path);
    *mirror = (struct mirror_directory){0};
}

enum status mirror_directory_open(const struct mirror_options *options,
                                  struct mirror_directory *ret_mirror, struct error *error)
{
    struct mirror_directory mirror = {0};
    TRY(lock_dir(options, &mirror.lock, error));
    mirror.path = xmalloc(PATH_BYTES);
    snprintf(mirror.path, PATH_BYTES, "%s/mirror", dir_of(options));
    enum status status = open_content(options, &mirror, error);
    if (status == ST_OK)
        *ret_mirror = mirror;
    else
        mirror_fini(&mirror);
    return status;
}

enum status mirror_directory_identify(struct mirror_directory *mirror,
                                      const struct mirror_options *options, uint64_t cluster_id,
                                      struct error *error)
{
    assert(cluster_id);
    if (mirror->cluster_id == cluster_id)
        return ST_OK;
    if (mirror->is_warm)
        return error_set(error, ST_CLUSTER_ID_MISMATCH,
                         "the mirror in %s is a copy of the cluster %llx", dir_of(options),
                         (unsigned long long)mirror->cluster_id);
    uint64_t before = mirror->cluster_id;
    mirror->cluster_id = cluster_id;
    mirror->raft_term = 0;
    enum status status = write_file(options, mirror, false, error);
    if (status != ST_OK)
        mirror->cluster_id = before;
    return status;
}

enum status mirror_directory_raise_term(struct mirror_directory *mirror,
                                        const struct mirror_options *options, uint64_t raft_term,
                                        struct error *error)
{
    if (raft_term <= mirror->raft_term)
        return ST_OK;
    mirror->raft_term = raft_term;
    return write_file(options, mirror, false, error);
}

void mirror_directory_close(struct mirror_directory *mirror, const struct mirror_options *options)
{
    struct error error = {0};
    enum status status = local_mirror_close(mirror->engine);
    if (status != ST_OK)
        error_set(&error, status, "%s", status_reason(status));
    if (status == ST_OK)
        status = write_file(options, mirror, true, &error);
    if (status != ST_OK)
        warn(options, "the mirror of the cluster could not be saved", error.text);
    mirror_fini(mirror);
}

void mirror_directory_abandon(struct mirror_directory *mirror, const struct mirror_options *options)
{
    struct error error;
    assert(!mirror->cluster_id); /* otherwise the next start would use what is left of it */
    local_mirror_abandon(mirror->engine);
    if (throw_away(options, &error) != ST_OK)
        warn(options, "the mirror could not be removed; the next start will", error.text);
    mirror_fini(mirror);
}

enum status mirror_directory_discard(const struct mirror_options *options, int64_t void_until,
                                     struct error *error)
{
    AUTO(file_closep) struct file *lock = NULL;
    TRY(lock_dir(options, &lock, error));
    struct mirror_directory before = {0};
    const char *ignored;
    TRY(read_file(options, &before, &ignored, error));
    if (before.void_until < void_until)
        before.void_until = void_until;
    return throw_away_all(options, &before, NULL, error);
}
