#include "cmd/ctl/offline/db_file.h"

#include "base/xalloc.h"
#include "bolt/reader.h"
#include "bolt/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, WRITE_BYTES = 1 << 20, LOCK_TRIES = 10, NAME_BYTES_MAX = 64 };

struct db_file {
    char directory[PATH_BYTES], path[PATH_BYTES + 8], new_path[PATH_BYTES + 32];
    int from, to;     /* -1: not open */
    uint64_t bytes;   /* 0: a file that was created and has no contents yet */
    bool was_created; /* by us */
    mode_t mode;
    struct bolt_reader reader;                           /* if it has bytes */
    struct bolt_writer *writer;                          /* writer of this pass */
    char names[BOLT_WRITER_BUCKETS_MAX][NAME_BYTES_MAX]; /* the writer borrows them */
    unsigned name_count;
    uint8_t *chunk;
    struct error *error; /* error of the current call */
};

static enum status fail(struct db_file *file, const char *what, const char *path)
{
    return error_set(file->error, ST_IO, "%s %.300s: %s", what, path, strerrordesc_np(errno));
}

static enum status not_etcds(struct db_file *file)
{
    return error_set(file->error, ST_WRONG_FORMAT, "%s is not a file of etcd", file->path);
}

/* -- Opening -- */

static enum status read_at(void *ctx, void *to, size_t len, uint64_t offset)
{
    const struct db_file *file = ctx;
    for (size_t done = 0; done < len;) {
        ssize_t got = pread(file->from, (char *)to + done, len - done, (off_t)(offset + done));
        if (got == 0 || (got < 0 && errno != EINTR))
            return ST_IO;
        done += got > 0 ? (size_t)got : 0;
    }
    return ST_OK;
}

/* The lock is bbolt's: an etcd that has opened the file holds it. */
static enum status lock(struct db_file *file, const char *advice)
{
    for (unsigned i = 0; i < LOCK_TRIES; i++) {
        if (flock(file->from, LOCK_EX | LOCK_NB) == 0)
            return ST_OK;
        nanosleep(&(struct timespec){.tv_nsec = 100 * 1000 * 1000}, NULL);
    }
    fprintf(stderr, "waiting for etcd to close and release its lock on \"%s\"%s\n", file->path,
            advice);
    while (flock(file->from, LOCK_EX) != 0)
        if (errno != EINTR)
            return fail(file, "cannot lock", file->path);
    return ST_OK;
}

