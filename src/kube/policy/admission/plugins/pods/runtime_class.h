/*
 * RuntimeClass: a pod with a runtime class gets the overhead, node selector and tolerations of that
 * class. An overhead that is not that of its class is refused.
 */
#ifndef VIGIL_KUBE_POLICY_ADMISSION_PLUGINS_PODS_RUNTIME_CLASS_H
#define VIGIL_KUBE_POLICY_ADMISSION_PLUGINS_PODS_RUNTIME_CLASS_H

#include "kube/policy/admission/plugins/plugin.h"

extern const struct kube_admission_plugin kube_runtime_class;
extern const struct kube_fact_row kube_runtime_classes;

#endif
