/*
 * A transaction that puts or deletes one key if its create revision is the given one. Holders of
 * locks and leaders of elections change their keys with it. Embedded by value, so it allocates
 * nothing.
 */
#ifndef VIGIL_ETCD_SERVICE_KEY_CHANGE_H
#define VIGIL_ETCD_SERVICE_KEY_CHANGE_H

#include "codec/pb/rpc.pb.h"
#include "engine/engine.h"

struct key_change {
    struct engine_write write; /* first; the owner sets done and arena */
    struct pb_txn_request txn;
    struct pb_compare compare;
    struct pb_request_op then, otherwise;
    struct pb_put_request put;
    struct pb_delete_range_request removal;
    struct pb_range_request read;
};

/* The slices are borrowed until done is called. create_revision 0: the key must not exist. If the
 * comparison fails, the key-value is read instead. */
void key_change_put(struct engine_shard *shard, struct key_change *change, struct slice key,
                    int64_t create_revision, struct slice value, int64_t lease);
void key_change_delete(struct engine_shard *shard, struct key_change *change, struct slice key,
                       int64_t create_revision);

#endif
