/*
 * What is kept of a role binding or cluster role binding, and an index of the bindings of one of
 * these kinds by their subjects, so that a decision examines the bindings of its user alone.
 *
 *     user and groups, namespace ─► a bucket for each ─► its bindings, in the order of their names
 *
 * A service account is indexed by the name of its user. One per lookup, which adds and removes
 * bindings (kube/lookup/lookup.h), on its thread.
 */
#ifndef VIGIL_KUBE_ACCESS_BINDING_H
#define VIGIL_KUBE_ACCESS_BINDING_H

#include "base/container/hash_map.h"
#include "kube/access/user.h"
#include "kube/lookup/lookup.h"

enum {
    KUBE_BINDING_SUBJECTS_MAX = 4096,      /* of one binding; one with more is left out */
    KUBE_BINDING_INDEXED_MAX = 100 * 1000, /* subjects of all bindings of one index */
};

struct kube_subject {
    enum { SUBJECT_USER, SUBJECT_GROUP, SUBJECT_ACCOUNT } kind;
    struct slice name, namespace;
};

struct kube_binding {
    struct slice ref_kind, ref_name;
    struct kube_subject *subjects;
    size_t subject_count;
};

/* For kube_lookup_options.read. */
const void *kube_binding_read(struct arena *arena, const struct json_node *object);

struct kube_binding_index {
    struct hash_map buckets;
    size_t subjects; /* of all bindings */
};

void kube_binding_index_init(struct kube_binding_index *index, uint64_t seed);
void kube_binding_index_fini(struct kube_binding_index *index); /* must be empty */

/* For kube_lookup_options.added and removed: ctx is the index, and the object has a
 * kube_binding. */
const char *kube_binding_index_add(void *ctx, const struct kube_lookup_object *object);
void kube_binding_index_remove(void *ctx, const struct kube_lookup_object *object);

/* One of the bindings of a user, with the first of its subjects that is the user. */
struct kube_bound {
    const struct kube_lookup_object *object;
    const struct kube_subject *subject;
};

/* Calls fn for each binding in this namespace (empty: cluster role bindings) whose subject the user
 * is, in the order of their names, until fn returns false. fn must not change the index. Returns
 * the number of entries that were examined: one for each subject of a binding that is the user. */
size_t kube_binding_index_each(const struct kube_binding_index *index,
                               const struct kube_user_info *user, struct slice namespace,
                               bool (*fn)(void *ctx, const struct kube_bound *bound), void *ctx);

/* For tests: buckets are in order, none is empty, and the count is right. */
void kube_binding_index_check(const struct kube_binding_index *index);

#endif
