#include "kube/policy/policies/webhook.h"

#include "kube/policy/policies/index.h"

#define WHY_INVALID "its clientConfig is not valid"
#define WHY_LONG "one of its rules names more than 10000 groups, versions or resources"
#define WHY_MANY "its configuration has more than 1000 webhooks"

/* -- Reading -- */

static void read_versions(const struct json_node *list, struct kube_webhook *to)
{
    const struct json_node *item = json_node_items(list);
    for (; item && !to->takes_v1 && !to->takes_v1beta1; item = item->next) {
        to->takes_v1 = json_node_is_text(item, "v1");
        to->takes_v1beta1 = json_node_is_text(item, "v1beta1");
    }
}

/* What a webhook concerns is not known, and its failures are not ignored: nothing may pass that it
 * might have refused. */
static void refuse_all(struct kube_webhook *webhook, const char *why)
{
    webhook->rule.match = (struct kube_match){0};
    webhook->rule.ignores_failures = false;
    webhook->rule.unusable = why;
    webhook->takes_dry_runs = true; /* they are refused for the same reason */
}

static void read_webhook(struct arena *arena, const struct json_node *from, struct kube_webhook *to)
{
    struct kube_policy *rule = &to->rule;
    const struct json_node *effects = json_node_named(from, "sideEffects");
    to->is_logged = arena_calloc(arena, 1, sizeof(*to->is_logged));
    rule->name = kube_text_copy(arena, from, "name");
    rule->ignores_failures = json_node_text_is(from, "failurePolicy", "Ignore");
    rule->reinvoked = json_node_text_is(from, "reinvocationPolicy", "IfNeeded");
    if (!kube_match_read_webhook(arena, from, &rule->match)) {
        refuse_all(to, WHY_LONG);
        return;
    }
    kube_policy_read_conditions(arena, json_node_named(from, "matchConditions"), rule);
    to->takes_dry_runs =
        json_node_is_text(effects, "None") || json_node_is_text(effects, "NoneOnDryRun");
    read_versions(json_node_named(from, "admissionReviewVersions"), to);
    if (!json_node_int(json_node_named(from, "timeoutSeconds"), &to->timeout_s) ||
        to->timeout_s < 1 || to->timeout_s > KUBE_WEBHOOK_TIMEOUT_MAX_S)
        to->timeout_s = KUBE_WEBHOOK_TIMEOUT_S;
    to->target = kube_webhook_target_read(arena, json_node_named(from, "clientConfig"));
    if (!to->target && !rule->unusable)
        rule->unusable = WHY_INVALID;
}

const void *kube_webhooks_read(struct arena *arena, const struct json_node *object)
{
    struct kube_webhooks *webhooks = arena_calloc(arena, 1, sizeof(*webhooks));
    const struct json_node *list = json_node_named(object, "webhooks");
    /* Most configurations have text of their own only in part; selectors refer to it. */
    if (!webhooks || !json_node_items(list))
        return webhooks;
    list = kube_match_keep(arena, list);
    if (!list)
        return NULL;
    size_t room = size_min(list->count, KUBE_WEBHOOKS_MAX);
    webhooks->items = arena_calloc(arena, room, sizeof(*webhooks->items));
    if (!webhooks->items)
        return NULL;
    if (list->count > KUBE_WEBHOOKS_MAX) {
        struct kube_webhook *all = &webhooks->items[webhooks->count++];
        all->rule.name = kube_text_copy(arena, list->first, "name");
        refuse_all(all, WHY_MANY);
        return webhooks;
    }
    for (const struct json_node *item = json_node_items(list); item && !arena_ran_out(arena);
         item = item->next)
        read_webhook(arena, item, &webhooks->items[webhooks->count++]);
    return arena_ran_out(arena) ? NULL : webhooks;
}

static const void *check(struct arena *arena, const struct json_node *object)
{
    const struct kube_webhooks *webhooks = kube_webhooks_read(arena, object);
    for (size_t i = 0; webhooks && i < webhooks->count; i++)
        if (webhooks->items[i].rule.unusable)
            return NULL;
    return webhooks;
}

/* -- The index -- */

/* Under a star, or under each resource that a webhook names: an object is found once. */
static size_t each_text(const struct kube_lookup_object *object, struct version_map *index,
                        kube_policy_index_fn *fn)
{
    const struct kube_webhooks *webhooks = object->data;
    size_t bytes = 0;
    for (size_t i = 0; i < webhooks->count; i++)
        if (kube_match_is_of_any_resource(&webhooks->items[i].rule.match))
            return kube_policy_index_match(&webhooks->items[i].rule.match, index, fn, object);
    for (size_t i = 0; i < webhooks->count; i++)
        bytes += kube_policy_index_match(&webhooks->items[i].rule.match, index, fn, object);
    return bytes;
}

static void index_add(struct version_map *index, const struct kube_lookup_object *object)
{
    (void)each_text(object, index, kube_policy_index_put);
}

static void index_remove(struct version_map *index, const struct kube_lookup_object *object)
{
    (void)each_text(object, index, kube_policy_index_remove);
}

static size_t index_bytes(const struct kube_lookup_object *object)
{
    return each_text(object, NULL, NULL);
}

const struct kube_lookup_kind kube_validating_webhooks_kind = {
    .prefix = "/registry/validatingwebhookconfigurations/",
    .read = kube_webhooks_read,
    .added = index_add,
    .removed = index_remove,
    .index_bytes = index_bytes,
};

const struct kube_lookup_kind kube_mutating_webhooks_kind = {
    .prefix = "/registry/mutatingwebhookconfigurations/",
    .read = kube_webhooks_read,
    .added = index_add,
    .removed = index_remove,
    .index_bytes = index_bytes,
};

const struct kube_lookup_kind kube_webhooks_checks = {
    .read = check,
    .limited = "webhooks",
    .limits = "configurations of at most 1000 webhooks, whose match conditions take at most 8 MiB "
              "when they are compiled",
    .denies = true,
};
