#include "kube/policy/policies/validate.h"

#include "base/clock.h"
#include "kube/policy/policies/activation.h"
#include "kube/policy/policies/inputs.h"

#include <stdarg.h>
#include <stdio.h>

#define OUT_OF_BUDGET \
    "validation failed due to running out of cost budget, no further validation rules will be run"
#define TOO_DEAR                                                                        \
    "the policies that concern this request cost more than this server allows for one " \
    "request"

enum { MESSAGE_BYTES_MAX = 5 * 1024 }; /* the value of a messageExpression, as in Kubernetes */

struct warning {
    struct warning *next;
    struct slice text;
};

/* One write. */
struct validation {
    struct kube_policy_write *write;
    struct kube_evaluation_limit limit;
    bool denied, no_memory;
    /* The first denial. */
    struct slice message;
    enum kube_reason reason;
    struct warning *warnings, **end;
    struct kube_policy_failure *failures, **failures_end;
    size_t audited;
};

/* One policy with a binding and a parameter. */
struct round {
    struct validation *v;
    const struct kube_policy *policy;
    const struct kube_policy_binding *binding; /* NULL: it concerns the policy as a whole */
    struct arena arena;
    struct kube_activation activation;
    uint64_t left;      /* what this list of expressions may still cost */
    struct slice error; /* nothing further can be evaluated: Kubernetes' text */
};

/* The value of one expression. */
struct result {
    bool evaluated;
    struct slice error; /* empty: there is a value */
    struct cel_value value;
    int64_t elapsed_ns;
};

/* -- Texts, in the arena of the write -- */

static struct slice format(struct validation *v, const char *text, ...) PRINTF_LIKE(2, 3);

static struct slice format(struct validation *v, const char *text, ...)
{
    va_list values, again;
    va_start(values, text);
    va_copy(again, values);
    int len = vsnprintf(NULL, 0, text, values);
    char *made = len >= 0 ? arena_alloc(v->write->arena, (size_t)len + 1) : NULL;
    if (made)
        vsnprintf(made, (size_t)len + 1, text, again);
    else
        v->no_memory = true;
    va_end(again);
    va_end(values);
    return made ? slice_of(made, (size_t)len) : SLICE_EMPTY;
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
        binding ? format(v,
                         "ValidatingAdmissionPolicy '%.*s' with binding '%.*s' denied request: "
                         "%.*s",
                         SLICE_ARGS(policy->name), SLICE_ARGS(binding->name), SLICE_ARGS(why))
                : format(v, "ValidatingAdmissionPolicy '%.*s' denied request: %.*s",
                         SLICE_ARGS(policy->name), SLICE_ARGS(why));
}

static void add_warning(struct round *r, struct slice why)
{
    struct validation *v = r->v;
    struct warning *warning = arena_alloc(v->write->arena, sizeof(*warning));
    if (!warning) {
        v->no_memory = true;
        return;
    }
    *warning = (struct warning){
        .text = format(v,
                       "Validation failed for ValidatingAdmissionPolicy '%.*s' with binding "
                       "'%.*s': %.*s",
                       SLICE_ARGS(r->policy->name), SLICE_ARGS(r->binding->name), SLICE_ARGS(why))};
    *v->end = warning;
    v->end = &warning->next;
}

/* Kubernetes finds the type of an error by its text, and a validation that is false has one, too.
 */
static const char *error_type_of(struct slice why)
{
    if (slice_has_prefix(why, SLICE_LITERAL("compilation")))
        return "compile_error";
    if (slice_has_prefix(why, SLICE_LITERAL("validation failed due to running out of cost budget")))
        return "out_of_budget";
    return "invalid_error";
}

static void note(struct round *r, struct slice why, int64_t elapsed_ns, const char *action)
{
    struct validation *v = r->v;
    struct kube_policy_failure *failure = arena_alloc(v->write->arena, sizeof(*failure));
    if (!failure) {
        v->no_memory = true;
        return;
    }
    *failure = (struct kube_policy_failure){.policy = r->policy->name,
                                            .binding = r->binding->name,
                                            .error_type = error_type_of(why),
                                            .action = action,
                                            .elapsed_ns = elapsed_ns};
    *v->failures_end = failure;
    v->failures_end = &failure->next;
}

