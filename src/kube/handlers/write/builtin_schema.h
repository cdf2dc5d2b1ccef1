/*
 * What writes of built-in kinds need from the schema table (kube/types/schema/schema.h). Functions
 * return false with the status set.
 */
#ifndef VIGIL_KUBE_HANDLERS_WRITE_BUILTIN_SCHEMA_H
#define VIGIL_KUBE_HANDLERS_WRITE_BUILTIN_SCHEMA_H

#include "codec/json/tree.h"
#include "kube/types/kind.h"
#include "kube/types/status.h"

/* The object with a strategic merge patch; the given one may be changed. */
MUST_CHECK
bool kube_schema_patch(struct arena *arena, const struct kube_kind *kind, struct json_node *object,
                       const struct json_node *patch, struct json_node **ret_object,
                       struct kube_status *status);

/* Decodes "k8s\0" and the message after it; texts may refer to the bytes. */
MUST_CHECK
bool kube_schema_read_protobuf(struct arena *arena, const struct kube_kind *kind,
                               struct slice bytes, struct json_node **ret_object,
                               struct kube_status *status);

/*
 * Removes the fields that the type of an object does not have, and appends them to `unknown`:
 * unknown field "spec.a", … False: a value has another type. The type is that of the kind that the
 * object names; if it names none, of this kind, provided that it is its `own`. An object of an
 * unknown kind stays as it is.
 */
MUST_CHECK
bool kube_schema_prune(const struct kube_kind *kind, bool own, struct json_node *object,
                       struct buf *unknown, struct kube_status *status);

/* The zero value of the status of a kind, which Go would have encoded; NULL: none. ST_NOMEM. */
MUST_CHECK
enum status kube_schema_zero_status(struct arena *arena, const struct kube_kind *kind,
                                    struct json_node **ret_status);

#endif
