/*
 * The rules of a role: which verbs on which resources or paths. Read once per version of a role
 * into its arena; immutable afterwards.
 */
#ifndef VIGIL_KUBE_POLICY_ACCESS_RBAC_RULE_H
#define VIGIL_KUBE_POLICY_ACCESS_RBAC_RULE_H

#include "kube/policy/access/rbac/attributes.h"
#include "kube/policy/access/rbac/user.h"

/* Comparisons for one decision, about 4 ms. Every role that can be stored takes fewer: an item of a
 * list has at least three bytes, and an object at most 1.5 MiB. */
enum { KUBE_RULE_STEPS_MAX = 600000 };

struct kube_rule {
    struct kube_texts verbs, groups, resources, names, urls;
};

struct kube_rules {
    const struct kube_rule *items;
    size_t count;
};

/* The arena remembers if it ran out. */
void kube_rules_read(struct arena *arena, const struct json_node *array,
                     struct kube_rules *ret_rules);

bool kube_rule_allows(const struct kube_rule *rule, const struct kube_attributes *attributes);
/* Comparisons that kube_rule_allows makes at most. */
size_t kube_rule_cost(const struct kube_rule *rule);

/* For escalation checks: the rules that `wanted` has and `owned` does not, each with one verb, one
 * resource and one name. False: that takes more than KUBE_RULE_STEPS_MAX steps. */
MUST_CHECK
bool kube_rules_missing(struct arena *arena, const struct kube_rules *owned,
                        const struct kube_rules *wanted, struct kube_rules *ret_missing);

/* Rules that differ only in their verbs become one, as in Kubernetes' messages. */
void kube_rules_compact(struct arena *arena, struct kube_rules *rules);

/* {APIGroups:["a"], Resources:["b"], Verbs:["c"]}, as Go prints it. ST_NOMEM. */
MUST_CHECK
enum status kube_rule_write(const struct kube_rule *rule, struct buf *to);

#endif
