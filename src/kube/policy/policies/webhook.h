/*
 * A stored ValidatingWebhookConfiguration or MutatingWebhookConfiguration, ready to decide: for
 * each of its webhooks what it concerns, where it is and how it is called. Made once for each
 * version of the configuration, by the lookup that holds it for all threads
 * (kube/policy/lookup/lookup.h); read-only, except for one flag.
 *
 * A webhook is in part like a policy: it has a name, rules, match conditions, and says whether
 * failures are ignored. This part is a struct kube_policy without expressions that decide.
 *
 * A webhook that was stored although its conditions do not compile, or are too large, still
 * concerns what it matches: calls of it fail. If it is not even known what it matches, because its
 * rules or its configuration exceed a limit, it refuses every write. A client of the API cannot
 * store such a configuration, and can always remove it.
 */
#ifndef VIGIL_KUBE_POLICY_POLICIES_WEBHOOK_H
#define VIGIL_KUBE_POLICY_POLICIES_WEBHOOK_H

#include "kube/policy/policies/policy.h"
#include "kube/webhook/target.h"

enum {
    KUBE_WEBHOOKS_MAX = 1000,       /* limit for one configuration */
    KUBE_WEBHOOK_TIMEOUT_S = 10,    /* unless the configuration says otherwise */
    KUBE_WEBHOOK_TIMEOUT_MAX_S = 30 /* as in Kubernetes */
};

struct kube_webhook {
    struct kube_policy rule; /* name, match, ignores_failures, conditions, reinvoked, unusable */
    const struct kube_webhook_target *target; /* NULL: it is not valid */
    int64_t timeout_s;
    bool takes_dry_runs;          /* sideEffects None or NoneOnDryRun */
    bool takes_v1, takes_v1beta1; /* at most one: the first version that is known */
    _Atomic bool *is_logged;      /* that its audit annotations are dropped; any thread */
};

struct kube_webhooks {
    struct kube_webhook *items; /* in the order of the configuration */
    size_t count;
};

const void *kube_webhooks_read(struct arena *arena, const struct json_node *object);
/* Configurations are indexed by the resources that rules of their webhooks name, "pods" or "*". */
extern const struct kube_lookup_kind kube_validating_webhooks_kind, kube_mutating_webhooks_kind;
/* How configurations are checked when they are written: whether this server could use them, as
 * kube_policy_check. */
extern const struct kube_lookup_kind kube_webhooks_checks;

#endif