/* A validation has failed, or could not be made: what the binding says is done. */
static void act(struct round *r, struct slice why, enum kube_reason reason, int64_t elapsed_ns)
{
    if (r->binding->actions & KUBE_ACTION_DENY) {
        add_denial(r->v, r->policy, r->binding, why, reason);
        note(r, why, elapsed_ns, "deny");
    }
    if (r->binding->actions & KUBE_ACTION_WARN) {
        add_warning(r, why);
        note(r, why, elapsed_ns, "warn");
    }
    if (r->binding->actions & KUBE_ACTION_AUDIT) {
        r->v->audited++;
        note(r, why, elapsed_ns, "audit");
    }
}

static void act_on_error(struct round *r, struct slice why, int64_t elapsed_ns)
{
    if (r->policy->ignores_failures)
        note(r, why, elapsed_ns, "allow");
    else
        act(r, why, KUBE_INVALID, elapsed_ns);
}

/* The policy or the binding cannot be used, which denies whatever its actions are. */
static void deny_unusable(struct validation *v, const struct kube_policy_case *c,
                          const struct kube_policy *policy,
                          const struct kube_policy_binding *binding, struct slice why)
{
    if (policy->ignores_failures && !c->is_limit)
        return;
    struct slice text =
        format(v, "failed to configure %s: %.*s", binding ? "binding" : "policy", SLICE_ARGS(why));
    add_denial(v, policy, binding, text, KUBE_INVALID);
}

/* -- Evaluating -- */

/* Variables are part of the cost of the expression that has used them first. */
static struct result evaluate(struct round *r, const struct kube_expression *expression)
{
    struct validation *v = r->v;
    struct result result = {.evaluated = true};
    uint64_t cost;
    if (!expression->program) {
        result.error = format(v, "compilation error: %.*s", SLICE_ARGS(expression->error));
        return result;
    }
    r->activation.variables_cost = 0;
    int64_t begin = v->write->clock ? clock_mono_ns(v->write->clock) : 0;
    result.value = kube_activation_eval(&r->activation, expression, &cost);
    result.elapsed_ns = v->write->clock ? clock_mono_ns(v->write->clock) - begin : 0;
    if (r->activation.variables_cost > r->left || cost > r->left - r->activation.variables_cost) {
        r->error = SLICE_LITERAL(OUT_OF_BUDGET);
        return result;
    }
    r->left -= r->activation.variables_cost + cost;
    if (cel_is_error(result.value))
        result.error = format(v, "expression '%.*s' resulted in error: %.*s",
                              SLICE_ARGS(expression->text), SLICE_ARGS(cel_text(result.value)));
    return result;
}

/* Whether the round is over, because nothing that it finds counts. */
static bool is_over(const struct round *r)
{
    return r->error.len || r->v->limit.reached || r->v->no_memory || arena_ran_out(&r->arena);
}

/* A new list of expressions: variables are evaluated again, as in Kubernetes. */
static void begin_list(struct round *r, uint64_t cost_max)
{
    kube_activation_forget(&r->activation);
    r->left = cost_max;
    r->error = SLICE_EMPTY;
}

/* -- Conditions -- */

/* Several errors: "[a, b]", each once. */
static struct slice join_errors(struct validation *v, const struct result *results, size_t count)
{
    struct slice all = SLICE_EMPTY;
    size_t different = 0;
    for (size_t i = 0; i < count; i++) {
        bool again = !results[i].error.len;
        for (size_t n = 0; n < i && !again; n++)
            again = slice_equal(results[n].error, results[i].error);
        if (again)
            continue;
        all = different++ ? format(v, "%.*s, %.*s", SLICE_ARGS(all), SLICE_ARGS(results[i].error))
                          : results[i].error;
    }
    return different > 1 ? format(v, "[%.*s]", SLICE_ARGS(all)) : all;
}

/* Conditions see no namespace. False: the policy does not concern this write, or that is unknown
 * and has been acted upon. */
