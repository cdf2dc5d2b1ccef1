#include "cmd/ctl/admin/defrag_file.h"

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

/* One run. */
struct rewrite {
    char path[PATH_BYTES], new_path[PATH_BYTES + 16], directory[PATH_BYTES];
    int from, to; /* -1: not open */
    struct bolt_reader reader;
    struct bolt_writer *writer;                          /* of this pass */
    char names[BOLT_WRITER_BUCKETS_MAX][NAME_BYTES_MAX]; /* the writer borrows them */
    uint8_t *bytes;
    struct error *error;
};

static void rewrite_fini(struct rewrite *rewrite)
{
    if (rewrite->from >= 0)
        close(rewrite->from);
    if (rewrite->to >= 0) {
        close(rewrite->to);
        unlink(rewrite->new_path);
    }
    bolt_writer_free(rewrite->writer);
    free(rewrite->bytes);
}

static enum status fail(struct rewrite *rewrite, const char *what, const char *path)
{
    return error_set(rewrite->error, ST_IO, "%s %s: %s", what, path, strerrordesc_np(errno));
}

/* -- The file -- */

static enum status read_at(void *ctx, void *to, size_t len, uint64_t offset)
{
    const struct rewrite *rewrite = ctx;
    for (size_t done = 0; done < len;) {
        ssize_t got = pread(rewrite->from, (char *)to + done, len - done, (off_t)(offset + done));
        if (got == 0 || (got < 0 && errno != EINTR))
            return ST_IO;
        done += got > 0 ? (size_t)got : 0;
    }
    return ST_OK;
}

/* The lock is bbolt's: an etcd that has opened the file holds it. */
static enum status lock(struct rewrite *rewrite)
{
    for (unsigned i = 0; i < LOCK_TRIES; i++) {
        if (flock(rewrite->from, LOCK_EX | LOCK_NB) == 0)
            return ST_OK;
        nanosleep(&(struct timespec){.tv_nsec = 100 * 1000 * 1000}, NULL);
    }
    fprintf(stderr,
            "waiting for etcd to close and release its lock on \"%s\". To defrag a running etcd "
            "instance, omit --data-dir.\n",
            rewrite->path);
    while (flock(rewrite->from, LOCK_EX) != 0)
        if (errno != EINTR)
            return fail(rewrite, "cannot lock", rewrite->path);
    return ST_OK;
}

static enum status open_files(struct rewrite *rewrite, struct stat *ret_stat)
{
    rewrite->from = open(rewrite->path, O_RDWR | O_CLOEXEC);
    if (rewrite->from < 0)
        return fail(rewrite, "cannot open database at", rewrite->path);
    TRY(lock(rewrite));
    if (fstat(rewrite->from, ret_stat) != 0)
        return fail(rewrite, "cannot examine", rewrite->path);
    rewrite->to = mkostemp(rewrite->new_path, O_CLOEXEC);
    if (rewrite->to < 0 || fchmod(rewrite->to, ret_stat->st_mode & 0777) != 0)
        return fail(rewrite, "cannot create", rewrite->new_path);
    return ST_OK;
}

