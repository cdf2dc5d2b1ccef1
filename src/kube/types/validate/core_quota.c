/* ResourceQuota and LimitRange. */
#include "kube/types/validate/kinds.h"
#include "kube/types/validate/quantity.h"

#include <stdio.h>

#define POD_SCOPES \
    "Terminating,NotTerminating,NotBestEffort,PriorityClass,CrossNamespacePodAffinity"
#define SCOPES POD_SCOPES ",BestEffort,VolumeAttributesClass"

/* -- Quotas -- */

static void check_amounts(struct check *c, const struct at *at, const struct json_node *amounts)
{
    for (const struct json_node *item = rule_first(amounts); item; item = item->next) {
        rule_quota_resource_name(c, AT_KEY(at, item->key), item->key);
        rule_quantity_of(c, AT_KEY(at, item->key), item->key, item);
    }
}

static bool is_scope_of(struct slice scope, struct slice resource)
{
    if (rule_one_of(scope, POD_SCOPES))
        return rule_one_of(resource, "pods,cpu,memory,limits.cpu,limits.memory,requests.cpu,"
                                     "requests.memory");
    if (slice_is(scope, "BestEffort"))
        return slice_is(resource, "pods");
    if (slice_is(scope, "VolumeAttributesClass"))
        return rule_one_of(resource, "persistentvolumeclaims,requests.storage");
    return true;
}

/* Unknown scopes suit every resource, and a repeated one is checked once: the work is bounded. */
static void check_scope_of(struct check *c, const struct at *at, struct slice scope,
                           const struct json_node *hard, const struct json_node *shown,
                           struct seen *checked)
{
    if (!rule_one_of(scope, SCOPES) || !seen_add(c, checked, scope))
        return;
    for (const struct json_node *item = rule_first(hard); item; item = item->next) {
        if (resource_is_standard_quota(item->key) && !is_scope_of(scope, item->key))
            bad_node(c, at, shown, "unsupported scope applied to resource");
    }
}

/* Which of the scopes that exclude each other are there. */
static unsigned scope_bit(struct slice scope)
{
    static const char *const pairs[] = {"BestEffort", "NotBestEffort", "Terminating",
                                        "NotTerminating"};
    for (unsigned i = 0; i < COUNT_OF(pairs); i++) {
        if (slice_is(scope, pairs[i]))
            return 1U << i;
    }
    return 0;
}

static void check_conflicts(struct check *c, const struct at *at, unsigned found,
                            const struct json_node *scopes)
{
    /* Each pair of neighbouring bits is a scope and its opposite. */
    if ((found & 3) == 3)
        bad_node(c, at, scopes, "conflicting scopes");
    if ((found & 12) == 12)
        bad_node(c, at, scopes, "conflicting scopes");
}

static void check_scopes(struct check *c, const struct at *spec, const struct json_node *of)
{
    const struct json_node *scopes = rule_filled(of, "scopes");
    const struct at *at = AT(spec, "scopes");
    struct seen checked = {0};
    unsigned found = 0;
    for (const struct json_node *item = rule_first(scopes); item; item = item->next) {
        struct slice scope = rule_text_of(c, item);
        if (!rule_one_of(scope, SCOPES))
            bad_node(c, at, scopes, "unsupported scope");
        check_scope_of(c, at, scope, rule_member(of, "hard"), scopes, &checked);
        found |= scope_bit(scope);
    }
    check_conflicts(c, at, found, scopes);
}

static void check_scope_operator(struct check *c, const struct at *at, const struct json_node *item)
{
    struct slice op = rule_text(c, item, "operator"), scope = rule_text(c, item, "scopeName");
    const struct json_node *values = rule_filled(item, "values");
    if (rule_one_of(scope, "BestEffort,NotBestEffort,Terminating,NotTerminating,"
                           "CrossNamespacePodAffinity") &&
        !slice_is(op, "Exists"))
        bad_text(c, AT(at, "operator"), op,
                 "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, "
                 "ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, "
                 "ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity");
    /* Only these two operators compare with values. */
    if (rule_one_of(op, "In,NotIn")) {
        if (!values)
            bad_required(c, AT(at, "values"),
                         "must be at least one value when `operator` is 'In' or 'NotIn' for scope "
                         "selector");
    } else if (!rule_one_of(op, "Exists,DoesNotExist")) {
        bad_text(c, AT(at, "operator"), op, "not a valid selector operator");
    } else if (values) {
        bad_node(
            c, AT(at, "values"), values,
            "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector");
    }
}

