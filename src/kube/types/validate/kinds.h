/*
 * The rules of each kind, in the file of its group; `old` is NULL for a new object. validate.c has
 * the table.
 */
#ifndef VIGIL_KUBE_TYPES_VALIDATE_KINDS_H
#define VIGIL_KUBE_TYPES_VALIDATE_KINDS_H

#include "kube/types/validate/check.h"

typedef void (*kind_rule)(struct check *c, const struct json_node *object,
                          const struct json_node *old);
#define KIND_RULE(name) \
    void name(struct check *c, const struct json_node *object, const struct json_node *old)

KIND_RULE(kube_validate_config_map); /* core_config.c */
KIND_RULE(kube_validate_secret);
KIND_RULE(kube_validate_namespace);
KIND_RULE(kube_validate_namespace_status);
KIND_RULE(kube_validate_quota); /* core_quota.c */
KIND_RULE(kube_validate_quota_status);
KIND_RULE(kube_validate_limit_range);
KIND_RULE(kube_validate_service); /* core_service.c */
KIND_RULE(kube_validate_role);    /* rbac.c */
KIND_RULE(kube_validate_cluster_role);
KIND_RULE(kube_validate_role_binding);
KIND_RULE(kube_validate_cluster_role_binding);
KIND_RULE(kube_validate_disruption_budget); /* policy.c */
KIND_RULE(kube_validate_lease);             /* coordination.c */
KIND_RULE(kube_validate_priority_class);
KIND_RULE(kube_validate_storage_class); /* storage.c */
KIND_RULE(kube_validate_volume_attributes_class);

KIND_RULE(kube_validate_network_policy); /* networking.c */
KIND_RULE(kube_validate_ingress);
KIND_RULE(kube_validate_ingress_class);
KIND_RULE(kube_validate_endpoints); /* endpoints.c */
KIND_RULE(kube_validate_endpoint_slice);
KIND_RULE(kube_validate_autoscaler); /* autoscaling.c */
KIND_RULE(kube_validate_claim);      /* workload/claim.c */
KIND_RULE(kube_validate_volume);
KIND_RULE(kube_validate_pod); /* workload/pod.c */
KIND_RULE(kube_validate_pod_template);
KIND_RULE(kube_validate_deployment); /* workload/apps.c */
KIND_RULE(kube_validate_deployment_status);
KIND_RULE(kube_validate_replica_set);
KIND_RULE(kube_validate_replica_set_status);
KIND_RULE(kube_validate_replication_controller);
KIND_RULE(kube_validate_daemon_set);
KIND_RULE(kube_validate_stateful_set);
KIND_RULE(kube_validate_stateful_set_status);
KIND_RULE(kube_validate_job); /* workload/batch.c */
KIND_RULE(kube_validate_cron_job);
KIND_RULE(kube_validate_node); /* workload/node.c */
KIND_RULE(kube_validate_node_status);

KIND_RULE(kube_validate_controller_revision); /* workload/revision.c */
KIND_RULE(kube_validate_event);               /* event.c */
KIND_RULE(kube_validate_new_event);

KIND_RULE(kube_validate_csi_driver); /* cluster/csi.c */
KIND_RULE(kube_validate_csi_node);
KIND_RULE(kube_validate_csi_capacity);
KIND_RULE(kube_validate_volume_attachment);
KIND_RULE(kube_validate_volume_attachment_status);
KIND_RULE(kube_validate_csr); /* cluster/certificates.c */
KIND_RULE(kube_validate_csr_status);
KIND_RULE(kube_validate_validating_webhooks); /* cluster/webhook.c */
KIND_RULE(kube_validate_mutating_webhooks);
KIND_RULE(kube_validate_validating_policy); /* cluster/admission_policy.c */
KIND_RULE(kube_validate_mutating_policy);
KIND_RULE(kube_validate_validating_binding);
KIND_RULE(kube_validate_mutating_binding);
KIND_RULE(kube_validate_flow_schema); /* cluster/flow_control.c */
KIND_RULE(kube_validate_priority_level);
KIND_RULE(kube_validate_flow_status);
KIND_RULE(kube_validate_runtime_class); /* cluster/runtime_class.c */
KIND_RULE(kube_validate_service_range); /* cluster/service_range.c */
KIND_RULE(kube_validate_ip_address);
KIND_RULE(kube_validate_api_service); /* cluster/api_service.c */
KIND_RULE(kube_validate_api_service_status);

/* -- Parts that several kinds have in common -- */

/* A number or "25%": policy.c */
void rule_int_or_percent(struct check *c, const struct at *at, const struct json_node *value);
void rule_at_most_100_percent(struct check *c, const struct at *at, const struct json_node *value);
/* -1: it is not a percentage. */
int64_t rule_percent_of(struct check *c, const struct json_node *value);
int64_t rule_int_or_percent_of(struct check *c, const struct json_node *value);
/* Whether labels meet a selector that is valid: workload/apps.c */
bool rule_selector_matches(struct check *c, const struct json_node *selector,
                           const struct json_node *labels);
/* clientConfig and the versions of reviews of a webhook: cluster/webhook.c. keeps: the old object
 * has none that is known either; detail: of the error that there are none. */
void rule_webhook_client(struct check *c, const struct at *at, const struct json_node *client);
void rule_review_versions(struct check *c, const struct at *at, const struct json_node *list,
                          bool keeps, const char *detail);
void rule_preemption_policy(struct check *c, const struct at *at, struct slice policy);

#endif
