/* The quality of service of a pod: how its requests and limits of CPU and memory relate. */
#ifndef VIGIL_KUBE_TYPES_OBJECT_QOS_H
#define VIGIL_KUBE_TYPES_OBJECT_QOS_H

#include "codec/json/tree.h"

/* "Guaranteed", "Burstable" or "BestEffort", as ComputePodQOS of Kubernetes. */
const char *kube_qos_class(const struct json_node *pod);

#endif
