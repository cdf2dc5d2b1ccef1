/*
 * Reads etcd's write-ahead log after its server has stopped, cleanly or not.
 *
 *   wal/SEQUENCE-INDEX.wal (hex)    frame | frame | …  zeros to the end
 *   frame                           length (8): bytes in the lower 56 bits, padding in the upper |
 *                                   LogRecord | padding
 *
 * A record's crc covers the data of all records before it in its file, and begins with the final
 * crc of the file before it. A record that was being written when the machine crashed is torn: the
 * log ends before it. Anything else that is inconsistent is damage.
 *
 * Entries stay in the files; only their places are kept. One owner, one thread.
 */
#ifndef VIGIL_IMPORT_WAL_H
#define VIGIL_IMPORT_WAL_H

#include "base/buf.h"
#include "base/error.h"
#include "codec/pb/raft.pb.h"
#include "io/file.h"

struct import_wal_file;
struct import_wal_place;

/* What is wrong with a log that cannot be read, where etcd has words of its own for it. */
enum import_wal_fault {
    IMPORT_WAL_FINE,
    IMPORT_WAL_NO_FILE,  /* none, or one between others is missing */
    IMPORT_WAL_CHECKSUM, /* checksum of a record */
    IMPORT_WAL_CHAIN,    /* the checksum of a file does not continue that of the one before it */
    IMPORT_WAL_GAP,      /* an entry is missing */
};

struct import_wal {
    struct fs *fs;
    const char *dir;
    struct import_wal_file *files; /* owned, in order; those that are needed */
    size_t file_count;
    struct import_wal_place *places; /* owned; of the entries after `after` */
    size_t place_count, place_capacity;
    uint64_t after;
    struct pb_log_metadata metadata;
    struct pb_hard_state state; /* the last one written */
    bool has_snapshot;          /* a record names a snapshot at `after` … */
    uint64_t snapshot_term;     /* … of this term */
    bool is_torn;
    uint64_t torn_bytes;         /* how long the torn record says it is */
    enum import_wal_fault fault; /* kind of a failure */
    struct buf record;           /* scratch; holds an entry's data */
};

/* A file has 64 MiB and at most one more record; a longer record is damage. */
#define IMPORT_WAL_RECORD_BYTES_MAX ((uint64_t)1 << 30)

/* Whether a file of the log may have this name. */
bool import_wal_has_name(const char *name);

/* Finds the entries with index > after. Entries that were replaced by a later one of the same index
 * are left out. ST_DAMAGED: some are missing. dir is borrowed. */
MUST_CHECK
enum status import_wal_open(struct import_wal *wal, struct fs *fs, const char *dir, uint64_t after,
                            struct error *ret_error);
void import_wal_close(struct import_wal *wal); /* accepts a zeroed one */

/* The i-th entry after `after`; its data is valid until the next call. */
MUST_CHECK
enum status import_wal_entry(struct import_wal *wal, size_t i, struct pb_log_entry *ret_entry,
                             struct error *ret_error);

#endif
