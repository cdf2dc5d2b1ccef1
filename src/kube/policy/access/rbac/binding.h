/*
 * What is kept of a role binding or cluster role binding, and an index of the bindings on a shelf
 * (kube/policy/lookup/shelf.h) by their subjects, so that a decision examines the bindings of its
 * user alone.
 *
 *     user and groups ─► a part of the index for each ─► its bindings, in the order of their names
 *
 * A service account is indexed by the name of its user.
 */
#ifndef VIGIL_KUBE_POLICY_ACCESS_RBAC_BINDING_H
#define VIGIL_KUBE_POLICY_ACCESS_RBAC_BINDING_H

#include "kube/policy/access/rbac/user.h"
#include "kube/policy/lookup/shelf.h"

struct kube_subject {
    enum { SUBJECT_USER, SUBJECT_GROUP, SUBJECT_ACCOUNT } kind;
    struct slice name, namespace;
};

struct kube_binding {
    struct slice ref_kind, ref_name;
    struct kube_subject *subjects;
    size_t subject_count;
};

/* For struct kube_lookup_kind. */
const void *kube_binding_read(struct arena *arena, const struct json_node *object);
void kube_binding_index_add(struct version_map *index, const struct kube_lookup_object *object);
void kube_binding_index_remove(struct version_map *index, const struct kube_lookup_object *object);
size_t kube_binding_index_bytes(const struct kube_lookup_object *object);

/* Whether the user, whose groups must be sorted, is a subject of the binding. */
bool kube_binding_is_of(const struct kube_lookup_object *object, const struct kube_user_info *user);

/* One of the bindings of a user, with the first of its subjects that is the user. */
struct kube_bound {
    const struct kube_lookup_object *object;
    const struct kube_subject *subject;
};

/* Calls fn for each binding whose subject the user is, in the order of their names, until fn
 * returns false. Returns the number of entries that were examined: one for each name or group of
 * the user that a binding has as its subject. */
size_t kube_binding_index_each(const struct version_map *index, const struct kube_user_info *user,
                               bool (*fn)(void *ctx, const struct kube_bound *bound), void *ctx);

#endif
