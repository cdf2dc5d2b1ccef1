/* Deployment, ReplicaSet, DaemonSet, StatefulSet and ReplicationController. */
#include "kube/types/validate/kinds.h"
#include "kube/types/validate/rules.h"
#include "kube/types/validate/shown.h"
#include "kube/types/validate/workload/pod.h"
#include "kube/types/validate/workload/volume.h"

#include <stdio.h>

/* -- Selectors -- */

static bool in_values(const struct json_node *values, const struct json_node *label)
{
    const struct json_node *item = label ? rule_first(values) : NULL;
    while (item && !json_node_equal(item, label))
        item = item->next;
    return item;
}

static bool meets(const struct json_node *labels, const struct json_node *item, struct slice key)
{
    const struct json_node *label = json_node_member(labels, key);
    const struct json_node *values = rule_member(item, "values");
    if (rule_text_is(item, "operator", "In"))
        return in_values(values, label);
    if (rule_text_is(item, "operator", "NotIn"))
        return !in_values(values, label);
    return rule_text_is(item, "operator", "Exists") ? label != NULL : label == NULL;
}

bool rule_selector_matches(struct check *c, const struct json_node *selector,
                           const struct json_node *labels)
{
    for (const struct json_node *item = rule_first(rule_member(selector, "matchLabels")); item;
         item = item->next) {
        const struct json_node *label = json_node_member(labels, item->key);
        if (!label || !json_node_equal(label, item))
            return false;
    }
    for (const struct json_node *item = rule_first(rule_member(selector, "matchExpressions")); item;
         item = item->next) {
        if (!meets(labels, item, rule_text(c, item, "key")))
            return false;
    }
    return true;
}

static bool is_empty_selector(const struct json_node *selector)
{
    return !rule_filled(selector, "matchLabels") && !rule_filled(selector, "matchExpressions");
}

/* False: it cannot be used. */
static bool check_workload_selector(struct check *c, const struct at *at,
                                    const struct json_node *selector, const char *kind,
                                    const char *invalid)
{
    size_t before = c->errors->count;
    char why[64];
    if (!selector) {
        bad_required(c, at, NULL);
        return true;
    }
    rule_selector(c, at, selector);
    /* Kubernetes first validates the selector and then converts it, and both report what is
     * wrong. */
    if (c->errors->count > before) {
        bad_node(c, at, selector, invalid);
        return false;
    }
    snprintf(why, sizeof(why), "empty selector is invalid for %s", kind);
    if (is_empty_selector(selector))
        bad_node(c, at, selector, why);
    return true;
}

/* -- Templates -- */

static const struct json_node *template_of(const struct json_node *object)
{
    return rule_member(rule_member(object, "spec"), "template");
}

static void check_matches(struct check *c, const struct at *at, const struct json_node *selector,
                          const struct json_node *template)
{
    const struct json_node *labels = json_node_path(template, "metadata.labels");
    /* Without a selector nothing matches; an empty one has been refused. */
    if (selector && (is_empty_selector(selector) || rule_selector_matches(c, selector, labels)))
        return;
    bad_map(c, AT(AT(at, "metadata"), "labels"), labels,
            "`selector` does not match template `labels`");
}

static void check_keeps_running(struct check *c, const struct at *at,
                                const struct json_node *template, const char *kind)
{
    const struct json_node *spec = rule_member(template, "spec");
    const struct at *in = AT(at, "spec");
    char why[96];
    if (!rule_choice_is(spec, "restartPolicy", "Always", "Always"))
        bad_choice(c, AT(in, "restartPolicy"), rule_text(c, spec, "restartPolicy"), "Always");
    snprintf(why, sizeof(why), "activeDeadlineSeconds in %s is not Supported", kind);
    if (rule_member(spec, "activeDeadlineSeconds"))
        bad_forbidden(c, AT(in, "activeDeadlineSeconds"), why);
}

static void check_template_of(struct check *c, const struct at *at, const struct json_node *spec,
                              const struct json_node *old, const char *kind)
{
    const struct json_node *template = rule_member(spec, "template");
    check_matches(c, at, rule_member(spec, "selector"), template);
    rule_pod_template(c, at, template, template_of(old));
    check_keeps_running(c, at, template, kind);
}

