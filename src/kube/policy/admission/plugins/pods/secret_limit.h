/*
 * Which secrets a pod refers to, and whether its service account names them: an account with the
 * annotation kubernetes.io/enforce-mountable-secrets limits its pods to those.
 */
#ifndef VIGIL_KUBE_POLICY_ADMISSION_PLUGINS_PODS_SECRET_LIMIT_H
#define VIGIL_KUBE_POLICY_ADMISSION_PLUGINS_PODS_SECRET_LIMIT_H

#include "kube/policy/access/rbac/user.h"
#include "kube/types/status.h"

struct kube_secret_limit {
    struct kube_texts secrets, pull_secrets;
    struct slice account;
};

/* All secrets of a new pod, or those of its ephemeral containers. False: why says so. */
MUST_CHECK
bool kube_secret_limit_pod(const struct kube_secret_limit *limit, struct arena *arena,
                           const struct json_node *spec, char why[KUBE_MESSAGE_BYTES]);
MUST_CHECK
bool kube_secret_limit_debug(const struct kube_secret_limit *limit, struct arena *arena,
                             const struct json_node *spec, char why[KUBE_MESSAGE_BYTES]);

/* Whether a pod refers to a secret, or projects the token of an account, anywhere. */
bool kube_pod_uses_secrets(const struct json_node *spec);
bool kube_pod_uses_token(const struct json_node *spec);

#endif
