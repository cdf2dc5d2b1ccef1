/*
 * An object as its type would have it: members that the type has not are taken out and told, values
 * of another type are refused, as when Kubernetes fills its structs from JSON.
 */
#ifndef VIGIL_KUBE_SCHEMA_STRICT_H
#define VIGIL_KUBE_SCHEMA_STRICT_H

#include "codec/json/tree.h"
#include "kube/schema/schema.h"

/* Of names told; the rest is taken out without a word. */
enum { KUBE_STRICT_UNKNOWN_MAX = 64 };

/*
 * Appends to unknown: unknown field "spec.a", unknown field "spec.b[0].c". It may hold some
 * already. ST_INVALID: the error has Go's words for a value that does not fit. ST_NOMEM.
 */
MUST_CHECK
enum status kube_strict(const struct kube_type *type, struct json_node *object, struct buf *unknown,
                        struct error *error);

#endif
