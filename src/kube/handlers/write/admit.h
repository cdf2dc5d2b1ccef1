/*
 * Admission (kube/policy/admission/admission.h) as steps of a write: its facts, what the plugins
 * decide, and the permission that the write needs besides that of its request
 * (kube/policy/access/write_right.h).
 */
#ifndef VIGIL_KUBE_HANDLERS_WRITE_ADMIT_H
#define VIGIL_KUBE_HANDLERS_WRITE_ADMIT_H

#include "kube/handlers/write/change.h"
#include "kube/policy/admission/admission.h"

/*
 * Gathers the facts that the plugins need of the object that is created or of the stored one, none
 * for most kinds, and finds out whether the user may do what the write does. Facts of the attempt
 * before are released.
 */
kube_step_fn kube_admit_gather;
/* Mutating admission: plugins may change the object. */
kube_step_fn kube_admit_mutate;
/* Validating admission: plugins may refuse the write. Also whether the user may create what a PUT
 * or PATCH creates. */
kube_step_fn kube_admit_check;
/* The last of validating admission, as in Kubernetes: charges the write to quotas. */
kube_step_fn kube_admit_quota;

/* The write of a namespace is answered when admission knows its labels, so that they apply to the
 * next pod, whichever thread serves it. */
kube_step_fn kube_admit_settle;

void kube_admit_release(struct kube_change *change);

/* This attempt as the plugins see it. */
struct kube_admission_write kube_admit_write(struct kube_change *change,
                                             enum kube_admission_operation operation,
                                             struct json_node *object, const struct json_node *old);

#endif
