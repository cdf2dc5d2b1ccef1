/*
 * The trees of a write that the expressions of a policy look at, besides its parameters: only those
 * that the policy uses are made. In the arena of the write.
 */
#ifndef VIGIL_KUBE_POLICY_POLICIES_INPUTS_H
#define VIGIL_KUBE_POLICY_POLICIES_INPUTS_H

#include "kube/policy/policies/policy_write.h"

struct kube_policy_inputs {
    bool made;
    const struct json_node *object, *old, *request, *namespace_object; /* NULL: null */
};

/* kind: that of the rule that has matched, as which the policy sees the objects. False: no memory,
 * or the objects cannot be converted. */
MUST_CHECK
bool kube_policy_inputs_make(const struct kube_policy_write *write,
                             const struct kube_policy *policy, const struct kube_kind *kind,
                             struct kube_policy_inputs *ret_inputs);

/* Changes an object of one version of a kind into another one. False: no memory, or it cannot be
 * converted. */
MUST_CHECK
bool kube_policy_convert(struct arena *arena, const struct kube_kind *from,
                         const struct kube_kind *to, struct json_node *object);

/* The namespace whose labels selectors see: the object itself if a namespace is written. NULL: it
 * does not exist. */
const struct json_node *kube_policy_namespace_of(const struct kube_policy_write *write);

#endif
