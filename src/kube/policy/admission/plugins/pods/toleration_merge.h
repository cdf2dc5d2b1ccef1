/* Tolerations of a pod and of its runtime class together, without those that others contain. */
#ifndef VIGIL_KUBE_POLICY_ADMISSION_PLUGINS_PODS_TOLERATION_MERGE_H
#define VIGIL_KUBE_POLICY_ADMISSION_PLUGINS_PODS_TOLERATION_MERGE_H

#include "codec/json/tree.h"

/* Every two of them are compared; with more, nothing is left out. */
enum { KUBE_TOLERATIONS_COMPARED_MAX = 200 };

/* Adds more (may be NULL) to the list and removes what is redundant. ST_NOMEM. */
MUST_CHECK
enum status kube_tolerations_merge(struct arena *arena, struct json_node *list,
                                   const struct json_node *more);

#endif
