#include "kube/types/validate/validate.h"

#include "base/macros.h"
#include "kube/types/validate/kinds.h"

#include <assert.h>
#include <stdlib.h>

/* Ordered by group and plural. */
static const struct row {
    const char *group, *plural;
    kind_rule of_object, of_status; /* NULL: none */
    bool reads_annotations;         /* of_object also when the object exists */
} rows[] = {
    {"", "configmaps", kube_validate_config_map, NULL, false},
    {"", "endpoints", kube_validate_endpoints, NULL, false},
    {"", "events", kube_validate_event, NULL, false},
    {"", "limitranges", kube_validate_limit_range, NULL, false},
    {"", "namespaces", kube_validate_namespace, kube_validate_namespace_status, false},
    {"", "nodes", kube_validate_node, kube_validate_node_status, false},
    {"", "persistentvolumeclaims", kube_validate_claim, NULL, false},
    {"", "persistentvolumes", kube_validate_volume, NULL, false},
    {"", "pods", kube_validate_pod, NULL, false},
    {"", "podtemplates", kube_validate_pod_template, NULL, false},
    {"", "replicationcontrollers", kube_validate_replication_controller, NULL, false},
    {"", "resourcequotas", kube_validate_quota, kube_validate_quota_status, false},
    {"", "secrets", kube_validate_secret, NULL, true},
    {"", "services", kube_validate_service, NULL, true},
    {"admissionregistration.k8s.io", "mutatingadmissionpolicies", kube_validate_mutating_policy,
     NULL, false},
    {"admissionregistration.k8s.io", "mutatingadmissionpolicybindings",
     kube_validate_mutating_binding, NULL, false},
    {"admissionregistration.k8s.io", "mutatingwebhookconfigurations",
     kube_validate_mutating_webhooks, NULL, false},
    {"admissionregistration.k8s.io", "validatingadmissionpolicies", kube_validate_validating_policy,
     NULL, false},
    {"admissionregistration.k8s.io", "validatingadmissionpolicybindings",
     kube_validate_validating_binding, NULL, false},
    {"admissionregistration.k8s.io", "validatingwebhookconfigurations",
     kube_validate_validating_webhooks, NULL, false},
    {"apiregistration.k8s.io", "apiservices", kube_validate_api_service,
     kube_validate_api_service_status, false},
    {"apps", "controllerrevisions", kube_validate_controller_revision, NULL, false},
    {"apps", "daemonsets", kube_validate_daemon_set, NULL, false},
    {"apps", "deployments", kube_validate_deployment, kube_validate_deployment_status, false},
    {"apps", "replicasets", kube_validate_replica_set, kube_validate_replica_set_status, false},
    {"apps", "statefulsets", kube_validate_stateful_set, kube_validate_stateful_set_status, false},
    {"autoscaling", "horizontalpodautoscalers", kube_validate_autoscaler, NULL, false},
    {"batch", "cronjobs", kube_validate_cron_job, NULL, false},
    {"batch", "jobs", kube_validate_job, NULL, false},
    {"certificates.k8s.io", "certificatesigningrequests", kube_validate_csr,
     kube_validate_csr_status, false},
    {"coordination.k8s.io", "leases", kube_validate_lease, NULL, false},
    {"discovery.k8s.io", "endpointslices", kube_validate_endpoint_slice, NULL, false},
    {"events.k8s.io", "events", kube_validate_new_event, NULL, false},
    {"flowcontrol.apiserver.k8s.io", "flowschemas", kube_validate_flow_schema,
     kube_validate_flow_status, false},
    {"flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations", kube_validate_priority_level,
     kube_validate_flow_status, false},
    {"networking.k8s.io", "ingressclasses", kube_validate_ingress_class, NULL, false},
    {"networking.k8s.io", "ingresses", kube_validate_ingress, NULL, false},
    {"networking.k8s.io", "ipaddresses", kube_validate_ip_address, NULL, false},
    {"networking.k8s.io", "networkpolicies", kube_validate_network_policy, NULL, false},
    {"networking.k8s.io", "servicecidrs", kube_validate_service_range, NULL, false},
    {"node.k8s.io", "runtimeclasses", kube_validate_runtime_class, NULL, false},
    {"policy", "poddisruptionbudgets", kube_validate_disruption_budget, NULL, false},
    {"rbac.authorization.k8s.io", "clusterrolebindings", kube_validate_cluster_role_binding, NULL,
     false},
    {"rbac.authorization.k8s.io", "clusterroles", kube_validate_cluster_role, NULL, false},
    {"rbac.authorization.k8s.io", "rolebindings", kube_validate_role_binding, NULL, false},
    {"rbac.authorization.k8s.io", "roles", kube_validate_role, NULL, false},
    {"scheduling.k8s.io", "priorityclasses", kube_validate_priority_class, NULL, false},
    {"storage.k8s.io", "csidrivers", kube_validate_csi_driver, NULL, false},
    {"storage.k8s.io", "csinodes", kube_validate_csi_node, NULL, false},
    {"storage.k8s.io", "csistoragecapacities", kube_validate_csi_capacity, NULL, false},
    {"storage.k8s.io", "storageclasses", kube_validate_storage_class, NULL, false},
    {"storage.k8s.io", "volumeattachments", kube_validate_volume_attachment,
     kube_validate_volume_attachment_status, false},
    {"storage.k8s.io", "volumeattributesclasses", kube_validate_volume_attributes_class, NULL,
     false},
};

