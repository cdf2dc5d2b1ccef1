/*
 * Priority: a pod gets the number and the preemption policy of its priority class, or of the
 * default class, and cannot choose them itself. Only one class can be the default.
 */
#ifndef VIGIL_KUBE_POLICY_ADMISSION_PLUGINS_PODS_PRIORITY_H
#define VIGIL_KUBE_POLICY_ADMISSION_PLUGINS_PODS_PRIORITY_H

#include "kube/policy/admission/plugins/plugin.h"

extern const struct kube_admission_plugin kube_priority;
extern const struct kube_fact_row kube_priority_classes;

#endif
