/*
 * Objects in the engine: JSON under "/registry/…", one key each. A write is a transaction on the
 * revision that the caller has seen, as in kube-apiserver, so that both can share a store.
 *
 * Operations are embedded by their callers and complete exactly once, perhaps before the starting
 * call returns; see engine/engine.h.
 */
#ifndef VIGIL_KUBE_TYPES_STORAGE_H
#define VIGIL_KUBE_TYPES_STORAGE_H

#include "codec/pb/rpc.pb.h"
#include "engine/engine.h"

/* A stored key and value. Slices point into the response. */
struct kube_kv {
    struct slice key, value;
    int64_t mod_revision, version;
};

/* Parses `12 len KeyValue`, the form in which the engine returns it. */
struct kube_kv kube_kv_of(struct slice field);

/* "/registry/pods/" + "namespace/" + "name"; without a name, the prefix of all. ST_NOMEM. */
MUST_CHECK
enum status kube_key_make(struct arena *arena, const char *prefix, struct slice namespace,
                          struct slice name, struct slice *ret_key);
/* The end of the range of all keys with this prefix. */
MUST_CHECK
enum status kube_prefix_end(struct arena *arena, struct slice prefix, struct slice *ret_end);

/*
 * Other keys that are written together with an object, such as the address of a service: put if
 * their revision is the expected one, or deleted.
 */
struct kube_companion {
    struct slice key;
    struct slice value; /* empty: it is deleted */
    int64_t expected;   /* for a put: mod_revision; 0: the key must not exist */
};

enum { KUBE_COMPANIONS_MAX = 100 }; /* etcd permits 128 operations in a transaction */

struct kube_companions {
    struct kube_companion *items; /* the caller fills them */
    size_t count;
    struct pb_compare *compares; /* this and the following members are private */
    struct pb_request_op *success, *failure;
    struct pb_put_request *puts;
    struct pb_delete_range_request *deletes;
    struct pb_range_request *ranges;
};

/* count is at most KUBE_COMPANIONS_MAX. NULL: no memory. */
struct kube_companions *kube_companions_new(struct arena *arena, size_t count);

/*
 * A put or delete of one key, on the condition that its revision is still the expected one, and
 * also that of its guard, such as the namespace of the object.
 */
struct kube_write {
    struct engine_write engine; /* first member; the caller sets op.done and op.arena */
    struct slice key;
    struct slice value; /* for a put */
    int64_t expected;   /* mod_revision; 0: the key must not exist */
    int64_t lease;      /* for a put */
    bool keeps_lease;   /* a put of an existing key keeps its lease */
    struct slice guard; /* another key that must have guard_expected as its revision; empty: none */
    int64_t guard_expected;
    struct slice rule; /* a third key: the definition that was in effect; empty: none */
    int64_t rule_expected;
    struct kube_companions *companions; /* NULL: none; must outlive the operation */
    struct pb_txn_request txn;          /* this and the following members are private */
    struct pb_compare compares[3];
    struct pb_request_op success, failure[2];
    struct pb_put_request put;
    struct pb_delete_range_request delete_range;
    struct pb_range_request range, rule_range;
};

void kube_storage_put(struct engine_shard *shard, struct kube_write *write);
void kube_storage_delete(struct engine_shard *shard, struct kube_write *write);

/*
 * Called after done, if op.status is ST_OK: whether the condition held; op.revision is that of the
 * write then. Otherwise *ret_current is the current key value, with revision 0 if there is none.
 * Valid until engine_write_close.
 */
bool kube_write_succeeded(const struct kube_write *write, struct kube_kv *ret_current);
/* Called if the condition did not hold: the current key value of a companion; revision 0: none. */
struct kube_kv kube_write_companion(const struct kube_write *write, size_t at);
/* Called if the condition did not hold: whether the rule no longer has the expected revision. */
bool kube_write_rule_changed(const struct kube_write *write);

#endif
