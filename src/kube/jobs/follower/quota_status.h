/*
 * Fills in the status of quotas, which in Kubernetes is a part of kube-controller-manager: what is
 * permitted (status.hard) and what is in use (status.used). Admission charges each write to this
 * status (kube/policy/admission/amounts/quota.h); this job counts again after deletions, changes of
 * a quota, and everything else that admission does not see. One API of a server has it, as a
 * follower (kube/jobs/follower/follower.h), which stands back while kube-controller-manager holds
 * its lease.
 *
 *     an event ─► its namespace is due a little later ─► QUOTAS ─► KINDS ─► COUNT ─► WRITE
 *                 (once for many events)                  ▲ some    custom   objects,  each one
 *                                                         │ of them kinds    kind by   that differs
 *                                                         └── more            kind ───────┘
 *
 * All reads of a count are of one revision, and a status is written on the condition that the quota
 * is still the one of that revision. If not, because a write was charged to it meanwhile, the
 * namespace is counted once more later. A namespace whose count takes long is counted less often.
 */
#ifndef VIGIL_KUBE_JOBS_FOLLOWER_QUOTA_STATUS_H
#define VIGIL_KUBE_JOBS_FOLLOWER_QUOTA_STATUS_H

struct http_route;
struct kube_api;

/* Does nothing if the configuration does not want it. The route is that of the API. */
void kube_quota_status_start(struct kube_api *api, const struct http_route *route);

#endif