static enum status sync_directory(struct rewrite *rewrite)
{
    int directory = open(rewrite->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool synced = directory >= 0 && fsync(directory) == 0;
    if (directory >= 0)
        close(directory);
    return synced ? ST_OK : fail(rewrite, "cannot sync", rewrite->directory);
}

static enum status replace(struct rewrite *rewrite)
{
    if (fsync(rewrite->to) != 0)
        return fail(rewrite, "cannot sync", rewrite->new_path);
    if (rename(rewrite->new_path, rewrite->path) != 0)
        return fail(rewrite, "cannot replace", rewrite->path);
    close(rewrite->to);
    rewrite->to = -1;
    return sync_directory(rewrite);
}

/* -- Its contents -- */

static enum status write_all(struct rewrite *rewrite, size_t len)
{
    for (size_t done = 0; done < len;) {
        ssize_t put = write(rewrite->to, rewrite->bytes + done, len - done);
        if (put < 0 && errno != EINTR)
            return fail(rewrite, "cannot write", rewrite->new_path);
        done += put > 0 ? (size_t)put : 0;
    }
    return ST_OK;
}

/* Writes what the writer has so far. */
static enum status drain(struct rewrite *rewrite)
{
    size_t len;
    do {
        len = bolt_writer_take(rewrite->writer, rewrite->bytes, WRITE_BYTES);
        TRY(write_all(rewrite, len));
    } while (len == WRITE_BYTES);
    return ST_OK;
}

static enum status copy_bucket(struct rewrite *rewrite, struct bolt_cursor *cursor)
{
    struct bolt_entry entry;
    enum status status;
    while ((status = bolt_cursor_next(cursor, &entry)) == ST_OK) {
        if (entry.is_bucket || entry.key.len > BOLT_WRITER_KEY_BYTES_MAX)
            return error_set(rewrite->error, ST_WRONG_FORMAT, "%s is not a file of etcd",
                             rewrite->path);
        bolt_writer_add(rewrite->writer, entry.key, entry.value);
        TRY(drain(rewrite));
    }
    return status == ST_END ? ST_OK : status;
}

static enum status copy_named(struct rewrite *rewrite, const struct bolt_entry *bucket,
                              unsigned place)
{
    if (!bucket->is_bucket || bucket->key.len >= NAME_BYTES_MAX || place >= BOLT_WRITER_BUCKETS_MAX)
        return error_set(rewrite->error, ST_WRONG_FORMAT, "%s is not a file of etcd",
                         rewrite->path);
    memcpy(rewrite->names[place], bucket->key.ptr, bucket->key.len);
    bolt_writer_bucket(rewrite->writer, slice_of(rewrite->names[place], bucket->key.len));
    struct bolt_cursor cursor = {0};
    enum status status = bolt_cursor_init_in(&cursor, &rewrite->reader, bucket->value);
    if (status == ST_OK)
        status = copy_bucket(rewrite, &cursor);
    bolt_cursor_fini(&cursor);
    return status;
}

/* All buckets, once to count the pages of the new file and once to write them. */
static enum status pass(struct rewrite *rewrite, uint64_t *pages)
{
    bolt_writer_free(rewrite->writer);
    rewrite->writer = bolt_writer_new(*pages);
    struct bolt_cursor cursor = {0};
    struct bolt_entry bucket;
    enum status status;
    bolt_cursor_init(&cursor, &rewrite->reader);
    for (unsigned i = 0; (status = bolt_cursor_next(&cursor, &bucket)) == ST_OK; i++) {
        status = copy_named(rewrite, &bucket, i);
        if (status != ST_OK)
            break;
    }
    bolt_cursor_fini(&cursor);
    if (status != ST_END)
        return status;
    *pages = bolt_writer_end(rewrite->writer);
    return drain(rewrite);
}

static enum status rewrite_contents(struct rewrite *rewrite, const struct stat *stat)
{
    struct bolt_source source = {read_at, rewrite, (uint64_t)stat->st_size};
    uint64_t pages = 0;
    enum status status = bolt_reader_init(&rewrite->reader, source);
    for (unsigned i = 0; i < 2 && status == ST_OK; i++)
        status = pass(rewrite, &pages);
    if (status != ST_OK && !rewrite->error->text[0])
        *rewrite->error = rewrite->reader.error;
    return status;
}

enum status defrag_file(const char *data_dir, struct error *ret_error)
{
    AUTO(rewrite_fini)
    struct rewrite rewrite = {.from = -1, .to = -1, .error = ret_error};
    struct stat stat;
    *ret_error = (struct error){0};
    rewrite.bytes = malloc(WRITE_BYTES);
    if (!rewrite.bytes)
        return error_set(ret_error, ST_NOMEM, "no memory");
    snprintf(rewrite.directory, sizeof(rewrite.directory), "%.3000s/member/snap", data_dir);
    snprintf(rewrite.path, sizeof(rewrite.path), "%.3500s/db", rewrite.directory);
    snprintf(rewrite.new_path, sizeof(rewrite.new_path), "%.3600s.tmp.XXXXXX", rewrite.path);
    TRY(open_files(&rewrite, &stat));
    TRY(rewrite_contents(&rewrite, &stat));
    return replace(&rewrite);
}
