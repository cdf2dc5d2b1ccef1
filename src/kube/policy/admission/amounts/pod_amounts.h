/*
 * What a pod requests, or is limited to, in total: the sum of its containers, but at least what an
 * init container needs while it runs. Sidecars (init containers that are always restarted) run
 * beside every container behind them. Amounts of the pod itself replace those of its containers.
 * While a container is resized it counts with the most of what its spec wants and of what the
 * kubelet has reported.
 */
#ifndef VIGIL_KUBE_POLICY_ADMISSION_AMOUNTS_POD_AMOUNTS_H
#define VIGIL_KUBE_POLICY_ADMISSION_AMOUNTS_POD_AMOUNTS_H

#include "kube/policy/admission/amounts/amounts.h"

enum kube_pod_list { KUBE_POD_REQUESTS, KUBE_POD_LIMITS };

/* Limit ranges look only at what users have set, not at reports of the kubelet. */
enum kube_pod_extent {
    KUBE_POD_WITHOUT_OVERHEAD, /* and without the huge pages of the pod itself */
    KUBE_POD_WITH_OVERHEAD,
};

/* Fills the places of the amounts, which are empty before. ST_NOMEM. */
MUST_CHECK
enum status kube_pod_amounts(const struct json_node *pod, enum kube_pod_list list,
                             enum kube_pod_extent extent, struct arena *arena,
                             struct kube_amounts *amounts);

/* Whether the pod itself has an amount of a resource for which this is supported. */
bool kube_pod_has_own_amounts(const struct json_node *pod);

#endif
