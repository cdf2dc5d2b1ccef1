/*
 * What only somebody who knows the schemas of kinds can do. Functions of kube_config's `schema`;
 * each may be NULL: then clients are told that there is no such format.
 */
#ifndef VIGIL_KUBE_API_SCHEMA_H
#define VIGIL_KUBE_API_SCHEMA_H

#include "codec/json/tree.h"
#include "kube/resource/kind.h"
#include "kube/status/status.h"

struct kube_schema {
    /* Changes the object by a strategic merge patch; it may be changed on the way. */
    bool (*patch)(struct arena *arena, const struct kube_kind *kind, struct json_node *object,
                  const struct json_node *patch, struct json_node **ret_object,
                  struct kube_status *status);
    /* Reads "k8s\0" and what follows; texts may lie in the bytes. */
    bool (*read_protobuf)(struct arena *arena, const struct kube_kind *kind, struct slice bytes,
                          struct json_node **ret_object, struct kube_status *status);
    /*
     * Takes out of an object what its type does not have and appends that to unknown: unknown field
     * "spec.a", … False: a value is of another type. An object says of which kind it is; one that
     * does not is of this kind if it is its `own`. One of a kind that is not known stays as it is.
     */
    bool (*settle)(const struct kube_kind *kind, bool own, struct json_node *object,
                   struct buf *unknown, struct kube_status *status);
    /* What the type has for a status when nothing is said of it; NULL: nothing. ST_NOMEM. */
    enum status (*zero_status)(struct arena *arena, const struct kube_kind *kind,
                               struct json_node **ret_status);
};

/* Of the built-in kinds: from the table of kube/schema/schema.h. */
extern const struct kube_schema kube_builtin_schema;

#endif
