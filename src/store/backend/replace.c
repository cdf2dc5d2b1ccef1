#include "store/backend/replace.h"

#include "io/file.h"
#include "store/backend/backend_private.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

enum { PATH_BYTES = 4300, BATCH = 50000, NAMES_MAX = 1000 };

/* -- Copying, some entries with each transaction -- */

struct copying {
    struct backend *to;
    size_t count;
};

static enum status count_one(struct copying *copying)
{
    if (++copying->count % BATCH)
        return ST_OK;
    TRY(backend_commit(copying->to));
    return backend_begin(copying->to);
}

static enum status copy_version(void *ctx, const struct backend_version *version)
{
    struct copying *copying = ctx;
    TRY(backend_version_put(copying->to, version));
    return count_one(copying);
}

static enum status copy_row(void *ctx, const struct row *row)
{
    struct copying *copying = ctx;
    TRY(backend_row_put(copying->to, row));
    return count_one(copying);
}

static enum status copy_segment(void *ctx, const struct backend_segment *segment)
{
    struct copying *copying = ctx;
    return backend_segment_put(copying->to, segment);
}

static enum status copy_all(struct backend *from, struct backend *to)
{
    struct copying copying = {.to = to};
    TRY(backend_begin(to));
    TRY(backend_versions_scan(from, (struct backend_version_id){0}, copy_version, &copying));
    TRY(backend_rows_scan(from, copy_row, &copying));
    TRY(backend_segments_scan(from, copy_segment, &copying));
    static const int64_t ABSENT = INT64_MIN;
    for (unsigned i = 0; i < BACKEND_SUM_OF_ENTRIES; i++) {
        int64_t number = backend_meta_get(from, (enum backend_meta)i, ABSENT);
        if (number != ABSENT)
            TRY(backend_meta_put(to, (enum backend_meta)i, number));
    }
    return backend_commit(to);
}

static enum status copy_to(const char *dir, size_t map_bytes, struct backend *from,
                           struct error *ret_error)
{
    AUTO(backend_closep) struct backend *to = NULL;
    TRY(backend_lmdb_open(dir, map_bytes, &to, ret_error));
    enum status status = copy_all(from, to);
    if (status != ST_OK)
        return error_set(ret_error, status, "%s: the new checkpoint cannot be written: %s", dir,
                         *backend_error_text(to) ? backend_error_text(to) : status_reason(status));
    return ST_OK;
}

/* -- Files -- */

/* A second name for the damaged file, so that it keeps its own until the new one replaces it. */
static enum status keep_aside(const char *path, char *ret_saved, size_t saved_bytes)
{
    for (int i = 0; i < NAMES_MAX; i++) {
        snprintf(ret_saved, saved_bytes, i ? "%s.lost-%d" : "%s.lost", path, i);
        if (link(path, ret_saved) == 0)
            return ST_OK;
        if (errno != EEXIST)
            return status_from_errno(errno);
    }
    return ST_EXISTS;
}

static enum status swap(const char *dir, const char *rebuilt, char *ret_saved, size_t saved_bytes,
                        struct error *ret_error)
{
    char path[PATH_BYTES], new_path[PATH_BYTES + 16];
    snprintf(path, sizeof(path), "%s/data.mdb", dir);
    snprintf(new_path, sizeof(new_path), "%s/data.mdb", rebuilt);
    enum status status = keep_aside(path, ret_saved, saved_bytes);
    if (status == ST_OK)
        status = fs_sync_dir(fs_posix(), dir);
    if (status == ST_OK)
        status = fs_rename(fs_posix(), new_path, path);
    if (status == ST_OK)
        status = fs_sync_dir(fs_posix(), dir);
    if (status != ST_OK)
        return error_set(ret_error, status, "%s: cannot be replaced: %s", path,
                         status_reason(status));
    return ST_OK;
}

enum status backend_lmdb_replace(const char *dir, size_t map_bytes, struct backend *from,
                                 char *ret_saved, size_t saved_bytes, struct error *ret_error)
{
    char rebuilt[PATH_BYTES];
    snprintf(rebuilt, sizeof(rebuilt), "%s/rebuilt", dir);
    backend_lmdb_remove(rebuilt); /* left over from an interrupted repair */
    enum status status = fs_make_dir(fs_posix(), rebuilt);
    if (status != ST_OK)
        return error_set(ret_error, status, "%s: cannot be made: %s", rebuilt,
                         status_reason(status));
    status = copy_to(rebuilt, map_bytes, from, ret_error);
    if (status == ST_OK)
        status = swap(dir, rebuilt, ret_saved, saved_bytes, ret_error);
    backend_lmdb_remove(rebuilt);
    return status;
}
