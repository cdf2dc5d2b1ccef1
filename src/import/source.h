/*
 * The source of an import: a snapshot saved by etcd's tools or ours, the file `db` of an etcd, or
 * its whole data directory.
 *
 *   a file                  bbolt, or bbolt and its sha256: then it is a saved snapshot
 *   dir/member/snap/db      the file of an etcd that has stopped …
 *   dir/member/wal/         … and the log with what is not in the file yet
 *
 * A directory is held with a shared lock meanwhile, so that no etcd starts in it. One owner, one
 * thread.
 */
#ifndef VIGIL_IMPORT_SOURCE_H
#define VIGIL_IMPORT_SOURCE_H

#include "bolt/reader.h"
#include "import/progress.h"
#include "io/file.h"

/* Whether a file must end with its own sha256. */
enum import_digest {
    IMPORT_DIGEST_IF_THERE, /* a checksum is verified if it exists */
    IMPORT_DIGEST_NEEDED,   /* as in etcd's own restore: a file without one is refused */
    IMPORT_DIGEST_SKIPPED,
};

struct import_source_options {
    struct fs *fs;
    const char *path;
    bool is_file;        /* a directory is refused */
    const char *wal_dir; /* the write-ahead log, if it is not at its usual place; or NULL */
    enum import_digest digest;
    struct import_progress *progress;
};

struct import_source {
    char path[4096];     /* path of the bbolt file */
    char wal_path[4096]; /* "" without */
    char snap_path[4096];
    bool is_directory;
    bool has_digest;
    struct file *file;
    uint64_t file_bytes;
    struct bolt_reader reader;
};

/* The error names the file, what is wrong with it, and what to do. */
MUST_CHECK
enum status import_source_open(struct import_source *source,
                               const struct import_source_options *options,
                               struct error *ret_error);
void import_source_close(struct import_source *source); /* accepts a zeroed one */

/* The reader's error, with the name of the file and advice. Returns its status. */
enum status import_source_error(const struct import_source *source, struct error *ret_error);

#endif
