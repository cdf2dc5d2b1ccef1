/* The handlers of writes, one file each; each answers its call, now or later. */
#ifndef VIGIL_KUBE_API_WRITE_H
#define VIGIL_KUBE_API_WRITE_H

#include "codec/json/tree.h"
#include "kube/api/call.h"

void kube_create(struct kube_call *call, const struct http_request *request);
void kube_update(struct kube_call *call, const struct http_request *request);
void kube_patch(struct kube_call *call, const struct http_request *request);
void kube_delete(struct kube_call *call, const struct http_request *request);
void kube_delete_collection(struct kube_call *call, const struct http_request *request);
/* A Binding or an Eviction of a pod. */
void kube_post(struct kube_call *call, const struct http_request *request);
/* Questions with an answer: what may I, who am I. */
void kube_review(struct kube_call *call, const struct http_request *request);

/* GET …/scale */
void kube_scale_get(struct kube_call *call);

/*
 * An object and its Scale, which says how many replicas there are and shall be; `ret_scale` in the
 * arena. With resourceVersion, so that it can be patched and sent back.
 */
MUST_CHECK
bool kube_scale_make(struct arena *arena, const struct kube_kind *kind,
                     const struct json_node *object, int64_t revision, struct json_node **ret_scale,
                     struct kube_status *status);

/* The path leads to a part of an object that there is not: answers so. */
void kube_no_subresource(struct kube_call *call);
/* True: the path has no subresource but one of these, and the kind has it. */
bool kube_is_status(const struct kube_call *call);
bool kube_is_scale(const struct kube_call *call);
bool kube_is_finalize(const struct kube_call *call);
/* …/pods/x/binding, …/pods/x/eviction */
bool kube_is_posting(const struct kube_call *call);

/* A namespace that may not be deleted or created into; false: call->status says why. */
bool kube_is_namespaces(const struct kube_kind *kind);

#endif
