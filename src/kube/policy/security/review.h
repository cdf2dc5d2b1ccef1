/*
 * Compares a pod with one of the Pod Security Standards. Each standard is a list of checks
 * (kube/policy/security/checks.h); later versions of Kubernetes have added checks and changed some.
 *
 * Pure, on any thread. The time is in proportion to the size of the pod, apart from sorting.
 */
#ifndef VIGIL_KUBE_POLICY_SECURITY_REVIEW_H
#define VIGIL_KUBE_POLICY_SECURITY_REVIEW_H

#include "kube/policy/security/standard.h"

/* The newest version that has changed something: later ones and "latest" are the same. */
enum { POD_SECURITY_NEWEST_MINOR = 35 };

/*
 * Appends what violates the standard, nothing if the pod complies with it:
 *
 *     privileged (container "a" must not set securityContext.privileged=true), host namespaces (…)
 *
 * Without details only `privileged, host namespaces`. metadata and spec are those of a pod or of a
 * pod template. ST_NOMEM: the arena or the buffer ran out.
 */
MUST_CHECK
enum status pod_review(const struct pod_standard *standard, const struct json_node *metadata,
                       const struct json_node *spec, struct arena *arena, bool with_details,
                       struct buf *to);

#endif
