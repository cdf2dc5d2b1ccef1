/*
 * What an object uses of the resources that a quota can limit. Pods use what they request and may
 * use; services use node ports and load balancers; claims use storage, in total and of their class;
 * objects of every kind are counted ("count/deployments.apps", and "secrets" and a few others by
 * old names).
 *
 * Pure functions over trees.
 */
#ifndef VIGIL_KUBE_POLICY_ADMISSION_AMOUNTS_QUOTA_USAGE_H
#define VIGIL_KUBE_POLICY_ADMISSION_AMOUNTS_QUOTA_USAGE_H

#include "kube/policy/admission/amounts/amounts.h"
#include "kube/types/kind.h"

/* An object that is written, or its version before. */
struct kube_quota_object {
    const struct kube_kind *kind;
    const struct json_node *object;
    bool ended; /* a pod that ends although its status does not say so: it is only counted */
};

/* Whether objects of the kind are charged to quotas: not events, and nothing that is not stored. */
bool kube_quota_concerns(const struct kube_kind *kind);
/* Whether writing it can change usage; old NULL: it is created. */
bool kube_quota_applies(const struct kube_kind *kind, struct slice subresource,
                        const struct json_node *object, const struct json_node *old);

/* Whether objects of the kind can use a resource of that name. */
bool kube_quota_knows(const struct kube_kind *kind, struct slice resource);
/* Whether this resource is the number of objects of the kind, whatever they contain. */
bool kube_quota_is_number(const struct kube_kind *kind, struct slice resource);
/* Whether objects of the kind can have scopes. */
bool kube_quota_has_scopes_for(const struct kube_kind *kind);
/* When a pod that is being deleted ends for quotas, with or without the kubelet's word, in seconds
 * since 1970; false: it does not. */
bool kube_quota_pod_end(const struct kube_quota_object *object, int64_t *ret_s);
/* Whether the object has all scopes of a quota's spec. */
bool kube_quota_has_scopes(const struct kube_quota_object *object, const struct json_node *spec,
                           struct arena *arena);

/* Fills the places of the amounts, whose names are those of a quota. ST_NOMEM. */
MUST_CHECK
enum status kube_quota_usage(const struct kube_quota_object *object, struct arena *arena,
                             struct kube_amounts *usage);

/*
 * Each container of a pod must give the amounts of processors and memory that a quota limits.
 * *ret_missing: "must specify limits.cpu for: a,b; requests.memory for: b"; empty: nothing is
 * missing. ST_NOMEM.
 */
MUST_CHECK
enum status kube_quota_missing(const struct kube_quota_object *object, struct arena *arena,
                               const struct kube_amounts *required, struct slice *ret_missing);

#endif
