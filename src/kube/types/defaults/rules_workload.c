#include "kube/types/defaults/rules.h"

/* -- Rolling updates -- */

/* The parameters of a rolling update in this member; *ret_rolling is NULL if it is another
 * strategy. */
static enum status set_rolling(struct arena *arena, struct json_node *spec, const char *member,
                               struct json_node **ret_rolling)
{
    struct json_node *strategy = json_node_named(spec, member);
    *ret_rolling = NULL;
    if (!strategy || strategy->type != JSON_TYPE_OBJECT)
        return ST_OK;
    TRY(default_set_text(arena, strategy, "type", "RollingUpdate"));
    if (!default_is(strategy, "type", "RollingUpdate"))
        return ST_OK;
    return default_set_object(arena, strategy, "rollingUpdate", ret_rolling);
}

enum status default_deployment(struct arena *arena, struct json_node *spec)
{
    struct json_node *rolling;
    TRY(set_rolling(arena, spec, "strategy", &rolling));
    if (!rolling)
        return ST_OK;
    TRY(default_set_text(arena, rolling, "maxUnavailable", "25%"));
    return default_set_text(arena, rolling, "maxSurge", "25%");
}

enum status default_daemon_set(struct arena *arena, struct json_node *spec)
{
    struct json_node *rolling;
    TRY(set_rolling(arena, spec, "updateStrategy", &rolling));
    if (!rolling)
        return ST_OK;
    TRY(default_set_int(arena, rolling, "maxUnavailable", 1));
    return default_set_int(arena, rolling, "maxSurge", 0);
}

static enum status set_retention(struct arena *arena, struct json_node *spec)
{
    struct json_node *policy;
    TRY(default_set_object(arena, spec, "persistentVolumeClaimRetentionPolicy", &policy));
    if (!policy)
        return ST_OK;
    TRY(default_set_text(arena, policy, "whenDeleted", "Retain"));
    return default_set_text(arena, policy, "whenScaled", "Retain");
}

/* Unlike other templates, those of claims say what they are. */
static enum status set_templates(struct arena *arena, struct json_node *list)
{
    struct json_node *item = list && list->type == JSON_TYPE_ARRAY ? json_node_first(list) : NULL;
    for (; item; item = json_node_next(item)) {
        if (item->type != JSON_TYPE_OBJECT)
            continue;
        TRY(default_set_text(arena, item, "kind", "PersistentVolumeClaim"));
        TRY(default_set_text(arena, item, "apiVersion", "v1"));
    }
    return ST_OK;
}

/* Only a strategy whose type is omitted, too, gets the parameters of a rolling update. */
enum status default_stateful_set(struct arena *arena, struct json_node *spec)
{
    struct json_node *strategy = json_node_named(spec, "updateStrategy"), *rolling;
    TRY(set_retention(arena, spec));
    TRY(set_templates(arena, json_node_named(spec, "volumeClaimTemplates")));
    if (!strategy || strategy->type != JSON_TYPE_OBJECT)
        return ST_OK;
    if (default_lacks(strategy, "type")) {
        TRY(default_set_text(arena, strategy, "type", "RollingUpdate"));
        TRY(default_set_object(arena, strategy, "rollingUpdate", &rolling));
    }
    rolling = json_node_named(strategy, "rollingUpdate");
    if (!default_is(strategy, "type", "RollingUpdate") || !rolling ||
        rolling->type != JSON_TYPE_OBJECT)
        return ST_OK;
    return default_set_int(arena, rolling, "partition", 0);
}

/* -- Jobs -- */

static enum status set_job_spec(struct arena *arena, struct json_node *spec)
{
    if (default_lacks(spec, "completions") && default_lacks(spec, "parallelism"))
        TRY(default_set_int(arena, spec, "completions", 1));
    TRY(default_set_int(arena, spec, "parallelism", 1));
    TRY(default_set_int(arena, spec, "backoffLimit",
                        default_lacks(spec, "backoffLimitPerIndex") ? 6 : INT32_MAX));
    return default_set_text(arena, spec, "podReplacementPolicy",
                            default_lacks(spec, "podFailurePolicy") ? "TerminatingOrFailed"
                                                                    : "Failed");
}

