/*
 * What the expressions of a policy see of one write: object, oldObject, params and namespaceObject
 * are views of the JSON that is there; request is a small tree; variables.x is evaluated when it is
 * first used, and then known until the end of the round (a list of expressions, see validate.c).
 *
 * On the stack of the evaluation, one thread.
 */
#ifndef VIGIL_KUBE_POLICY_POLICIES_ACTIVATION_H
#define VIGIL_KUBE_POLICY_POLICIES_ACTIVATION_H

#include "cel/value/opaque.h"
#include "kube/policy/policies/permissions.h"
#include "kube/policy/policies/policy.h"

enum { KUBE_EXPRESSION_COST_MAX = 1000000 }; /* one call of an expression, as in Kubernetes */

/*
 * What all policies may cost a write together, which Kubernetes does not limit: the costs of their
 * expressions, and what these do not say. A unit takes at most about 0.1 µs.
 */
struct kube_evaluation_limit {
    uint64_t left;
    bool reached;
};
void kube_evaluation_charge(struct kube_evaluation_limit *limit, uint64_t cost);

struct kube_variable_state {
    enum { KUBE_VARIABLE_UNKNOWN, KUBE_VARIABLE_BUSY, KUBE_VARIABLE_KNOWN } is;
    struct cel_value value;
};

struct kube_activation {
    struct cel_opaque variables; /* its address is the value of `variables` */
    const struct kube_policy *policy;
    struct arena *arena;
    struct kube_evaluation_limit *limit;
    struct cel_value slots[KUBE_SLOTS];
    struct kube_variable_state *states; /* one for each variable of the policy */
    uint64_t variables_cost;            /* added up since it was set to 0 */
};

/* The views are of trees that outlive the activation; NULL: null. False: no memory. */
MUST_CHECK
bool kube_activation_init(struct kube_activation *activation, const struct kube_policy *policy,
                          struct arena *arena, struct kube_evaluation_limit *limit);
void kube_activation_view(struct kube_activation *activation, enum kube_expression_slot slot,
                          const struct json_node *node);
/* The values of `authorizer` and `authorizer.requestResource`. NULL: they have none. */
void kube_activation_permit(struct kube_activation *activation,
                            const struct kube_permissions *permissions,
                            const struct kube_match_request *request);
/* All variables are unknown again. */
void kube_activation_forget(struct kube_activation *activation);

/* The value of an expression that has a program, and what it cost without the variables. */
struct cel_value kube_activation_eval(struct kube_activation *activation,
                                      const struct kube_expression *expression, uint64_t *ret_cost);

#endif
