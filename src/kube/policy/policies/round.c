#include "kube/policy/policies/round.h"

#include "base/clock.h"

#include <stdarg.h>
#include <stdio.h>

enum { ROUND_COST = 20 }; /* what a round costs that evaluates nothing */

#define OUT_OF_BUDGET \
    "validation failed due to running out of cost budget, no further validation rules will be run"

struct slice kube_policy_format(struct kube_policy_run *run, const char *text, ...)
{
    va_list values, again;
    va_start(values, text);
    va_copy(again, values);
    int len = vsnprintf(NULL, 0, text, values);
    char *made = len >= 0 ? arena_alloc(run->write->arena, (size_t)len + 1) : NULL;
    if (made)
        vsnprintf(made, (size_t)len + 1, text, again);
    else
        run->no_memory = true;
    va_end(again);
    va_end(values);
    return made ? slice_of(made, (size_t)len) : SLICE_EMPTY;
}

/* -- Rounds -- */

bool kube_policy_round_init(struct kube_policy_round *r, const struct kube_policy_inputs *inputs,
                            const struct json_node *param)
{
    kube_evaluation_charge(&r->run->limit, ROUND_COST);
    arena_init(&r->arena, NULL, 0, KUBE_EVALUATION_BYTES_MAX);
    arena_charge(&r->arena, r->run->write->arena->account);
    if (!kube_activation_init(&r->activation, r->policy, &r->arena, &r->run->limit))
        return false;
    kube_activation_view(&r->activation, KUBE_SLOT_OBJECT, inputs->object);
    kube_activation_view(&r->activation, KUBE_SLOT_OLD_OBJECT, inputs->old);
    kube_activation_view(&r->activation, KUBE_SLOT_REQUEST, inputs->request);
    kube_activation_view(&r->activation, KUBE_SLOT_NAMESPACE, inputs->namespace_object);
    kube_activation_view(&r->activation, KUBE_SLOT_PARAMS, param);
    kube_activation_permit(&r->activation, r->run->write->permissions, &r->run->write->request);
    return true;
}

void kube_policy_round_fini(struct kube_policy_round *r)
{
    r->run->no_memory = r->run->no_memory || arena_ran_out(&r->arena);
    arena_fini(&r->arena);
}

void kube_policy_begin_list(struct kube_policy_round *r, uint64_t cost_max)
{
    kube_activation_forget(&r->activation);
    r->left = cost_max;
    r->error = SLICE_EMPTY;
}

/* Variables are part of the cost of the expression that has used them first. */
struct kube_policy_result kube_policy_evaluate(struct kube_policy_round *r,
                                               const struct kube_expression *expression)
{
    struct kube_policy_result result = {.evaluated = true};
    uint64_t cost;
    if (!expression->program) {
        result.error =
            kube_policy_format(r->run, "compilation error: %.*s", SLICE_ARGS(expression->error));
        return result;
    }
    r->activation.variables_cost = 0;
    struct clock *clock = r->run->write->clock;
    int64_t begin = clock ? clock_mono_ns(clock) : 0;
    result.value = kube_activation_eval(&r->activation, expression, &cost);
    result.elapsed_ns = clock ? clock_mono_ns(clock) - begin : 0;
    if (r->activation.variables_cost > r->left || cost > r->left - r->activation.variables_cost) {
        r->error = SLICE_LITERAL(OUT_OF_BUDGET);
        return result;
    }
    r->left -= r->activation.variables_cost + cost;
    if (cel_is_error(result.value))
        result.error =
            kube_policy_format(r->run, "expression '%.*s' resulted in error: %.*s",
                               SLICE_ARGS(expression->text), SLICE_ARGS(cel_text(result.value)));
    return result;
}

bool kube_policy_round_over(const struct kube_policy_round *r)
{
    return r->error.len || r->run->limit.reached || r->run->no_memory || arena_ran_out(&r->arena);
}

/* -- Conditions -- */

/* Several errors: "[a, b]", each once. */
static struct slice join_errors(struct kube_policy_run *run,
                                const struct kube_policy_result *results, size_t count)
{
    AUTO(buf_fini) struct buf all = {0};
    const struct kube_policy_result *first = NULL;
    size_t different = 0;
    for (size_t i = 0; i < count; i++) {
        bool again = !results[i].error.len;
        for (size_t n = 0; n < i && !again; n++)
            again = slice_equal(results[n].error, results[i].error);
        if (again)
            continue;
        first = first ? first : &results[i];
        if (buf_append_format(&all, "%s%.*s", different++ ? ", " : "",
                              SLICE_ARGS(results[i].error)) != ST_OK)
            run->no_memory = true;
    }
    if (different > 1)
        return kube_policy_format(run, "[%.*s]", SLICE_ARGS(buf_slice(&all)));
    return first ? first->error : SLICE_EMPTY;
}

/* Kubernetes finds the type of an error by its text, and a validation that is false has one, too.
 */
