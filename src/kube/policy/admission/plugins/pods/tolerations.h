/*
 * DefaultTolerationSeconds: a pod stays for five minutes on a node that is not ready or cannot be
 * reached, unless it says otherwise.
 */
#ifndef VIGIL_KUBE_POLICY_ADMISSION_PLUGINS_PODS_TOLERATIONS_H
#define VIGIL_KUBE_POLICY_ADMISSION_PLUGINS_PODS_TOLERATIONS_H

#include "kube/policy/admission/plugins/plugin.h"

extern const struct kube_admission_plugin kube_default_tolerations;

#endif
