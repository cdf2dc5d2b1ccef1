/*
 * Writes of CustomResourceDefinitions: kube/custom/definition_rules.h and the validation of the
 * definition. For every other kind these do nothing and return true. False: call->status says why.
 */
#ifndef VIGIL_KUBE_HANDLERS_WRITE_DEFINITION_H
#define VIGIL_KUBE_HANDLERS_WRITE_DEFINITION_H

#include "kube/call/call.h"
#include "kube/custom/definition_rules.h"

MUST_CHECK
bool kube_definition_create(struct kube_call *call, const struct kube_meta *meta,
                            struct json_node *object, struct slice name);
/* Before the update is compared with the stored object: defaults are not changes. */
MUST_CHECK
bool kube_definition_default(struct kube_call *call, const struct kube_meta *meta,
                             struct json_node *object);
/* After kube_definition_default. */
MUST_CHECK
bool kube_definition_update(struct kube_call *call, const struct kube_meta *meta,
                            struct json_node *object, const struct json_node *stored);

#endif
