/* Affinity to nodes and pods, tolerations and spread over topologies. */
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

static void check_node_requirement(struct check *c, const struct at *at,
                                   const struct json_node *item, bool strict)
{
    const struct at *list = AT(at, "values");
    size_t i = 0;
    check_node_operator(c, at, item);
    rule_name(c, AT(at, "key"), rule_text(c, item, "key"), label_key_valid);
    for (const struct json_node *value = rule_first(rule_member(item, "values")); value && strict;
         value = value->next)
        rule_name(c, AT_ITEM(list, i++), rule_text_of(c, value), label_value_valid);
}

static void check_node_field(struct check *c, const struct at *at, const struct json_node *item)
{
    struct slice op = rule_text(c, item, "operator"), key = rule_text(c, item, "key");
    const struct json_node *values = rule_member(item, "values");
    const struct at *list = AT(at, "values");
    size_t i = 0;
    if (!rule_one_of(op, "In,NotIn"))
        bad_text(c, AT(at, "operator"), op, "not a valid selector operator");
    else if (rule_count(values) != 1)
        bad_required(c, list,
                     "must be only one value when `operator` is 'In' or 'NotIn' for node field "
                     "selector");
    if (!slice_equal(key, SLICE_LITERAL("metadata.name"))) {
        bad_text(c, AT(at, "key"), key, "not a valid field selector key");
        return;
    }
    for (const struct json_node *value = rule_first(values); value; value = value->next)
        rule_name(c, AT_ITEM(list, i++), rule_text_of(c, value), subdomain_valid);
}

static void check_term(struct check *c, const struct at *at, const struct json_node *term,
                       bool strict)
{
    const struct at *labels = AT(at, "matchExpressions"), *fields = AT(at, "matchFields");
    size_t i = 0, j = 0;
    for (const struct json_node *item = rule_first(rule_member(term, "matchExpressions")); item;
         item = item->next)
        check_node_requirement(c, AT_ITEM(labels, i++), item, strict);
    for (const struct json_node *item = rule_first(rule_member(term, "matchFields")); item;
         item = item->next)
        check_node_field(c, AT_ITEM(fields, j++), item);
}

void rule_node_selector(struct check *c, const struct at *at, const struct json_node *selector)
{
    const struct at *list = AT(at, "nodeSelectorTerms");
    size_t i = 0;
    if (!rule_filled(selector, "nodeSelectorTerms"))
        bad_required(c, list, "must have at least one node selector term");
    for (const struct json_node *term = rule_first(rule_member(selector, "nodeSelectorTerms"));
         term; term = term->next)
        check_term(c, AT_ITEM(list, i++), term, true);
}

static void check_weight(struct check *c, const struct at *at, const struct json_node *term)
{
    int64_t weight = rule_int(term, "weight", 0);
    if (weight <= 0 || weight > 100)
        bad_int(c, AT(at, "weight"), weight, "must be in the range 1-100");
}

#define REQUIRED "requiredDuringSchedulingIgnoredDuringExecution"
#define PREFERRED "preferredDuringSchedulingIgnoredDuringExecution"

static void check_node_affinity(struct check *c, const struct at *at, const struct json_node *of)
{
    const struct json_node *needed = rule_member(of, REQUIRED);
    const struct at *list = AT(at, PREFERRED);
    size_t i = 0;
    if (needed)
        rule_node_selector(c, AT(at, REQUIRED), needed);
    for (const struct json_node *term = rule_first(rule_member(of, PREFERRED)); term;
         term = term->next, i++) {
        check_weight(c, AT_ITEM(list, i), term);
        check_term(c, AT(AT_ITEM(list, i), "preference"), rule_member(term, "preference"), false);
    }
}

/* -- Pods -- */

static void check_pod_term(struct check *c, const struct at *at, const struct json_node *term)
{
    struct slice key = rule_text(c, term, "topologyKey");
    rule_selector(c, AT(at, "labelSelector"), rule_member(term, "labelSelector"));
    rule_selector(c, AT(at, "namespaceSelector"), rule_member(term, "namespaceSelector"));
    for (const struct json_node *item = rule_first(rule_member(term, "namespaces")); item;
         item = item->next)
        rule_name(c, AT(at, "namespace"), rule_text_of(c, item), dns_label_valid);
    if (!key.len)
        bad_required(c, AT(at, "topologyKey"), "can not be empty");
    rule_name(c, AT(at, "topologyKey"), key, label_key_valid);
}

