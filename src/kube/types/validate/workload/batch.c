/* Job and CronJob. */
#include "kube/types/validate/kinds.h"
#include "kube/types/validate/rules.h"
#include "kube/types/validate/shown.h"
#include "kube/types/validate/workload/job.h"
#include "kube/types/validate/workload/pod.h"

#include <stdio.h>

enum {
    MANAGER_BYTES_MAX = 63,
    PARALLEL_MAX = 100000,
    COMPLETIONS_SOFT_MAX = 100000,
    MANY_COMPLETIONS_MAX = 10000, /* limit on what is parallel or failed */
    CRON_NAME_BYTES_MAX = 52,
};

/* -- Jobs -- */

static void check_counts(struct check *c, const struct at *at, const struct json_node *spec)
{
    static const char *const names[] = {"parallelism",
                                        "completions",
                                        "activeDeadlineSeconds",
                                        "backoffLimit",
                                        "ttlSecondsAfterFinished",
                                        "backoffLimitPerIndex",
                                        "maxFailedIndexes"};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        rule_not_negative(c, AT(at, names[i]), rule_int(spec, names[i], 0));
    if (rule_member(spec, "maxFailedIndexes") && !rule_member(spec, "backoffLimitPerIndex"))
        bad_required(c, AT(at, "backoffLimitPerIndex"), "when maxFailedIndexes is specified");
}

static void check_manager(struct check *c, const struct at *at, const struct json_node *node)
{
    struct slice name = rule_text_of(c, node);
    const uint8_t *slash = name.len ? memchr(name.ptr, '/', name.len) : NULL;
    size_t host = slash ? (size_t)(slash - name.ptr) : 0;
    if (!node)
        return;
    if (!name.len)
        bad_required(c, at, NULL);
    else if (!host || host + 1 == name.len)
        bad_text(c, at, name, "must be a domain-prefixed path (such as \"acme.io/foo\")");
    else
        rule_name(c, at, slice_sub(name, 0, host), subdomain_valid);
    if (name.len > MANAGER_BYTES_MAX)
        bad_long(c, at, MANAGER_BYTES_MAX);
}

static void check_indexed(struct check *c, const struct at *at, const struct json_node *spec)
{
    const struct json_node *failed = rule_member(spec, "maxFailedIndexes");
    const struct json_node *completions = rule_member(spec, "completions");
    /* Without parallelism they are 1. */
    if (!completions && rule_member(spec, "parallelism"))
        bad_required(c, AT(at, "completions"), "when completion mode is Indexed");
    if (rule_int(spec, "parallelism", 0) > PARALLEL_MAX)
        bad_int(c, AT(at, "parallelism"), rule_int(spec, "parallelism", 0),
                "must be less than or equal to 100000 when completion mode is Indexed");
    if (completions && failed && rule_int_of(failed) > rule_int_of(completions))
        bad_int(c, AT(at, "maxFailedIndexes"), rule_int_of(failed),
                "must be less than or equal to completions");
    if (failed && rule_int_of(failed) > PARALLEL_MAX)
        bad_int(c, AT(at, "maxFailedIndexes"), rule_int_of(failed),
                "must be less than or equal to 100000");
}

/* Limits that keep the lists of indexes in the status short. */
static void check_many_indexes(struct check *c, const struct at *at, const struct json_node *spec)
{
    static const char *const names[] = {"parallelism", "maxFailedIndexes"};
    static const char why[] = "must be less than or equal to 10000 when completions are above "
                              "100000 and used with backoff limit per index";
    if (rule_int(spec, "completions", 0) <= COMPLETIONS_SOFT_MAX ||
        !rule_member(spec, "backoffLimitPerIndex"))
        return;
    if (!rule_member(spec, "maxFailedIndexes"))
        bad_required(c, AT(at, "maxFailedIndexes"),
                     "must be specified when completions is above 100000");
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (rule_int(spec, names[i], 0) > MANY_COMPLETIONS_MAX)
            bad_int(c, AT(at, names[i]), rule_int(spec, names[i], 0), why);
    }
}

static void check_mode(struct check *c, const struct at *at, const struct json_node *spec)
{
    static const char *const names[] = {"backoffLimitPerIndex", "maxFailedIndexes"};
    struct slice mode = rule_text(c, spec, "completionMode");
    rule_one(c, at, spec, "completionMode", IF_SOME, CHOICE("NonIndexed,Indexed"));
    if (slice_is(mode, "Indexed")) {
        check_indexed(c, at, spec);
        check_many_indexes(c, at, spec);
    }
    if (mode.len && !slice_is(mode, "NonIndexed"))
        return;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (rule_member(spec, names[i]))
            bad_int(c, AT(at, names[i]), rule_int(spec, names[i], 0),
                    "requires indexed completion mode");
    }
}

SHOWN_TYPE(success_rule, SHOWN_NULL("SucceededIndexes", "succeededIndexes"),
           SHOWN_NULL("SucceededCount", "succeededCount"));

