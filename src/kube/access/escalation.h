/*
 * Checks of writes to roles and bindings, as in Kubernetes: a user may give away only permissions
 * that it has itself in that namespace, unless it may `escalate` the role or `bind` to it. On the
 * thread of the API.
 */
#ifndef VIGIL_KUBE_ACCESS_ESCALATION_H
#define VIGIL_KUBE_ACCESS_ESCALATION_H

#include "kube/access/rbac.h"
#include "kube/resource/kind.h"
#include "kube/status/status.h"

/* One write; all borrowed. */
struct kube_escalation {
    struct kube_rbac *rbac;
    const void *owner; /* of fetches; see kube_rbac_begin */
    const struct kube_user_info *user;
    const struct kube_kind *kind;
    struct slice namespace, name; /* of the path */
    struct arena *arena;          /* of the texts of the status */
    struct kube_status *status;
};

/* Whether the kind is a role or binding, and the user may not do everything. */
bool kube_escalation_applies(const struct kube_user_info *user, const struct kube_kind *kind);

/* value: the object as it is to be stored; old: as it is stored, or empty. False: *status says why;
 * not if kube_rbac_lacks, because then it must be checked again with what is lacking. */
MUST_CHECK
bool kube_escalation_check(const struct kube_escalation *write, struct slice value,
                           struct slice old);

#endif
