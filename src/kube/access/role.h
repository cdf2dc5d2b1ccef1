/*
 * What is kept of a role or cluster role. A cluster role with an aggregationRule has the rules of
 * the cluster roles that it selects by their labels.
 */
#ifndef VIGIL_KUBE_ACCESS_ROLE_H
#define VIGIL_KUBE_ACCESS_ROLE_H

#include "kube/access/rule.h"
#include "kube/selector/label.h"

enum { KUBE_ROLE_SELECTORS_MAX = 64 }; /* of one aggregationRule */

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