SHOWN_TYPE(success_policy, {"Rules", "rules", "[]", &success_rule});

static void check_policies(struct check *c, const struct at *at, const struct json_node *spec)
{
    const struct json_node *success = rule_member(spec, "successPolicy");
    if (rule_member(spec, "podFailurePolicy"))
        rule_failure_policy(c, AT(at, "podFailurePolicy"), spec);
    if (success && rule_text_is(spec, "completionMode", "Indexed"))
        rule_success_policy(c, AT(at, "successPolicy"), spec);
    else if (success)
        bad_raw(c, AT(at, "successPolicy"), show_struct(c, success, &success_policy),
                "requires indexed completion mode");
}

static void check_job_restart(struct check *c, const struct at *at, const struct json_node *spec)
{
    struct slice policy = rule_text_of(c, json_node_path(spec, "template.spec.restartPolicy"));
    if (!policy.len || slice_is(policy, "Always"))
        bad_required(c, at, "valid values: \"OnFailure\", \"Never\"");
    else if (!rule_one_of(policy, "OnFailure,Never"))
        bad_choice(c, at, policy, "OnFailure,Never");
    else if (rule_member(spec, "podFailurePolicy") && !slice_is(policy, "Never"))
        bad_text(c, at, policy, "only \"Never\" is supported when podFailurePolicy is specified");
}

static void check_job_spec(struct check *c, const struct at *at, const struct json_node *spec,
                           const struct json_node *old)
{
    const struct at *in = AT(at, "template");
    check_counts(c, at, spec);
    check_manager(c, AT(at, "managedBy"), rule_member(spec, "managedBy"));
    check_mode(c, at, spec);
    check_policies(c, at, spec);
    struct slice policy = rule_text(c, spec, "podReplacementPolicy");
    if (policy.len)
        rule_choice(c, AT(at, "podReplacementPolicy"), policy,
                    rule_member(spec, "podFailurePolicy") ? "Failed"
                                                          : "Failed,TerminatingOrFailed");
    rule_pod_template(c, in, rule_member(spec, "template"), rule_member(old, "template"));
    check_job_restart(c, AT(AT(in, "spec"), "restartPolicy"), spec);
}

static void check_job_update(struct check *c, const struct at *at, const struct json_node *spec,
                             const struct json_node *old)
{
    const struct json_node *is = rule_member(spec, "completions"),
                           *was = rule_member(old, "completions");
    if (!rule_text_is(spec, "completionMode", "Indexed")) {
        rule_immutable(c, AT(at, "completions"), is, was);
    } else if (is && !rule_same_node(is, was) &&
               rule_int_of(is) != rule_int(spec, "parallelism", 1)) {
        bad_int(c, AT(at, "completions"), rule_int_of(is),
                "can only be modified in tandem with spec.parallelism");
    }
    rule_fixed(c, at, spec, old, "selector");
    /* The template of a suspended job may change, because it has no running pods. */
    if (!rule_same_but_defaults(json_node_path(spec, "template.spec"),
                                json_node_path(old, "template.spec")) &&
        !rule_truth(old, "suspend"))
        bad_node(c, AT(at, "template"), rule_member(spec, "template"), "field is immutable");
    rule_immutable_choice(c, AT(at, "completionMode"), rule_member(spec, "completionMode"),
                          rule_member(old, "completionMode"), "NonIndexed");
    rule_fixed(c, at, spec, old, "podFailurePolicy,backoffLimitPerIndex,managedBy,successPolicy");
}

/* The name of the last pod is a host name. */
static void check_pod_name(struct check *c, const struct json_node *object,
                           const struct json_node *spec)
{
    struct slice name = rule_text(c, rule_member(object, "metadata"), "name");
    int64_t count = rule_int(spec, "completions", 0);
    char host[320], why[400], ignored[NAME_ERROR_BYTES];
    if (!rule_text_is(spec, "completionMode", "Indexed") || count <= 0)
        return;
    snprintf(host, sizeof(host), "%.*s-%lld", (int)size_min(name.len, 253), (const char *)name.ptr,
             (long long)count - 1);
    snprintf(why, sizeof(why), "will not able to create pod with invalid DNS label: %s", host);
    if (!dns_label_valid(slice_from_text(host), ignored))
        bad_text(c, AT(AT(NULL, "metadata"), "name"), name, why);
}

/* The labels by which a job without manualSelector finds its pods. */
static const struct generated {
    const char *label, *from; /* from: the member of the job's metadata */
} generated[] = {
    {"controller-uid", "uid"},
    {"job-name", "name"},
    {"batch.kubernetes.io/controller-uid", "uid"},
    {"batch.kubernetes.io/job-name", "name"},
};

static void check_generated_label(struct check *c, const struct at *at,
                                  const struct json_node *labels, const char *label,
                                  struct slice value)
{
    const struct json_node *is = json_node_named(labels, label);
    struct slice name = slice_from_text(label);
    const struct at *at_label = AT_KEY(at, name);
    char why[320];
    snprintf(why, sizeof(why), "must be '%.*s'", (int)size_min(value.len, 253),
             (const char *)value.ptr);
    if (!is)
        bad_required(c, at_label, why);
    else if (!slice_equal(rule_text_of(c, is), value))
        bad_map(c, at_label, labels, why);
}