static void check_count_in(struct check *c, const struct at *at, const struct json_node *spec,
                           const char *name)
{
    rule_not_negative(c, AT(at, name), rule_int(spec, name, 0));
}

static void check_selector_kept(struct check *c, const struct at *at, const struct json_node *spec,
                                const struct json_node *old)
{
    if (old)
        rule_fixed(c, at, spec, rule_member(old, "spec"), "selector");
}

enum { STRATEGY_BYTES = 320 };

static const char *shown_strategy(struct slice type, char json[STRATEGY_BYTES])
{
    /* Go prints the whole struct. A rollingUpdate beside an unknown type is not shown. */
    snprintf(json, STRATEGY_BYTES, "{\"Type\":\"%.*s\",\"RollingUpdate\":null}",
             (int)size_min(type.len, 200), (const char *)type.ptr);
    return json;
}

/* -- Deployments and replica sets -- */

static void check_strategy(struct check *c, const struct at *at, const struct json_node *strategy)
{
    struct slice type = rule_text(c, strategy, "type");
    const struct json_node *update = rule_member(strategy, "rollingUpdate");
    char json[STRATEGY_BYTES];
    if (slice_is(type, "Recreate")) {
        if (update)
            bad_forbidden(c, AT(at, "rollingUpdate"),
                          "may not be specified when strategy `type` is 'Recreate'");
    } else if (!type.len || slice_is(type, "RollingUpdate")) {
        const struct at *in = AT(at, "rollingUpdate");
        const struct json_node *less = rule_member(update, "maxUnavailable");
        const struct json_node *more = rule_member(update, "maxSurge");
        rule_one(c, in, update, "maxUnavailable", IF_SET, PART(rule_int_or_percent));
        rule_one(c, in, update, "maxSurge", IF_SET, PART(rule_int_or_percent));
        if (less && more && !rule_int_or_percent_of(c, less) && !rule_int_or_percent_of(c, more))
            bad_node(c, AT(in, "maxUnavailable"), less, "may not be 0 when `maxSurge` is 0");
        rule_one(c, in, update, "maxUnavailable", IF_SET, PART(rule_at_most_100_percent));
    } else {
        bad_choice_raw(c, at, shown_strategy(type, json), "Recreate,RollingUpdate");
    }
}

void kube_validate_deployment(struct check *c, const struct json_node *object,
                              const struct json_node *old)
{
    const struct json_node *spec = rule_member(object, "spec"),
                           *selector = rule_member(spec, "selector");
    const struct at *at = AT(NULL, "spec");
    check_count_in(c, at, spec, "replicas");
    if (check_workload_selector(c, AT(at, "selector"), selector, "deployment",
                                "invalid label selector"))
        check_template_of(c, AT(at, "template"), spec, old, "ReplicaSet");
    check_strategy(c, AT(at, "strategy"), rule_member(spec, "strategy"));
    check_count_in(c, at, spec, "minReadySeconds");
    check_count_in(c, at, spec, "revisionHistoryLimit");
    int64_t deadline = rule_int(spec, "progressDeadlineSeconds", INT32_MAX);
    rule_not_negative(c, AT(at, "progressDeadlineSeconds"), deadline);
    if (deadline <= rule_int(spec, "minReadySeconds", 0))
        bad_int(c, AT(at, "progressDeadlineSeconds"), deadline,
                "must be greater than minReadySeconds");
    check_selector_kept(c, at, spec, old);
}

void kube_validate_replica_set(struct check *c, const struct json_node *object,
                               const struct json_node *old)
{
    const struct json_node *spec = rule_member(object, "spec"),
                           *selector = rule_member(spec, "selector");
    const struct at *at = AT(NULL, "spec");
    check_count_in(c, at, spec, "replicas");
    check_count_in(c, at, spec, "minReadySeconds");
    /* Kubernetes' texts name the deployment here as well. */
    if (check_workload_selector(c, AT(at, "selector"), selector, "deployment",
                                "invalid label selector"))
        check_template_of(c, AT(at, "template"), spec, old, "ReplicaSet");
    check_selector_kept(c, at, spec, old);
}

