/*
 * Fills in the status of ValidatingAdmissionPolicies, which in Kubernetes is the work of
 * kube-controller-manager's controller validatingadmissionpolicy-status: each generation of a
 * policy is checked once against the kinds that its rules name (kube/policy/policies/type_check.h),
 * by the definitions of that moment. One API of a server does it, as a follower
 * (kube/jobs/follower/follower.h), which stands back while kube-controller-manager holds its lease.
 *
 *     a policy that was written ─► READ ─► is its generation new? ─► KINDS ─► CHECK ─► WRITE
 *                                                                              │  ▲
 *                                                          each kind, on the ──┘──┘
 *                                                          worker
 */
#ifndef VIGIL_KUBE_JOBS_FOLLOWER_POLICY_STATUS_H
#define VIGIL_KUBE_JOBS_FOLLOWER_POLICY_STATUS_H

struct http_route;
struct kube_api;

/* Does nothing if the configuration does not want it, or ValidatingAdmissionPolicy is
 * disabled. The route is that of the API. */
void kube_policy_status_start(struct kube_api *api, const struct http_route *route);

#endif
