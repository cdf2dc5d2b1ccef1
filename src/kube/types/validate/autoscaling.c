/* HorizontalPodAutoscaler; v1 has only some of the fields of v2. */
#include "kube/types/validate/kinds.h"
#include "kube/types/validate/names.h"
#include "kube/types/validate/quantity.h"
#include "kube/types/validate/rules.h"

enum { WINDOW_MAX_S = 3600, PERIOD_MAX_S = 1800 };

static const struct rule target_rules[] = {
    {"kind", NEEDED, NAME(segment_valid)},
    {"name", NEEDED, NAME(segment_valid)},
};

/* Only replication controllers have no group; what an update does not change remains valid. */
static void check_target_group(struct check *c, const struct at *at, const struct json_node *ref,
                               const struct json_node *old)
{
    struct slice version = rule_text(c, ref, "apiVersion");
    bool grouped = version.len && memchr(version.ptr, '/', version.len);
    bool same =
        old && rule_same_member(ref, old, "apiVersion") && rule_same_member(ref, old, "kind");
    if (!grouped && !same && !rule_text_is(ref, "kind", "ReplicationController"))
        bad_text(c, AT(at, "apiVersion"), version, "apiVersion must specify API group");
}

/* -- Metrics -- */

static void check_metric_amount(struct check *c, const struct at *at,
                                const struct json_node *amount)
{
    if (quantity_of(c, amount) <= 0)
        bad_text(c, at, quantity_text(c, amount), "must be positive");
}

static void check_target_type(struct check *c, const struct at *at, struct slice type)
{
    if (!rule_one_of(type, "Utilization,Value,AverageValue"))
        bad_text(c, at, type, "must be either Utilization, Value, or AverageValue");
}

static const struct rule metric_target_rules[] = {
    {"type", NEEDED, WHY("must specify a metric target type")},
    {"type", ALWAYS, TEXT(check_target_type)},
    {"value", IF_SET, PART(check_metric_amount)},
    {"averageValue", IF_SET, PART(check_metric_amount)},
    {"averageUtilization", IF_SET, WITHIN(1, INT64_MAX, "must be greater than 0")},
};

static const struct rule metric_name_rules[] = {
    {"name", NEEDED, WHY("must specify a metric name"), NAME(segment_valid)},
};

static const struct rule metric_rules[] = {
    {"metric", ALWAYS, ROWS(metric_name_rules)},
    {"target", ALWAYS, ROWS(metric_target_rules)},
};

static void check_object_metric(struct check *c, const struct at *at, const struct json_node *of)
{
    const struct json_node *target = rule_member(of, "target");
    rule_rows(c, AT(at, "describedObject"), rule_member(of, "describedObject"), target_rules);
    rule_rows(c, at, of, metric_rules);
    if (!rule_member(target, "value") && !rule_member(target, "averageValue"))
        bad_required(c, AT(AT(at, "target"), "averageValue"),
                     "must set either a target value or averageValue");
}

static void check_external_metric(struct check *c, const struct at *at, const struct json_node *of)
{
    const struct json_node *target = rule_member(of, "target");
    bool value = rule_member(target, "value"), average = rule_member(target, "averageValue");
    rule_rows(c, at, of, metric_rules);
    if (!value && !average)
        bad_required(c, AT(AT(at, "target"), "averageValue"),
                     "must set either a target value for metric or a per-pod target");
    if (value && average)
        bad_forbidden(c, AT(AT(at, "target"), "value"),
                      "may not set both a target value for metric and a per-pod target");
}

static void check_pods_metric(struct check *c, const struct at *at, const struct json_node *of)
{
    rule_rows(c, at, of, metric_rules);
    if (!rule_member(rule_member(of, "target"), "averageValue"))
        bad_required(c, AT(AT(at, "target"), "averageValue"),
                     "must specify a positive target averageValue");
}

static void check_use(struct check *c, const struct at *at, const struct json_node *of)
{
    const struct json_node *target = rule_member(of, "target");
    bool use = rule_member(target, "averageUtilization"),
         average = rule_member(target, "averageValue");
    rule_rows(c, AT(at, "target"), target, metric_target_rules);
    if (!use && !average)
        bad_required(c, AT(AT(at, "target"), "averageUtilization"),
                     "must set either a target raw value or a target utilization");
    if (use && average)
        bad_forbidden(c, AT(AT(at, "target"), "averageValue"),
                      "may not set both a target raw value and a target utilization");
}

static const struct rule resource_metric_rules[] = {
    {"name", NEEDED, WHY("must specify a resource name")},
    {NULL, ALWAYS, PART(check_use)},
};

static void check_resource(struct check *c, const struct at *at, struct slice name)
{
    rule_container_resource_name(c, at, name);
}

static const struct rule container_metric_rules[] = {
    {"name", NEEDED, WHY("must specify a resource name"), TEXT(check_resource)},
    {"container", NEEDED, WHY("must specify a container"), NAME(dns_label_valid)},
    {NULL, ALWAYS, PART(check_use)},
};

