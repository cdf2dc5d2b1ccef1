/*
 * Rebuilds the v2 store of an etcd that has stopped: its newest snapshot, and then the requests of
 * the v2 API in the log after it, as `etcdctl migrate` of 3.4 does. Everything in the log is
 * applied, as there, whether it was committed or not.
 *
 * One owner, one thread.
 */
#ifndef VIGIL_IMPORT_V2_REPLAY_H
#define VIGIL_IMPORT_V2_REPLAY_H

#include "base/error.h"
#include "import/v2/tree.h"
#include "import/wal.h"

#include <stdio.h>

struct v2_members;

struct v2_store {
    struct v2_tree tree;
    uint64_t raft_index; /* index of the last entry that is in it */
};

struct v2_store_options {
    struct fs *fs;
    const char *snap_dir, *wal_dir;
    FILE *notes; /* for what etcd says meanwhile; may be NULL */
};

/* The text of a failure is that of etcd where it has one. The store is to be finished in any case.
 */
MUST_CHECK
enum status v2_store_load(struct v2_store *store, const struct v2_store_options *options,
                          struct error *ret_error);
void v2_store_fini(struct v2_store *store); /* accepts a zeroed one */

/* One entry of the log. ST_DAMAGED, ST_LIMIT. */
MUST_CHECK
enum status v2_replay_entry(struct v2_tree *tree, struct v2_members *members,
                            const struct pb_log_entry *entry, struct error *ret_error);

#endif
