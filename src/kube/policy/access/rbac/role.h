/*
 * What is kept of a role or cluster role. A cluster role with an aggregationRule has the rules of
 * the cluster roles that it selects by their labels.
 */
#ifndef VIGIL_KUBE_POLICY_ACCESS_RBAC_ROLE_H
#define VIGIL_KUBE_POLICY_ACCESS_RBAC_ROLE_H

#include "kube/policy/access/rbac/rule.h"
#include "kube/request/label_selector.h"

/* Selectors of one aggregationRule; requirements, values and the text of each are bounded by
 * kube/request/label_selector.h. A role may have as many rules as fit into an object. */
enum { KUBE_ROLE_SELECTORS_MAX = 64 };
#define KUBE_ROLE_LIMITS \
    "at most 64 selectors, each with at most 256 requirements, 4096 values and 64 KiB of text"

/* A role or cluster role. A role in a namespace has only rules. */
struct kube_role {
    struct kube_rules rules;
    struct slice labels; /* JSON; empty: none */
    bool aggregates;     /* it has an aggregationRule: */
    const struct label_selector **selectors;
    size_t selector_count;
};

/* For struct kube_lookup_kind. */
const void *kube_role_read(struct arena *arena, const struct json_node *object);
const void *kube_cluster_role_read(struct arena *arena, const struct json_node *object);

/* Whether the aggregationRule of one selects the other. */
bool kube_role_selects(const struct kube_role *role, const struct kube_role *other);

#endif
