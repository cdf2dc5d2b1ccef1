/*
 * Imports the contents of etcd's bbolt file into a new store: revisions with their numbers; leases,
 * users, roles and alarms as rows; and the compaction. Reads in the order of the file; all changes
 * of one revision are in memory at once, as they will be in the log.
 */
#ifndef VIGIL_IMPORT_DB_H
#define VIGIL_IMPORT_DB_H

#include "auth/store.h"
#include "import/source.h"
#include "store/builder.h"

/* The buckets meta and members. Absent numbers are 0, absent revisions -1. */
struct import_meta {
    uint64_t
        consistent_index; /* index in the write-ahead log: the file contains all entries up to it */
    int64_t finished_compact, scheduled_compact;
    char storage_version[16]; /* "3.7.0"; "" before 3.6 */
    unsigned storage_minor;   /* 7; 0 before 3.6 */
    char cluster_version[16]; /* "3.5.0"; "" before 3.5 */
    unsigned members;
};

/* No etcd reaches this revision, and a store that begins here does not run out of numbers. Larger
 * ones are damage. */
#define IMPORT_REVISION_MAX (INT64_MAX / 2)

/* The newest file format that is understood. Later ones may contain more. */
enum { IMPORT_MINOR_MAX = 7 };

/* ST_WRONG_FORMAT: not etcd's file, or written by a newer etcd. */
MUST_CHECK
enum status import_meta_read(struct import_source *source, struct import_meta *ret_meta,
                             struct error *ret_error);

/* What was imported. */
struct import_counts {
    uint64_t changes; /* puts and deletes that were not compacted */
    uint64_t leases, users, roles, alarms;
    bool auth_enabled;
};

MUST_CHECK
enum status import_keys(struct import_source *source, struct store_builder *builder,
                        struct import_progress *progress, struct import_counts *counts,
                        struct error *ret_error);

/* Imports leases, users, roles and alarms. seen is called for each row that was added; it may be
 * NULL. */
MUST_CHECK
enum status import_rows(struct import_source *source, struct store_builder *builder, row_fn seen,
                        void *seen_ctx, struct import_counts *counts, struct error *ret_error);

#endif
