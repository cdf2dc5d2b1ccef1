/*
 * Strict decoding of an object by its type: unknown members are removed and reported, and values of
 * wrong types are errors, as when Kubernetes decodes JSON into its structs.
 */
#ifndef VIGIL_KUBE_TYPES_SCHEMA_STRICT_H
#define VIGIL_KUBE_TYPES_SCHEMA_STRICT_H

#include "codec/json/tree.h"
#include "kube/types/schema/schema.h"

/* Limit of reported names; further unknown members are removed silently. */
enum { KUBE_STRICT_UNKNOWN_MAX = 64 };

/*
 * Appends to unknown: unknown field "spec.a", unknown field "spec.b[0].c". It may have text
 * already. ST_INVALID: *error has Go's text for a value of a wrong type. ST_NOMEM.
 */
MUST_CHECK
enum status kube_strict(const struct kube_type *type, struct json_node *object, struct buf *unknown,
                        struct error *error);

#endif
