#include "kube/policy/policies/binding.h"

#include "kube/policy/policies/index.h"

#define WHY_LONG "one of its rules has more than 10000 groups, versions, resources or names"

static unsigned read_actions(const struct json_node *list)
{
    unsigned actions = 0;
    for (const struct json_node *item = json_node_items(list); item; item = item->next)
        actions |= json_node_is_text(item, "Deny")    ? KUBE_ACTION_DENY
                   : json_node_is_text(item, "Warn")  ? KUBE_ACTION_WARN
                   : json_node_is_text(item, "Audit") ? KUBE_ACTION_AUDIT
                                                      : 0u;
    return actions;
}

const void *kube_policy_binding_read(struct arena *arena, const struct json_node *object)
{
    struct kube_policy_binding *binding = arena_calloc(arena, 1, sizeof(*binding));
    const struct json_node *spec = kube_match_keep(arena, json_node_named(object, "spec"));
    if (!binding || !spec || spec->type != JSON_TYPE_OBJECT)
        return NULL;
    const struct json_node *ref = json_node_named(spec, "paramRef");
    const struct json_node *selector = json_node_named(ref, "selector");
    binding->name = kube_text_copy(arena, json_node_named(object, "metadata"), "name");
    binding->policy = kube_text_copy(arena, spec, "policyName");
    binding->has_params = json_node_is_set(ref);
    binding->param_name = kube_text_copy(arena, ref, "name");
    binding->param_namespace = kube_text_copy(arena, ref, "namespace");
    binding->param_selector = json_node_is_set(selector) ? selector : NULL;
    binding->deny_without_params = json_node_text_is(ref, "parameterNotFoundAction", "Deny");
    binding->actions = read_actions(json_node_named(spec, "validationActions"));
    if (!kube_match_read(arena, json_node_named(spec, "matchResources"), &binding->match)) {
        /* It is not known what it excludes, and nothing may pass that it might have denied. */
        binding->match = (struct kube_match){0};
        binding->unusable = WHY_LONG;
    }
    return arena_ran_out(arena) ? NULL : binding;
}

static const void *check(struct arena *arena, const struct json_node *object)
{
    const struct kube_policy_binding *binding = kube_policy_binding_read(arena, object);
    return binding && !binding->unusable ? binding : NULL;
}

/* -- The index, by policy -- */

static struct slice policy_of(const struct kube_lookup_object *object)
{
    return ((const struct kube_policy_binding *)object->data)->policy;
}

static void index_add(struct version_map *index, const struct kube_lookup_object *object)
{
    kube_policy_index_put(index, policy_of(object), object);
}

static void index_remove(struct version_map *index, const struct kube_lookup_object *object)
{
    kube_policy_index_remove(index, policy_of(object), object);
}

static size_t index_bytes(const struct kube_lookup_object *object)
{
    return kube_policy_index_bytes(policy_of(object), object);
}

const struct kube_lookup_kind kube_policy_binding_kind = {
    .prefix = "/registry/validatingadmissionpolicybindings/",
    .read = kube_policy_binding_read,
    .added = index_add,
    .removed = index_remove,
    .index_bytes = index_bytes,
};

const struct kube_lookup_kind kube_mutating_binding_kind = {
    .prefix = "/registry/mutatingadmissionpolicybindings/",
    .read = kube_policy_binding_read,
    .added = index_add,
    .removed = index_remove,
    .index_bytes = index_bytes,
};

const struct kube_lookup_kind kube_policy_binding_checks = {
    .read = check,
    .limited = "spec.matchResources",
    .limits = "bindings whose rules have at most 10000 groups, versions, resources or names each",
    .denies = true,
};