static bool meets_conditions(struct round *r)
{
    const struct kube_policy *policy = r->policy;
    struct result *results = arena_calloc(&r->arena, policy->condition_count, sizeof(*results));
    bool none_false = true;
    if (!policy->condition_count)
        return true;
    if (!results)
        return false;
    struct cel_value namespace = r->activation.slots[KUBE_SLOT_NAMESPACE];
    r->activation.slots[KUBE_SLOT_NAMESPACE] = (struct cel_value){.kind = CEL_NULL};
    begin_list(r, KUBE_CONDITIONS_COST_MAX);
    for (size_t i = 0; i < policy->condition_count && !is_over(r); i++) {
        results[i] = evaluate(r, &policy->conditions[i]);
        none_false = none_false && (results[i].error.len || results[i].value.kind != CEL_BOOL ||
                                    results[i].value.truth);
    }
    r->activation.slots[KUBE_SLOT_NAMESPACE] = namespace;
    if (!r->error.len && (is_over(r) || !none_false))
        return false;
    struct slice errors =
        r->error.len ? r->error : join_errors(r->v, results, policy->condition_count);
    /* One that is ignored is not counted, as in Kubernetes. */
    if (errors.len && !policy->ignores_failures)
        act(r, errors, KUBE_INVALID, 0);
    return !errors.len;
}

/* -- Validations -- */

static struct slice trimmed(struct slice text)
{
    while (text.len && (text.ptr[0] == ' ' || (text.ptr[0] >= '\t' && text.ptr[0] <= '\r')))
        text = slice_sub(text, 1, text.len - 1);
    while (text.len && (text.ptr[text.len - 1] == ' ' ||
                        (text.ptr[text.len - 1] >= '\t' && text.ptr[text.len - 1] <= '\r')))
        text.len--;
    return text;
}

static struct slice message_of(struct round *r, const struct kube_validation *validation,
                               const struct result *message)
{
    struct slice text = SLICE_EMPTY;
    if (message->evaluated && !message->error.len && message->value.kind == CEL_STRING)
        text = trimmed(cel_text(message->value));
    if (text.len > MESSAGE_BYTES_MAX || (text.len && memchr(text.ptr, '\n', text.len)))
        text = SLICE_EMPTY;
    if (!text.len)
        text = validation->message;
    return text.len ? text
                    : format(r->v, "failed expression: %.*s",
                             SLICE_ARGS(trimmed(validation->expression.text)));
}

static void act_on(struct round *r, const struct kube_validation *validation,
                   const struct result *result, const struct result *message,
                   struct slice messages_error)
{
    if (result->error.len)
        act_on_error(r, result->error, result->elapsed_ns);
    else if (messages_error.len)
        act_on_error(r, format(r->v, "failed messageExpression: %.*s", SLICE_ARGS(messages_error)),
                     result->elapsed_ns);
    else if (!cel_is_true(result->value))
        act(r, message_of(r, validation, message), validation->reason, result->elapsed_ns);
}

/* Messages may cost what validations have left. False: the round is over. */
static bool validate(struct round *r)
{
    const struct kube_policy *policy = r->policy;
    size_t count = policy->validation_count;
    struct result *results = arena_calloc(&r->arena, count + 1, sizeof(*results));
    struct result *messages = arena_calloc(&r->arena, count + 1, sizeof(*messages));
    if (!results || !messages)
        return false;
    begin_list(r, KUBE_VALIDATIONS_COST_MAX);
    for (size_t i = 0; i < count && !is_over(r); i++)
        results[i] = evaluate(r, &policy->validations[i].expression);
    if (r->error.len) {
        act_on_error(r, r->error, 0);
        return false;
    }
    /* The authorizer is not for messages and annotations. */
    kube_activation_permit(&r->activation, NULL, NULL);
    begin_list(r, r->left);
    for (size_t i = 0; i < count && !is_over(r); i++)
        if (policy->validations[i].has_message_expression)
            messages[i] = evaluate(r, &policy->validations[i].message_expression);
    struct slice error = r->error;
    r->error = SLICE_EMPTY;
    for (size_t i = 0; i < count && !is_over(r); i++)
        act_on(r, &policy->validations[i], &results[i], &messages[i], error);
    return !is_over(r);
}

