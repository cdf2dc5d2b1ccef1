/*
 * Rules for writing custom resources: objects are pruned, defaulted and validated by the schema of
 * their definition. False: call->status says why.
 */
#ifndef VIGIL_KUBE_HANDLERS_WRITE_CUSTOM_RULES_H
#define VIGIL_KUBE_HANDLERS_WRITE_CUSTOM_RULES_H

#include "kube/handlers/write/change.h"

/* Removes the fields that the schema does not have, and appends them to `unknown` (as for
 * kube/handlers/write/body.h). */
MUST_CHECK
bool kube_custom_prune(struct kube_call *call, struct json_node *object, struct buf *unknown);
/* Steps: sets the defaults of the schema, and validates the object. Errors that the stored object
 * has and that have not changed are allowed, as in Kubernetes. */
kube_step_fn kube_custom_default, kube_custom_validate;
/* Step: sets the defaults of the status, which a new object does not take from its client. */
kube_step_fn kube_custom_default_again;
/* Returns false: the schema of the definition cannot be used; call->status says so. */
bool kube_custom_fail_schema(struct kube_call *call);
/* Answers that the definition has changed since the object was validated. */
void kube_custom_fail_changed(struct kube_call *call);

#endif
