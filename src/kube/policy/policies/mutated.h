/*
 * The object that a mutation of a policy, or the patch of a webhook, has made: what it is decoded
 * as and completed with, as if it had passed through Go's types.
 */
#ifndef VIGIL_KUBE_POLICY_POLICIES_MUTATED_H
#define VIGIL_KUBE_POLICY_POLICIES_MUTATED_H

#include "kube/policy/policies/round.h"

/* The kind of what a subresource takes instead of the object, such as an Eviction, by its group,
 * version and name alone, perhaps in `room`; NULL: the object is of the kind of the rule. */
const struct kube_kind *kube_mutated_own_kind(const struct kube_policy_write *write,
                                              struct kube_kind *room);

/* Sets apiVersion and kind. False: no memory. */
MUST_CHECK
bool kube_mutated_name(struct arena *arena, const struct kube_kind *kind, struct json_node *object);

/* strict: unknown fields are an error; otherwise they are dropped. False: status says why not. */
MUST_CHECK
bool kube_mutated_decode(struct kube_policy_run *run, struct arena *arena,
                         const struct kube_kind *kind, struct json_node *object, bool strict);

/* Sets the defaults of its kind. False: no memory. */
MUST_CHECK
bool kube_mutated_complete(struct kube_policy_run *run, struct arena *arena,
                           const struct kube_kind *kind, struct json_node *object);

#endif
