/* HorizontalPodAutoscaler; v1 has only some of the fields of v2. */
#include "kube/types/validate/kinds.h"
#include "kube/types/validate/names.h"
#include "kube/types/validate/quantity.h"

enum { WINDOW_MAX_S = 3600, PERIOD_MAX_S = 1800 };

static void check_segment(struct check *c, const struct at *at, const struct json_node *of,
                          const char *name, const char *detail)
{
    struct slice text = rule_text(c, of, name);
    if (text.len)
        rule_name(c, AT(at, name), text, segment_valid);
    else
        bad_required(c, AT(at, name), detail);
}

static void check_target(struct check *c, const struct at *at, const struct json_node *ref)
{
    check_segment(c, at, ref, "kind", NULL);
    check_segment(c, at, ref, "name", NULL);
}

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
                                const struct json_node *target, const char *name)
{
    const struct json_node *amount = rule_member(target, name);
    if (amount && quantity_of(c, amount) <= 0)
        bad_text(c, AT(at, name), quantity_text(c, amount), "must be positive");
}

static void check_metric_target(struct check *c, const struct at *at,
                                const struct json_node *target)
{
    struct slice type = rule_text(c, target, "type");
    const struct json_node *use = rule_member(target, "averageUtilization");
    if (!type.len)
        bad_required(c, AT(at, "type"), "must specify a metric target type");
    if (!rule_one_of(type, "Utilization,Value,AverageValue"))
        bad_text(c, AT(at, "type"), type, "must be either Utilization, Value, or AverageValue");
    check_metric_amount(c, at, target, "value");
    check_metric_amount(c, at, target, "averageValue");
    if (use && rule_int_of(use) < 1)
        bad_int(c, AT(at, "averageUtilization"), rule_int_of(use), "must be greater than 0");
}

static void check_metric(struct check *c, const struct at *at, const struct json_node *source)
{
    check_segment(c, AT(at, "metric"), rule_member(source, "metric"), "name",
                  "must specify a metric name");
    check_metric_target(c, AT(at, "target"), rule_member(source, "target"));
}

static void check_object_metric(struct check *c, const struct at *at, const struct json_node *of)
{
    const struct json_node *target = rule_member(of, "target");
    check_target(c, AT(at, "describedObject"), rule_member(of, "describedObject"));
    check_metric(c, at, of);
    if (!rule_member(target, "value") && !rule_member(target, "averageValue"))
        bad_required(c, AT(AT(at, "target"), "averageValue"),
                     "must set either a target value or averageValue");
}

static void check_external_metric(struct check *c, const struct at *at, const struct json_node *of)
{
    const struct json_node *target = rule_member(of, "target");
    bool value = rule_member(target, "value"), average = rule_member(target, "averageValue");
    check_metric(c, at, of);
    if (!value && !average)
        bad_required(c, AT(AT(at, "target"), "averageValue"),
                     "must set either a target value for metric or a per-pod target");
    if (value && average)
        bad_forbidden(c, AT(AT(at, "target"), "value"),
                      "may not set both a target value for metric and a per-pod target");
}

static void check_pods_metric(struct check *c, const struct at *at, const struct json_node *of)
{
    check_metric(c, at, of);
    if (!rule_member(rule_member(of, "target"), "averageValue"))
        bad_required(c, AT(AT(at, "target"), "averageValue"),
                     "must specify a positive target averageValue");
}

static void check_use(struct check *c, const struct at *at, const struct json_node *of)
{
    const struct json_node *target = rule_member(of, "target");
    bool use = rule_member(target, "averageUtilization"),
         average = rule_member(target, "averageValue");
    check_metric_target(c, AT(at, "target"), target);
    if (!use && !average)
        bad_required(c, AT(AT(at, "target"), "averageUtilization"),
                     "must set either a target raw value or a target utilization");
    if (use && average)
        bad_forbidden(c, AT(AT(at, "target"), "averageValue"),
                      "may not set both a target raw value and a target utilization");
}

static void check_resource_metric(struct check *c, const struct at *at, const struct json_node *of)
{
    if (!rule_text(c, of, "name").len)
        bad_required(c, AT(at, "name"), "must specify a resource name");
    check_use(c, at, of);
}

static void check_container_metric(struct check *c, const struct at *at, const struct json_node *of)
{
    struct slice name = rule_text(c, of, "name"), container = rule_text(c, of, "container");
    if (!name.len)
        bad_required(c, AT(at, "name"), "must specify a resource name");
    else
        rule_container_resource_name(c, AT(at, "name"), name);
    if (!container.len)
        bad_required(c, AT(at, "container"), "must specify a container");
    else
        rule_name(c, AT(at, "container"), container, dns_label_valid);
    check_use(c, at, of);
}

