/*
 * Defaults that depend on other fields, by type: one function for each type that has some. They run
 * after the members of the object have been walked and its rows of the table have been applied.
 * Private to kube/types/defaults.
 */
#ifndef VIGIL_KUBE_TYPES_DEFAULTS_RULES_H
#define VIGIL_KUBE_TYPES_DEFAULTS_RULES_H

#include "codec/json/tree.h"

typedef enum status (*default_rule)(struct arena *arena, struct json_node *object);

/* The rule of a type, by its full name: "io.k8s.api.core.v1.Container". NULL: none. */
default_rule default_rule_of(const char *type);
size_t default_rules_count(void);

/* -- Pods (rules_pod.c) -- */

MUST_CHECK
enum status default_pod(struct arena *arena, struct json_node *pod);
MUST_CHECK
enum status default_pod_spec(struct arena *arena, struct json_node *spec);
MUST_CHECK
enum status default_container(struct arena *arena, struct json_node *container);
MUST_CHECK
enum status default_ephemeral_container(struct arena *arena, struct json_node *container);
MUST_CHECK
enum status default_volume(struct arena *arena, struct json_node *volume);

/* The resources of a pod as a whole, from those of its containers (rules_resources.c). */
MUST_CHECK
enum status default_pod_resources(struct arena *arena, struct json_node *spec);

/* -- Workloads (rules_workload.c) -- */

MUST_CHECK
enum status default_deployment(struct arena *arena, struct json_node *spec);
MUST_CHECK
enum status default_daemon_set(struct arena *arena, struct json_node *spec);
MUST_CHECK
enum status default_stateful_set(struct arena *arena, struct json_node *spec);
MUST_CHECK
enum status default_job(struct arena *arena, struct json_node *job);
MUST_CHECK
enum status default_replication_controller(struct arena *arena, struct json_node *controller);
MUST_CHECK
enum status default_autoscaler_v1(struct arena *arena, struct json_node *autoscaler);
MUST_CHECK
enum status default_autoscaler_v2(struct arena *arena, struct json_node *spec);

/* -- Others (rules_other.c) -- */

MUST_CHECK
enum status default_service(struct arena *arena, struct json_node *service);
MUST_CHECK
enum status default_service_port(struct arena *arena, struct json_node *port);
MUST_CHECK
enum status default_node_spec(struct arena *arena, struct json_node *spec);
MUST_CHECK
enum status default_pod_status(struct arena *arena, struct json_node *status);
MUST_CHECK
enum status default_node_status(struct arena *arena, struct json_node *status);
MUST_CHECK
enum status default_limit_range(struct arena *arena, struct json_node *item);
MUST_CHECK
enum status default_network_policy(struct arena *arena, struct json_node *spec);
MUST_CHECK
enum status default_csi_driver(struct arena *arena, struct json_node *spec);
MUST_CHECK
enum status default_exempt_level(struct arena *arena, struct json_node *exempt);
MUST_CHECK
enum status default_role_ref(struct arena *arena, struct json_node *binding);
MUST_CHECK
enum status default_subject(struct arena *arena, struct json_node *subject);
MUST_CHECK
enum status default_device_request(struct arena *arena, struct json_node *request);
MUST_CHECK
enum status default_device(struct arena *arena, struct json_node *device);

/* -- Helpers -- */

/* An absent member; null counts as absent. */
bool default_lacks(const struct json_node *object, const char *key);
/* The text of a member; empty if it has none. Texts with escapes are empty, too: they equal none of
 * Kubernetes' constants. */
struct slice default_text(const struct json_node *object, const char *key);
bool default_is(const struct json_node *object, const char *key, const char *text);

/* Set a member if it is absent. The text is borrowed and must be constant. ST_NOMEM, ST_LIMIT. */
MUST_CHECK
enum status default_set_text(struct arena *arena, struct json_node *object, const char *key,
                             const char *text);
MUST_CHECK
enum status default_set_int(struct arena *arena, struct json_node *object, const char *key,
                            int64_t value);
MUST_CHECK
enum status default_set_bool(struct arena *arena, struct json_node *object, const char *key,
                             bool value);
/* A copy of the value. */
MUST_CHECK
enum status default_set_copy(struct arena *arena, struct json_node *object, const char *key,
                             const struct json_node *value);
/* *ret_child: the object under that key, which may be new; NULL if it is not an object. */
MUST_CHECK
enum status default_set_object(struct arena *arena, struct json_node *object, const char *key,
                               struct json_node **ret_child);
/* Copies the members of `from` that `to` lacks; both may be NULL. */
MUST_CHECK
enum status default_set_missing(struct arena *arena, struct json_node *to,
                                const struct json_node *from);

#endif