static void check_scope_selector(struct check *c, const struct at *spec, const struct json_node *of)
{
    const struct json_node *selector = rule_member(of, "scopeSelector");
    const struct at *at = AT(AT(spec, "scopeSelector"), "matchExpressions");
    struct seen checked = {0};
    unsigned found = 0;
    for (const struct json_node *item = rule_first(rule_member(selector, "matchExpressions")); item;
         item = item->next) {
        struct slice scope = rule_text(c, item, "scopeName");
        if (!rule_one_of(scope, SCOPES))
            bad_text(c, AT(at, "scopeName"), scope, "unsupported scope");
        check_scope_of(c, at, scope, rule_member(of, "hard"), selector, &checked);
        check_scope_operator(c, at, item);
        found |= scope_bit(scope);
    }
    check_conflicts(c, at, found, rule_filled(of, "scopes"));
}

/* The same scopes in any order, and however often. */
static bool has_all(struct check *c, const struct json_node *in, const struct json_node *of)
{
    struct seen seen = {0};
    for (const struct json_node *item = rule_first(in); item; item = item->next)
        seen_add(c, &seen, rule_text_of(c, item));
    for (const struct json_node *item = rule_first(of); item; item = item->next) {
        if (!seen_has(&seen, rule_text_of(c, item)))
            return false;
    }
    return true;
}

void kube_validate_quota(struct check *c, const struct json_node *object,
                         const struct json_node *old)
{
    const struct json_node *spec = rule_member(object, "spec");
    const struct json_node *scopes = rule_member(spec, "scopes");
    const struct json_node *had = rule_member(rule_member(old, "spec"), "scopes");
    const struct at *at = AT(NULL, "spec");
    check_amounts(c, AT(at, "hard"), rule_member(spec, "hard"));
    check_scopes(c, at, spec);
    check_scope_selector(c, at, spec);
    if (old && (!has_all(c, scopes, had) || !has_all(c, had, scopes)))
        bad_node(c, AT(at, "scopes"), scopes, "field is immutable");
}

void kube_validate_quota_status(struct check *c, const struct json_node *object,
                                const struct json_node *old)
{
    const struct json_node *status = rule_member(object, "status");
    const struct at *at = AT(NULL, "status");
    (void)old;
    check_amounts(c, AT(at, "hard"), rule_member(status, "hard"));
    check_amounts(c, AT(at, "used"), rule_member(status, "used"));
}

/* -- Limit ranges -- */

struct limit {
    const struct at *at;
    const struct json_node *min, *max, *normal, *request, *ratio;
};

static bool check_limit_names(struct check *c, const struct limit *limit, const char *name,
                              const struct json_node *amounts, bool of_pod)
{
    const struct at *at = AT(limit->at, name);
    for (const struct json_node *item = rule_first(amounts); item; item = item->next)
        (of_pod ? rule_container_resource_name : rule_resource_name)(c, AT_KEY(at, item->key),
                                                                     item->key);
    return rule_first(amounts);
}

struct amount {
    const struct json_node *node; /* NULL: none */
    quantity value;
};

static struct amount amount_of(struct check *c, const struct json_node *amounts, struct slice key)
{
    const struct json_node *node = json_node_member(amounts, key);
    return (struct amount){.node = node, .value = quantity_of(c, node)};
}

/* low may not be greater than high. */
static void check_order(struct check *c, const struct at *at, const struct json_node *shown,
                        const char *low_name, struct amount low, const char *high_name,
                        struct amount high)
{
    char why[256];
    if (!low.node || !high.node || low.value <= high.value)
        return;
    struct slice a = quantity_text(c, low.node), b = quantity_text(c, high.node);
    snprintf(why, sizeof(why), "%s value %.*s is greater than %s value %.*s", low_name,
             (int)size_min(a.len, 64), (const char *)a.ptr, high_name, (int)size_min(b.len, 64),
             (const char *)b.ptr);
    bad_text(c, at, quantity_text(c, shown), why);
}

static void check_ratio(struct check *c, const struct limit *limit, struct slice key,
                        struct amount min, struct amount max)
{
    struct amount ratio = amount_of(c, limit->ratio, key);
    const struct at *at = AT_KEY(AT(limit->at, "maxLimitRequestRatio"), key);
    struct slice text = quantity_text(c, ratio.node);
    char why[160];
    if (!ratio.node)
        return;
    /* Quantities are counted in billionths. */
    if (ratio.value < 1000000000) {
        snprintf(why, sizeof(why), "ratio %.*s is less than 1", (int)size_min(text.len, 64),
                 (const char *)text.ptr);
        bad_text(c, at, text, why);
    }
    double most = min.value ? (double)max.value / (double)min.value : 0;
    if (!min.node || !max.node || !min.value || (double)ratio.value / 1e9 <= most)
        return;
    snprintf(why, sizeof(why), "ratio %.*s is greater than max/min = %f",
             (int)size_min(text.len, 64), (const char *)text.ptr, most);
    bad_text(c, at, text, why);
}

