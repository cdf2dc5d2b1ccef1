#include "kube/types/defaults/rules.h"

/* -- Services -- */

static enum status set_affinity(struct arena *arena, struct json_node *spec)
{
    struct json_node *config = json_node_named(spec, "sessionAffinityConfig"), *client;
    if (default_is(spec, "sessionAffinity", "None") && config)
        json_node_remove(spec, config);
    if (!default_is(spec, "sessionAffinity", "ClientIP"))
        return ST_OK;
    TRY(default_set_object(arena, spec, "sessionAffinityConfig", &config));
    if (!config)
        return ST_OK;
    TRY(default_set_object(arena, config, "clientIP", &client));
    return client ? default_set_int(arena, client, "timeoutSeconds", 10800) : ST_OK;
}

static enum status set_traffic(struct arena *arena, struct json_node *spec)
{
    bool balancer = default_is(spec, "type", "LoadBalancer");
    bool cluster = default_is(spec, "type", "ClusterIP");
    bool ports = default_is(spec, "type", "NodePort");
    if (balancer || ports || (cluster && json_node_items_at(spec, "externalIPs")))
        TRY(default_set_text(arena, spec, "externalTrafficPolicy", "Cluster"));
    if (balancer || ports || cluster)
        TRY(default_set_text(arena, spec, "internalTrafficPolicy", "Cluster"));
    return balancer ? default_set_bool(arena, spec, "allocateLoadBalancerNodePorts", true) : ST_OK;
}

/* The addresses of a load balancer are virtual unless it says otherwise. */
static enum status set_modes(struct arena *arena, struct json_node *service)
{
    struct json_node *list = json_node_path(service, "status.loadBalancer.ingress");
    struct json_node *item = list && list->type == JSON_TYPE_ARRAY ? json_node_first(list) : NULL;
    for (; item; item = json_node_next(item)) {
        if (default_text(item, "ip").len)
            TRY(default_set_text(arena, item, "ipMode", "VIP"));
    }
    return ST_OK;
}

enum status default_service(struct arena *arena, struct json_node *service)
{
    struct json_node *spec = json_node_named(service, "spec");
    if (!spec || spec->type != JSON_TYPE_OBJECT)
        return ST_OK;
    TRY(set_affinity(arena, spec));
    TRY(set_traffic(arena, spec));
    return default_is(spec, "type", "LoadBalancer") ? set_modes(arena, service) : ST_OK;
}

enum status default_service_port(struct arena *arena, struct json_node *port)
{
    struct json_node *number = json_node_named(port, "port");
    struct json_node *target = json_node_named(port, "targetPort");
    bool zero = target && target->type == JSON_TYPE_NUMBER && slice_is(target->text, "0");
    if (zero || (target && target->type == JSON_TYPE_STRING && !target->text.len))
        json_node_remove(port, target);
    return number ? default_set_copy(arena, port, "targetPort", number) : ST_OK;
}

/* -- Addresses that are both a value and the first item of a list -- */

/* A list with one item: the value, or an object that has it. */
static struct json_node *list_of(struct arena *arena, const struct json_node *value,
                                 const char *member)
{
    struct json_node *list = json_node_new(arena, JSON_TYPE_ARRAY);
    struct json_node *text = json_node_copy(arena, value), *item = text;
    if (!list || !text)
        return NULL;
    if (member) {
        item = json_node_new(arena, JSON_TYPE_OBJECT);
        if (!item || json_node_set(arena, item, slice_from_text(member), text) != ST_OK)
            return NULL;
    }
    return json_node_insert(list, NULL, item) == ST_OK ? list : NULL;
}

/* The value of older clients wins over a list that begins with another one. `member` of an item has
 * it; NULL: the items are texts. */
static enum status set_first(struct arena *arena, struct json_node *object, const char *one,
                             const char *many, const char *member)
{
    const struct json_node *value = json_node_named(object, one);
    const struct json_node *first = json_node_items(json_node_named(object, many));
    struct json_node *set;
    if (first && member)
        first = json_look_member(first, slice_from_text(member));
    if (json_node_has_text(value) && first && json_node_equal(value, first))
        return ST_OK;
    if (!json_node_has_text(value) && !json_node_has_text(first))
        return ST_OK;
    set = json_node_has_text(value) ? list_of(arena, value, member) : json_node_copy(arena, first);
    return set ? json_node_set(arena, object,
                               slice_from_text(json_node_has_text(value) ? many : one), set)
               : ST_NOMEM;
}

/* -- Nodes and limits -- */

enum status default_node_spec(struct arena *arena, struct json_node *spec)
{
    return set_first(arena, spec, "podCIDR", "podCIDRs", NULL);
}

