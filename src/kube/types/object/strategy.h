/*
 * What the server changes in objects of particular kinds when they are written: secrets, config
 * maps, namespaces and pods. Mirrors the strategies of Kubernetes' registries. Each function that
 * fails returns false with *meta->status filled.
 */
#ifndef VIGIL_KUBE_TYPES_OBJECT_STRATEGY_H
#define VIGIL_KUBE_TYPES_OBJECT_STRATEGY_H

#include "kube/types/object/meta.h"

/*
 * What Go's types make of an object when it is decoded: the stringData of a secret is part of its
 * data, and a namespace that has a name has it as a label, and a daemon set has an annotation.
 */
MUST_CHECK
bool kube_strategy_decode(const struct kube_meta *meta, struct json_node *object);

/*
 * Prepares a new object: removes its status or sets the initial phase, adds the finalizer and the
 * name label of a namespace, and encodes the stringData of a secret into data.
 */
MUST_CHECK
bool kube_strategy_create(const struct kube_meta *meta, struct json_node *object);

/* Prepares an update in the same way; the name label of a namespace cannot be removed. */
MUST_CHECK
bool kube_strategy_update(const struct kube_meta *meta, const struct json_node *old,
                          struct json_node *object);

/*
 * The grace period of a delete in seconds. requested_s: that of the client, or -1 for the one in
 * the pod's spec. 0 for other kinds, and for pods that are finished or not assigned to a node.
 */
int64_t kube_strategy_grace_s(const struct kube_kind *kind, const struct json_node *object,
                              int64_t requested_s);

#endif