/* The labels of its pods are made from its uid (kube/types/object/stored_fields.h). */
enum status default_job(struct arena *arena, struct json_node *job)
{
    struct json_node *spec = json_node_named(job, "spec");
    return spec && spec->type == JSON_TYPE_OBJECT ? set_job_spec(arena, spec) : ST_OK;
}

/* -- Replication controllers -- */

/* An object without labels has those of its template. */
static enum status copy_labels(struct arena *arena, struct json_node *object)
{
    struct json_node *labels = json_node_path(object, "spec.template.metadata.labels"), *metadata;
    if (!labels || labels->type != JSON_TYPE_OBJECT)
        return ST_OK;
    TRY(default_set_object(arena, object, "metadata", &metadata));
    return metadata ? default_set_copy(arena, metadata, "labels", labels) : ST_OK;
}

enum status default_replication_controller(struct arena *arena, struct json_node *controller)
{
    struct json_node *spec = json_node_named(controller, "spec");
    struct json_node *labels = json_node_path(spec, "template.metadata.labels");
    if (!spec || spec->type != JSON_TYPE_OBJECT || !labels || labels->type != JSON_TYPE_OBJECT)
        return ST_OK;
    TRY(default_set_copy(arena, spec, "selector", labels));
    return copy_labels(arena, controller);
}

/* -- Autoscalers -- */

/* The annotation has metrics that version 1 cannot express. */
enum status default_autoscaler_v1(struct arena *arena, struct json_node *autoscaler)
{
    struct json_node *spec = json_node_named(autoscaler, "spec");
    struct json_node *annotations = json_node_path(autoscaler, "metadata.annotations");
    if (!spec || spec->type != JSON_TYPE_OBJECT ||
        json_node_member(annotations, SLICE_LITERAL("autoscaling.alpha.kubernetes.io/metrics")))
        return ST_OK;
    return default_set_int(arena, spec, "targetCPUUtilizationPercentage", 80);
}

/* A constant JSON text as a tree. */
static enum status set_json(struct arena *arena, struct json_node *object, const char *key,
                            const char *json)
{
    struct json_node *value;
    struct error error;
    if (!default_lacks(object, key))
        return ST_OK;
    TRY(json_tree_read(arena, slice_from_text(json), &value, &error));
    return json_node_set(arena, object, slice_from_text(key), value);
}

static enum status set_scaling(struct arena *arena, struct json_node *behavior, const char *key,
                               const char *policies)
{
    struct json_node *rules;
    TRY(default_set_object(arena, behavior, key, &rules));
    if (!rules)
        return ST_OK;
    TRY(default_set_text(arena, rules, "selectPolicy", "Max"));
    return set_json(arena, rules, "policies", policies);
}

static enum status set_behavior(struct arena *arena, struct json_node *behavior)
{
    struct json_node *up;
    TRY(set_scaling(arena, behavior, "scaleUp",
                    "[{\"type\":\"Pods\",\"value\":4,\"periodSeconds\":15},"
                    "{\"type\":\"Percent\",\"value\":100,\"periodSeconds\":15}]"));
    TRY(default_set_object(arena, behavior, "scaleUp", &up));
    if (up)
        TRY(default_set_int(arena, up, "stabilizationWindowSeconds", 0));
    return set_scaling(arena, behavior, "scaleDown",
                       "[{\"type\":\"Percent\",\"value\":100,\"periodSeconds\":15}]");
}

enum status default_autoscaler_v2(struct arena *arena, struct json_node *spec)
{
    struct json_node *behavior = json_node_named(spec, "behavior");
    TRY(set_json(arena, spec, "metrics",
                 "[{\"type\":\"Resource\",\"resource\":{\"name\":\"cpu\",\"target\":"
                 "{\"type\":\"Utilization\",\"averageUtilization\":80}}}]"));
    return behavior && behavior->type == JSON_TYPE_OBJECT ? set_behavior(arena, behavior) : ST_OK;
}
