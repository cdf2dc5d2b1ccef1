/*
 * The plugins that are nothing but a row of the chain (kube/policy/admission/admission.c), and the
 * kinds of objects from which they decide. Each row is in the source that is named after it; the
 * head of that source says what the plugin does. Plugins with functions for others have a header of
 * their own: namespace_lifecycle.h, amounts/limit_range.h, amounts/quota.h.
 */
#ifndef VIGIL_KUBE_POLICY_ADMISSION_PLUGINS_PLUGINS_H
#define VIGIL_KUBE_POLICY_ADMISSION_PLUGINS_PLUGINS_H

#include "kube/policy/admission/plugins/plugin.h"

extern const struct kube_admission_plugin kube_certificate_approver;
extern const struct kube_admission_plugin kube_certificate_signer;
extern const struct kube_admission_plugin kube_certificate_subject;
extern const struct kube_admission_plugin kube_default_ingress_class;
extern const struct kube_admission_plugin kube_external_ips;
extern const struct kube_admission_plugin kube_node_taint;
extern const struct kube_admission_plugin kube_default_storage_class;
extern const struct kube_admission_plugin kube_storage_protection;
extern const struct kube_admission_plugin kube_claim_resize;
extern const struct kube_admission_plugin kube_pod_security;
extern const struct kube_admission_plugin kube_priority;
extern const struct kube_admission_plugin kube_runtime_class;
extern const struct kube_admission_plugin kube_service_account;
extern const struct kube_admission_plugin kube_default_tolerations;

extern const struct kube_fact_row kube_ingress_classes;
extern const struct kube_fact_row kube_storage_classes;
extern const struct kube_fact_row kube_priority_classes;
extern const struct kube_fact_row kube_runtime_classes;
extern const struct kube_fact_row kube_accounts;

#endif
