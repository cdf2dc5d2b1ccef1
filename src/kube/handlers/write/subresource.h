/* Which subresource a path names, and answers for those that do not exist. */
#ifndef VIGIL_KUBE_HANDLERS_WRITE_SUBRESOURCE_H
#define VIGIL_KUBE_HANDLERS_WRITE_SUBRESOURCE_H

#include "kube/call/call.h"

/* The one that the path names, if the kind has it. */
enum kube_subresource kube_subresource_of(const struct kube_call *call);

/* Answers that the object has no such subresource, or that it does not allow the method. */
void kube_no_subresource(struct kube_call *call);
/* Answers that the path does not allow the method. */
void kube_not_allowed(struct kube_call *call);

#endif
