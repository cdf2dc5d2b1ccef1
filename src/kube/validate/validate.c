#include "kube/validate/validate.h"

#include "base/macros.h"
#include "kube/validate/kinds.h"

#include <stdlib.h>

/* Ordered by group and plural. */
static const struct row {
    const char *group, *plural;
    kind_rule of_object, of_status; /* NULL: none */
} rows[] = {
    {"", "configmaps", validate_config_map, NULL},
    {"", "endpoints", validate_endpoints, NULL},
    {"", "limitranges", validate_limit_range, NULL},
    {"", "namespaces", validate_namespace, validate_namespace_status},
    {"", "nodes", validate_node, validate_node_status},
    {"", "persistentvolumeclaims", validate_claim, NULL},
    {"", "persistentvolumes", validate_volume, NULL},
    {"", "pods", validate_pod, NULL},
    {"", "podtemplates", validate_pod_template, NULL},
    {"", "replicationcontrollers", validate_replication_controller, NULL},
    {"", "resourcequotas", validate_quota, validate_quota_status},
    {"", "secrets", validate_secret, NULL},
    {"", "services", validate_service, NULL},
    {"apps", "daemonsets", validate_daemon_set, NULL},
    {"apps", "deployments", validate_deployment, validate_deployment_status},
    {"apps", "replicasets", validate_replica_set, validate_replica_set_status},
    {"apps", "statefulsets", validate_stateful_set, validate_stateful_set_status},
    {"autoscaling", "horizontalpodautoscalers", validate_autoscaler, NULL},
    {"batch", "cronjobs", validate_cron_job, NULL},
    {"batch", "jobs", validate_job, NULL},
    {"coordination.k8s.io", "leases", validate_lease, NULL},
    {"discovery.k8s.io", "endpointslices", validate_endpoint_slice, NULL},
    {"networking.k8s.io", "ingressclasses", validate_ingress_class, NULL},
    {"networking.k8s.io", "ingresses", validate_ingress, NULL},
    {"networking.k8s.io", "networkpolicies", validate_network_policy, NULL},
    {"policy", "poddisruptionbudgets", validate_disruption_budget, NULL},
    {"rbac.authorization.k8s.io", "clusterrolebindings", validate_cluster_role_binding, NULL},
    {"rbac.authorization.k8s.io", "clusterroles", validate_cluster_role, NULL},
    {"rbac.authorization.k8s.io", "rolebindings", validate_role_binding, NULL},
    {"rbac.authorization.k8s.io", "roles", validate_role, NULL},
    {"scheduling.k8s.io", "priorityclasses", validate_priority_class, NULL},
    {"storage.k8s.io", "storageclasses", validate_storage_class, NULL},
    {"storage.k8s.io", "volumeattributesclasses", validate_volume_attributes_class, NULL},
};

static int row_order(const void *key, const void *element)
{
    const struct kube_kind *kind = key;
    const struct row *row = element;
    int order = strcmp(kind->group, row->group);
    return order ? order : strcmp(kind->plural, row->plural);
}

bool kube_validate(struct arena *arena, const struct kube_kind *kind,
                   const struct json_node *object, const struct json_node *old,
                   enum kube_validated part, struct kube_field_errors *errors)
{
    struct check c = {.arena = arena, .errors = errors};
    const struct row *row = kind->flags & KUBE_CUSTOM
                                ? NULL
                                : bsearch(kind, rows, COUNT_OF(rows), sizeof(rows[0]), row_order);
    kind_rule rule = !row ? NULL : part == KUBE_VALIDATE_STATUS ? row->of_status : row->of_object;
    if (rule)
        rule(&c, object, old);
    return !errors->count && !errors->no_memory;
}
