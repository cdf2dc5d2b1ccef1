/*
 * What etcd keeps in its bbolt file: the buckets, the names in them, and how a revision is encoded
 * as a key. Numbers in etcd's keys and values are big endian.
 *
 *   key              17 bytes: main '_' sub; 18 with 't' for a tombstone → mvccpb.KeyValue
 *   lease            id (8) → leasepb.Lease {ID = 1, TTL = 2, RemainingTTL = 3}
 *   alarm            etcdserverpb.AlarmMember as the key → nothing
 *   auth             authEnabled → one byte; authRevision → 8
 *   authUsers        name → authpb.User          authRoles   name → authpb.Role
 *   members          id, 16 hex digits → JSON    members_removed   the same → "removed"
 *   cluster          clusterVersion → "3.7.0"    downgrade → JSON             (since 3.5)
 *   meta             consistent_index → 8        scheduledCompactRev, finishedCompactRev → 17
 *                    term → 8, confState → JSON  (since 3.5)
 *                    storageVersion → "3.7.0"    (since 3.6)
 */
#ifndef VIGIL_BOLT_SCHEMA_H
#define VIGIL_BOLT_SCHEMA_H

#include "base/slice.h"

/* In the order of their names, which is the order in the file. */
enum bolt_etcd_bucket {
    BOLT_BUCKET_ALARM,
    BOLT_BUCKET_AUTH,
    BOLT_BUCKET_ROLES,
    BOLT_BUCKET_USERS,
    BOLT_BUCKET_CLUSTER,
    BOLT_BUCKET_KEY,
    BOLT_BUCKET_LEASE,
    BOLT_BUCKET_MEMBERS,
    BOLT_BUCKET_REMOVED,
    BOLT_BUCKET_META,
    BOLT_BUCKETS,
};

struct slice bolt_bucket_name(enum bolt_etcd_bucket bucket);

#define BOLT_AUTH_ENABLED SLICE_LITERAL("authEnabled")
#define BOLT_AUTH_REVISION SLICE_LITERAL("authRevision")
#define BOLT_CLUSTER_VERSION SLICE_LITERAL("clusterVersion")
#define BOLT_DOWNGRADE SLICE_LITERAL("downgrade")
#define BOLT_META_CONF_STATE SLICE_LITERAL("confState")
#define BOLT_META_INDEX SLICE_LITERAL("consistent_index")
#define BOLT_META_FINISHED_COMPACT SLICE_LITERAL("finishedCompactRev")
#define BOLT_META_SCHEDULED_COMPACT SLICE_LITERAL("scheduledCompactRev")
#define BOLT_META_STORAGE_VERSION SLICE_LITERAL("storageVersion")
#define BOLT_META_TERM SLICE_LITERAL("term")

enum {
    BOLT_NUMBER_BYTES = 8,
    BOLT_REVISION_BYTES = 17,
    BOLT_TOMBSTONE_BYTES = 18, /* key length of a revision that deleted its key */
};

struct bolt_revision {
    int64_t main;
    int64_t sub;
    bool is_tombstone;
};

void bolt_number_write(uint64_t number, uint8_t ret_bytes[BOLT_NUMBER_BYTES]);
uint64_t bolt_number_read(const uint8_t bytes[BOLT_NUMBER_BYTES]);

/* Returns the number of bytes: BOLT_REVISION_BYTES or BOLT_TOMBSTONE_BYTES. */
size_t bolt_revision_write(struct bolt_revision revision, uint8_t ret_bytes[BOLT_TOMBSTONE_BYTES]);
/* False: the bytes are not a revision, because of their length, separator, marker or a negative
 * number. */
bool bolt_revision_read(struct slice bytes, struct bolt_revision *ret_revision);

#endif
