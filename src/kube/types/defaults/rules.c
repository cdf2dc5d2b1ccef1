#include "kube/types/defaults/rules.h"

#include <stdlib.h>

/* Ordered by type. */
static const struct rule_row {
    const char *type;
    default_rule set;
} rules[] = {
    {"io.k8s.api.apps.v1.DaemonSetSpec", default_daemon_set},
    {"io.k8s.api.apps.v1.DeploymentSpec", default_deployment},
    {"io.k8s.api.apps.v1.StatefulSetSpec", default_stateful_set},
    {"io.k8s.api.autoscaling.v1.HorizontalPodAutoscaler", default_autoscaler_v1},
    {"io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerSpec", default_autoscaler_v2},
    {"io.k8s.api.batch.v1.Job", default_job},
    {"io.k8s.api.core.v1.Container", default_container},
    {"io.k8s.api.core.v1.EphemeralContainerCommon", default_ephemeral_container},
    {"io.k8s.api.core.v1.LimitRangeItem", default_limit_range},
    {"io.k8s.api.core.v1.NodeSpec", default_node_spec},
    {"io.k8s.api.core.v1.NodeStatus", default_node_status},
    {"io.k8s.api.core.v1.Pod", default_pod},
    {"io.k8s.api.core.v1.PodSpec", default_pod_spec},
    {"io.k8s.api.core.v1.PodStatus", default_pod_status},
    {"io.k8s.api.core.v1.ReplicationController", default_replication_controller},
    {"io.k8s.api.core.v1.Service", default_service},
    {"io.k8s.api.core.v1.ServicePort", default_service_port},
    {"io.k8s.api.core.v1.Volume", default_volume},
    {"io.k8s.api.flowcontrol.v1.ExemptPriorityLevelConfiguration", default_exempt_level},
    {"io.k8s.api.networking.v1.NetworkPolicySpec", default_network_policy},
    {"io.k8s.api.rbac.v1.ClusterRoleBinding", default_role_ref},
    {"io.k8s.api.rbac.v1.RoleBinding", default_role_ref},
    {"io.k8s.api.rbac.v1.Subject", default_subject},
    {"io.k8s.api.resource.v1.Device", default_device},
    {"io.k8s.api.resource.v1.DeviceSubRequest", default_device_request},
    {"io.k8s.api.resource.v1.ExactDeviceRequest", default_device_request},
    {"io.k8s.api.storage.v1.CSIDriverSpec", default_csi_driver},
};

static int compare(const void *key, const void *row)
{
    return strcmp(key, ((const struct rule_row *)row)->type);
}

default_rule default_rule_of(const char *type)
{
    const struct rule_row *row = bsearch(type, rules, COUNT_OF(rules), sizeof(rules[0]), compare);
    return row ? row->set : NULL;
}

size_t default_rules_count(void)
{
    return COUNT_OF(rules);
}

/* -- Helpers -- */

bool default_lacks(const struct json_node *object, const char *key)
{
    const struct json_node *node = json_node_named(object, key);
    return !node || node->type == JSON_TYPE_NULL;
}

struct slice default_text(const struct json_node *object, const char *key)
{
    const struct json_node *node = json_node_named(object, key);
    return node && node->type == JSON_TYPE_STRING && !node->escaped ? node->text : SLICE_EMPTY;
}

bool default_is(const struct json_node *object, const char *key, const char *text)
{
    return slice_is(default_text(object, key), text);
}

enum status default_set_text(struct arena *arena, struct json_node *object, const char *key,
                             const char *text)
{
    if (!default_lacks(object, key))
        return ST_OK;
    struct json_node *value = json_node_new(arena, JSON_TYPE_STRING);
    if (value)
        value->text = slice_from_text(text);
    return json_node_put(arena, object, key, value);
}

enum status default_set_int(struct arena *arena, struct json_node *object, const char *key,
                            int64_t value)
{
    return default_lacks(object, key)
               ? json_node_put(arena, object, key, json_node_new_int(arena, value))
               : ST_OK;
}

enum status default_set_bool(struct arena *arena, struct json_node *object, const char *key,
                             bool truth)
{
    if (!default_lacks(object, key))
        return ST_OK;
    struct json_node *value = json_node_new(arena, JSON_TYPE_BOOL);
    if (value)
        value->truth = truth;
    return json_node_put(arena, object, key, value);
}

enum status default_set_copy(struct arena *arena, struct json_node *object, const char *key,
                             const struct json_node *value)
{
    return default_lacks(object, key)
               ? json_node_put(arena, object, key, json_node_copy(arena, value))
               : ST_OK;
}

enum status default_set_object(struct arena *arena, struct json_node *object, const char *key,
                               struct json_node **ret_child)
{
    struct json_node *child = json_node_named(object, key);
    *ret_child = child && child->type == JSON_TYPE_OBJECT ? child : NULL;
    if (!default_lacks(object, key))
        return ST_OK;
    *ret_child = json_node_new(arena, JSON_TYPE_OBJECT);
    return json_node_put(arena, object, key, *ret_child);
}

enum status default_set_missing(struct arena *arena, struct json_node *to,
                                const struct json_node *from)
{
    if (!to || to->type != JSON_TYPE_OBJECT || !from || from->type != JSON_TYPE_OBJECT)
        return ST_OK;
    for (const struct json_node *member = from->first; member; member = member->next) {
        if (json_node_member(to, member->key))
            continue;
        struct json_node *copy = json_node_copy(arena, member);
        if (!copy)
            return ST_NOMEM;
        TRY(json_node_set(arena, to, member->key, copy));
    }
    return ST_OK;
}