static const struct {
    const char *type;
    struct rule rule;
} metrics[] = {
    {"Object", {"object", IF_SET, PART(check_object_metric)}},
    {"External", {"external", IF_SET, PART(check_external_metric)}},
    {"Pods", {"pods", IF_SET, PART(check_pods_metric)}},
    {"Resource", {"resource", IF_SET, ROWS(resource_metric_rules)}},
    {"ContainerResource", {"containerResource", IF_SET, ROWS(container_metric_rules)}},
};
#define METRIC_TYPES "ContainerResource,External,Object,Pods,Resource"

static const struct rule metric_type_rules[] = {
    {"type", NEEDED, WHY("must specify a metric source type")},
    {"type", ALWAYS, CHOICE(METRIC_TYPES)},
};

static void check_metric_spec(struct check *c, const struct at *at, const struct json_node *metric)
{
    struct slice type = rule_text(c, metric, "type");
    size_t found = 0, expected = COUNT_OF(metrics);
    rule_rows(c, at, metric, metric_type_rules);
    for (size_t i = 0; i < COUNT_OF(metrics); i++) {
        const struct json_node *of = rule_member(metric, metrics[i].rule.field);
        if (slice_is(type, metrics[i].type))
            expected = i;
        /* Only the first source is examined; any other is refused below. */
        if (of && ++found == 1)
            rule_apply(c, at, metric, &metrics[i].rule, 1);
    }
    /* No source belongs to a type that does not exist. */
    if (expected == COUNT_OF(metrics))
        rule_choice(c, AT(at, "type"), type, METRIC_TYPES);
    else if (!rule_member(metric, metrics[expected].rule.field))
        bad_required(c, AT(at, metrics[expected].rule.field),
                     "must populate information for the given metric source");
    /* A single source of another type was reported above, as the one that is missing. */
    for (size_t i = 0; i < COUNT_OF(metrics) && found != 1; i++) {
        if (i != expected && rule_member(metric, metrics[i].rule.field))
            bad_forbidden(c, AT(at, metrics[i].rule.field),
                          "must populate the given metric source only");
    }
}

static bool has_outer_metric(const struct json_node *list)
{
    const struct json_node *item = rule_first(list);
    while (item && !rule_text_is(item, "type", "Object") && !rule_text_is(item, "type", "External"))
        item = item->next;
    return item;
}

/* -- Behavior -- */

static const struct rule policy_rules[] = {
    {"type", ALWAYS, CHOICE("Percent,Pods")},
    {"value", ALWAYS, WITHIN(1, INT64_MAX, "must be greater than zero")},
    {"periodSeconds", ALWAYS, WITHIN(1, INT64_MAX, "must be greater than zero")},
    {"periodSeconds", ALWAYS,
     WITHIN(INT64_MIN, PERIOD_MAX_S, "must be less than or equal to 1800")},
};

static const struct rule scaling_rules[] = {
    {"stabilizationWindowSeconds", ALWAYS,
     WITHIN(0, INT64_MAX, "must be greater than or equal to zero")},
    {"stabilizationWindowSeconds", ALWAYS,
     WITHIN(INT64_MIN, WINDOW_MAX_S, "must be less than or equal to 3600")},
    {"selectPolicy", IF_SET, CHOICE("Disabled,Max,Min")},
    {"policies", EACH, ROWS(policy_rules)},
};

static const struct rule behavior_rules[] = {
    {"scaleUp", IF_SET, ROWS(scaling_rules)},
    {"scaleDown", IF_SET, ROWS(scaling_rules)},
};

static void check_replicas(struct check *c, const struct at *at, const struct json_node *spec)
{
    int64_t min = rule_int(spec, "minReplicas", 1), max = rule_int(spec, "maxReplicas", 0);
    if (!max)
        bad_required(c, AT(at, "maxReplicas"), "must be set and greater than 0");
    if (max < min)
        bad_int(c, AT(at, "maxReplicas"), max, "must be greater than or equal to `minReplicas`");
}

void kube_validate_autoscaler(struct check *c, const struct json_node *object,
                              const struct json_node *old)
{
    const struct json_node *spec = rule_member(object, "spec");
    const struct at *at = AT(NULL, "spec");
    int64_t min = rule_int(spec, "minReplicas", 1), max = rule_int(spec, "maxReplicas", 0);
    bool from_zero = old && !rule_int(rule_member(old, "spec"), "minReplicas", 1);
    /* minReplicas cannot become 0, but a stored 0 remains valid. */
    if (min < !from_zero)
        bad_int(c, AT(at, "minReplicas"), min, "must be greater than or equal to 1");
    if (max < 0)
        bad_int(c, AT(at, "maxReplicas"), max, "must be greater than or equal to 1");
    check_replicas(c, at, spec);
    rule_rows(c, AT(at, "scaleTargetRef"), rule_member(spec, "scaleTargetRef"), target_rules);
    check_target_group(c, AT(at, "scaleTargetRef"), rule_member(spec, "scaleTargetRef"),
                       json_node_path(old, "spec.scaleTargetRef"));
    rule_one(c, at, spec, "metrics", EACH, PART(check_metric_spec));
    if (!min && !has_outer_metric(rule_member(spec, "metrics")))
        bad_forbidden(c, AT(at, "metrics"),
                      "must specify at least one Object or External metric to support scaling to "
                      "zero replicas");
    rule_rows(c, AT(at, "behavior"), rule_member(spec, "behavior"), behavior_rules);
}
