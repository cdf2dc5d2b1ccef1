/*
 * The newest snapshot in the directory member/snap of an etcd, which contains its v2 store:
 *
 *   snap/TERM-INDEX.snap (hex)     SnapshotFile { crc, RaftSnapshot { JSON, index, term } }
 *
 *   {"Root":{"Path":"/","CreatedIndex":0,"ModifiedIndex":0,"ExpireTime":"0001-01-01T00:00:00Z",
 *            "Value":"","Children":{"1":{…},…}},"CurrentIndex":7,…}
 *
 * A file that cannot be read is renamed to NAME.broken, and the next older one is tried, as etcd
 * does at a start. No byte is trusted: the file has a limit, and the tree that of its levels.
 */
#ifndef VIGIL_IMPORT_V2_SNAPSHOT_H
#define VIGIL_IMPORT_V2_SNAPSHOT_H

#include "base/error.h"
#include "import/v2/tree.h"
#include "io/file.h"

#include <stdio.h>

#define V2_SNAPSHOT_BYTES_MAX ((uint64_t)1 << 30)

struct v2_snapshot {
    bool exists;
    uint64_t index, term; /* raft index and term of the snapshot; 0 without one */
};

/* Fills the tree, which is new. What etcd says meanwhile is written to `notes`. ST_NOT_FOUND: the
 * directory does not exist. A directory without a snapshot is not a failure. */
MUST_CHECK
enum status v2_snapshot_load(struct fs *fs, const char *dir, FILE *notes, struct v2_tree *tree,
                             struct v2_snapshot *ret_snapshot, struct error *ret_error);

/* The contents of a snapshot. ST_DAMAGED, ST_LIMIT: the tree has a part of it. */
MUST_CHECK
enum status v2_snapshot_read(struct slice json, struct v2_tree *tree, struct error *ret_error);

/* "2026-11-17T03:03:41.99Z" or with an offset, as Go writes times; 0 for the year 1, which means
 * none. */
MUST_CHECK
bool v2_snapshot_time(struct slice text, int64_t *ret_ns);

#endif
