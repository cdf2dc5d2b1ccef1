/*
 * Changes the object of a write by the admission policies that concern it, as Kubernetes'
 * MutatingAdmissionPolicy plugin does:
 *
 *     which policies and bindings match the object as it came?
 *         for each of them, by name, and each parameter: conditions ─► mutations, one after another
 *
 * Each mutation sees the result of those before it, which has the defaults of its kind. If one has
 * succeeded, the whole chain of mutating admission runs once more (kube/handlers/write/policies.h),
 * with those of the policies that say IfNeeded.
 *
 * Any thread: it uses only what was gathered for the write.
 */
#ifndef VIGIL_KUBE_POLICY_POLICIES_MUTATE_H
#define VIGIL_KUBE_POLICY_POLICIES_MUTATE_H

#include "kube/policy/policies/policy_write.h"

enum { KUBE_MUTATION_COST_MAX = 10000000 }; /* one mutation, as in Kubernetes */

/* What is known between the two passes. Zeroed before the first; its texts are in the arena. */
struct kube_mutating {
    struct arena *arena; /* memory of the object, which outlives that of the write */
    bool again;          /* this is the second pass */
    bool mutated;        /* a mutation of the first pass has succeeded */
    struct slice *keys;  /* policies of the first pass that run again, with binding and parameter */
    size_t key_count;
};

/* write->object is the object, which is not changed; *ret_object is a new one or the same. */
MUST_CHECK
enum kube_policy_verdict kube_policy_mutate(struct kube_policy_write *write,
                                            struct kube_mutating *mutating,
                                            const struct json_node **ret_object);

#endif
