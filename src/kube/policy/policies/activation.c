#include "kube/policy/policies/activation.h"

#include "cel/library/library.h"

enum {
    EXPRESSION_COST = 2, /* that of a constant, for which cel-go counts none */
    STEPS_PER_COST = 4,
};

void kube_evaluation_charge(struct kube_evaluation_limit *limit, uint64_t cost)
{
    limit->reached |= cost > limit->left;
    limit->left -= cost < limit->left ? cost : limit->left;
}

static const struct cel_type variables_type = {
    .kind = CEL_TYPE_OBJECT, .name = "kubernetes.variables", .parts = 1};

static struct cel_value evaluate(struct kube_activation *a, struct cel_work *work,
                                 const struct kube_named_expression *variable)
{
    const struct kube_expression *expression = &variable->expression;
    uint64_t cost;
    if (!expression->program)
        return cel_of_error_format(work, "composited variable %s fails to compile: %.*s",
                                   cel_quoted(work, variable->name), SLICE_ARGS(expression->error));
    struct cel_value value = kube_activation_eval(a, expression, &cost);
    if (__builtin_add_overflow(a->variables_cost, cost, &a->variables_cost))
        a->variables_cost = UINT64_MAX;
    if (!cel_is_error(value))
        return value;
    return cel_of_error_format(work, "composited variable %s fails to evaluate: %.*s",
                               cel_quoted(work, variable->name), SLICE_ARGS(cel_text(value)));
}

/* variables.name */
static struct cel_value find_variable(struct cel_work *work, const struct cel_opaque *opaque,
                                      struct slice name, bool *ret_present)
{
    struct kube_activation *a =
        CONTAINER_OF((struct cel_opaque *)(uintptr_t)opaque, struct kube_activation, variables);
    size_t i = a->policy->variable_count;
    while (i && !slice_equal(a->policy->variables[i - 1].name, name))
        i--;
    *ret_present = i;
    if (!i)
        return CEL_NO_OVERLOAD;
    struct kube_variable_state *state = &a->states[i - 1];
    /* The second of two variables with the same name can refer to the first, and finds itself. */
    if (state->is == KUBE_VARIABLE_BUSY)
        return cel_of_error_format(work, "variable %s refers to itself", cel_quoted(work, name));
    if (state->is == KUBE_VARIABLE_UNKNOWN) {
        state->is = KUBE_VARIABLE_BUSY;
        state->value = evaluate(a, work, &a->policy->variables[i - 1]);
        state->is = KUBE_VARIABLE_KNOWN;
    }
    return state->value;
}

static const struct cel_opaque_ops variables_ops = {
    .type = &variables_type,
    .go_type = "*lazy.MapValue",
    .field = find_variable,
};

bool kube_activation_init(struct kube_activation *a, const struct kube_policy *policy,
                          struct arena *arena, struct kube_evaluation_limit *limit)
{
    *a = (struct kube_activation){
        .variables = {.ops = &variables_ops}, .policy = policy, .arena = arena, .limit = limit};
    for (size_t i = 0; i < KUBE_SLOTS; i++)
        a->slots[i] = (struct cel_value){.kind = CEL_NULL};
    a->slots[KUBE_SLOT_VARIABLES] = cel_of_opaque(&a->variables);
    a->states = arena_calloc(arena, policy->variable_count + 1, sizeof(*a->states));
    return a->states;
}

void kube_activation_view(struct kube_activation *a, enum kube_expression_slot slot,
                          const struct json_node *node)
{
    struct cel_work work = {.arena = a->arena, .steps_left = 1};
    a->slots[slot] = node ? cel_of_json(&work, node) : (struct cel_value){.kind = CEL_NULL};
}

void kube_activation_permit(struct kube_activation *a, const struct kube_permissions *permissions,
                            const struct kube_match_request *request)
{
    struct cel_value *authorizer = &a->slots[KUBE_SLOT_AUTHORIZER];
    struct cel_value *resource = &a->slots[KUBE_SLOT_REQUEST_RESOURCE];
    *authorizer = CEL_FAIL("no such attribute(s): authorizer");
    *resource = CEL_FAIL("no such attribute(s): authorizer.requestResource");
    if (permissions && a->policy->uses & KUBE_USES_AUTHORIZER) {
        *authorizer = kube_permissions_authorizer(permissions, a->arena);
        *resource = kube_permissions_resource(permissions, request, a->arena);
    }
}

void kube_activation_forget(struct kube_activation *a)
{
    memset(a->states, 0, a->policy->variable_count * sizeof(*a->states));
    a->variables_cost = 0;
}

struct cel_value kube_activation_eval(struct kube_activation *a,
                                      const struct kube_expression *expression, uint64_t *ret_cost)
{
    struct kube_evaluation_limit *limit = a->limit;
    uint64_t cost_max =
        limit->left < KUBE_EXPRESSION_COST_MAX ? limit->left : KUBE_EXPRESSION_COST_MAX;
    struct cel_budget budget = {.cost_max = cost_max};
    struct cel_value value = cel_eval(expression->program, a->slots, a->arena, &budget);
    *ret_cost = budget.cost;
    /* The evaluation may have ended only because of what the write as a whole may cost. */
    if (cost_max < KUBE_EXPRESSION_COST_MAX && cel_is_error(value) &&
        slice_equal(cel_text(value), cel_text(CEL_TOO_MUCH_WORK)))
        limit->reached = true;
    /* A comparison of large objects takes many steps, and costs nearly nothing. */
    uint64_t work = budget.steps / STEPS_PER_COST;
    kube_evaluation_charge(limit, EXPRESSION_COST + (work > budget.cost ? work : budget.cost));
    return value;
}