static const char *error_type_of(struct slice why)
{
    if (!why.len)
        return "no_error";
    if (slice_has_prefix(why, SLICE_LITERAL("compilation")))
        return "compile_error";
    if (slice_has_prefix(why, SLICE_LITERAL("validation failed due to running out of cost budget")))
        return "out_of_budget";
    return "invalid_error";
}

static void note(struct kube_policy_run *run, struct kube_policy_check what)
{
    struct kube_policy_check *check = arena_alloc(run->write->arena, sizeof(*check));
    if (!check) {
        run->no_memory = true;
        return;
    }
    *check = what;
    check->next = run->checks;
    run->checks = check;
}

void kube_policy_note(struct kube_policy_round *r, struct slice error, int64_t elapsed_ns,
                      const char *action)
{
    note(r->run, (struct kube_policy_check){.policy = r->policy->name,
                                            .binding = r->binding->name,
                                            .error_type = error_type_of(error),
                                            .action = action,
                                            .elapsed_ns = elapsed_ns});
}

void kube_policy_give_notes(struct kube_policy_run *run)
{
    struct kube_policy_check **end = &run->checks;
    while (*end)
        end = &(*end)->next;
    *end = run->write->checks;
    run->write->checks = TAKE(run->checks);
}

/* Conditions see no namespace. */
static bool meets_conditions(struct kube_policy_round *r, struct slice *ret_error)
{
    const struct kube_policy *policy = r->policy;
    struct kube_policy_result *results =
        arena_calloc(&r->arena, policy->condition_count, sizeof(*results));
    bool none_false = true;
    if (!results)
        return false;
    struct cel_value namespace = r->activation.slots[KUBE_SLOT_NAMESPACE];
    r->activation.slots[KUBE_SLOT_NAMESPACE] = (struct cel_value){.kind = CEL_NULL};
    kube_policy_begin_list(r, KUBE_CONDITIONS_COST_MAX);
    for (size_t i = 0; i < policy->condition_count && !kube_policy_round_over(r); i++) {
        results[i] = kube_policy_evaluate(r, &policy->conditions[i]);
        r->condition_errors += results[i].error.len != 0;
        none_false = none_false && (results[i].error.len || results[i].value.kind != CEL_BOOL ||
                                    results[i].value.truth);
    }
    r->activation.slots[KUBE_SLOT_NAMESPACE] = namespace;
    if (r->error.len) {
        *ret_error = r->error;
        return false;
    }
    if (kube_policy_round_over(r) || !none_false)
        return false;
    *ret_error = join_errors(r->run, results, policy->condition_count);
    return !ret_error->len;
}

bool kube_policy_meets_conditions(struct kube_policy_round *r, struct slice *ret_error)
{
    struct clock *clock = r->run->write->clock;
    *ret_error = SLICE_EMPTY;
    if (!r->policy->condition_count)
        return true;
    int64_t begin = clock ? clock_mono_ns(clock) : 0;
    bool meets = meets_conditions(r, ret_error);
    r->conditions_ns = clock ? clock_mono_ns(clock) - begin : 0;
    if (r->binding)
        note(r->run, (struct kube_policy_check){.policy = r->policy->name,
                                                .is_conditions = true,
                                                .errors = r->condition_errors,
                                                .elapsed_ns = r->conditions_ns});
    return meets;
}

/* -- Matching -- */

enum kube_policy_matched kube_policy_matches(const struct kube_policy_run *run,
                                             const struct kube_match *match,
                                             const struct kube_kind **ret_kind)
{
    const struct kube_policy_write *w = run->write;
    bool known = true;
    if (kube_match_needs_namespace(match, &w->request)) {
        const struct json_node *of = kube_policy_namespace_of(w);
        known = of;
        if (of && !kube_match_namespace(match, of))
            return KUBE_POLICY_MATCHED_NOT;
    }
    /* The options of a connection have no labels, and not even none. */
    bool connects = w->request.operation == KUBE_MATCH_CONNECT;
    if (!kube_match_object(match, connects ? NULL : w->object, connects ? NULL : w->old) ||
        !kube_match_resource(match, &w->request, true, ret_kind))
        return KUBE_POLICY_MATCHED_NOT;
    return known ? KUBE_POLICY_MATCHED : KUBE_POLICY_MATCHED_WITHOUT_NAMESPACE;
}

static struct slice no_namespace(struct kube_policy_run *run)
{
    return kube_policy_format(run, "namespaces \"%.*s\" not found",
                              SLICE_ARGS(run->write->request.namespace));
}

static void report_unusable(struct kube_policy_run *run, const struct kube_policy_visitor *visitor,
                            const struct kube_policy *policy,
                            const struct kube_policy_binding *binding, struct slice why,
                            bool is_limit)
{
    struct slice text = kube_policy_format(run, "failed to configure %s: %.*s",
                                           binding ? "binding" : "policy", SLICE_ARGS(why));
    visitor->unusable(run, policy, binding, text, is_limit);
}

