/*
 * Decides about a write by the admission policies that concern it, as Kubernetes'
 * ValidatingAdmissionPolicy plugin does:
 *
 *     for each policy that matches
 *         for each of its bindings that matches
 *             for each parameter: conditions ─► validations ─► messages ─► audit annotations
 *
 * The first denial is the answer; warnings and the number of audited failures are those of all. Any
 * thread: it uses only what was gathered for the write (kube/handlers/write/policies.h).
 */
#ifndef VIGIL_KUBE_POLICY_POLICIES_VALIDATE_H
#define VIGIL_KUBE_POLICY_POLICIES_VALIDATE_H

#include "kube/policy/policies/policy_write.h"

enum {
    /* Costs. The first three are those of Kubernetes. */
    KUBE_CONDITIONS_COST_MAX = 2500000,   /* the match conditions of a policy */
    KUBE_VALIDATIONS_COST_MAX = 10000000, /* a binding with one parameter */
    /* What all policies of a write may cost together; one that costs more is refused. */
    KUBE_WRITE_COST_MAX = 200000000,
    KUBE_EVALUATION_BYTES_MAX = 64 << 20, /* memory of the evaluation of one binding */
};

enum kube_policy_verdict {
    KUBE_POLICY_ADMITS,
    KUBE_POLICY_DENIES, /* status says why; also without memory */
    /* It has to be decided again; nothing was warned or counted. */
    KUBE_POLICY_TOO_DEAR, /* only an attempt */
    KUBE_POLICY_ASKS,     /* permissions are not known yet (permissions.h) */
};

enum kube_policy_verdict kube_policy_validate(struct kube_policy_write *write);

#endif