/* There is no audit log to which annotations could be added, but one that fails denies the write,
 * whatever the actions of the binding are. */
static void evaluate_annotations(struct round *r)
{
    const struct kube_policy *policy = r->policy;
    struct result *results =
        arena_calloc(&r->arena, policy->annotation_count + 1, sizeof(*results));
    if (!results)
        return;
    begin_list(r, KUBE_VALIDATIONS_COST_MAX);
    for (size_t i = 0; i < policy->annotation_count && !is_over(r); i++)
        results[i] = evaluate(r, &policy->annotations[i].expression);
    if (r->error.len)
        act_on_error(r, r->error, 0);
    for (size_t i = 0; i < policy->annotation_count && !is_over(r); i++)
        if (results[i].error.len && !policy->ignores_failures) {
            add_denial(r->v, policy, r->binding, results[i].error, KUBE_INVALID);
            note(r, results[i].error, results[i].elapsed_ns, "deny");
        }
}

/* -- Policies, bindings and parameters -- */

static void run_round(struct validation *v, const struct kube_policy *policy,
                      const struct kube_policy_binding *binding,
                      const struct kube_policy_inputs *inputs, const struct json_node *param)
{
    struct round r = {.v = v, .policy = policy, .binding = binding};
    arena_init(&r.arena, NULL, 0, KUBE_EVALUATION_BYTES_MAX);
    arena_charge(&r.arena, v->write->arena->account);
    if (kube_activation_init(&r.activation, policy, &r.arena, &v->limit)) {
        kube_activation_view(&r.activation, KUBE_SLOT_OBJECT, inputs->object);
        kube_activation_view(&r.activation, KUBE_SLOT_OLD_OBJECT, inputs->old);
        kube_activation_view(&r.activation, KUBE_SLOT_REQUEST, inputs->request);
        kube_activation_view(&r.activation, KUBE_SLOT_NAMESPACE, inputs->namespace_object);
        kube_activation_view(&r.activation, KUBE_SLOT_PARAMS, param);
        kube_activation_permit(&r.activation, v->write->permissions, &v->write->request);
        if (meets_conditions(&r) && !is_over(&r) && validate(&r))
            evaluate_annotations(&r);
    }
    v->no_memory = v->no_memory || arena_ran_out(&r.arena);
    arena_fini(&r.arena);
}

enum matched { MATCHED_NOT, MATCHED, MATCHED_WITHOUT_NAMESPACE };

/* A selector of namespaces cannot be applied if the namespace does not exist, which counts only if
 * everything else matches. */
static enum matched matches(struct validation *v, const struct kube_match *match,
                            const struct kube_kind **ret_kind)
{
    const struct kube_policy_write *w = v->write;
    bool known = true;
    if (kube_match_needs_namespace(match, &w->request)) {
        const struct json_node *of = kube_policy_namespace_of(w);
        known = of;
        if (of && !kube_match_namespace(match, of))
            return MATCHED_NOT;
    }
    if (!kube_match_object(match, w->object, w->old) ||
        !kube_match_resource(match, &w->request, true, ret_kind))
        return MATCHED_NOT;
    return known ? MATCHED : MATCHED_WITHOUT_NAMESPACE;
}

static struct slice no_namespace(struct validation *v)
{
    return format(v, "namespaces \"%.*s\" not found", SLICE_ARGS(v->write->request.namespace));
}

