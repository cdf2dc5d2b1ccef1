/*
 * Validation of a built-in object before it is stored (kube/types/validate/validate.h): the one
 * place where creates and updates call it.
 */
#ifndef VIGIL_KUBE_HANDLERS_WRITE_BUILTIN_RULES_H
#define VIGIL_KUBE_HANDLERS_WRITE_BUILTIN_RULES_H

#include "codec/json/tree.h"

struct kube_call;

/* Whether kube_builtin_validate checks this write, and reports errors in metadata with its own. */
bool kube_builtin_validates(const struct kube_call *call);

/*
 * old NULL: the object is new. Objects of custom resources, and writes to subresources other than
 * /status, are not checked. Fails also with the causes that the status has already. False:
 * call->status says why.
 */
MUST_CHECK
bool kube_builtin_validate(struct kube_call *call, struct arena *arena,
                           const struct json_node *object, const struct json_node *old,
                           struct slice name);

#endif
