/* The handlers of writes, one file each; each answers its call, now or later. */
#ifndef VIGIL_KUBE_HANDLERS_WRITE_WRITE_H
#define VIGIL_KUBE_HANDLERS_WRITE_WRITE_H

#include "codec/json/tree.h"
#include "kube/call/call.h"

void kube_create(struct kube_call *call, const struct http_request *request);
void kube_update(struct kube_call *call, const struct http_request *request);
void kube_patch(struct kube_call *call, const struct http_request *request);
void kube_delete(struct kube_call *call, const struct http_request *request);
void kube_delete_collection(struct kube_call *call, const struct http_request *request);
/* POST of a Binding or an Eviction of a pod. */
void kube_post_subresource(struct kube_call *call, const struct http_request *request);
/* POST of a TokenRequest to a service account. */
void kube_account_request(struct kube_call *call, const struct http_request *request);
/* POST of a review, which is answered and not stored: access and tokens. */
void kube_review(struct kube_call *call, const struct http_request *request);

/* GET …/scale */
void kube_scale_get(struct kube_call *call);

/*
 * The Scale of an object, which has the current and the wanted number of replicas, in the arena. It
 * has a resourceVersion, so that it can be patched and sent back.
 */
MUST_CHECK
bool kube_scale_make(struct arena *arena, const struct kube_kind *kind,
                     const struct json_node *object, int64_t revision, struct json_node **ret_scale,
                     struct kube_status *status);

/* Calls the handler of a POST, PUT, PATCH or DELETE; false: it is another method. */
MUST_CHECK
bool kube_mutate(struct kube_call *call, const struct http_request *request);

#endif
