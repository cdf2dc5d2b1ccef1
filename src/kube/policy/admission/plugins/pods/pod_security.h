/*
 * PodSecurity: the labels of a namespace say by which of the Pod Security Standards
 * (kube/policy/security/standard.h) its pods are judged. A pod that violates the enforced one is
 * refused; workloads, whose pods would be refused later, and pods that violate the one of the mode
 * "warn" cause a Warning. The labels themselves must be valid.
 */
#ifndef VIGIL_KUBE_POLICY_ADMISSION_PLUGINS_PODS_POD_SECURITY_H
#define VIGIL_KUBE_POLICY_ADMISSION_PLUGINS_PODS_POD_SECURITY_H

#include "kube/policy/admission/plugins/plugin.h"

extern const struct kube_admission_plugin kube_pod_security;

#endif
