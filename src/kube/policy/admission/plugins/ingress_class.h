/* DefaultIngressClass: an ingress without a class gets the default one. */
#ifndef VIGIL_KUBE_POLICY_ADMISSION_PLUGINS_INGRESS_CLASS_H
#define VIGIL_KUBE_POLICY_ADMISSION_PLUGINS_INGRESS_CLASS_H

#include "kube/policy/admission/plugins/plugin.h"

extern const struct kube_admission_plugin kube_default_ingress_class;
extern const struct kube_fact_row kube_ingress_classes;

#endif
