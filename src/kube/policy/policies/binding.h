/*
 * A stored ValidatingAdmissionPolicyBinding or MutatingAdmissionPolicyBinding: which policy it
 * binds to which requests, with which parameters, and what a failed validation means. Bindings are
 * indexed by their policy. Read-only, for any thread.
 *
 * One that was stored although it names more than this server reads concerns everything that its
 * policy matches, and denies that.
 */
#ifndef VIGIL_KUBE_POLICY_POLICIES_BINDING_H
#define VIGIL_KUBE_POLICY_POLICIES_BINDING_H

#include "kube/policy/lookup/shelf.h"
#include "kube/policy/policies/match.h"

enum {
    KUBE_ACTION_DENY = 1 << 0,
    KUBE_ACTION_WARN = 1 << 1,
    KUBE_ACTION_AUDIT = 1 << 2,
};

struct kube_policy_binding {
    struct slice name, policy;
    struct kube_match match;
    bool has_params;                          /* paramRef is set: */
    struct slice param_name, param_namespace; /* empty: not given */
    const struct json_node *param_selector;   /* NULL: not given */
    bool deny_without_params;
    unsigned actions;
    const char *unusable; /* why it cannot be used, so that it denies; NULL: it can */
};

const void *kube_policy_binding_read(struct arena *arena, const struct json_node *object);
extern const struct kube_lookup_kind kube_policy_binding_kind, kube_mutating_binding_kind;
/* Whether the binding could be used, as kube_policy_check. */
extern const struct kube_lookup_kind kube_policy_binding_checks;

#endif
