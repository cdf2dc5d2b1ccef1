/*
 * NamespaceLifecycle: nothing is created in a namespace that does not exist or is being deleted,
 * and three namespaces cannot be deleted. A create reads its namespace itself, because its revision
 * is a condition of the write (kube/handlers/write/create.c).
 */
#ifndef VIGIL_KUBE_POLICY_ADMISSION_PLUGINS_NAMESPACE_LIFECYCLE_H
#define VIGIL_KUBE_POLICY_ADMISSION_PLUGINS_NAMESPACE_LIFECYCLE_H

#include "kube/policy/admission/plugins/plugin.h"

extern const struct kube_admission_plugin kube_namespace_lifecycle; /* the first of the chain */

/* Whether an object may be created in a namespace, which is given as it is stored; empty: it does
 * not exist. False: write->status says why. */
MUST_CHECK
bool kube_namespace_accepts(const struct kube_admission_write *write, struct slice stored);

#endif
