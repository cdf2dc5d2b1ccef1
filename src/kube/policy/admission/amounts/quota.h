/*
 * ResourceQuota: what an object uses is added to the quotas of its namespace, and the object is
 * refused if there would be more than a quota permits. As in Kubernetes, the quotas' own status
 * decides, which kube-controller-manager fills: status.hard is what is permitted, status.used what
 * is in use. The new status is written in the transaction of the object, on the condition that the
 * quota has not changed: concurrent writes never use more than a quota permits.
 */
#ifndef VIGIL_KUBE_POLICY_ADMISSION_AMOUNTS_QUOTA_H
#define VIGIL_KUBE_POLICY_ADMISSION_AMOUNTS_QUOTA_H

#include "kube/policy/admission/plugins/plugin.h"

enum {
    KUBE_QUOTA_AMOUNTS_MAX = 128, /* resources in a quota */
    KUBE_QUOTA_SCOPES_MAX = 64,   /* with those of its selector, and values of one of these */
};

/* Whether the numbers of its resources and scopes are within the limits. */
bool kube_quota_is_sound(const struct json_node *quota);

/*
 * Whether the written object belongs to a quota. False: write->status says why it is refused,
 * because amounts are missing or the usage is not known yet.
 */
MUST_CHECK
bool kube_quota_matches(const struct kube_admission_write *write, struct slice name,
                        const struct json_node *quota, bool *ret_matches);
/*
 * Adds the usage of the object to a quota that it matches. *ret_charged: the quota with its new
 * status; NULL: it does not change. False: write->status says why it is refused.
 */
MUST_CHECK
bool kube_quota_charge(const struct kube_admission_write *write, struct slice name,
                       const struct json_node *quota, struct json_node **ret_charged);

extern const struct kube_admission_plugin kube_resource_quota;
extern const struct kube_fact_row kube_resource_quotas;

#endif
