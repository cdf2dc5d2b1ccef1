/*
 * Admission policies as steps of a write (kube/policy/policies/validate.h): what is gathered for
 * them, the decision, and the wait of a write that changes a policy.
 *
 *     which policies and bindings may concern it? ─► none: nothing more
 *         └─► the namespace ─► the parameters of each binding, by name or by selector
 *                 └─► permissions (none so far) ◄──► the evaluation, which asks for more
 *
 * They are read from the store for this write, so that they are as new as it.
 */
#ifndef VIGIL_KUBE_HANDLERS_WRITE_POLICIES_H
#define VIGIL_KUBE_HANDLERS_WRITE_POLICIES_H

#include "kube/handlers/write/change.h"

enum {
    /* Parameters that a selector may find for one write, and what is examined for that; a write for
     * which there are more is refused. */
    KUBE_PARAMS_MAX = 100,
    KUBE_PARAM_OBJECTS_MAX = 10000,
    KUBE_PARAM_BYTES_MAX = 8 << 20,
    /* Policies with their bindings that may concern one write. */
    KUBE_POLICY_CASES_MAX = 2000,
};

/* Gathers what the policies need that concern the write; those of the attempt before are released.
 * A new policy or binding for which there is no room is refused. */
kube_step_fn kube_policies_gather;
/* Mutating admission by policies. */
kube_step_fn kube_policies_mutate;
/* Validating admission by policies. It begins where it is and continues on the worker if the
 * evaluation is long. */
kube_step_fn kube_policies_check;
/* Answers what the evaluation has asked about permissions; the step before it. */
kube_step_fn kube_policies_ask;
/* The write of a policy or binding is answered when the policies know it. */
kube_step_fn kube_policies_settle;

/* Whether the evaluation has asked something that has no answer yet. */
bool kube_policies_asked(const struct kube_policy_facts *facts);

/* On the thread of the API: what was gathered for an attempt, and all of it. */
void kube_policies_release(struct kube_change *change);
void kube_policies_free(struct kube_change *change);
/* The change continues with another object. */
void kube_policies_forget(struct kube_change *change);

/* Warns the writer of a policy or binding of what it says in vain. */
void kube_policies_warn(struct kube_call *call, const struct json_node *object);

#endif
