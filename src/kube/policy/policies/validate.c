#include "kube/policy/policies/validate.h"

#include "kube/policy/policies/round.h"
#include "kube/types/go_text.h"

enum { MESSAGE_BYTES_MAX = 5 * 1024 }; /* the value of a messageExpression, as in Kubernetes */

struct warning {
    struct warning *next;
    struct slice text;
};

/* One write. */
struct validation {
    struct kube_policy_run run;
    bool denied;
    /* The first denial. */
    struct slice message;
    enum kube_reason reason;
    struct warning *warnings, **end;
    size_t audited;
};

static struct validation *of_run(struct kube_policy_run *run)
{
    return CONTAINER_OF(run, struct validation, run);
}

/* -- Decisions -- */

static void add_denial(struct validation *v, const struct kube_policy *policy,
                       const struct kube_policy_binding *binding, struct slice why,
                       enum kube_reason reason)
{
    if (v->denied)
        return;
    v->denied = true;
    v->reason = reason;
    v->message =
        binding
            ? kube_policy_format(
                  &v->run,
                  "ValidatingAdmissionPolicy '%.*s' with binding '%.*s' denied request: "
                  "%.*s",
                  SLICE_ARGS(policy->name), SLICE_ARGS(binding->name), SLICE_ARGS(why))
            : kube_policy_format(&v->run, "ValidatingAdmissionPolicy '%.*s' denied request: %.*s",
                                 SLICE_ARGS(policy->name), SLICE_ARGS(why));
}

static void add_warning(struct kube_policy_round *r, struct slice why)
{
    struct validation *v = of_run(r->run);
    struct warning *warning = arena_alloc(v->run.write->arena, sizeof(*warning));
    if (!warning) {
        v->run.no_memory = true;
        return;
    }
    *warning = (struct warning){
        .text = kube_policy_format(
            &v->run,
            "Validation failed for ValidatingAdmissionPolicy '%.*s' with binding "
            "'%.*s': %.*s",
            SLICE_ARGS(r->policy->name), SLICE_ARGS(r->binding->name), SLICE_ARGS(why))};
    *v->end = warning;
    v->end = &warning->next;
}

/* A validation has failed, or could not be made: what the binding says is done. */
static void act(struct kube_policy_round *r, struct slice why, enum kube_reason reason,
                int64_t elapsed_ns)
{
    if (r->binding->actions & KUBE_ACTION_DENY) {
        add_denial(of_run(r->run), r->policy, r->binding, why, reason);
        kube_policy_note(r, why, elapsed_ns, "deny");
    }
    if (r->binding->actions & KUBE_ACTION_WARN) {
        add_warning(r, why);
        kube_policy_note(r, why, elapsed_ns, "warn");
    }
    if (r->binding->actions & KUBE_ACTION_AUDIT) {
        of_run(r->run)->audited++;
        kube_policy_note(r, why, elapsed_ns, "audit");
    }
}

static void act_on_error(struct kube_policy_round *r, struct slice why, int64_t elapsed_ns)
{
    if (r->policy->ignores_failures)
        kube_policy_note(r, why, elapsed_ns, "allow");
    else
        act(r, why, KUBE_INVALID, elapsed_ns);
}

/* The policy or the binding cannot be used, which denies whatever its actions are. */
static void deny_unusable(struct kube_policy_run *run, const struct kube_policy *policy,
                          const struct kube_policy_binding *binding, struct slice why,
                          bool is_limit)
{
    if (!policy->ignores_failures || is_limit)
        add_denial(of_run(run), policy, binding, why, KUBE_INVALID);
}

/* -- Validations -- */

static struct slice message_of(struct kube_policy_round *r,
                               const struct kube_validation *validation,
                               const struct kube_policy_result *message)
{
    struct slice text = SLICE_EMPTY;
    if (message->evaluated && !message->error.len && message->value.kind == CEL_STRING)
        text = go_trim(cel_text(message->value));
    if (text.len > MESSAGE_BYTES_MAX || (text.len && memchr(text.ptr, '\n', text.len)))
        text = SLICE_EMPTY;
    if (!text.len)
        text = validation->message;
    return text.len ? text
                    : kube_policy_format(r->run, "failed expression: %.*s",
                                         SLICE_ARGS(go_trim(validation->expression.text)));
}

static void act_on(struct kube_policy_round *r, const struct kube_validation *validation,
                   const struct kube_policy_result *result,
                   const struct kube_policy_result *message, struct slice messages_error)
{
    if (result->error.len)
        act_on_error(r, result->error, result->elapsed_ns);
    else if (messages_error.len)
        act_on_error(r,
                     kube_policy_format(r->run, "failed messageExpression: %.*s",
                                        SLICE_ARGS(messages_error)),
                     result->elapsed_ns);
    else if (!cel_is_true(result->value))
        act(r, message_of(r, validation, message), validation->reason, result->elapsed_ns);
}

