/*
 * DefaultStorageClass: a claim without a class gets the default one. StorageObjectInUseProtection:
 * claims and volumes have a finalizer, which a controller removes when they are not used.
 * PersistentVolumeClaimResize: a claim can grow only if its class allows it.
 */
#ifndef VIGIL_KUBE_POLICY_ADMISSION_PLUGINS_STORAGE_H
#define VIGIL_KUBE_POLICY_ADMISSION_PLUGINS_STORAGE_H

#include "kube/policy/admission/plugins/plugin.h"

extern const struct kube_admission_plugin kube_default_storage_class;
extern const struct kube_admission_plugin kube_storage_protection;
extern const struct kube_admission_plugin kube_claim_resize;
extern const struct kube_fact_row kube_storage_classes;

#endif