/* Its selector is a map, by default the labels of the template. */
void kube_validate_replication_controller(struct check *c, const struct json_node *object,
                                          const struct json_node *old)
{
    const struct json_node *spec = rule_member(object, "spec"),
                           *template = rule_member(spec, "template");
    const struct json_node *labels = json_node_path(template, "metadata.labels");
    const struct json_node *selector = rule_filled(spec, "selector");
    const struct at *at = AT(NULL, "spec"), *in = AT(at, "template");
    if (!selector && !rule_count(labels))
        bad_required(c, AT(at, "selector"), NULL);
    if (!template) {
        bad_required(c, in, NULL);
    } else {
        for (const struct json_node *item = rule_first(selector); item; item = item->next) {
            const struct json_node *label = json_node_member(labels, item->key);
            if (label && json_node_equal(label, item))
                continue;
            /* One error for the whole selector. */
            bad_map(c, AT(AT(in, "metadata"), "labels"), labels,
                    "`selector` does not match template `labels`");
            break;
        }
        rule_pod_template(c, in, template, template_of(old));
        check_keeps_running(c, in, template, "ReplicationController");
    }
    check_count_in(c, at, spec, "minReadySeconds");
    check_count_in(c, at, spec, "replicas");
}

/* -- Daemon sets -- */

static void check_rolling_daemons(struct check *c, const struct at *at,
                                  const struct json_node *update)
{
    const struct json_node *less = rule_member(update, "maxUnavailable");
    const struct json_node *more = rule_member(update, "maxSurge");
    bool has_less = !less || rule_int_or_percent_of(c, less);
    bool has_more = more && rule_int_or_percent_of(c, more);
    rule_one(c, at, update, "maxUnavailable", IF_SET, PART(rule_int_or_percent));
    rule_one(c, at, update, "maxSurge", IF_SET, PART(rule_int_or_percent));
    rule_at_most_100_percent(c, AT(at, "maxUnavailable"), less);
    rule_at_most_100_percent(c, AT(at, "maxSurge"), more);
    if (has_less && has_more)
        bad_node(c, AT(at, "maxSurge"), more, "may not be set when maxUnavailable is non-zero");
    else if (!has_less && !has_more)
        bad_required(c, AT(at, "maxUnavailable"), "cannot be 0 when maxSurge is 0");
}

static void check_daemon_strategy(struct check *c, const struct at *at,
                                  const struct json_node *strategy)
{
    struct slice type = rule_text(c, strategy, "type");
    char json[STRATEGY_BYTES];
    if (!type.len || slice_is(type, "RollingUpdate")) {
        check_rolling_daemons(c, AT(at, "rollingUpdate"), rule_member(strategy, "rollingUpdate"));
    } else if (!slice_is(type, "OnDelete")) {
        bad_choice_raw(c, at, shown_strategy(type, json), "RollingUpdate,OnDelete");
    }
}

void kube_validate_daemon_set(struct check *c, const struct json_node *object,
                              const struct json_node *old)
{
    const struct json_node *spec = rule_member(object, "spec"),
                           *selector = rule_member(spec, "selector");
    const struct json_node *template = rule_member(spec, "template");
    const struct json_node *labels = json_node_path(template, "metadata.labels");
    const struct at *at = AT(NULL, "spec"), *in = AT(at, "template");
    size_t before = c->errors->count;
    rule_selector(c, AT(at, "selector"), selector);
    /* No selector matches nothing. */
    if (c->errors->count == before && (!selector || !rule_selector_matches(c, selector, labels)))
        bad_map(c, AT(AT(in, "metadata"), "labels"), labels,
                "`selector` does not match template `labels`");
    if (selector && is_empty_selector(selector))
        bad_node(c, AT(at, "selector"), selector, "empty selector is invalid for daemonset");
    rule_pod_template(c, in, template, template_of(old));
    check_keeps_running(c, in, template, "DaemonSet");
    check_count_in(c, at, spec, "minReadySeconds");
    check_daemon_strategy(c, AT(at, "updateStrategy"), rule_member(spec, "updateStrategy"));
    check_count_in(c, at, spec, "revisionHistoryLimit");
    check_selector_kept(c, at, spec, old);
}

/* -- Stateful sets -- */

