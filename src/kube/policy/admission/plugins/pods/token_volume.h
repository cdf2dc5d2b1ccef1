/*
 * The volume with the token of a service account, the certificate of the cluster and the name of
 * the namespace, which every container of a pod mounts unless it has something else there.
 */
#ifndef VIGIL_KUBE_POLICY_ADMISSION_PLUGINS_PODS_TOKEN_VOLUME_H
#define VIGIL_KUBE_POLICY_ADMISSION_PLUGINS_PODS_TOKEN_VOLUME_H

#include "kube/policy/admission/plugins/plugin.h"

/* False: no memory, with write->status filled. */
MUST_CHECK
bool kube_token_volume_add(struct kube_admission_write *write, struct json_node *spec);

#endif