static enum status open_locked(struct db_file *file, const struct db_file_options *options)
{
    struct stat stat;
    file->from = open(file->path, O_RDWR | O_CLOEXEC);
    /* An etcd that has only the v2 store may have no database yet. */
    if (file->from < 0 && errno == ENOENT && options->creates) {
        file->from = open(file->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        file->was_created = file->from >= 0;
    }
    if (file->from < 0)
        return fail(file, "cannot open database at", file->path);
    TRY(lock(file, options->advice));
    if (fstat(file->from, &stat) != 0)
        return fail(file, "cannot examine", file->path);
    file->bytes = (uint64_t)stat.st_size;
    file->mode = stat.st_mode & 0777;
    return ST_OK;
}

static enum status set_paths(struct db_file *file, const char *data_dir)
{
    int len = snprintf(file->directory, sizeof(file->directory), "%s%smember/snap", data_dir,
                       *data_dir ? "/" : "");
    if (len < 0 || (size_t)len >= sizeof(file->directory)) {
        errno = ENAMETOOLONG;
        return fail(file, "cannot open database at", data_dir);
    }
    snprintf(file->path, sizeof(file->path), "%s/db", file->directory);
    return ST_OK;
}

enum status db_file_open(const struct db_file_options *options, struct db_file **ret_file,
                         struct error *ret_error)
{
    AUTO(db_file_closep) struct db_file *file = xcalloc(1, sizeof(*file));
    *ret_error = (struct error){0};
    file->from = file->to = -1;
    file->error = ret_error;
    file->chunk = xmalloc(WRITE_BYTES);
    TRY(set_paths(file, options->data_dir));
    TRY(open_locked(file, options));
    struct bolt_source source = {read_at, file, file->bytes};
    bool is_empty = file->bytes == 0 && options->creates;
    if (!is_empty && bolt_reader_init(&file->reader, source) != ST_OK) {
        *ret_error = file->reader.error;
        return ret_error->status;
    }
    *ret_file = TAKE(file);
    return ST_OK;
}

void db_file_close(struct db_file *file)
{
    if (!file)
        return;
    /* Nothing was written to a file that did not exist before, so it is removed. */
    if (file->was_created && file->bytes == 0)
        unlink(file->path);
    if (file->from >= 0)
        close(file->from);
    if (file->to >= 0) {
        close(file->to);
        unlink(file->new_path);
    }
    bolt_writer_free(file->writer);
    free(file->chunk);
    free(file);
}

/* -- Reading -- */

/* The reader's failures have a text of their own. */
static enum status reader_status(struct db_file *file, enum status status)
{
    if (status != ST_OK && status != ST_NOT_FOUND && !file->error->text[0])
        *file->error = file->reader.error;
    return status;
}

static enum status find_key(struct bolt_cursor *cursor, struct slice key, struct buf *ret_value)
{
    struct bolt_entry entry;
    enum status status;
    while ((status = bolt_cursor_next(cursor, &entry)) == ST_OK) {
        if (!entry.is_bucket && slice_equal(entry.key, key))
            return buf_append(ret_value, entry.value);
    }
    return status == ST_END ? ST_NOT_FOUND : status;
}

enum status db_file_get(struct db_file *file, struct slice bucket, struct slice key,
                        struct buf *ret_value, struct error *ret_error)
{
    struct bolt_cursor cursor = {0};
    *ret_error = (struct error){0};
    file->error = ret_error;
    if (file->bytes == 0)
        return ST_NOT_FOUND;
    enum status status = bolt_cursor_init_named(&cursor, &file->reader, bucket);
    if (status == ST_OK)
        status = find_key(&cursor, key, ret_value);
    bolt_cursor_fini(&cursor);
    return reader_status(file, status);
}

/* -- Writing -- */

static enum status write_all(struct db_file *file, size_t len)
{
    for (size_t done = 0; done < len;) {
        ssize_t put = write(file->to, file->chunk + done, len - done);
        if (put < 0 && errno != EINTR)
            return fail(file, "cannot write", file->new_path);
        done += put > 0 ? (size_t)put : 0;
    }
    return ST_OK;
}

/* Writes what the writer has so far. */
static enum status drain(struct db_file *file)
{
    size_t len;
    do {
        len = bolt_writer_take(file->writer, file->chunk, WRITE_BYTES);
        TRY(write_all(file, len));
    } while (len == WRITE_BYTES);
    return ST_OK;
}

static enum status add(struct db_file *file, struct slice key, struct slice value)
{
    if (key.len > BOLT_WRITER_KEY_BYTES_MAX)
        return not_etcds(file);
    bolt_writer_add(file->writer, key, value);
    return drain(file);
}

/* The rows that are still to be written. */
struct rows {
    const struct db_row *next, *end;
};

/* Writes the rows of the bucket with keys below this one, and skips the row with this key,
 * whose value is returned. Without a key all of them are written. */
static enum status add_rows(struct db_file *file, struct rows *rows, struct slice bucket,
                            const struct slice *key, struct slice *ret_value)
{
    for (; rows->next < rows->end && slice_equal(rows->next->bucket, bucket); rows->next++) {
        int order = key ? slice_compare(rows->next->key, *key) : -1;
        /* The other rows of the bucket come behind this key. */
        if (order > 0)
            return ST_OK;
        if (order < 0)
            TRY(add(file, rows->next->key, rows->next->value));
        else
            *ret_value = rows->next->value;
    }
    return ST_OK;
}

static enum status begin_bucket(struct db_file *file, struct slice name)
{
    if (name.len >= NAME_BYTES_MAX || file->name_count == BOLT_WRITER_BUCKETS_MAX)
        return not_etcds(file);
    char *copy = file->names[file->name_count++];
    slice_copy(copy, name);
    bolt_writer_bucket(file->writer, slice_of(copy, name.len));
    return ST_OK;
}

/* What is in the bucket, with the rows for it. */
static enum status copy_keys(struct db_file *file, struct bolt_cursor *cursor, struct slice bucket,
                             struct rows *rows)
{
    struct bolt_entry entry;
    enum status status;
    while ((status = bolt_cursor_next(cursor, &entry)) == ST_OK) {
        struct slice value = entry.value;
        if (entry.is_bucket)
            return not_etcds(file);
        TRY(add_rows(file, rows, bucket, &entry.key, &value));
        TRY(add(file, entry.key, value));
    }
    return status == ST_END ? ST_OK : status;
}

static enum status copy_bucket(struct db_file *file, const struct bolt_entry *entry,
                               struct rows *rows)
{
    if (!entry->is_bucket)
        return not_etcds(file);
    TRY(begin_bucket(file, entry->key));
    struct slice bucket = slice_of(file->names[file->name_count - 1], entry->key.len);
    struct bolt_cursor cursor = {0};
    enum status status = bolt_cursor_init_in(&cursor, &file->reader, entry->value);
    if (status == ST_OK)
        status = copy_keys(file, &cursor, bucket, rows);
    bolt_cursor_fini(&cursor);
    return status == ST_OK ? add_rows(file, rows, bucket, NULL, NULL) : status;
}

/* The buckets of rows that the file does not have; those before `until`, if there is one. */
static enum status add_buckets(struct db_file *file, struct rows *rows, const struct slice *until)
{
    while (rows->next < rows->end && (!until || slice_compare(rows->next->bucket, *until) < 0)) {
        struct slice bucket = rows->next->bucket;
        TRY(begin_bucket(file, bucket));
        TRY(add_rows(file, rows, bucket, NULL, NULL));
    }
    return ST_OK;
}

static enum status copy_buckets(struct db_file *file, struct rows *rows)
{
    struct bolt_cursor cursor = {0};
    struct bolt_entry entry;
    enum status status;
    bolt_cursor_init(&cursor, &file->reader);
    while ((status = bolt_cursor_next(&cursor, &entry)) == ST_OK) {
        status = add_buckets(file, rows, &entry.key);
        if (status == ST_OK)
            status = copy_bucket(file, &entry, rows);
        if (status != ST_OK)
            break;
    }
    bolt_cursor_fini(&cursor);
    return status == ST_END ? ST_OK : status;
}

/* All buckets, once to count the pages of the new file and once to write them. */
static enum status pass(struct db_file *file, struct rows rows, uint64_t *pages)
{
    bolt_writer_free(file->writer);
    file->writer = bolt_writer_new(*pages);
    file->name_count = 0;
    /* A new file has no buckets to copy. */
    if (file->bytes)
        TRY(copy_buckets(file, &rows));
    TRY(add_buckets(file, &rows, NULL));
    *pages = bolt_writer_end(file->writer);
    return drain(file);
}

static enum status replace(struct db_file *file)
{
    if (fsync(file->to) != 0)
        return fail(file, "cannot sync", file->new_path);
    if (rename(file->new_path, file->path) != 0)
        return fail(file, "cannot replace", file->path);
    file->was_created = false;
    close(file->to);
    file->to = -1;
    /* A rename is durable when its directory is. */
    int directory = open(file->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool synced = directory >= 0 && fsync(directory) == 0;
    if (directory >= 0)
        close(directory);
    return synced ? ST_OK : fail(file, "cannot sync", file->directory);
}

enum status db_file_rewrite(struct db_file *file, const struct db_row *rows, size_t count,
                            struct error *ret_error)
{
    uint64_t pages = 0;
    enum status status = ST_OK;
    *ret_error = (struct error){0};
    file->error = ret_error;
    snprintf(file->new_path, sizeof(file->new_path), "%s.tmp.XXXXXX", file->path);
    file->to = mkostemp(file->new_path, O_CLOEXEC);
    if (file->to < 0 || fchmod(file->to, file->mode) != 0)
        return fail(file, "cannot create", file->new_path);
    for (unsigned i = 0; i < 2 && status == ST_OK; i++)
        status = pass(file, (struct rows){rows, rows + count}, &pages);
    TRY(reader_status(file, status));
    return replace(file);
}