static void check_limit_of(struct check *c, const struct limit *limit, struct slice key)
{
    struct amount min = amount_of(c, limit->min, key), max = amount_of(c, limit->max, key);
    struct amount normal = amount_of(c, limit->normal, key);
    struct amount request = amount_of(c, limit->request, key);
    const struct at *at = AT_KEY(AT(limit->at, "defaultRequest"), key);
    const struct at *of_normal = AT_KEY(AT(limit->at, "default"), key);
    check_order(c, AT_KEY(AT(limit->at, "min"), key), min.node, "min", min, "max", max);
    check_order(c, at, request.node, "min", min, "default request", request);
    check_order(c, at, request.node, "default request", request, "max", max);
    check_order(c, at, request.node, "default request", request, "default limit", normal);
    check_order(c, of_normal, min.node, "min", min, "default", normal);
    check_order(c, of_normal, max.node, "default", normal, "max", max);
    check_ratio(c, limit, key, min, max);
}

static void check_limit_type(struct check *c, const struct at *at, struct slice type)
{
    if (!rule_name(c, at, type, label_key_valid) || memchr(type.ptr, '/', type.len))
        return;
    if (!rule_one_of(type, "Pod,Container,PersistentVolumeClaim"))
        bad_text(c, at, type, "must be a standard limit type or fully qualified");
}

static void check_limit_defaults(struct check *c, struct limit *limit, bool pod, bool container)
{
    static const char *const why = "may not be specified when `type` is 'Pod'";
    if (!pod) {
        check_limit_names(c, limit, "default", limit->normal, container);
        check_limit_names(c, limit, "defaultRequest", limit->request, container);
        return;
    }
    if (rule_count(limit->normal))
        bad_forbidden(c, AT(limit->at, "default"), why);
    if (rule_count(limit->request))
        bad_forbidden(c, AT(limit->at, "defaultRequest"), why);
    limit->normal = limit->request = NULL;
}

static void check_limit(struct check *c, const struct at *at, const struct json_node *item)
{
    struct limit limit = {.at = at,
                          .min = rule_member(item, "min"),
                          .max = rule_member(item, "max"),
                          .normal = rule_member(item, "default"),
                          .request = rule_member(item, "defaultRequest"),
                          .ratio = rule_member(item, "maxLimitRequestRatio")};
    const struct json_node *const all[] = {limit.max, limit.min, limit.normal, limit.request,
                                           limit.ratio};
    bool pod = rule_text_is(item, "type", "Pod"),
         container = pod || rule_text_is(item, "type", "Container");
    struct seen seen = {0};
    check_limit_names(c, &limit, "max", limit.max, container);
    check_limit_names(c, &limit, "min", limit.min, container);
    check_limit_defaults(c, &limit, pod, container);
    if (rule_text_is(item, "type", "PersistentVolumeClaim") && !rule_member(limit.min, "storage") &&
        !rule_member(limit.max, "storage"))
        bad_required(c, AT(at, "limits"),
                     "either minimum or maximum storage value is required, but neither was "
                     "provided");
    check_limit_names(c, &limit, "maxLimitRequestRatio", limit.ratio, container);
    /* A resource that is named in several of the maps is compared once. */
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        for (const struct json_node *one = rule_first(all[i]); one; one = one->next) {
            if (seen_add(c, &seen, one->key))
                check_limit_of(c, &limit, one->key);
        }
    }
}

void kube_validate_limit_range(struct check *c, const struct json_node *object,
                               const struct json_node *old)
{
    const struct json_node *list = rule_member(rule_member(object, "spec"), "limits");
    const struct at *at = AT(AT(NULL, "spec"), "limits");
    struct seen types = {0};
    size_t i = 0;
    (void)old;
    for (const struct json_node *item = rule_first(list); item; item = item->next, i++) {
        struct slice type = rule_text(c, item, "type");
        check_limit_type(c, AT(AT_ITEM(at, i), "type"), type);
        if (!seen_add(c, &types, type))
            bad_repeat(c, AT(AT_ITEM(at, i), "type"), type);
        check_limit(c, AT_ITEM(at, i), item);
    }
}