static int row_order(const void *key, const void *element)
{
    const struct kube_kind *kind = key;
    const struct row *row = element;
    int order = strcmp(kind->group, row->group);
    return order ? order : strcmp(kind->plural, row->plural);
}

void kube_validate_check(void)
{
    for (size_t i = 1; i < COUNT_OF(rows); i++) {
        struct kube_kind before = {.group = rows[i - 1].group, .plural = rows[i - 1].plural};
        assert(row_order(&before, &rows[i]) < 0);
    }
}

/* Whether they have the same members, and the same values of all but metadata. */
static bool same_but_metadata(const struct json_node *a, const struct json_node *b)
{
    const struct slice metadata = SLICE_LITERAL("metadata");
    if (a->count != b->count || !json_node_member(a, metadata) != !json_node_member(b, metadata))
        return false;
    for (const struct json_node *item = a->first; item; item = item->next) {
        if (!slice_equal(item->key, metadata) &&
            !json_node_equal(item, json_node_member(b, item->key)))
            return false;
    }
    return true;
}

static bool validate(struct check *c, const struct kube_kind *kind, const struct json_node *object,
                     const struct json_node *old, enum kube_validated part)
{
    const struct row *row = kind->flags & KUBE_CUSTOM
                                ? NULL
                                : bsearch(kind, rows, COUNT_OF(rows), sizeof(rows[0]), row_order);
    kind_rule rule = !row ? NULL : part == KUBE_VALIDATE_OBJECT ? row->of_object : row->of_status;
    c->approves = part == KUBE_VALIDATE_APPROVAL;
    bool skips =
        rule && !c->all && part == KUBE_VALIDATE_OBJECT && old && same_but_metadata(object, old) &&
        (!row->reads_annotations || rule_same_node(json_node_path(object, "metadata.annotations"),
                                                   json_node_path(old, "metadata.annotations")));
    if (rule && !skips)
        rule(c, object, old);
    return !c->errors->count && !c->errors->no_memory;
}

bool kube_validate(struct arena *arena, const struct kube_kind *kind,
                   const struct json_node *object, const struct json_node *old,
                   enum kube_validated part, bool unprivileged, struct kube_field_errors *errors)
{
    struct check c = {.arena = arena, .errors = errors, .unprivileged = unprivileged};
    return validate(&c, kind, object, old, part);
}

bool kube_validate_all(struct arena *arena, const struct kube_kind *kind,
                       const struct json_node *object, const struct json_node *old,
                       enum kube_validated part, struct kube_field_errors *errors)
{
    struct check c = {.arena = arena, .errors = errors, .all = true};
    return validate(&c, kind, object, old, part);
}
