/* Affinity to nodes and pods, tolerations and spread over topologies. */
#include "kube/types/validate/rules.h"
#include "kube/types/validate/workload/pod.h"
#include "kube/types/validate/workload/volume.h"

/* -- Nodes -- */

static void check_node_operator(struct check *c, const struct at *at, const struct json_node *item)
{
    struct slice op = rule_text(c, item, "operator");
    const struct json_node *values = rule_filled(item, "values");
    const struct at *list = AT(at, "values");
    if (rule_one_of(op, "In,NotIn")) {
        if (!values)
            bad_required(c, list, "must be specified when `operator` is 'In' or 'NotIn'");
    } else if (rule_one_of(op, "Exists,DoesNotExist")) {
        if (values)
            bad_forbidden(c, list,
                          "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
    } else if (rule_one_of(op, "Gt,Lt")) {
        if (rule_count(values) != 1)
            bad_required(c, list, "must be specified single value when `operator` is 'Lt' or 'Gt'");
    } else {
        bad_text(c, AT(at, "operator"), op, "not a valid selector operator");
    }
}

/* The values of a preference are not checked. */
static void check_node_preference(struct check *c, const struct at *at,
                                  const struct json_node *item)
{
    check_node_operator(c, at, item);
    rule_name(c, AT(at, "key"), rule_text(c, item, "key"), label_key_valid);
}

static void check_node_requirement(struct check *c, const struct at *at,
                                   const struct json_node *item)
{
    check_node_preference(c, at, item);
    rule_one(c, at, item, "values", EACH, NAME(label_value_valid));
}

static void check_node_field(struct check *c, const struct at *at, const struct json_node *item)
{
    struct slice op = rule_text(c, item, "operator"), key = rule_text(c, item, "key");
    const struct json_node *values = rule_member(item, "values");
    const struct at *list = AT(at, "values");
    if (!rule_one_of(op, "In,NotIn"))
        bad_text(c, AT(at, "operator"), op, "not a valid selector operator");
    else if (rule_count(values) != 1)
        bad_required(c, list,
                     "must be only one value when `operator` is 'In' or 'NotIn' for node field "
                     "selector");
    if (!slice_is(key, "metadata.name")) {
        bad_text(c, AT(at, "key"), key, "not a valid field selector key");
        return;
    }
    rule_one(c, at, item, "values", EACH, NAME(subdomain_valid));
}

static const struct rule strict_term_rules[] = {
    {"matchExpressions", EACH, PART(check_node_requirement)},
    {"matchFields", EACH, PART(check_node_field)},
};

static const struct rule term_rules[] = {
    {"matchExpressions", EACH, PART(check_node_preference)},
    {"matchFields", EACH, PART(check_node_field)},
};

void rule_node_selector(struct check *c, const struct at *at, const struct json_node *selector)
{
    rule_one(c, at, selector, "nodeSelectorTerms", EACH_NEEDED,
             WHY("must have at least one node selector term"), ROWS(strict_term_rules));
}

#define WEIGHT WITHIN(1, 100, "must be in the range 1-100")

#define REQUIRED "requiredDuringSchedulingIgnoredDuringExecution"
#define PREFERRED "preferredDuringSchedulingIgnoredDuringExecution"

static const struct rule node_preference_rules[] = {
    {"weight", ALWAYS, WEIGHT},
    {"preference", ALWAYS, ROWS(term_rules)},
};

static const struct rule node_affinity_rules[] = {
    {REQUIRED, IF_SET, PART(rule_node_selector)},
    {PREFERRED, EACH, ROWS(node_preference_rules)},
};

/* -- Pods -- */

static const struct rule pod_term_rules[] = {
    {"labelSelector", ALWAYS, PART(rule_selector)},
    {"namespaceSelector", ALWAYS, PART(rule_selector)},
    {"namespaces", EACH_AT, SHOWN("namespace"), NAME(dns_label_valid)},
    {"topologyKey", NEEDED, WHY("can not be empty")},
    {"topologyKey", ALWAYS, NAME(label_key_valid)},
};

static const struct rule pod_preference_rules[] = {
    {"weight", ALWAYS, WEIGHT},
    {"podAffinityTerm", ALWAYS, ROWS(pod_term_rules)},
};

static const struct rule pod_affinity_rules[] = {
    {REQUIRED, EACH, ROWS(pod_term_rules)},
    {PREFERRED, EACH, ROWS(pod_preference_rules)},
};

void rule_affinity(struct check *c, const struct at *at, const struct json_node *affinity)
{
    static const struct rule rules[] = {
        {"nodeAffinity", IF_SET, ROWS(node_affinity_rules)},
        {"podAffinity", IF_SET, ROWS(pod_affinity_rules)},
        {"podAntiAffinity", IF_SET, ROWS(pod_affinity_rules)},
    };
    rule_rows(c, at, affinity, rules);
}

/* -- Tolerations -- */

static void check_toleration_value(struct check *c, const struct at *at,
                                   const struct json_node *item)
{
    struct slice op = rule_text(c, item, "operator"), value = rule_text(c, item, "value");
    char why[NAME_ERROR_BYTES];
    if (!op.len || slice_is(op, "Equal")) {
        /* Kubernetes reports errors of the value at the operator. */
        if (!label_value_valid(value, why))
            bad_text(c, AT(at, "operator"), value, why);
    } else if (slice_is(op, "Exists")) {
        if (value.len)
            bad_text(c, AT(at, "operator"), value,
                     "value must be empty when `operator` is 'Exists'");
    } else if (rule_one_of(op, "Lt,Gt")) {
        bad_choice(c, AT(at, "operator"), op, "Equal,Exists,Lt,Gt");
    } else {
        bad_choice(c, AT(at, "operator"), op, "Equal,Exists");
    }
}

static void check_toleration(struct check *c, const struct at *at, const struct json_node *item)
{
    struct slice key = rule_text(c, item, "key"), effect = rule_text(c, item, "effect");
    struct slice op = rule_text(c, item, "operator");
    if (key.len)
        rule_name(c, AT(at, "key"), key, label_key_valid);
    else if (!slice_is(op, "Exists"))
        bad_text(c, AT(at, "operator"), op,
                 "operator must be Exists when `key` is empty, which means \"match all values and "
                 "all keys\"");
    if (rule_member(item, "tolerationSeconds") && !slice_is(effect, "NoExecute"))
        bad_text(c, AT(at, "effect"), effect,
                 "effect must be 'NoExecute' when `tolerationSeconds` is set");
    check_toleration_value(c, at, item);
    rule_one(c, at, item, "effect", IF_SOME, CHOICE("NoSchedule,PreferNoSchedule,NoExecute"));
}

void rule_tolerations(struct check *c, const struct at *at, const struct json_node *list)
{
    rule_one(c, at, list, NULL, EACH, PART(check_toleration));
}

/* -- Spread -- */

static void check_min_domains(struct check *c, const struct at *at, const struct json_node *item)
{
    const struct json_node *domains = rule_member(item, "minDomains");
    if (!domains)
        return;
    if (rule_int_of(domains) <= 0)
        bad_int(c, AT(at, "minDomains"), rule_int_of(domains), "must be greater than zero");
    if (!rule_text_is(item, "whenUnsatisfiable", "DoNotSchedule"))
        bad_node(c, AT(at, "minDomains"), domains,
                 "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway");
}

static struct slice spread_key(struct check *c, const struct json_node *item)
{
    struct slice key = rule_text(c, item, "topologyKey"), pair = SLICE_EMPTY;
    struct slice action = rule_text(c, item, "whenUnsatisfiable");
    AUTO(buf_fini) struct buf text = {0};
    if (buf_append_format(&text, "{%.*s, %.*s}", SLICE_ARGS(key), SLICE_ARGS(action)) != ST_OK ||
        arena_dup(c->arena, buf_slice(&text), &pair) != ST_OK)
        c->errors->no_memory = true;
    return pair;
}

static const struct rule spread_rules[] = {
    {"maxSkew", ALWAYS, WITHIN(1, INT64_MAX, "must be greater than zero")},
    {"topologyKey", NEEDED, WHY("can not be empty"), NAME(label_key_valid)},
    {"whenUnsatisfiable", ALWAYS, CHOICE("DoNotSchedule,ScheduleAnyway")},
};

static const struct rule more_spread_rules[] = {
    {NULL, ALWAYS, PART(check_min_domains)},
    {"nodeAffinityPolicy", IF_SET, CHOICE("Honor,Ignore")},
    {"nodeTaintsPolicy", IF_SET, CHOICE("Honor,Ignore")},
    {"labelSelector", ALWAYS, PART(rule_selector)},
};

/* All but the last of several equal constraints are reported. */
void rule_topology_spread(struct check *c, const struct at *at, const struct json_node *list)
{
    struct seen seen = {0};
    size_t i = rule_count(list);
    bool *repeated = i ? arena_calloc(c->arena, i, sizeof(*repeated)) : NULL;
    if (!repeated) {
        c->errors->no_memory = c->errors->no_memory || i;
        return;
    }
    /* Kubernetes compares each constraint with those after it. */
    for (const struct json_node *item = list->last; item; item = item->prev)
        repeated[--i] = !seen_add(c, &seen, spread_key(c, item));
    for (const struct json_node *item = rule_first(list); item; item = item->next, i++) {
        const struct at *in = AT_ITEM(at, i);
        rule_rows(c, in, item, spread_rules);
        if (repeated[i])
            bad_repeat(c, AT(in, "{topologyKey, whenUnsatisfiable}"), spread_key(c, item));
        rule_rows(c, in, item, more_spread_rules);
    }
}
