/*
 * Makes a data directory of Vigil out of what an etcd has left: a snapshot file, or a data
 * directory with its write-ahead log. Revisions, leases, users, roles and alarms come along; who
 * the cluster and the member are, from a directory alone, as in etcd's own restore.
 *
 *   data-dir/LOCK          as a server's: nobody else is here meanwhile
 *   data-dir/import.tmp/   what is being built; no server takes such a directory
 *   data-dir/log, meta     moved out of it at the end, …
 *   data-dir/FORMAT        … and this last: with it the directory is one
 *
 * What an interrupted import leaves is removed by the next. Memory: the index of the keys, as a
 * server has it, and some ten megabytes.
 */
#ifndef VIGIL_IMPORT_IMPORT_H
#define VIGIL_IMPORT_IMPORT_H

#include "import/source.h"

struct import_options {
    struct fs *fs;
    const char *source;   /* a file or a directory */
    bool is_file;         /* no directory is wanted */
    const char *wal_dir;  /* NULL: where it is found in the directory */
    const char *data_dir; /* new, or empty */
    enum import_digest digest;
    /* Raises the newest revision by this and compacts everything before: so watchers and caches of
     * what was there before a restore learn that they must begin anew. 0: not. */
    int64_t bump_revision;
    size_t checkpoint_map_bytes;
    uint64_t salt;
    struct import_progress progress;
};

struct import_summary {
    bool is_directory;
    char etcd_version[16]; /* of the storage or else the cluster, as far as the file says; "" */
    uint64_t file_bytes;
    int64_t revision;
    int64_t compact_revision;              /* -1: never */
    uint64_t keys;                         /* there are now */
    uint64_t changes;                      /* puts and deletes in the file, without the log's */
    uint64_t leases, users, roles, alarms; /* there are now */
    bool auth_enabled;
    /* Of the write-ahead log: applied, refused as etcd refused them, of the v2 API. */
    uint64_t entries, entries_refused, entries_v2;
    bool wal_is_torn;
    bool has_v2_keys;               /* which were left out */
    uint64_t cluster_id, member_id; /* 0: the first start says */
    int64_t elapsed_ns;
};

MUST_CHECK
enum status import_run(const struct import_options *options, struct import_summary *ret_summary,
                       struct error *ret_error);

#endif