/* inputs are those of the policy, made for the first binding that matches. */
static void run_binding(struct validation *v, const struct kube_policy_case *c,
                        const struct kube_kind *kind, struct kube_policy_inputs *inputs)
{
    const struct kube_policy *policy = c->policy_object->data;
    const struct kube_policy_binding *binding = c->binding_object->data;
    const struct kube_kind *ignored;
    enum matched matched = matches(v, &binding->match, &ignored);
    if (matched == MATCHED_NOT)
        return;
    if (matched == MATCHED_WITHOUT_NAMESPACE) {
        deny_unusable(v, c, policy, binding, no_namespace(v));
        return;
    }
    if (c->binding_error.len) {
        deny_unusable(v, c, policy, binding, c->binding_error);
        return;
    }
    if (!c->param_count)
        return;
    if (!inputs->made && !kube_policy_inputs_make(v->write, policy, kind, inputs)) {
        v->no_memory = true;
        return;
    }
    for (size_t i = 0; i < c->param_count && !v->limit.reached && !v->no_memory; i++)
        run_round(v, policy, binding, inputs, c->params[i]);
}

/* The cases of one policy. */
static void run_policy(struct validation *v, const struct kube_policy_case *cases, size_t count)
{
    const struct kube_policy *policy = cases->policy_object->data;
    const struct kube_kind *kind;
    struct kube_policy_case with = *cases;
    struct kube_policy_inputs inputs = {0};
    enum matched matched = matches(v, &policy->match, &kind);
    if (matched == MATCHED_NOT)
        return;
    struct slice why = cases->policy_error;
    if (matched == MATCHED_WITHOUT_NAMESPACE)
        why = no_namespace(v);
    if (policy->unusable) {
        why = slice_from_text(policy->unusable);
        with.is_limit = true;
    }
    if (why.len) {
        deny_unusable(v, &with, policy, NULL, why);
        return;
    }
    for (size_t i = 0; i < count && !v->limit.reached && !v->no_memory; i++)
        run_binding(v, &cases[i], kind, &inputs);
}

/* -- The answer -- */

static void set_status(struct validation *v)
{
    struct kube_policy_write *w = v->write;
    struct kube_status *status = w->status;
    struct kube_field_error *cause = arena_calloc(w->arena, 1, sizeof(*cause));
    const struct kube_kind *kind = w->request.kind;
    struct slice name = w->request.name.len ? w->request.name : SLICE_LITERAL("Unknown");
    struct slice text =
        format(v, "%s%s%s \"%.*s\" is forbidden: %.*s", kind->plural, kind->group[0] ? "." : "",
               kind->group, SLICE_ARGS(name), SLICE_ARGS(v->message));
    if (!cause || v->no_memory) {
        (void)kube_fail_engine(status, ST_NOMEM);
        return;
    }
    (void)kube_fail_forbidden(status, slice_from_text(kind->group), slice_from_text(kind->plural),
                              name, "");
    *cause = (struct kube_field_error){.reason = "", .message = v->message};
    status->reason = v->reason;
    status->long_message = text;
    status->errors = cause;
}

enum kube_policy_verdict kube_policy_validate(struct kube_policy_write *write)
{
    struct validation v = {.write = write, .limit = {.left = write->cost_max}};
    v.end = &v.warnings;
    v.failures_end = &v.failures;
    for (size_t i = 0, next; i < write->case_count && !v.limit.reached && !v.no_memory; i = next) {
        for (next = i + 1; next < write->case_count; next++)
            if (write->cases[next].policy_object != write->cases[i].policy_object)
                break;
        run_policy(&v, &write->cases[i], next - i);
    }
    if (v.no_memory || arena_ran_out(write->arena)) {
        (void)kube_fail_engine(write->status, ST_NOMEM);
        return KUBE_POLICY_DENIES;
    }
    /* What follows from an expression that has failed for it does not count. */
    if (write->permissions->unknown)
        return KUBE_POLICY_ASKS;
    if (v.limit.reached && write->is_attempt)
        return KUBE_POLICY_TOO_DEAR;
    if (v.limit.reached) {
        v.denied = true;
        v.reason = KUBE_FORBIDDEN;
        v.message = SLICE_LITERAL(TOO_DEAR);
    }
    for (const struct warning *warning = v.warnings; warning; warning = warning->next)
        write->warn(write->ctx, warning->text);
    write->audited = v.audited;
    write->failures = v.failures;
    if (!v.denied)
        return KUBE_POLICY_ADMITS;
    set_status(&v);
    return KUBE_POLICY_DENIES;
}
