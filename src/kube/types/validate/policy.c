/* PodDisruptionBudget. */
#include "kube/types/validate/kinds.h"
#include "kube/types/validate/names.h"
#include "kube/types/validate/rules.h"

void rule_int_or_percent(struct check *c, const struct at *at, const struct json_node *value)
{
    char why[NAME_ERROR_BYTES];
    if (value->type != JSON_TYPE_STRING)
        rule_not_negative(c, at, rule_int_of(value));
    else if (!percent_valid(rule_text_of(c, value), why))
        bad_node(c, at, value, why);
}

int64_t rule_percent_of(struct check *c, const struct json_node *value)
{
    char why[NAME_ERROR_BYTES];
    struct slice text = rule_text_of(c, value);
    int64_t percent = 0;
    if (!value || value->type != JSON_TYPE_STRING || !percent_valid(text, why))
        return -1;
    for (size_t i = 0; i + 1 < text.len && percent < INT32_MAX; i++)
        percent = percent * 10 + (text.ptr[i] - '0');
    return percent;
}

int64_t rule_int_or_percent_of(struct check *c, const struct json_node *value)
{
    int64_t percent = rule_percent_of(c, value);
    if (percent >= 0)
        return percent;
    return value && value->type == JSON_TYPE_STRING ? 0 : rule_int_of(value);
}

void rule_at_most_100_percent(struct check *c, const struct at *at, const struct json_node *value)
{
    if (rule_percent_of(c, value) > 100)
        bad_node(c, at, value, "must not be greater than 100%");
}

static void check_amount(struct check *c, const struct at *at, const struct json_node *value)
{
    if (!value)
        return;
    rule_int_or_percent(c, at, value);
    rule_at_most_100_percent(c, at, value);
}

void kube_validate_disruption_budget(struct check *c, const struct json_node *object,
                                     const struct json_node *old)
{
    const struct json_node *spec = rule_member(object, "spec");
    const struct json_node *min = rule_member(spec, "minAvailable"), *max;
    const struct at *at = AT(NULL, "spec");
    max = rule_member(spec, "maxUnavailable");
    if (min && max)
        bad_node(c, at, spec, "minAvailable and maxUnavailable cannot be both set");
    check_amount(c, AT(at, "minAvailable"), min);
    check_amount(c, AT(at, "maxUnavailable"), max);
    rule_kept_selector(c, AT(at, "selector"), rule_member(spec, "selector"),
                       json_node_path(old, "spec.selector"));
    rule_one(c, at, spec, "unhealthyPodEvictionPolicy", IF_SET,
             CHOICE("AlwaysAllow,IfHealthyBudget"));
}
