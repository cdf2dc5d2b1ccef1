/*
 * The members of an etcd cluster and its version, as far as they concern its v2 store: they are in
 * the store's directory /0, and each change of them takes an index of it. What etcd says about them
 * is written as notes.
 *
 * Only the indexes of the directory /0 matter here, so changes are not written into the tree.
 * One owner, one thread.
 */
#ifndef VIGIL_IMPORT_V2_MEMBERS_H
#define VIGIL_IMPORT_V2_MEMBERS_H

#include "base/error.h"
#include "codec/pb/raft.pb.h"
#include "import/v2/tree.h"

#include <stdio.h>

/* Members and URLs of each; removed ones, whose ids are never used again. */
enum { V2_MEMBERS_MAX = 64, V2_MEMBER_URLS_MAX = 16, V2_MEMBERS_REMOVED_MAX = 16384 };

struct v2_member;

struct v2_version {
    uint64_t major, minor, patch;
};

struct v2_members {
    struct v2_tree *tree; /* borrowed */
    FILE *notes;          /* borrowed; may be NULL */
    struct v2_member *all;
    size_t count;
    uint64_t *removed;
    size_t removed_count;
    bool has_version;
    struct v2_version version;
};

void v2_members_init(struct v2_members *members, struct v2_tree *tree, FILE *notes);
void v2_members_fini(struct v2_members *members); /* accepts a zeroed one */

/* Reads those of the tree, which came from a snapshot. ST_DAMAGED, ST_LIMIT. */
MUST_CHECK
enum status v2_members_recover(struct v2_members *members, struct error *ret_error);
/* A change of the members in the log. */
MUST_CHECK
enum status v2_members_change(struct v2_members *members, const struct pb_log_conf_change *change,
                              struct error *ret_error);
/* Takes a put with a path in /0; false: it is not for the members. */
MUST_CHECK
enum status v2_members_put(struct v2_members *members, struct slice path, struct slice value,
                           bool *ret_taken, struct error *ret_error);

#endif
