/*
 * Impersonation: a request that is made in the name of another user, with Impersonate-User, -Group,
 * -Uid and -Extra-… fields. Its sender must be allowed to impersonate each of them.
 */
#ifndef VIGIL_KUBE_POLICY_ACCESS_IMPERSONATE_H
#define VIGIL_KUBE_POLICY_ACCESS_IMPERSONATE_H

#include "kube/policy/access/rbac/attributes.h"

struct http_request;

struct kube_impersonation {
    bool wanted;
    struct kube_user_info user;           /* whose name is used */
    const struct kube_attributes *checks; /* what its sender must be allowed to do */
    size_t check_count;
};

/* In the arena, which remembers if it ran out. False: the fields are not valid; *status has
 * Kubernetes' error. */
MUST_CHECK
bool kube_impersonation_read(struct arena *arena, const struct http_request *request,
                             struct kube_impersonation *ret_impersonation,
                             struct kube_status *status);

#endif