static void check_stateful_strategy(struct check *c, const struct at *at,
                                    const struct json_node *strategy)
{
    struct slice type = rule_text(c, strategy, "type");
    const struct json_node *update = rule_member(strategy, "rollingUpdate");
    const struct at *in = AT(at, "rollingUpdate");
    char json[STRATEGY_BYTES];
    if (slice_is(type, "OnDelete")) {
        if (update)
            bad_node(c, in, update, "only allowed for updateStrategy 'RollingUpdate'");
    } else if (!type.len || slice_is(type, "RollingUpdate")) {
        check_count_in(c, in, update, "partition");
        rule_one(c, in, update, "maxUnavailable", IF_SET, PART(rule_int_or_percent));
    } else {
        bad_raw(c, at, shown_strategy(type, json), "must be 'RollingUpdate' or 'OnDelete'");
    }
}

static const struct rule retention_rules[] = {
    {"whenDeleted", IF_SOME, CHOICE("Retain,Delete")},
    {"whenScaled", IF_SOME, CHOICE("Retain,Delete")},
};

/* The volumes of its claims may be mounted, although the template does not have them. */
static struct json_node *with_claims(struct check *c, const struct json_node *spec)
{
    struct json_node *copy = json_node_copy(c->arena, rule_member(spec, "template"));
    struct json_node *pod = json_node_named(copy, "spec"), *volumes;
    if (!pod || pod->type != JSON_TYPE_OBJECT)
        return copy;
    volumes = json_node_named(pod, "volumes");
    if (!volumes || volumes->type != JSON_TYPE_ARRAY)
        volumes = json_node_new(c->arena, JSON_TYPE_ARRAY);
    for (const struct json_node *item = rule_first(rule_member(spec, "volumeClaimTemplates"));
         item && volumes; item = item->next) {
        struct slice name = rule_text(c, rule_member(item, "metadata"), "name");
        struct json_node *volume = json_node_new(c->arena, JSON_TYPE_OBJECT);
        struct json_node *claim = json_node_new(c->arena, JSON_TYPE_OBJECT);
        struct json_node *text = json_node_new_text(c->arena, name);
        struct json_node *of = json_node_new_text(c->arena, name);
        if (!volume || !claim || !text || !of ||
            json_node_set(c->arena, volume, SLICE_LITERAL("name"), text) != ST_OK ||
            json_node_set(c->arena, claim, SLICE_LITERAL("claimName"), of) != ST_OK ||
            json_node_set(c->arena, volume, SLICE_LITERAL("persistentVolumeClaim"), claim) !=
                ST_OK ||
            json_node_insert(volumes, volumes->first, volume) != ST_OK)
            c->errors->no_memory = true;
    }
    if (!volumes || json_node_set(c->arena, pod, SLICE_LITERAL("volumes"), volumes) != ST_OK)
        c->errors->no_memory = true;
    return copy;
}

/* It depends on the names of the claims, too. */
static void check_stateful_template(struct check *c, const struct at *at,
                                    const struct json_node *spec, const struct json_node *old)
{
    const struct json_node *template = rule_member(spec, "template"),
                           *was = rule_member(old, "template");
    bool claims = rule_filled(spec, "volumeClaimTemplates");
    bool same_claims = rule_same_member(spec, old, "volumeClaimTemplates");
    if (same_claims && rule_is_kept(c, template, was))
        return;
    rule_pod_template(c, at, claims ? with_claims(c, spec) : template,
                      same_claims && !claims ? was : NULL);
}

static const struct rule claim_template_rules[] = {{"spec", ALWAYS, PART(rule_claim_spec)}};

static void check_stateful_update(struct check *c, const struct at *at,
                                  const struct json_node *spec, const struct json_node *old)
{
    struct slice is = rule_text(c, spec, "podManagementPolicy");
    bool same = rule_choice_is(old, "podManagementPolicy", "OrderedReady",
                               slice_is(is, "Parallel") ? "Parallel" : "OrderedReady");
    if (!same || !rule_same_member(spec, old, "serviceName") ||
        !rule_same_member(spec, old, "selector") ||
        !rule_same_but_defaults(rule_member(spec, "volumeClaimTemplates"),
                                rule_member(old, "volumeClaimTemplates")))
        bad_forbidden(c, at,
                      "updates to statefulset spec for fields other than 'replicas', 'ordinals', "
                      "'template', 'updateStrategy', 'revisionHistoryLimit', "
                      "'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden");
}

