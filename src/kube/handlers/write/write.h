/*
 * Writes: what kube/server/dispatch.c calls, and the handlers of those that are not a create or an
 * update of one object. Each answers its call, now or later.
 */
#ifndef VIGIL_KUBE_HANDLERS_WRITE_WRITE_H
#define VIGIL_KUBE_HANDLERS_WRITE_WRITE_H

#include "kube/call/call.h"

/* Every request that is not a read. The steps of a write are listed in write.c. */
void kube_mutate(struct kube_call *call);

void kube_delete(struct kube_call *call);
void kube_delete_collection(struct kube_call *call);
/* POST of a Binding or an Eviction of a pod. */
void kube_post_subresource(struct kube_call *call);
/* POST of a TokenRequest to a service account. */
void kube_account_request(struct kube_call *call);
/* POST of a review, which is answered and not stored: access and tokens. */
void kube_review(struct kube_call *call);

#endif
