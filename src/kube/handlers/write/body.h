/*
 * Parses the body of a write into a tree: formats, limits, and the errors for a body that cannot be
 * read.
 */
#ifndef VIGIL_KUBE_HANDLERS_WRITE_BODY_H
#define VIGIL_KUBE_HANDLERS_WRITE_BODY_H

#include "codec/json/tree.h"
#include "kube/handlers/write/change.h"

/*
 * By its Content-Type: JSON, YAML, or protobuf for built-in kinds. In the call's arena; texts refer
 * to the request. NULL with true: there was no body. False: call->status says why.
 */
MUST_CHECK
bool kube_body_read(struct kube_call *call, const struct http_request *request,
                    struct json_node **ret_body);

/* The same for a body that must be there: an object of this type, which errors name. */
MUST_CHECK
bool kube_body_read_object(struct kube_call *call, const struct http_request *request,
                           const char *type, struct json_node **ret_object);

/* What is posted to an object gets the kind and the namespace that its path says. False: no memory.
 */
MUST_CHECK
bool kube_body_set_posted(struct kube_call *call, struct json_node *body, const char *version,
                          const char *kind);

/* Duplicate keys are reported by kube_body_prune_patched; those of an apply by
 * kube_body_report_config. */
MUST_CHECK
bool kube_body_read_patch(struct kube_call *call, const struct http_request *request,
                          enum kube_patch_type *ret_type, struct json_node **ret_patch,
                          struct slice *ret_repeats);

/* Reports the duplicate keys of a configuration, as Kubernetes does after it was applied. False:
 * call->status says why. */
MUST_CHECK
bool kube_body_report_config(struct kube_call *call, struct slice repeats);

/* Adds a Warning field to the answer for each unknown or duplicate field. */
void kube_body_warn(struct kube_call *call, struct slice warnings);

/* Sets the zero status of Go's type in a built-in object that has none. False: call->status says
 * why. */
MUST_CHECK
bool kube_body_zero_status(struct kube_call *call, struct arena *arena, struct json_node *object);

/* Removes the fields that the type does not have from a patched object. False: call->status says
 * why. */
MUST_CHECK
bool kube_body_prune_patched(struct kube_call *call, struct json_node *object,
                             struct slice repeats);

#endif
