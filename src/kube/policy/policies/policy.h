/*
 * A stored ValidatingAdmissionPolicy or MutatingAdmissionPolicy, ready to decide: what it matches,
 * and its expressions as programs. Made once for each version of the policy, by the lookup that
 * holds it for all threads (kube/policy/lookup/lookup.h); read-only.
 *
 * A policy that was stored although it does not compile, or is too large, still concerns what it
 * matches: it denies that, or ignores it if its failurePolicy says so.
 */
#ifndef VIGIL_KUBE_POLICY_POLICIES_POLICY_H
#define VIGIL_KUBE_POLICY_POLICIES_POLICY_H

#include "kube/policy/lookup/shelf.h"
#include "kube/policy/policies/match.h"
#include "kube/types/expression/expression.h"
#include "kube/types/field_errors.h"

enum {
    KUBE_POLICY_BYTES_MAX = 8 << 20, /* with its programs, which take many times its text */
};

struct kube_validation {
    struct kube_expression expression;
    bool has_message_expression;
    struct kube_expression message_expression;
    struct slice message; /* trimmed; may be empty */
    enum kube_reason reason;
};

/* A change of the object: an apply configuration, or a JSON patch. */
struct kube_mutation {
    struct kube_expression expression;
    bool patches; /* JSONPatch */
};

/* What the expressions of a policy use that has to be made for them. Found by their texts, so it
 * may be more than they use. */
enum {
    KUBE_USES_VERSIONS = 1 << 0, /* resourceVersion of objects */
    KUBE_USES_REQUEST = 1 << 1,
    KUBE_USES_NAMESPACE = 1 << 2,
    KUBE_USES_AUTHORIZER = 1 << 3,
};

struct kube_policy {
    struct slice name;
    struct kube_match match;
    bool ignores_failures; /* failurePolicy Ignore */
    bool has_params;
    struct slice param_version, param_kind; /* "v1", "ConfigMap" */
    struct kube_expression *conditions;
    size_t condition_count;
    struct kube_named_expression *variables;
    size_t variable_count;
    struct kube_validation *validations;
    size_t validation_count;
    struct kube_mutation *mutations; /* a MutatingAdmissionPolicy has some */
    size_t mutation_count;
    bool reinvoked;                            /* reinvocationPolicy IfNeeded */
    struct kube_named_expression *annotations; /* audit annotations with their keys */
    size_t annotation_count;
    unsigned uses;
    const char *unusable; /* why it cannot be evaluated; NULL: it can */
};

/* Reads the match conditions of a webhook, which use neither parameters nor variables, into a
 * policy that has nothing else. */
void kube_policy_read_conditions(struct arena *arena, const struct json_node *list,
                                 struct kube_policy *policy);
/* Reads policies of both kinds. For the lookup, and to find out whether a policy could be used:
 * NULL if not. */
const void *kube_policy_read(struct arena *arena, const struct json_node *object);
/* Policies are indexed by the resources that their rules name, "pods" or "*". */
extern const struct kube_lookup_kind kube_policy_kind, kube_mutating_policy_kind;
/* Whether this server could evaluate the policy; arena: temporary. False also without memory, which
 * the arena remembers. */
const void *kube_policy_check(struct arena *arena, const struct json_node *object);
extern const char kube_policy_limits[];

#endif
