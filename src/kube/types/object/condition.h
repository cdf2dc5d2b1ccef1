/* The conditions in the status of an object. There is at most one of each type. */
#ifndef VIGIL_KUBE_TYPES_OBJECT_CONDITION_H
#define VIGIL_KUBE_TYPES_OBJECT_CONDITION_H

#include "kube/types/object/meta.h"

/* Returns NULL if there is no condition of that type. */
struct json_node *kube_condition_find(struct json_node *status, const char *type);

/*
 * Sets the condition of that type, or adds it; lastTransitionTime changes only when the condition's
 * status changes. False: no memory, with meta->status filled.
 */
MUST_CHECK
bool kube_condition_set(const struct kube_meta *meta, struct json_node *status, const char *type,
                        bool truth, const char *reason, struct slice message);

#endif