void kube_validate_stateful_set(struct check *c, const struct json_node *object,
                                const struct json_node *old)
{
    const struct json_node *spec = rule_member(object, "spec"),
                           *selector = rule_member(spec, "selector");
    const struct json_node *template = rule_member(spec, "template");
    struct slice policy = rule_text(c, spec, "podManagementPolicy");
    const struct at *at = AT(NULL, "spec"), *in = AT(at, "template");
    if (policy.len && !rule_one_of(policy, "OrderedReady,Parallel"))
        bad_text(c, AT(at, "podManagementPolicy"), policy, "must be 'OrderedReady' or 'Parallel'");
    check_stateful_strategy(c, AT(at, "updateStrategy"), rule_member(spec, "updateStrategy"));
    rule_one(c, at, spec, "persistentVolumeClaimRetentionPolicy", ALWAYS, ROWS(retention_rules));
    /* On an update the templates may only stay as they are, which check_stateful_update
     * verifies. */
    if (!old)
        rule_one(c, at, spec, "volumeClaimTemplates", EACH, ROWS(claim_template_rules));
    struct slice service = rule_text(c, spec, "serviceName");
    check_count_in(c, at, spec, "replicas");
    check_count_in(c, at, spec, "minReadySeconds");
    rule_not_negative(c, AT(at, "ordinals.start"),
                      rule_int(rule_member(spec, "ordinals"), "start", 0));
    if (!old && service.len)
        rule_name(c, AT(at, "serviceName"), service, dns_label_valid);
    if (check_workload_selector(c, AT(at, "selector"), selector, "statefulset", "")) {
        check_matches(c, in, selector, template);
        check_stateful_template(c, in, spec, rule_member(old, "spec"));
        rule_labels(c, AT(in, "labels"), json_node_path(template, "metadata.labels"));
    }
    check_keeps_running(c, in, template, "StatefulSet");
    if (old)
        check_stateful_update(c, at, spec, rule_member(old, "spec"));
}

/* -- Statuses -- */

static void check_replica_status(struct check *c, const struct json_node *object,
                                 const char *const *counts, const char *ready)
{
    const struct json_node *status = rule_member(object, "status");
    const struct at *at = AT(NULL, "status");
    int64_t all = rule_int(status, "replicas", 0), is_ready = rule_int(status, "readyReplicas", 0);
    for (size_t i = 0; counts[i]; i++)
        check_count_in(c, at, status, counts[i]);
    for (size_t i = 0; counts[i]; i++) {
        int64_t count = rule_int(status, counts[i], 0);
        /* The counts of pods that are not among the replicas are not compared. */
        bool part = strstr(counts[i], "Replicas") &&
                    strcmp(counts[i], "unavailableReplicas") != 0 &&
                    strcmp(counts[i], "terminatingReplicas") != 0;
        if (part && count > all)
            bad_int(c, AT(at, counts[i]), count, "cannot be greater than status.replicas");
    }
    if (rule_int(status, "availableReplicas", 0) > is_ready)
        bad_int(c, AT(at, "availableReplicas"), rule_int(status, "availableReplicas", 0), ready);
}

void kube_validate_deployment_status(struct check *c, const struct json_node *object,
                                     const struct json_node *old)
{
    static const char *const counts[] = {
        "observedGeneration",  "replicas",          "updatedReplicas",
        "readyReplicas",       "availableReplicas", "unavailableReplicas",
        "terminatingReplicas", "collisionCount",    NULL};
    (void)old;
    check_replica_status(c, object, counts, "cannot be greater than readyReplicas");
}

void kube_validate_replica_set_status(struct check *c, const struct json_node *object,
                                      const struct json_node *old)
{
    static const char *const counts[] = {"replicas",
                                         "fullyLabeledReplicas",
                                         "readyReplicas",
                                         "availableReplicas",
                                         "observedGeneration",
                                         "terminatingReplicas",
                                         NULL};
    (void)old;
    check_replica_status(c, object, counts, "cannot be greater than readyReplicas");
}

void kube_validate_stateful_set_status(struct check *c, const struct json_node *object,
                                       const struct json_node *old)
{
    static const char *const counts[] = {
        "replicas",          "readyReplicas",      "currentReplicas", "updatedReplicas",
        "availableReplicas", "observedGeneration", "collisionCount",  NULL};
    (void)old;
    check_replica_status(c, object, counts, "cannot be greater than status.readyReplicas");
}
