/*
 * Objects in the engine: JSON under "/registry/…", one key each. A write is a transaction on the
 * revision that its caller has seen, as kube-apiserver's are, so that both can share a store.
 *
 * Operations are embedded by their callers and complete exactly once, perhaps before the starting
 * call returns; see engine/engine.h.
 */
#ifndef VIGIL_KUBE_STORAGE_STORAGE_H
#define VIGIL_KUBE_STORAGE_STORAGE_H

#include "codec/pb/rpc.pb.h"
#include "engine/engine.h"

/* What stands in a key. Slices lie in the field. */
struct kube_kv {
    struct slice key, value;
    int64_t mod_revision;
};

/* Of `12 len KeyValue`, as the engine has it. */
struct kube_kv kube_kv_of(struct slice field);

/* "/registry/pods/" + "namespace/" + "name"; without a name the prefix of all. ST_NOMEM. */
MUST_CHECK
enum status kube_key_make(struct arena *arena, const char *prefix, struct slice namespace,
                          struct slice name, struct slice *ret_key);
/* The end of the range of all keys that begin so. */
MUST_CHECK
enum status kube_prefix_end(struct arena *arena, struct slice prefix, struct slice *ret_end);

/* A put or delete of one key, on the condition that its revision is still the one expected, and
 * that of its guard, such as the namespace it is put into. */
struct kube_write {
    struct engine_write engine; /* first; its op.done and op.arena are the caller's to set */
    struct slice key;
    struct slice value; /* of a put */
    int64_t expected;   /* mod_revision; 0: there must be none */
    int64_t lease;      /* of a put */
    bool keeps_lease;   /* a put of what is there leaves it on the lease it has */
    struct slice guard; /* another key, whose revision must be this too; empty: none */
    int64_t guard_expected;
    struct slice rule; /* and a third: what it was checked by; empty: none */
    int64_t rule_expected;
    struct pb_txn_request txn; /* the rest is private */
    struct pb_compare compares[3];
    struct pb_request_op success, failure[2];
    struct pb_put_request put;
    struct pb_delete_range_request delete_range;
    struct pb_range_request range, rule_range;
};

void kube_storage_put(struct engine_shard *shard, struct kube_write *write);
void kube_storage_delete(struct engine_shard *shard, struct kube_write *write);

/*
 * After done, when op.status is ST_OK: whether the condition held; op.revision is then that of the
 * write. Else *ret_current is what the key has, with revision 0 when there is none. Valid until
 * engine_write_close.
 */
bool kube_write_succeeded(const struct kube_write *write, struct kube_kv *ret_current);
/* The same time, when the condition did not hold: the rule is no longer the one expected. */
bool kube_write_rule_changed(const struct kube_write *write);

#endif
