/*
 * ServiceAccount: a pod runs as a service account that exists, by default as "default", gets the
 * volume with the token of that account and its secrets for images, and may be limited to the
 * secrets that the account names. Without controllers no program creates the account "default".
 */
#ifndef VIGIL_KUBE_POLICY_ADMISSION_PLUGINS_PODS_SERVICE_ACCOUNT_H
#define VIGIL_KUBE_POLICY_ADMISSION_PLUGINS_PODS_SERVICE_ACCOUNT_H

#include "kube/policy/admission/plugins/plugin.h"

extern const struct kube_admission_plugin kube_service_account;
extern const struct kube_fact_row kube_accounts;

#endif
