#include "kube/policy/admission/amounts/quota_scope.h"

#include "kube/policy/admission/amounts/amounts.h"
#include "kube/types/defaults/quantity.h"
#include "kube/types/validate/check.h"

/* One scope, with its operator; without one it is "Exists". */
struct scope {
    struct slice name;
    const struct json_node *requirement; /* NULL: the scope is only named */
    struct arena *arena;
};

/* Whether a value, or the absence of one (empty), satisfies the requirement. */
static bool satisfies(const struct scope *scope, struct slice value)
{
    const struct json_node *op = json_node_named(scope->requirement, "operator");
    const struct json_node *values = json_node_named(scope->requirement, "values");
    bool listed = false;
    if (!scope->requirement || json_node_is_text(op, "Exists"))
        return value.len;
    if (json_node_is_text(op, "DoesNotExist"))
        return !value.len;
    for (const struct json_node *item = rule_first(values); item && value.len; item = item->next) {
        struct slice text;
        listed = listed ||
                 (json_node_text(item, scope->arena, &text) == ST_OK && slice_equal(text, value));
    }
    return json_node_is_text(op, "NotIn") ? !listed : listed;
}

/* -- Pods -- */

static bool is_positive(const struct json_node *list, const char *name)
{
    const struct json_node *node = json_node_named(list, name);
    struct quantity value = node ? kube_amount_read(node) : (struct quantity){0};
    return value.amount && !value.negative;
}

static bool has_amounts(const struct json_node *resources)
{
    const struct json_node *requests = json_node_named(resources, "requests");
    const struct json_node *limits = json_node_named(resources, "limits");
    return is_positive(requests, "cpu") || is_positive(requests, "memory") ||
           is_positive(limits, "cpu") || is_positive(limits, "memory");
}

static bool containers_have_amounts(const struct json_node *containers)
{
    for (const struct json_node *item = rule_first(containers); item; item = item->next) {
        if (has_amounts(json_node_named(item, "resources")))
            return true;
    }
    return false;
}

static bool is_best_effort(const struct json_node *pod)
{
    const struct json_node *spec = json_node_named(pod, "spec");
    const struct json_node *class = json_node_path(pod, "status.qosClass");
    if (class && class->text.len)
        return json_node_is_text(class, "BestEffort");
    if (json_node_named(spec, "resources"))
        return !has_amounts(json_node_named(spec, "resources"));
    return !containers_have_amounts(json_node_named(spec, "containers")) &&
           !containers_have_amounts(json_node_named(spec, "initContainers"));
}

static bool crosses(const struct json_node *term)
{
    return rule_count(json_node_named(term, "namespaces")) ||
           json_node_named(term, "namespaceSelector");
}

static bool any_crosses(const struct json_node *affinity)
{
    const struct json_node *term =
        rule_first(json_node_named(affinity, "requiredDuringSchedulingIgnoredDuringExecution"));
    for (; term; term = term->next) {
        if (crosses(term))
            return true;
    }
    term = rule_first(json_node_named(affinity, "preferredDuringSchedulingIgnoredDuringExecution"));
    for (; term; term = term->next) {
        if (crosses(json_node_named(term, "podAffinityTerm")))
            return true;
    }
    return false;
}

static bool pod_has(const struct scope *scope, const struct json_node *pod)
{
    const struct json_node *spec = json_node_named(pod, "spec");
    bool terminating = rule_int(spec, "activeDeadlineSeconds", -1) >= 0;
    struct slice class;
    if (slice_is(scope->name, "Terminating"))
        return terminating;
    if (slice_is(scope->name, "NotTerminating"))
        return !terminating;
    if (slice_is(scope->name, "BestEffort"))
        return is_best_effort(pod);
    if (slice_is(scope->name, "NotBestEffort"))
        return !is_best_effort(pod);
    if (slice_is(scope->name, "PriorityClass"))
        return json_node_text(json_node_named(spec, "priorityClassName"), scope->arena, &class) ==
                   ST_OK &&
               satisfies(scope, class);
    if (slice_is(scope->name, "CrossNamespacePodAffinity"))
        return any_crosses(json_node_path(spec, "affinity.podAffinity")) ||
               any_crosses(json_node_path(spec, "affinity.podAntiAffinity"));
    return false;
}

/* -- Claims -- */

/* A claim whose class is being changed has up to three; one that satisfies is enough. */
static bool claim_has(const struct scope *scope, const struct json_node *claim)
{
    static const char *const paths[] = {
        "spec.volumeAttributesClassName", "status.currentVolumeAttributesClassName",
        "status.modifyVolumeStatus.targetVolumeAttributesClassName"};
    bool any = false;
    if (!slice_is(scope->name, "VolumeAttributesClass"))
        return false;
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        struct slice class;
        if (json_node_text(json_node_path(claim, paths[i]), scope->arena, &class) != ST_OK)
            return false;
        if (class.len && satisfies(scope, class))
            return true;
        any = any || class.len;
    }
    return !any && satisfies(scope, SLICE_EMPTY);
}

static bool has_scope(enum kube_quota_scopes_of kind, const struct scope *scope,
                      const struct json_node *object)
{
    if (kind == KUBE_QUOTA_SCOPES_OF_OTHERS)
        return false;
    return kind == KUBE_QUOTA_SCOPES_OF_PODS ? pod_has(scope, object) : claim_has(scope, object);
}

bool kube_quota_scopes_match(const struct json_node *spec, enum kube_quota_scopes_of kind,
                             const struct json_node *object, struct arena *arena)
{
    const struct json_node *scopes = json_node_named(spec, "scopes");
    const struct json_node *selector = json_node_path(spec, "scopeSelector.matchExpressions");
    for (const struct json_node *item = rule_first(scopes); item; item = item->next) {
        struct scope scope = {.arena = arena};
        if (json_node_text(item, arena, &scope.name) != ST_OK || !has_scope(kind, &scope, object))
            return false;
    }
    for (const struct json_node *item = rule_first(selector); item; item = item->next) {
        struct scope scope = {.arena = arena, .requirement = item};
        if (json_node_text(json_node_named(item, "scopeName"), arena, &scope.name) != ST_OK ||
            !has_scope(kind, &scope, object))
            return false;
    }
    return true;
}
