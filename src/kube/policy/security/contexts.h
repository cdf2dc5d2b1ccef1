/*
 * Checks of the Pod Security Standards (kube/policy/security/checks.h) about security contexts: the
 * user and the privileges with which the containers of a pod run.
 */
#ifndef VIGIL_KUBE_POLICY_SECURITY_CONTEXTS_H
#define VIGIL_KUBE_POLICY_SECURITY_CONTEXTS_H

#include "kube/policy/security/checked.h"

/* Versions at which checks have changed. */
enum {
    POD_SECCOMP_FIELDS_MINOR = 19,  /* before it there were only annotations */
    POD_CAPABILITIES_MINOR = 22,    /* containers must drop all capabilities */
    POD_WINDOWS_MINOR = 25,         /* Windows has no privileges of Linux to give up */
    POD_ENGINE_TYPE_MINOR = 31,     /* another type of SELinux */
    POD_USER_NAMESPACES_MINOR = 35, /* root in one of them is not root on the node */
};

bool pod_passes_app_armor(struct pod_checked *checked);
bool pod_passes_capabilities(struct pod_checked *checked);
bool pod_passes_default_capabilities(struct pod_checked *checked);
bool pod_passes_escalation(struct pod_checked *checked);
bool pod_passes_non_root(struct pod_checked *checked);
bool pod_passes_privileged(struct pod_checked *checked);
bool pod_passes_proc_mount(struct pod_checked *checked);
/* Also for pods with a user namespace. */
bool pod_passes_proc_mount_always(struct pod_checked *checked);
bool pod_passes_se_linux(struct pod_checked *checked);
/* No profile is forbidden; and: one is required. */
bool pod_passes_seccomp(struct pod_checked *checked);
bool pod_passes_seccomp_set(struct pod_checked *checked);
bool pod_passes_user(struct pod_checked *checked);
bool pod_passes_windows(struct pod_checked *checked);

#endif
