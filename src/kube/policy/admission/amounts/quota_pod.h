/* Whether a change of a stored pod can matter to quotas. Read from the JSON without building a
 * tree.
 */
#ifndef VIGIL_KUBE_POLICY_ADMISSION_AMOUNTS_QUOTA_POD_H
#define VIGIL_KUBE_POLICY_ADMISSION_AMOUNTS_QUOTA_POD_H

#include "base/slice.h"

/* Kubelets write the status of pods often, and most of it makes no difference: the pod uses what it
 * used before. False: it may use another amount, or it cannot be read. */
bool kube_quota_pod_is_same(struct slice now, struct slice before);

#endif
