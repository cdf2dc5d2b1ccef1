/* Scopes of quotas, which limit a quota to some pods or claims. */
#ifndef VIGIL_KUBE_POLICY_ADMISSION_AMOUNTS_QUOTA_SCOPE_H
#define VIGIL_KUBE_POLICY_ADMISSION_AMOUNTS_QUOTA_SCOPE_H

#include "codec/json/tree.h"

enum kube_quota_scopes_of {
    KUBE_QUOTA_SCOPES_OF_PODS,
    KUBE_QUOTA_SCOPES_OF_CLAIMS,
    KUBE_QUOTA_SCOPES_OF_OTHERS, /* which have no scopes */
};

/* Whether the object has all scopes in `scopes` and `scopeSelector` of a quota's spec. Without
 * memory it is false, and arena_ran_out. */
bool kube_quota_scopes_match(const struct json_node *spec, enum kube_quota_scopes_of kind,
                             const struct json_node *object, struct arena *arena);

#endif