/* Messages may cost what validations have left. False: the round is over. */
static bool validate(struct kube_policy_round *r)
{
    const struct kube_policy *policy = r->policy;
    size_t count = policy->validation_count;
    struct kube_policy_result *results = arena_calloc(&r->arena, count + 1, sizeof(*results));
    struct kube_policy_result *messages = arena_calloc(&r->arena, count + 1, sizeof(*messages));
    if (!results || !messages)
        return false;
    kube_policy_begin_list(r, KUBE_VALIDATIONS_COST_MAX);
    for (size_t i = 0; i < count && !kube_policy_round_over(r); i++)
        results[i] = kube_policy_evaluate(r, &policy->validations[i].expression);
    if (r->error.len) {
        act_on_error(r, r->error, 0);
        return false;
    }
    /* The authorizer is not for messages and annotations. */
    kube_activation_permit(&r->activation, NULL, NULL);
    kube_policy_begin_list(r, r->left);
    for (size_t i = 0; i < count && !kube_policy_round_over(r); i++)
        if (policy->validations[i].has_message_expression)
            messages[i] = kube_policy_evaluate(r, &policy->validations[i].message_expression);
    struct slice error = r->error;
    r->error = SLICE_EMPTY;
    for (size_t i = 0; i < count && !kube_policy_round_over(r); i++)
        act_on(r, &policy->validations[i], &results[i], &messages[i], error);
    return !kube_policy_round_over(r);
}

/* There is no audit log to which annotations could be added, but one that fails denies the write,
 * whatever the actions of the binding are. */
static void evaluate_annotations(struct kube_policy_round *r)
{
    const struct kube_policy *policy = r->policy;
    struct kube_policy_result *results =
        arena_calloc(&r->arena, policy->annotation_count + 1, sizeof(*results));
    if (!results)
        return;
    kube_policy_begin_list(r, KUBE_VALIDATIONS_COST_MAX);
    for (size_t i = 0; i < policy->annotation_count && !kube_policy_round_over(r); i++)
        results[i] = kube_policy_evaluate(r, &policy->annotations[i].expression);
    if (r->error.len)
        act_on_error(r, r->error, 0);
    for (size_t i = 0; i < policy->annotation_count && !kube_policy_round_over(r); i++)
        if (results[i].error.len && !policy->ignores_failures) {
            add_denial(of_run(r->run), policy, r->binding, results[i].error, KUBE_INVALID);
            kube_policy_note(r, results[i].error, results[i].elapsed_ns, "deny");
        }
}

/* -- Policies, bindings and parameters -- */

static void run_round(struct validation *v, const struct kube_policy_case *c,
                      const struct kube_policy_inputs *inputs, const struct json_node *param)
{
    struct kube_policy_round r = {
        .run = &v->run, .policy = c->policy_object->data, .binding = c->binding_object->data};
    struct slice error = SLICE_EMPTY;
    if (kube_policy_round_init(&r, inputs, param)) {
        if (kube_policy_meets_conditions(&r, &error) && !kube_policy_round_over(&r)) {
            if (validate(&r))
                evaluate_annotations(&r);
        } else if (error.len && !r.policy->ignores_failures) {
            act(&r, error, KUBE_INVALID, 0); /* one that is ignored is not counted */
        }
    }
    kube_policy_round_fini(&r);
}

static void run_binding(struct kube_policy_run *run, const struct kube_policy_case *c,
                        const struct kube_kind *kind)
{
    struct validation *v = of_run(run);
    const struct kube_policy *policy = c->policy_object->data;
    const struct kube_policy_inputs *inputs =
        kube_policy_inputs_make(run->write, policy, kind, &run->inputs);
    run->no_memory |= !inputs;
    for (size_t i = 0; i < c->param_count && !run->limit.reached && !run->no_memory; i++)
        run_round(v, c, inputs, c->params[i]);
}

enum kube_policy_verdict kube_policy_validate(struct kube_policy_write *write)
{
    static const struct kube_policy_visitor visitor = {.matched = run_binding,
                                                       .unusable = deny_unusable};
    struct validation v = {.run = {.write = write, .limit = {.left = write->cost_max}}};
    v.end = &v.warnings;
    kube_policy_visit(&v.run, &visitor);
    if (v.run.no_memory || arena_ran_out(write->arena)) {
        (void)kube_fail_engine(write->status, ST_NOMEM);
        return KUBE_POLICY_DENIES;
    }
    write->cost = write->cost_max - v.run.limit.left;
    /* What follows from an expression that has failed for it does not count. */
    if (kube_policy_waits(write))
        return KUBE_POLICY_ASKS;
    if (v.run.limit.reached && write->is_attempt)
        return KUBE_POLICY_TOO_DEAR;
    if (v.run.limit.reached) {
        v.denied = true;
        v.reason = KUBE_FORBIDDEN;
        v.message = SLICE_LITERAL(KUBE_POLICIES_TOO_DEAR);
    }
    for (const struct warning *warning = v.warnings; warning; warning = warning->next)
        write->warn(write->ctx, warning->text);
    write->audited = v.audited;
    kube_policy_give_notes(&v.run);
    if (!v.denied)
        return KUBE_POLICY_ADMITS;
    struct kube_field_error *cause = arena_calloc(write->arena, 1, sizeof(*cause));
    if (cause)
        *cause = (struct kube_field_error){.reason = "", .message = v.message};
    kube_policy_set_status(&v.run, v.message, true, v.reason, cause);
    return KUBE_POLICY_DENIES;
}
