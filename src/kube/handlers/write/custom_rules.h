/*
 * Rules for writing custom resources: objects are pruned, defaulted and validated by the schema of
 * their definition. For every other kind these do nothing and return true. False: call->status says
 * why.
 */
#ifndef VIGIL_KUBE_HANDLERS_WRITE_CUSTOM_RULES_H
#define VIGIL_KUBE_HANDLERS_WRITE_CUSTOM_RULES_H

#include "codec/json/tree.h"
#include "kube/call/call.h"

/* Removes the fields that the schema does not have, and appends them to `unknown` (as for
 * kube/handlers/write/body.h). */
MUST_CHECK
bool kube_custom_prune(struct kube_call *call, struct json_node *object, struct buf *unknown);
/* Sets the defaults of the schema. */
MUST_CHECK
bool kube_custom_default(struct kube_call *call, struct arena *arena, struct json_node *object);
/* Validates an object. old NULL: it is new. Errors that it had before and that have not changed are
 * allowed, as in Kubernetes. */
MUST_CHECK
bool kube_custom_validate(struct kube_call *call, struct arena *arena,
                          const struct json_node *object, const struct json_node *old,
                          struct slice name);
/* Returns false: the schema of the definition cannot be used; call->status says so. */
bool kube_custom_fail_schema(struct kube_call *call);
/* Answers that the definition has changed since the object was validated. */
void kube_custom_fail_changed(struct kube_call *call);

#endif