static const struct {
    const char *type, *member;
    void (*rule)(struct check *c, const struct at *at, const struct json_node *of);
} metrics[] = {
    {"Object", "object", check_object_metric},
    {"External", "external", check_external_metric},
    {"Pods", "pods", check_pods_metric},
    {"Resource", "resource", check_resource_metric},
    {"ContainerResource", "containerResource", check_container_metric},
};
#define METRIC_TYPES "ContainerResource,External,Object,Pods,Resource"

static void check_metric_type(struct check *c, const struct at *at, const struct json_node *metric)
{
    struct slice type = rule_text(c, metric, "type");
    if (!type.len)
        bad_required(c, AT(at, "type"), "must specify a metric source type");
    rule_choice(c, AT(at, "type"), type, METRIC_TYPES);
}

static void check_metric_spec(struct check *c, const struct at *at, const struct json_node *metric)
{
    struct slice type = rule_text(c, metric, "type");
    size_t found = 0, expected = COUNT_OF(metrics);
    check_metric_type(c, at, metric);
    for (size_t i = 0; i < COUNT_OF(metrics); i++) {
        const struct json_node *of = rule_member(metric, metrics[i].member);
        if (slice_equal(type, slice_from_text(metrics[i].type)))
            expected = i;
        if (of && ++found == 1)
            metrics[i].rule(c, AT(at, metrics[i].member), of);
    }
    if (expected == COUNT_OF(metrics))
        rule_choice(c, AT(at, "type"), type, METRIC_TYPES);
    else if (!rule_member(metric, metrics[expected].member))
        bad_required(c, AT(at, metrics[expected].member),
                     "must populate information for the given metric source");
    for (size_t i = 0; i < COUNT_OF(metrics) && found != 1; i++) {
        if (i != expected && rule_member(metric, metrics[i].member))
            bad_forbidden(c, AT(at, metrics[i].member),
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

static void check_policy(struct check *c, const struct at *at, const struct json_node *policy)
{
    struct slice type = rule_text(c, policy, "type");
    int64_t value = rule_int(policy, "value", 0), period = rule_int(policy, "periodSeconds", 0);
    rule_choice(c, AT(at, "type"), type, "Percent,Pods");
    if (value <= 0)
        bad_int(c, AT(at, "value"), value, "must be greater than zero");
    if (period <= 0)
        bad_int(c, AT(at, "periodSeconds"), period, "must be greater than zero");
    if (period > PERIOD_MAX_S)
        bad_int(c, AT(at, "periodSeconds"), period, "must be less than or equal to 1800");
}

static void check_scaling(struct check *c, const struct at *at, const struct json_node *rules)
{
    const struct at *list = AT(at, "policies"), *window = AT(at, "stabilizationWindowSeconds");
    int64_t window_s = rule_int(rules, "stabilizationWindowSeconds", 0);
    size_t i = 0;
    if (!rules)
        return;
    if (window_s < 0)
        bad_int(c, window, window_s, "must be greater than or equal to zero");
    if (window_s > WINDOW_MAX_S)
        bad_int(c, window, window_s, "must be less than or equal to 3600");
    if (rule_member(rules, "selectPolicy"))
        rule_choice(c, AT(at, "selectPolicy"), rule_text(c, rules, "selectPolicy"),
                    "Disabled,Max,Min");
    for (const struct json_node *item = rule_first(rule_member(rules, "policies")); item;
         item = item->next)
        check_policy(c, AT_ITEM(list, i++), item);
}

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
    const struct json_node *spec = rule_member(object, "spec"),
                           *behavior = rule_member(spec, "behavior");
    const struct at *at = AT(NULL, "spec"), *list = AT(at, "metrics"), *in = AT(at, "behavior");
    int64_t min = rule_int(spec, "minReplicas", 1), max = rule_int(spec, "maxReplicas", 0);
    bool from_zero = old && !rule_int(rule_member(old, "spec"), "minReplicas", 1);
    size_t i = 0;
    if (min < !from_zero)
        bad_int(c, AT(at, "minReplicas"), min, "must be greater than or equal to 1");
    if (max < 0)
        bad_int(c, AT(at, "maxReplicas"), max, "must be greater than or equal to 1");
    check_replicas(c, at, spec);
    check_target(c, AT(at, "scaleTargetRef"), rule_member(spec, "scaleTargetRef"));
    check_target_group(c, AT(at, "scaleTargetRef"), rule_member(spec, "scaleTargetRef"),
                       json_node_path(old, "spec.scaleTargetRef"));
    for (const struct json_node *item = rule_first(rule_member(spec, "metrics")); item;
         item = item->next)
        check_metric_spec(c, AT_ITEM(list, i++), item);
    if (!min && !has_outer_metric(rule_member(spec, "metrics")))
        bad_forbidden(c, list,
                      "must specify at least one Object or External metric to support scaling to "
                      "zero replicas");
    check_scaling(c, AT(in, "scaleUp"), rule_member(behavior, "scaleUp"));
    check_scaling(c, AT(in, "scaleDown"), rule_member(behavior, "scaleDown"));
}
