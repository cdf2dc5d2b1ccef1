#include "import/source.h"

#include "net/sha256.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    DIGEST_UNIT_BYTES = 512, /* a bbolt file is a multiple of it: a remainder is its checksum */
    CHUNK_BYTES = 256 * 1024,
};

/* -- Finding -- */

static bool is_dir(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static enum status join(char *to, size_t size, const char *dir, const char *name,
                        struct error *ret_error)
{
    int n = snprintf(to, size, "%s/%s", dir, name);
    if (n < 0 || (size_t)n >= size)
        return error_set(ret_error, ST_INVALID, "the path is too long: %.200s", dir);
    return ST_OK;
}

/* A file without permission must not be reported as missing. */
static enum status check_allowed(const char *path, struct error *ret_error)
{
    if (access(path, R_OK) == 0 || errno != EACCES)
        return ST_OK;
    return error_set(
        ret_error, ST_INVALID,
        "no permission to read %.200s; run this as root or as the user whose it is, "
        "and then give the new data directory to the user who will serve it (chown -R)",
        path);
}

/* dir is a data directory of etcd, or the `member` in it. */
static enum status find_in_dir(struct import_source *source,
                               const struct import_source_options *options, struct error *ret_error)
{
    char member[4096], format[4096];
    TRY(join(member, sizeof(member), options->path, "member", ret_error));
    TRY(join(format, sizeof(format), options->path, "FORMAT", ret_error));
    /* Either path is accepted, since both are called the data directory in practice. */
    const char *base = is_dir(member) ? member : options->path;
    TRY(join(source->path, sizeof(source->path), base, "snap/db", ret_error));
    TRY(join(source->snap_path, sizeof(source->snap_path), base, "snap", ret_error));
    if (options->wal_dir)
        snprintf(source->wal_path, sizeof(source->wal_path), "%s", options->wal_dir);
    else
        TRY(join(source->wal_path, sizeof(source->wal_path), base, "wal", ret_error));
    TRY(check_allowed(source->path, ret_error));
    TRY(check_allowed(source->wal_path, ret_error));
    /* A directory of Vigil was named, which needs no import. */
    if (is_file(format) && !is_file(source->path))
        return error_set(ret_error, ST_WRONG_FORMAT,
                         "%s is a data directory of Vigil already: start it with vigil serve "
                         "--data-dir",
                         options->path);
    if (!is_file(source->path))
        return error_set(ret_error, ST_NOT_FOUND,
                         "%s is not a data directory of etcd: it has no member/snap/db; name the "
                         "directory that --data-dir named, or a snapshot file",
                         options->path);
    if (!is_dir(source->wal_path))
        return error_set(ret_error, ST_NOT_FOUND,
                         "%s has no write-ahead log at %s; name it with --wal-dir, or import the "
                         "file %s alone, which may lack the last writes",
                         options->path, source->wal_path, source->path);
    source->is_directory = true;
    return ST_OK;
}

/* The db of a data directory lacks what is only in the log beside it; this must not be lost
 * unnoticed. */
static enum status check_stands_alone(const char *path, struct error *ret_error)
{
    const char *name = strrchr(path, '/');
    char wal[4096];
    int n = snprintf(wal, sizeof(wal), "%.*s../wal", name ? (int)(name + 1 - path) : 0, path);
    if (n < 0 || (size_t)n >= sizeof(wal) || strcmp(name ? name + 1 : path, "db") != 0 ||
        !is_dir(wal))
        return ST_OK;
    return error_set(ret_error, ST_INVALID,
                     "%.200s may lack the last writes, which are in the write-ahead log beside it; "
                     "name the data directory instead, or, if you must do without them: vigil "
                     "snapshot restore --skip-hash-check",
                     path);
}

static enum status find(struct import_source *source, const struct import_source_options *options,
                        struct error *ret_error)
{
    struct stat st;
    TRY(check_allowed(options->path, ret_error));
    if (stat(options->path, &st) != 0 && options->is_file)
        return error_set(ret_error, ST_NOT_FOUND, "there is nothing at %s; name a snapshot file",
                         options->path);
    if (stat(options->path, &st) != 0)
        return error_set(ret_error, ST_NOT_FOUND,
                         "there is nothing at %s; name a snapshot file or the data directory of an "
                         "etcd",
                         options->path);
    if (S_ISDIR(st.st_mode) && options->is_file)
        return error_set(ret_error, ST_WRONG_FORMAT,
                         "%s is a directory and no snapshot file; data directories of etcd are for "
                         "vigil import",
                         options->path);
    if (S_ISDIR(st.st_mode))
        return find_in_dir(source, options, ret_error);
    if (!S_ISREG(st.st_mode))
        return error_set(ret_error, ST_WRONG_FORMAT,
                         "%s is neither a file nor a directory; name a snapshot file or the data "
                         "directory of an etcd",
                         options->path);
    if (options->wal_dir)
        return error_set(ret_error, ST_INVALID,
                         "--wal-dir goes with a data directory, and %s is a file", options->path);
    if (!options->is_file)
        TRY(check_stands_alone(options->path, ret_error));
    int n = snprintf(source->path, sizeof(source->path), "%s", options->path);
    if (n < 0 || (size_t)n >= sizeof(source->path))
        return error_set(ret_error, ST_INVALID, "the path is too long: %.200s", options->path);
    return ST_OK;
}

/* -- The file -- */

static enum status open_file(struct import_source *source, struct fs *fs, struct error *ret_error)
{
    /* bbolt locks the file while etcd runs. A shared lock fails then, and keeps an etcd from
     * starting during the import. */
    enum status status = fs_open(fs, source->path, FILE_READ_ONLY | FILE_SHARE, &source->file);
    /* A snapshot may be on a file system without locks; then no etcd can use it there either. */
    if (status != ST_OK && status != ST_IN_USE && !source->is_directory)
        status = fs_open(fs, source->path, FILE_READ_ONLY, &source->file);
    if (status == ST_IN_USE)
        return error_set(ret_error, ST_IN_USE,
                         "%s is in use by a running etcd; stop it first, or take a snapshot of it "
                         "with etcdctl snapshot save and import that",
                         source->path);
    if (status == ST_OK)
        status = file_size(source->file, &source->file_bytes);
    if (status != ST_OK)
        return error_set(ret_error, status, "cannot open %s: %s", source->path,
                         status_reason(status));
    if (source->file_bytes == 0)
        return error_set(ret_error, ST_WRONG_FORMAT,
                         "%s is empty; a snapshot of an empty etcd has some 20 kB: save it again",
                         source->path);
    return ST_OK;
}

static enum status read_source(void *ctx, void *to, size_t len, uint64_t offset)
{
    struct import_source *source = ctx;
    return file_pread(source->file, to, len, offset);
}

static enum status sum_up(struct import_source *source, uint64_t bytes,
                          struct import_progress *progress, uint8_t ret_digest[SHA256_BYTES])
{
    AUTO(sha256_freep) struct sha256 *sum = sha256_new();
    uint8_t *chunk = malloc(CHUNK_BYTES);
    enum status status = chunk && sum ? ST_OK : ST_NOMEM;
    for (uint64_t at = 0; status == ST_OK && at < bytes;) {
        size_t len = size_min(CHUNK_BYTES, bytes - at);
        status = file_pread(source->file, chunk, len, at);
        if (status == ST_OK)
            sha256_add(sum, slice_of(chunk, len));
        at += len;
        import_progress_report(progress, IMPORT_CHECKING, at, bytes);
    }
    free(chunk);
    return status == ST_OK ? sha256_finish(sum, ret_digest) : status;
}

static void write_hex(const uint8_t digest[SHA256_BYTES], char ret_text[2 * SHA256_BYTES + 1])
{
    for (int i = 0; i < SHA256_BYTES; i++)
        snprintf(ret_text + 2 * i, 3, "%02x", digest[i]);
}

static enum status check_digest(struct import_source *source, struct import_progress *progress,
                                struct error *ret_error)
{
    /* The checksum was appended to the file and is not part of what it covers. */
    uint64_t bytes = source->file_bytes - SHA256_BYTES;
    uint8_t said[SHA256_BYTES], found[SHA256_BYTES];
    enum status status = file_pread(source->file, said, sizeof(said), bytes);
    if (status == ST_OK)
        status = sum_up(source, bytes, progress, found);
    if (status != ST_OK)
        return error_set(ret_error, status, "cannot read %s: %s", source->path,
                         status_reason(status));
    if (memcmp(said, found, sizeof(said)) == 0)
        return ST_OK;
    char said_text[2 * SHA256_BYTES + 1], found_text[2 * SHA256_BYTES + 1];
    write_hex(said, said_text);
    write_hex(found, found_text);
    return error_set(ret_error, ST_DAMAGED,
                     "%s is damaged: its last 32 bytes say sha256 %s, and it has %s; save the "
                     "snapshot again, or, if you must, pass over it with --skip-hash-check",
                     source->path, said_text, found_text);
}

static enum status take_digest(struct import_source *source,
                               const struct import_source_options *options, struct error *ret_error)
{
    source->has_digest =
        !source->is_directory && source->file_bytes % DIGEST_UNIT_BYTES == SHA256_BYTES;
    if (options->digest == IMPORT_DIGEST_SKIPPED || source->is_directory)
        return ST_OK;
    if (source->has_digest)
        return check_digest(source, options->progress, ret_error);
    /* With another remainder the file was cut off while it was copied. */
    if (source->file_bytes % DIGEST_UNIT_BYTES)
        return error_set(
            ret_error, ST_DAMAGED,
            "%s was truncated or is not a snapshot: its length, %llu bytes, is not that of a bbolt "
            "file with or without a checksum; save the snapshot again",
            source->path, (unsigned long long)source->file_bytes);
    if (options->digest == IMPORT_DIGEST_NEEDED)
        return error_set(ret_error, ST_WRONG_FORMAT,
                         "%s has no checksum at its end: it was not made by snapshot save, or was "
                         "cut; if it is the file of a stopped etcd, say --skip-hash-check",
                         source->path);
    return ST_OK;
}

enum status import_source_error(const struct import_source *source, struct error *ret_error)
{
    const struct error *said = &source->reader.error;
    const char *advice = source->is_directory ? "start the etcd once more and stop it, or use a "
                                                "snapshot of it"
                                              : "save the snapshot again";
    return error_set(ret_error, said->status, "%s cannot be read: %s; %s", source->path, said->text,
                     advice);
}

enum status import_source_open(struct import_source *source,
                               const struct import_source_options *options, struct error *ret_error)
{
    *source = (struct import_source){0};
    TRY(find(source, options, ret_error));
    TRY(open_file(source, options->fs, ret_error));
    TRY(take_digest(source, options, ret_error));
    struct bolt_source bytes = {
        .read = read_source,
        .ctx = source,
        .bytes = source->file_bytes - (source->has_digest ? SHA256_BYTES : 0),
    };
    if (bolt_reader_init(&source->reader, bytes) != ST_OK)
        return import_source_error(source, ret_error);
    return ST_OK;
}

void import_source_close(struct import_source *source)
{
    file_close(source->file);
    source->file = NULL;
}
