/*
 * The body of a write as a tree: which formats there are, how large it may be, and what is said of
 * one that cannot be read.
 */
#ifndef VIGIL_KUBE_WRITE_BODY_H
#define VIGIL_KUBE_WRITE_BODY_H

#include "codec/json/tree.h"
#include "kube/call/call.h"

/*
 * By its Content-Type: JSON, YAML, or protobuf where schemas are known. In the call's arena; texts
 * lie in the request. NULL with true: there was no body. False: call->status says why.
 */
MUST_CHECK
bool kube_body_read(struct kube_call *call, const struct http_request *request,
                    struct json_node **ret_body);

enum kube_patch_type {
    KUBE_PATCH_JSON,
    KUBE_PATCH_MERGE,
    KUBE_PATCH_STRATEGIC,
    KUBE_PATCH_APPLY,
};

/* Keys that come twice are told by kube_body_settle_patched; those of an apply are told here. */
MUST_CHECK
bool kube_body_read_patch(struct kube_call *call, const struct http_request *request,
                          enum kube_patch_type *ret_type, struct json_node **ret_patch,
                          struct slice *ret_repeats);

/* Warning fields for the answer, one for each field that is unknown or comes twice. */
void kube_body_warn(struct kube_call *call, struct slice warnings);

/* A built-in object of which nobody has said a status: with the one that Go's type has then. False:
 * call->status says why. */
MUST_CHECK
bool kube_body_zero_status(struct kube_call *call, struct arena *arena, struct json_node *object);

/* An object that a patch has made: without what its type has not. False: call->status says why. */
MUST_CHECK
bool kube_body_settle_patched(struct kube_call *call, struct json_node *object,
                              struct slice repeats);

#endif
