/*
 * The admission policies, bindings and webhooks that an I/O thread decides from: six lookups
 * (kube/policy/lookup/lookup.h), which are shared by all threads and follow the store.
 *
 * A write does not wait for them. Instead the write of a policy or binding is answered only when
 * they have it (kube_policies_wait with its revision), so that a client that has the answer finds
 * the policy applied to the next write, whichever thread serves it. What is written through the
 * etcd API, or by another server, applies one turn of the loop after this server has it.
 *
 * One per API, on its thread.
 */
#ifndef VIGIL_KUBE_POLICY_POLICIES_FINDER_H
#define VIGIL_KUBE_POLICY_POLICIES_FINDER_H

#include "kube/policy/lookup/read.h"
#include "kube/policy/policies/match.h"

struct kube_policy_finder;
struct kube_webhook;

/* Limits of this server, for each of the kinds. A policy, binding or configuration of webhooks that
 * would exceed one is not created. */
enum {
    KUBE_POLICIES_MAX = 1000,
    KUBE_POLICY_BINDINGS_MAX = 2000,
};

enum kube_policy_part {
    KUBE_POLICIES, /* those that validate */
    KUBE_POLICY_BINDINGS,
    KUBE_MUTATING_POLICIES,
    KUBE_MUTATING_BINDINGS,
    KUBE_VALIDATING_WEBHOOKS, /* configurations */
    KUBE_MUTATING_WEBHOOKS,
    KUBE_POLICY_PARTS
};
static inline bool kube_policy_part_binds(enum kube_policy_part part)
{
    return part == KUBE_POLICY_BINDINGS || part == KUBE_MUTATING_BINDINGS;
}

struct kube_policy_finder_options {
    struct engine_shard *shard;
    struct loop *loop;
    size_t *under_way; /* counter of the API */
    struct kube_lookup_pool *pool;
};

/* Reads nothing yet. */
struct kube_policy_finder *kube_policy_finder_new(const struct kube_policy_finder_options *options);
void kube_policy_finder_stop(struct kube_policy_finder *finder);
void kube_policy_finder_free(struct kube_policy_finder *finder); /* stopped; accepts NULL */

/* Whether policies and bindings are known; otherwise the caller waits first. */
bool kube_policies_ready(struct kube_policy_finder *finder);

/* Embedded by its caller until go. */
struct kube_policies_wait {
    /* Set by the caller. */
    int64_t revision; /* a change that must be known; 0: whatever is known suffices */
    void (*go)(struct kube_policies_wait *wait);
    enum status status; /* in go; ST_TIMEOUT: they do not follow the store */
    /* Private. */
    struct kube_policy_finder *finder;
    struct kube_lookup_wait lookup;
    struct deferred soon;
    struct timer again;
    unsigned tries;
};
/* Calls go, perhaps at once. */
void kube_policies_wait(struct kube_policy_finder *finder, struct kube_policies_wait *wait);

/* The rest only when they are ready. */

/* Whether there is room for another policy, or another binding. */
bool kube_policies_have_room(struct kube_policy_finder *finder, enum kube_policy_part part);
/* NULL: they are not held, and must be read. Valid until the next turn. */
const struct kube_shelf *kube_policies_shelf(struct kube_policy_finder *finder,
                                             enum kube_policy_part part);
struct kube_lookup *kube_policies_lookup(struct kube_policy_finder *finder,
                                         enum kube_policy_part part);

/* How the objects with this prefix are checked when they are written, with what limits them; NULL:
 * the prefix is that of another kind. */
const struct kube_lookup_kind *kube_policy_checks(const char *prefix);

/* Whether the rules of a policy or webhook name the resource or all. */
bool kube_policies_name(const struct kube_shelf *policies, const struct kube_kind *kind);

/* Calls fn for each policy whose rules may concern the request, with each of its bindings that may,
 * both by name; false ends it and is returned. What names of objects and selectors say is not known
 * yet. */
bool kube_policies_each(const struct kube_shelf *policies, const struct kube_shelf *bindings,
                        const struct kube_match_request *request,
                        bool (*fn)(void *ctx, const struct kube_lookup_object *policy,
                                   const struct kube_lookup_object *binding),
                        void *ctx);

/* The same for each webhook of each configuration. */
bool kube_webhooks_each(const struct kube_shelf *configurations,
                        const struct kube_match_request *request,
                        bool (*fn)(void *ctx, const struct kube_lookup_object *configuration,
                                   const struct kube_webhook *webhook),
                        void *ctx);

#endif
