/*
 * Checks of the Pod Security Standards (kube/policy/security/checks.h) about what a pod shares with
 * its node: namespaces, directories, ports, settings of the kernel, and hosts that it lets the node
 * connect to.
 */
#ifndef VIGIL_KUBE_POLICY_SECURITY_SHARING_H
#define VIGIL_KUBE_POLICY_SECURITY_SHARING_H

#include "kube/policy/security/checked.h"

bool pod_passes_host_namespaces(struct pod_checked *checked);
bool pod_passes_host_paths(struct pod_checked *checked);
bool pod_passes_host_ports(struct pod_checked *checked);
bool pod_passes_hosts(struct pod_checked *checked);
bool pod_passes_sysctls(struct pod_checked *checked);
bool pod_passes_volumes(struct pod_checked *checked);

#endif