/* The client may add labels and a selector of its own, but not contradict the generated ones. */
static void check_generated(struct check *c, const struct json_node *object,
                            const struct json_node *spec)
{
    const struct json_node *selector = rule_member(spec, "selector");
    const struct json_node *labels = json_node_path(spec, "template.metadata.labels");
    const struct at *at = AT(AT(AT(AT(NULL, "spec"), "template"), "metadata"), "labels");
    struct json_node *expected = json_node_new(c->arena, JSON_TYPE_OBJECT);
    if (!selector || rule_truth(spec, "manualSelector"))
        return;
    for (size_t i = 0; i < COUNT_OF(generated); i++) {
        struct slice value = rule_text(c, rule_member(object, "metadata"), generated[i].from);
        struct json_node *text = json_node_new_text(c->arena, value);
        check_generated_label(c, at, labels, generated[i].label, value);
        if (!expected || !text ||
            json_node_set(c->arena, expected, slice_from_text(generated[i].label), text) != ST_OK) {
            c->errors->no_memory = true;
            return;
        }
    }
    if (rule_selector_is_valid(c, selector) && !rule_selector_matches(c, selector, expected))
        bad_selector(c, AT(AT(NULL, "spec"), "selector"), selector,
                     "`selector` not auto-generated");
}

void kube_validate_job(struct check *c, const struct json_node *object, const struct json_node *old)
{
    const struct json_node *spec = rule_member(object, "spec"),
                           *selector = rule_member(spec, "selector");
    const struct json_node *labels = json_node_path(spec, "template.metadata.labels");
    const struct at *at = AT(NULL, "spec");
    if (!old)
        check_generated(c, object, spec);
    size_t before = c->errors->count;
    check_job_spec(c, at, spec, rule_member(old, "spec"));
    /* Otherwise it is generated. */
    rule_selector(c, AT(at, "selector"), selector);
    if (selector && c->errors->count == before && !rule_selector_matches(c, selector, labels))
        bad_map(c, AT(AT(AT(at, "template"), "metadata"), "labels"), labels,
                "`selector` does not match template `labels`");
    if (!selector && !old && rule_truth(spec, "manualSelector")) {
        bad_required(c, AT(at, "selector"), NULL);
        bad_map(c, AT(AT(AT(at, "template"), "metadata"), "labels"), labels,
                "`selector` does not match template `labels`");
    }
    if (old)
        check_job_update(c, at, spec, rule_member(old, "spec"));
    else
        check_pod_name(c, object, spec);
}

/* -- Cron jobs -- */

static void check_job_template(struct check *c, const struct at *at, const struct json_node *of,
                               const struct json_node *old)
{
    const struct json_node *spec = rule_member(of, "spec");
    const struct at *in = AT(at, "spec");
    check_job_spec(c, in, spec, rule_member(old, "spec"));
    if (rule_member(spec, "selector"))
        bad_node(c, AT(in, "selector"), rule_member(spec, "selector"),
                 "`selector` will be auto-generated");
    if (rule_truth(spec, "manualSelector"))
        bad_choice_node(c, AT(in, "manualSelector"), rule_member(spec, "manualSelector"),
                        "nil,false");
}

void kube_validate_cron_job(struct check *c, const struct json_node *object,
                            const struct json_node *old)
{
    const struct json_node *spec = rule_member(object, "spec"), *was = rule_member(old, "spec");
    struct slice name = rule_text(c, rule_member(object, "metadata"), "name");
    const struct at *at = AT(NULL, "spec");
    rule_schedule(c, AT(at, "schedule"), spec, was);
    rule_not_negative(c, AT(at, "startingDeadlineSeconds"),
                      rule_int(spec, "startingDeadlineSeconds", 0));
    if (!old || !rule_same_member(spec, was, "timeZone"))
        rule_time_zone(c, AT(at, "timeZone"), rule_member(spec, "timeZone"));
    rule_one(c, at, spec, "concurrencyPolicy", IF_SOME, CHOICE("Allow,Forbid,Replace"));
    check_job_template(c, AT(at, "jobTemplate"), rule_member(spec, "jobTemplate"),
                       rule_member(rule_member(old, "spec"), "jobTemplate"));
    rule_not_negative(c, AT(at, "successfulJobsHistoryLimit"),
                      rule_int(spec, "successfulJobsHistoryLimit", 0));
    rule_not_negative(c, AT(at, "failedJobsHistoryLimit"),
                      rule_int(spec, "failedJobsHistoryLimit", 0));
    /* The names of its jobs have 11 characters more, and must fit into a label of 63. */
    if (!old && name.len > CRON_NAME_BYTES_MAX)
        bad_text(c, AT(AT(NULL, "metadata"), "name"), name, "must be no more than 52 characters");
}
