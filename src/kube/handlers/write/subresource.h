/* Which subresource a path names, and answers for those that do not exist. */
#ifndef VIGIL_KUBE_HANDLERS_WRITE_SUBRESOURCE_H
#define VIGIL_KUBE_HANDLERS_WRITE_SUBRESOURCE_H

#include "kube/call/call.h"

/* The path names this subresource, and the kind has it. */
bool kube_is_status(const struct kube_call *call);
bool kube_is_scale(const struct kube_call *call);
bool kube_is_finalize(const struct kube_call *call);
/* …/serviceaccounts/x/token, if this server issues tokens */
bool kube_is_token(const struct kube_call *call);
/* …/pods/x/binding, …/pods/x/eviction */
bool kube_is_post_subresource(const struct kube_call *call);

/* Whether a kind is that of the namespaces. */
bool kube_is_namespaces(const struct kube_kind *kind);

/* Answers that the object has no such subresource. */
void kube_no_subresource(struct kube_call *call);
/* Answers that the path does not allow the method. */
void kube_not_allowed(struct kube_call *call);

#endif