/* Whether the objects are known in the version of the rule. */
static bool can_see(struct kube_policy_run *run, const struct kube_policy_visitor *visitor,
                    const struct kube_policy_case *c, const struct kube_kind *kind)
{
    const struct kube_policy *policy = c->policy_object->data;
    if (run->again && !policy->reinvoked)
        return true;
    if (!kube_policy_can_show(run->write, kind))
        return false;
    struct slice why = kube_policy_show_error(run->write, kind);
    if (!why.len)
        return true;
    if (visitor->mutates)
        report_unusable(run, visitor, policy, NULL, why, false);
    else
        report_unusable(
            run, visitor, policy, c->binding_object->data,
            kube_policy_format(run, "failed to convert object version: %.*s", SLICE_ARGS(why)),
            false);
    return false;
}

static void visit_binding(struct kube_policy_run *run, const struct kube_policy_visitor *visitor,
                          const struct kube_policy_case *c, const struct kube_kind *kind)
{
    const struct kube_policy *policy = c->policy_object->data;
    const struct kube_policy_binding *binding = c->binding_object->data;
    const struct kube_kind *ignored;
    enum kube_policy_matched matched = kube_policy_matches(run, &binding->match, &ignored);
    if (matched == KUBE_POLICY_MATCHED_NOT)
        return;
    if (matched == KUBE_POLICY_MATCHED_WITHOUT_NAMESPACE)
        report_unusable(run, visitor, policy, binding, no_namespace(run), c->is_limit);
    else if (binding->unusable)
        report_unusable(run, visitor, policy, binding, slice_from_text(binding->unusable), true);
    else if (visitor->mutates && !can_see(run, visitor, c, kind))
        return;
    else if (c->binding_error.len)
        report_unusable(run, visitor, policy, binding, c->binding_error, c->is_limit);
    else if (c->param_count && (visitor->mutates || can_see(run, visitor, c, kind)))
        visitor->matched(run, c, kind);
}

/* The cases of one policy. */
static void visit_policy(struct kube_policy_run *run, const struct kube_policy_visitor *visitor,
                         const struct kube_policy_case *cases, size_t count)
{
    const struct kube_policy *policy = cases->policy_object->data;
    const struct kube_kind *kind;
    enum kube_policy_matched matched = kube_policy_matches(run, &policy->match, &kind);
    if (matched == KUBE_POLICY_MATCHED_NOT)
        return;
    struct slice why = cases->policy_error;
    if (matched == KUBE_POLICY_MATCHED_WITHOUT_NAMESPACE)
        why = no_namespace(run);
    if (policy->unusable)
        why = slice_from_text(policy->unusable);
    if (why.len) {
        report_unusable(run, visitor, policy, NULL, why, policy->unusable || cases->is_limit);
        return;
    }
    for (size_t i = 0; i < count && !run->limit.reached && !run->no_memory; i++)
        visit_binding(run, visitor, &cases[i], kind);
}

void kube_policy_visit(struct kube_policy_run *run, const struct kube_policy_visitor *visitor)
{
    const struct kube_policy_write *write = run->write;
    for (size_t i = 0, next; i < write->case_count && !run->limit.reached && !run->no_memory;
         i = next) {
        for (next = i + 1; next < write->case_count; next++)
            if (write->cases[next].policy_object != write->cases[i].policy_object)
                break;
        visit_policy(run, visitor, &write->cases[i], next - i);
    }
}

/* -- The answer -- */

bool kube_policy_fail_internal(struct kube_policy_run *run, const char *before, struct slice why)
{
    struct kube_policy_write *w = run->write;
    struct slice text =
        kube_policy_format(run, "Internal error occurred: %s%.*s", before, SLICE_ARGS(why));
    struct kube_field_error *cause = arena_calloc(w->arena, 1, sizeof(*cause));
    if (!cause || run->no_memory)
        return kube_fail_engine(w->status, ST_NOMEM);
    size_t prefix = strlen("Internal error occurred: ");
    *cause = (struct kube_field_error){.reason = "",
                                       .message = slice_sub(text, prefix, text.len - prefix)};
    (void)kube_fail(w->status, KUBE_INTERNAL_ERROR, " ");
    w->status->long_message = text;
    w->status->errors = cause;
    return false;
}

void kube_policy_set_status(struct kube_policy_run *run, struct slice message, bool framed,
                            enum kube_reason reason, struct kube_field_error *causes)
{
    struct kube_policy_write *w = run->write;
    struct kube_status *status = w->status;
    const struct kube_kind *kind = w->request.kind;
    struct slice name = w->request.name.len ? w->request.name : SLICE_LITERAL("Unknown");
    if (framed)
        message = kube_policy_format(run, "%s%s%s \"%.*s\" is forbidden: %.*s", kind->plural,
                                     kind->group[0] ? "." : "", kind->group, SLICE_ARGS(name),
                                     SLICE_ARGS(message));
    if (!causes || run->no_memory) {
        (void)kube_fail_engine(status, ST_NOMEM);
        return;
    }
    (void)kube_fail_forbidden(status, slice_from_text(kind->group), slice_from_text(kind->plural),
                              name, "");
    if (!framed)
        status->code = kube_status_code(status);
    status->reason = reason;
    status->long_message = message;
    status->errors = causes;
}
