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
    KUBE_VALIDATIONS_COST_MAX = 10000000, /* a binding with one parameter, as in Kubernetes */
    /* What all policies of a write may cost together; one that costs more is refused. */
    KUBE_WRITE_COST_MAX = 200000000,
};

enum kube_policy_verdict kube_policy_validate(struct kube_policy_write *write);

#endif
