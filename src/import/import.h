/*
 * Makes a data directory of Vigil from a snapshot file of etcd, or from a data directory of etcd
 * with its write-ahead log. Revisions, leases, users, roles and alarms are imported; the ids of the
 * cluster and the member only from a directory, as in etcd's own restore.
 *
 *   data-dir/import.tmp/   the store that is being built; no server accepts such a directory
 *   data-dir/LOCK          as a server's: excludes other processes meanwhile
 *   data-dir/log, meta     moved out of it at the end, …
 *   data-dir/FORMAT        … and this last: it makes the directory a data directory
 *
 * The next import removes what an interrupted one left. Memory: the index of the keys, as in a
 * server, and about ten megabytes.
 */
#ifndef VIGIL_IMPORT_IMPORT_H
#define VIGIL_IMPORT_IMPORT_H

#include "import/source.h"

struct import_options {
    struct fs *fs;
    const char *source;   /* a file or a directory */
    bool is_file;         /* a directory is refused */
    const char *wal_dir;  /* NULL: at its usual place in the directory */
    const char *data_dir; /* new, or empty */
    enum import_digest digest;
    /* Raises the newest revision by this number and compacts everything before, so that watchers
     * and caches from before a restore learn that they must begin again. 0: no change. */
    int64_t bump_revision;
    size_t checkpoint_map_bytes;
    uint64_t salt;
    struct import_progress progress;
};

struct import_summary {
    bool is_directory;
    char etcd_version[16]; /* version of the storage, or else of the cluster, if the file contains
                              it; otherwise "" */
    uint64_t file_bytes;
    int64_t revision;
    int64_t compact_revision; /* -1: never */
    uint64_t keys;            /* that exist at the end */
    uint64_t changes;         /* puts and deletes in the file, without those of the log */
    uint64_t leases, users, roles, alarms; /* that exist at the end */
    bool auth_enabled;
    /* Entries of the write-ahead log: applied, refused as in etcd, of the v2 API. */
    uint64_t entries, entries_refused, entries_v2;
    bool wal_is_torn;
    bool has_v2_keys;               /* keys of the v2 API exist, and were not imported */
    uint64_t cluster_id, member_id; /* 0: chosen at the first start */
    int64_t elapsed_ns;
};

MUST_CHECK
enum status import_run(const struct import_options *options, struct import_summary *ret_summary,
                       struct error *ret_error);

#endif
