/*
 * Writes whose user must have permissions that follow from the object, as in Kubernetes:
 *
 *     roles and bindings                   all that they give away (escalation.c)
 *     admission policies, their bindings   to read the parameters that they name (param_check.c)
 *     resourceclaims/x/status              to bind claims, to report for drivers (device_check.c)
 *     every object whose owners change     to delete it, to set finalizers of owners whose deletion
 *                                          it blocks, with the plugin for that (owner_check.c)
 *
 * The object is compared with the stored one right before it is written, on the thread of the API.
 * What a request needs besides its verb without looking at the new object is in
 * kube/policy/access/write_right.h.
 */
#ifndef VIGIL_KUBE_POLICY_ACCESS_GUARD_H
#define VIGIL_KUBE_POLICY_ACCESS_GUARD_H

#include "kube/custom/kinds.h"
#include "kube/policy/access/rbac/rbac.h"
#include "kube/types/kind.h"
#include "kube/types/status.h"

/* One write; all borrowed. */
struct kube_guarded_write {
    struct kube_rbac *rbac;
    const void *owner; /* owner of fetches; see kube_rbac_begin */
    const struct kube_user_info *user;
    const struct kube_kind *kind;
    struct slice verb;                         /* "create", "update" or "patch" */
    struct slice namespace, name, subresource; /* parts of the path */
    bool owned;                                /* its owners change, and the plugin is enabled */
    struct kube_kinds *kinds;                  /* that can be parameters and owners */
    struct slice policy; /* what kube_guard_needs has named; empty: it does not exist */
    struct arena *arena; /* memory of the texts of the status */
    struct kube_status *status;
};

/* Whether the kind has a check of its own, and the user may not do everything. */
bool kube_guard_applies(const struct kube_user_info *user, const struct kube_kind *kind,
                        struct slice subresource);
/* Whether the owners of such an object may have to be checked: the status of pods is exempt, whose
 * owners it cannot change. */
bool kube_guard_applies_to_owners(const struct kube_user_info *user, const struct kube_kind *kind,
                                  struct slice subresource);
/* Whether the owners differ. old: NULL if it is new. */
bool kube_owners_change(const struct json_node *object, const struct json_node *old);

/* The key of another object that the check needs, in the arena of the write; empty: none. */
MUST_CHECK
enum status kube_guard_needs(const struct kube_guarded_write *write, struct slice value,
                             struct slice *ret_key);

/* value: the object as it is to be stored; old: as it is stored, or empty. False: *status says why;
 * not if kube_rbac_lacks, because then it must be checked again with what is lacking. */
MUST_CHECK
bool kube_guard_check(const struct kube_guarded_write *write, struct slice value, struct slice old);

/* What is needed for one check; all in its own arena. */
struct kube_guard_check {
    const struct kube_guarded_write *write;
    struct arena arena;
    struct json_node *object, *old; /* old NULL: it is new */
    struct slice name;
};

/* A check of one kind of object, in a file of its own. */
typedef bool kube_guard_fn(struct kube_guard_check *check);
kube_guard_fn kube_escalation_check, kube_param_check, kube_device_check, kube_owner_check;

/* For these: a member's text, empty if there is none, and what the user may do. */
struct slice kube_guard_text(struct kube_guard_check *check, const struct json_node *from,
                             const char *name);
/* Members that are missing, null or an empty array are the same: not set. */
bool kube_guard_is_set(const struct json_node *node);
bool kube_guard_is_same(const struct json_node *a, const struct json_node *b);
bool kube_guard_may(struct kube_guard_check *check, const struct kube_attributes *attributes,
                    char reason[KUBE_RBAC_REASON_BYTES]);

#endif