static void check_pod_affinity(struct check *c, const struct at *at, const struct json_node *of)
{
    const struct at *needed = AT(at, REQUIRED), *wanted = AT(at, PREFERRED);
    size_t i = 0, j = 0;
    for (const struct json_node *term = rule_first(rule_member(of, REQUIRED)); term;
         term = term->next)
        check_pod_term(c, AT_ITEM(needed, i++), term);
    for (const struct json_node *term = rule_first(rule_member(of, PREFERRED)); term;
         term = term->next, j++) {
        check_weight(c, AT_ITEM(wanted, j), term);
        check_pod_term(c, AT(AT_ITEM(wanted, j), "podAffinityTerm"),
                       rule_member(term, "podAffinityTerm"));
    }
}

void rule_affinity(struct check *c, const struct at *at, const struct json_node *affinity)
{
    if (!affinity)
        return;
    check_node_affinity(c, AT(at, "nodeAffinity"), rule_member(affinity, "nodeAffinity"));
    check_pod_affinity(c, AT(at, "podAffinity"), rule_member(affinity, "podAffinity"));
    check_pod_affinity(c, AT(at, "podAntiAffinity"), rule_member(affinity, "podAntiAffinity"));
}

/* -- Tolerations -- */

static void check_toleration_value(struct check *c, const struct at *at,
                                   const struct json_node *item)
{
    struct slice op = rule_text(c, item, "operator"), value = rule_text(c, item, "value");
    char why[NAME_ERROR_BYTES];
    if (!op.len || slice_equal(op, SLICE_LITERAL("Equal"))) {
        if (!label_value_valid(value, why))
            bad_text(c, AT(at, "operator"), value, why);
    } else if (slice_equal(op, SLICE_LITERAL("Exists"))) {
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
    else if (!slice_equal(op, SLICE_LITERAL("Exists")))
        bad_text(c, AT(at, "operator"), op,
                 "operator must be Exists when `key` is empty, which means \"match all values and "
                 "all keys\"");
    if (rule_member(item, "tolerationSeconds") && !slice_equal(effect, SLICE_LITERAL("NoExecute")))
        bad_text(c, AT(at, "effect"), effect,
                 "effect must be 'NoExecute' when `tolerationSeconds` is set");
    check_toleration_value(c, at, item);
    if (effect.len)
        rule_choice(c, AT(at, "effect"), effect, "NoSchedule,PreferNoSchedule,NoExecute");
}

void rule_tolerations(struct check *c, const struct at *at, const struct json_node *list)
{
    size_t i = 0;
    for (const struct json_node *item = rule_first(list); item; item = item->next)
        check_toleration(c, AT_ITEM(at, i++), item);
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

static void check_inclusion(struct check *c, const struct at *at, const struct json_node *item,
                            const char *name)
{
    if (rule_member(item, name))
        rule_choice(c, AT(at, name), rule_text(c, item, name), "Honor,Ignore");
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

static void check_spread(struct check *c, const struct at *at, const struct json_node *item,
                         bool repeated)
{
    struct slice key = rule_text(c, item, "topologyKey");
    int64_t skew = rule_int(item, "maxSkew", 0);
    if (skew <= 0)
        bad_int(c, AT(at, "maxSkew"), skew, "must be greater than zero");
    if (!key.len)
        bad_required(c, AT(at, "topologyKey"), "can not be empty");
    else
        rule_name(c, AT(at, "topologyKey"), key, label_key_valid);
    rule_choice(c, AT(at, "whenUnsatisfiable"), rule_text(c, item, "whenUnsatisfiable"),
                "DoNotSchedule,ScheduleAnyway");
    if (repeated)
        bad_repeat(c, AT(at, "{topologyKey, whenUnsatisfiable}"), spread_key(c, item));
    check_min_domains(c, at, item);
    check_inclusion(c, at, item, "nodeAffinityPolicy");
    check_inclusion(c, at, item, "nodeTaintsPolicy");
    rule_selector(c, AT(at, "labelSelector"), rule_member(item, "labelSelector"));
}

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
    for (const struct json_node *item = list->last; item; item = item->prev)
        repeated[--i] = !seen_add(c, &seen, spread_key(c, item));
    for (const struct json_node *item = rule_first(list); item; item = item->next, i++)
        check_spread(c, AT_ITEM(at, i), item, repeated[i]);
}
