/*
 * A write as admission policies see it: who gathers it fills it in, and validate.c decides.
 * Everything is borrowed.
 */
#ifndef VIGIL_KUBE_POLICY_POLICIES_POLICY_WRITE_H
#define VIGIL_KUBE_POLICY_POLICIES_POLICY_WRITE_H

#include "kube/policy/policies/binding.h"
#include "kube/policy/policies/permissions.h"
#include "kube/policy/policies/policy.h"

/* A policy and one of its bindings that may concern the write. */
struct kube_policy_case {
    const struct kube_lookup_object *policy_object, *binding_object; /* held */
    /* Why the policy, or the binding, cannot be used for this write; empty: it can. */
    struct slice policy_error, binding_error;
    /* A limit of this server was exceeded: the write is denied also by a policy that ignores
     * failures. */
    bool is_limit;
    const struct json_node **params; /* a single NULL: the policy has no parameter */
    size_t param_count;
};

/* What metrics count, with Kubernetes' labels: a validation that has failed, a mutation, or the
 * match conditions of a policy. */
struct kube_policy_check {
    struct kube_policy_check *next;
    struct slice policy, binding;
    bool is_conditions;
    unsigned errors; /* conditions that have failed */
    const char *error_type;
    const char *action; /* what was done about a failed validation; NULL: it is a mutation */
    int64_t elapsed_ns;
};

/* The objects of a write in another version of a custom resource, as the webhook of its definition
 * has converted them. */
struct kube_policy_sight {
    const struct kube_kind *kind;
    struct slice object, old; /* JSON; empty: there is none */
    struct slice error;       /* why they could not be converted; empty: they were */
};

/* What policies have made of the object, which a webhook converts to the version of the next policy
 * or to that of the request. */
struct kube_policy_moved {
    struct kube_policy_moved *next;
    const struct kube_kind *to;
    struct slice before, after, error; /* JSON; either the last one or the one before is empty */
};

struct kube_policy_sights {
    const struct kube_policy_sight *items;
    size_t count;
    struct kube_policy_moved *moved;
    /* What an evaluation needs: another version of the objects, or a mutated one; NULL: nothing. */
    const struct kube_kind *wanted;
    struct kube_policy_moved *leaving;
};
/* Whether an evaluation needs one of them. */
static inline bool kube_policy_sights_wanted(const struct kube_policy_sights *sights)
{
    return sights->wanted || sights->leaving;
}

struct clock;

enum kube_policy_verdict {
    KUBE_POLICY_ADMITS,
    KUBE_POLICY_DENIES, /* status says why; also without memory */
    /* It has to be decided again; nothing was warned, counted or changed. */
    KUBE_POLICY_TOO_DEAR, /* only an attempt */
    /* Permissions are not known yet (permissions.h), or objects have to be converted first. */
    KUBE_POLICY_ASKS,
};

/* One write. */
struct kube_policy_write {
    struct kube_policy_case *cases; /* by policy */
    size_t case_count;
    struct kube_match_request request;
    /* The kind of the object in the request, which differs from that of the resource for some
     * subresources: Scale, Eviction. */
    struct kube_policy_object_kind {
        const char *group, *version, *kind;
    } object_kind;
    const struct json_node *object, *old;     /* NULL: there is none */
    int64_t revision;                         /* revision of the stored object; 0: there is none */
    bool keeps_version;                       /* webhooks see the version that the client gave */
    const struct json_node *namespace_object; /* NULL: none, or it does not exist */
    bool namespace_missing;
    const struct kube_user_info *user;
    struct kube_permissions *permissions;
    struct kube_policy_sights *sights; /* NULL: no webhook converts them */
    const struct json_node *options;   /* NULL: none */
    bool dry_run;
    uint64_t cost_max; /* for all evaluations together; usually KUBE_WRITE_COST_MAX */
    bool is_attempt;   /* with a lower one: what costs more is not denied, but too dear */

    struct arena *arena; /* memory of the texts of the answer */
    struct kube_status *status;
    void (*warn)(void *ctx, struct slice warning);
    void *ctx;
    struct clock *clock;              /* NULL: times are not measured */
    uint64_t cost;                    /* what the evaluations have cost up to now */
    size_t audited;                   /* failures of bindings with the action Audit */
    struct kube_policy_check *checks; /* in the arena of the write; others may be in the list */
};

#endif
