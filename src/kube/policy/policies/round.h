/*
 * What validations and mutations have in common: which policies and bindings match a write, and the
 * evaluation of one of them with one parameter, a round. On the stack of the function that decides,
 * one thread.
 *
 *     for each policy that matches
 *         for each of its bindings that matches
 *             for each parameter: a round, which begins with the match conditions
 */
#ifndef VIGIL_KUBE_POLICY_POLICIES_ROUND_H
#define VIGIL_KUBE_POLICY_POLICIES_ROUND_H

#include "kube/policy/policies/activation.h"
#include "kube/policy/policies/inputs.h"

enum {
    KUBE_CONDITIONS_COST_MAX = 2500000,   /* the match conditions of a policy, as in Kubernetes */
    KUBE_EVALUATION_BYTES_MAX = 64 << 20, /* memory of the evaluation of one binding */
};

#define KUBE_POLICIES_TOO_DEAR                                                          \
    "the policies that concern this request cost more than this server allows for one " \
    "request"

/* One write. */
struct kube_policy_run {
    struct kube_policy_write *write;
    struct kube_evaluation_limit limit;
    struct kube_policy_inputs_cache inputs;
    struct kube_policy_check *checks; /* the newest first */
    bool no_memory;
    bool again; /* only policies that are reinvoked see the objects */
};

struct kube_policy_round {
    struct kube_policy_run *run;
    const struct kube_policy *policy;
    const struct kube_policy_binding *binding;
    struct arena arena;
    struct kube_activation activation;
    unsigned condition_errors; /* match conditions that have failed, */
    int64_t conditions_ns;     /* and the time that all have taken */
    uint64_t left;             /* what this list of expressions may still cost */
    struct slice error;        /* nothing further can be evaluated: Kubernetes' text */
};

/* The value of one expression. */
struct kube_policy_result {
    bool evaluated;
    struct slice error; /* empty: there is a value */
    struct cel_value value;
    int64_t elapsed_ns;
};

/* A text in the arena of the write; empty without memory. */
struct slice kube_policy_format(struct kube_policy_run *run, const char *text, ...)
    PRINTF_LIKE(2, 3);

/* -- Rounds -- */

/* The policy and the binding are set. False: no memory. */
MUST_CHECK
bool kube_policy_round_init(struct kube_policy_round *round,
                            const struct kube_policy_inputs *inputs, const struct json_node *param);
void kube_policy_round_fini(struct kube_policy_round *round);

/* A new list of expressions: variables are evaluated again, as in Kubernetes. */
void kube_policy_begin_list(struct kube_policy_round *round, uint64_t cost_max);
struct kube_policy_result kube_policy_evaluate(struct kube_policy_round *round,
                                               const struct kube_expression *expression);
/* Whether the round is over, because nothing that it finds counts. */
bool kube_policy_round_over(const struct kube_policy_round *round);

/* Notes what metrics count; the error may be empty. */
void kube_policy_note(struct kube_policy_round *round, struct slice error, int64_t elapsed_ns,
                      const char *action);
/* The verdict is final: the notes are added to those of the write. */
void kube_policy_give_notes(struct kube_policy_run *run);

/* False: the policy does not concern this write, or that is unknown, with the error. */
MUST_CHECK
bool kube_policy_meets_conditions(struct kube_policy_round *round, struct slice *ret_error);

/* -- Matching -- */

/* A selector of namespaces cannot be applied if the namespace does not exist, which counts only if
 * everything else matches. */
enum kube_policy_matched {
    KUBE_POLICY_MATCHED_NOT,
    KUBE_POLICY_MATCHED,
    KUBE_POLICY_MATCHED_WITHOUT_NAMESPACE,
};
enum kube_policy_matched kube_policy_matches(const struct kube_policy_run *run,
                                             const struct kube_match *match,
                                             const struct kube_kind **ret_kind);

struct kube_policy_visitor {
    /* A binding that matches and has parameters; kind is that of the rule of the policy. */
    void (*matched)(struct kube_policy_run *run, const struct kube_policy_case *of,
                    const struct kube_kind *kind);
    /* The policy (binding NULL) or the binding matches, but cannot be used: "failed to configure
     * binding: …". is_limit: this server cannot, so that it counts even if failures are ignored. */
    void (*unusable)(struct kube_policy_run *run, const struct kube_policy *policy,
                     const struct kube_policy_binding *binding, struct slice why, bool is_limit);
    bool mutates; /* the objects are converted before the parameters count */
};

void kube_policy_visit(struct kube_policy_run *run, const struct kube_policy_visitor *visitor);

/* -- The answer -- */

/* status says "Internal error occurred: before why", as Kubernetes answers what is not the fault of
 * the request. Returns false. */
bool kube_policy_fail_internal(struct kube_policy_run *run, const char *before, struct slice why);

/* status says that the write is forbidden, for this reason; the causes are in the arena of the
 * write. framed: the text follows 'pods "a" is forbidden: ', and the code is that of the reason. */
void kube_policy_set_status(struct kube_policy_run *run, struct slice message, bool framed,
                            enum kube_reason reason, struct kube_field_error *causes);

#endif