enum status default_pod_status(struct arena *arena, struct json_node *status)
{
    return set_first(arena, status, "podIP", "podIPs", "ip");
}

enum status default_node_status(struct arena *arena, struct json_node *status)
{
    struct json_node *capacity = json_node_named(status, "capacity");
    return capacity ? default_set_copy(arena, status, "allocatable", capacity) : ST_OK;
}

/* A member that Go would omit because it is empty. */
static void drop_empty(struct json_node *object, const char *key)
{
    struct json_node *member = json_node_named(object, key);
    if (member && member->type == JSON_TYPE_OBJECT && !member->first)
        json_node_remove(object, member);
}

enum status default_limit_range(struct arena *arena, struct json_node *item)
{
    struct json_node *limits, *requests;
    if (!default_is(item, "type", "Container"))
        return ST_OK;
    TRY(default_set_object(arena, item, "default", &limits));
    TRY(default_set_object(arena, item, "defaultRequest", &requests));
    TRY(default_set_missing(arena, limits, json_node_named(item, "max")));
    TRY(default_set_missing(arena, requests, limits));
    TRY(default_set_missing(arena, requests, json_node_named(item, "min")));
    drop_empty(item, "default");
    drop_empty(item, "defaultRequest");
    return ST_OK;
}

/* -- Network policies -- */

static enum status add_text(struct arena *arena, struct json_node *list, const char *text)
{
    struct json_node *item = json_node_new_text(arena, slice_from_text(text));
    return item ? json_node_insert(list, NULL, item) : ST_NOMEM;
}

enum status default_network_policy(struct arena *arena, struct json_node *spec)
{
    if (!default_lacks(spec, "policyTypes"))
        return ST_OK;
    struct json_node *list = json_node_new(arena, JSON_TYPE_ARRAY);
    if (!list)
        return ST_NOMEM;
    TRY(add_text(arena, list, "Ingress"));
    if (json_node_items_at(spec, "egress"))
        TRY(add_text(arena, list, "Egress"));
    return json_node_set(arena, spec, SLICE_LITERAL("policyTypes"), list);
}

/* -- Storage drivers -- */

enum status default_csi_driver(struct arena *arena, struct json_node *spec)
{
    if (!default_lacks(spec, "volumeLifecycleModes"))
        return ST_OK;
    struct json_node *list = json_node_new(arena, JSON_TYPE_ARRAY);
    if (!list)
        return ST_NOMEM;
    TRY(add_text(arena, list, "Persistent"));
    return json_node_set(arena, spec, SLICE_LITERAL("volumeLifecycleModes"), list);
}

/* -- Priority levels -- */

/* Only the level that is present from the start is exempt, so no create shows these. */
enum status default_exempt_level(struct arena *arena, struct json_node *exempt)
{
    TRY(default_set_int(arena, exempt, "nominalConcurrencyShares", 0));
    return default_set_int(arena, exempt, "lendablePercent", 0);
}

/* -- Roles -- */

#define RBAC_GROUP "rbac.authorization.k8s.io"

enum status default_role_ref(struct arena *arena, struct json_node *binding)
{
    struct json_node *ref = json_node_named(binding, "roleRef");
    if (!ref || ref->type != JSON_TYPE_OBJECT)
        return ST_OK;
    /* Go writes an empty text, which nevertheless counts as absent. */
    struct json_node *member = json_node_named(ref, "apiGroup");
    if (member && member->type == JSON_TYPE_STRING && !member->text.len)
        json_node_remove(ref, member);
    return default_set_text(arena, ref, "apiGroup", RBAC_GROUP);
}

enum status default_subject(struct arena *arena, struct json_node *subject)
{
    if (!default_is(subject, "kind", "User") && !default_is(subject, "kind", "Group"))
        return ST_OK;
    return default_set_text(arena, subject, "apiGroup", RBAC_GROUP);
}

/* -- Devices -- */

enum status default_device_request(struct arena *arena, struct json_node *request)
{
    return default_is(request, "allocationMode", "ExactCount")
               ? default_set_int(arena, request, "count", 1)
               : ST_OK;
}

enum status default_device(struct arena *arena, struct json_node *device)
{
    struct json_node *map = json_node_named(device, "nodeAllocatableResourceMappings");
    struct json_node *item = map && map->type == JSON_TYPE_OBJECT ? json_node_first(map) : NULL;
    for (; item; item = json_node_next(item)) {
        if (item->type == JSON_TYPE_OBJECT)
            TRY(default_set_text(arena, item, "allocationMultiplier", "1"));
    }
    return ST_OK;
}
