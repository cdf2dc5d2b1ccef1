/* Job and CronJob. */
#include "kube/validate/kinds.h"
#include "kube/validate/workload/pod.h"

#include <stdio.h>

enum { MANAGER_BYTES_MAX = 63, PARALLEL_MAX = 100000, CRON_NAME_BYTES_MAX = 52 };

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
        check_not_negative(c, AT(at, names[i]), int_in(spec, names[i], 0));
    if (member(spec, "maxFailedIndexes") && !member(spec, "backoffLimitPerIndex"))
        bad_required(c, AT(at, "backoffLimitPerIndex"), "when maxFailedIndexes is specified");
}

static void check_manager(struct check *c, const struct at *at, const struct json_node *node)
{
    struct slice name = text_of(c, node);
    const uint8_t *slash = name.len ? memchr(name.ptr, '/', name.len) : NULL;
    size_t host = slash ? (size_t)(slash - name.ptr) : 0;
    if (!node)
        return;
    if (!name.len)
        bad_required(c, at, NULL);
    else if (!host || host + 1 == name.len)
        bad_text(c, at, name, "must be a domain-prefixed path (such as \"acme.io/foo\")");
    else
        check_name(c, at, slice_sub(name, 0, host), subdomain_valid);
    if (name.len > MANAGER_BYTES_MAX)
        bad_long(c, at, MANAGER_BYTES_MAX);
}

static void check_indexed(struct check *c, const struct at *at, const struct json_node *spec)
{
    const struct json_node *failed = member(spec, "maxFailedIndexes");
    const struct json_node *completions = member(spec, "completions");
    /* Without parallelism they are 1. */
    if (!completions && member(spec, "parallelism"))
        bad_required(c, AT(at, "completions"), "when completion mode is Indexed");
    if (int_in(spec, "parallelism", 0) > PARALLEL_MAX)
        bad_int(c, AT(at, "parallelism"), int_in(spec, "parallelism", 0),
                "must be less than or equal to 100000 when completion mode is Indexed");
    if (completions && failed && int_of(failed) > int_of(completions))
        bad_int(c, AT(at, "maxFailedIndexes"), int_of(failed),
                "must be less than or equal to completions");
    if (failed && int_of(failed) > PARALLEL_MAX)
        bad_int(c, AT(at, "maxFailedIndexes"), int_of(failed),
                "must be less than or equal to 100000");
}

static void check_mode(struct check *c, const struct at *at, const struct json_node *spec)
{
    static const char *const names[] = {"backoffLimitPerIndex", "maxFailedIndexes"};
    struct slice mode = text_in(c, spec, "completionMode");
    if (mode.len)
        check_choice(c, AT(at, "completionMode"), mode, "NonIndexed,Indexed");
    if (slice_equal(mode, SLICE_LITERAL("Indexed")))
        check_indexed(c, at, spec);
    if (mode.len && !slice_equal(mode, SLICE_LITERAL("NonIndexed")))
        return;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (member(spec, names[i]))
            bad_int(c, AT(at, names[i]), int_in(spec, names[i], 0),
                    "requires indexed completion mode");
    }
}

static void check_replacement(struct check *c, const struct at *at, const struct json_node *spec)
{
    struct slice policy = text_in(c, spec, "podReplacementPolicy");
    if (policy.len)
        check_choice(c, at, policy,
                     member(spec, "podFailurePolicy") ? "Failed" : "Failed,TerminatingOrFailed");
}

static void check_job_restart(struct check *c, const struct at *at, const struct json_node *spec)
{
    struct slice policy = text_of(c, json_node_path(spec, "template.spec.restartPolicy"));
    if (!policy.len || slice_equal(policy, SLICE_LITERAL("Always")))
        bad_required(c, at, "valid values: \"OnFailure\", \"Never\"");
    else if (!one_of(policy, "OnFailure,Never"))
        bad_choice(c, at, policy, "OnFailure,Never");
    else if (member(spec, "podFailurePolicy") && !slice_equal(policy, SLICE_LITERAL("Never")))
        bad_text(c, at, policy, "only \"Never\" is supported when podFailurePolicy is specified");
}

static void check_job_spec(struct check *c, const struct at *at, const struct json_node *spec,
                           const struct json_node *old)
{
    const struct at *in = AT(at, "template");
    check_counts(c, at, spec);
    check_manager(c, AT(at, "managedBy"), member(spec, "managedBy"));
    check_mode(c, at, spec);
    check_replacement(c, AT(at, "podReplacementPolicy"), spec);
    check_pod_template(c, in, member(spec, "template"), member(old, "template"));
    check_job_restart(c, AT(AT(in, "spec"), "restartPolicy"), spec);
}

static void check_job_update(struct check *c, const struct at *at, const struct json_node *spec,
                             const struct json_node *old)
{
    static const char *const fixed[] = {"podFailurePolicy", "backoffLimitPerIndex", "managedBy",
                                        "successPolicy"};
    const struct json_node *is = member(spec, "completions"), *was = member(old, "completions");
    if (!text_is(spec, "completionMode", "Indexed")) {
        check_immutable(c, AT(at, "completions"), is, was);
    } else if (is && !same_node(is, was) && int_of(is) != int_in(spec, "parallelism", 1)) {
        bad_int(c, AT(at, "completions"), int_of(is),
                "can only be modified in tandem with spec.parallelism");
    }
    check_immutable(c, AT(at, "selector"), member(spec, "selector"), member(old, "selector"));
    if (!same_but_defaults(json_node_path(spec, "template.spec"),
                           json_node_path(old, "template.spec")) &&
        !truth_in(old, "suspend"))
        bad_node(c, AT(at, "template"), member(spec, "template"), "field is immutable");
    check_immutable_choice(c, AT(at, "completionMode"), member(spec, "completionMode"),
                           member(old, "completionMode"), "NonIndexed");
    for (size_t i = 0; i < COUNT_OF(fixed); i++)
        check_immutable(c, AT(at, fixed[i]), member(spec, fixed[i]), member(old, fixed[i]));
}

void validate_job(struct check *c, const struct json_node *object, const struct json_node *old)
{
    const struct json_node *spec = member(object, "spec"), *selector = member(spec, "selector");
    const struct json_node *labels = json_node_path(spec, "template.metadata.labels");
    const struct at *at = AT(NULL, "spec");
    size_t before = c->errors->count;
    check_job_spec(c, at, spec, member(old, "spec"));
    /* Otherwise it is generated. */
    check_selector(c, AT(at, "selector"), selector);
    if (selector && c->errors->count == before && !selector_matches(c, selector, labels))
        bad_node(c, AT(AT(AT(at, "template"), "metadata"), "labels"), labels,
                 "`selector` does not match template `labels`");
    if (old)
        check_job_update(c, at, spec, member(old, "spec"));
}

/* -- Cron jobs -- */

static size_t count_fields(struct slice text)
{
    size_t count = 0;
    for (size_t i = 0; i < text.len; i++)
        count += text.ptr[i] != ' ' && text.ptr[i] != '\t' &&
                 (!i || text.ptr[i - 1] == ' ' || text.ptr[i - 1] == '\t');
    return count;
}

/* Only the number of fields is checked. */
static void check_schedule(struct check *c, const struct at *at, struct slice schedule)
{
    char why[320];
    size_t count = count_fields(schedule);
    if (!schedule.len) {
        bad_required(c, at, NULL);
        return;
    }
    if (schedule.ptr[0] != '@' && count != 5 && !memmem(schedule.ptr, schedule.len, "TZ", 2)) {
        snprintf(why, sizeof(why), "expected exactly 5 fields, found %zu: [%.*s]", count,
                 (int)size_min(schedule.len, 200), (const char *)schedule.ptr);
        bad_text(c, at, schedule, why);
    }
    if (memmem(schedule.ptr, schedule.len, "TZ", 2))
        bad_text(c, at, schedule,
                 "cannot use TZ or CRON_TZ in schedule, use timeZone field instead");
}

static void check_job_template(struct check *c, const struct at *at, const struct json_node *of,
                               const struct json_node *old)
{
    const struct json_node *spec = member(of, "spec");
    const struct at *in = AT(at, "spec");
    check_job_spec(c, in, spec, member(old, "spec"));
    if (member(spec, "selector"))
        bad_node(c, AT(in, "selector"), member(spec, "selector"),
                 "`selector` will be auto-generated");
    if (truth_in(spec, "manualSelector"))
        bad_choice_node(c, AT(in, "manualSelector"), member(spec, "manualSelector"), "nil,false");
}

void validate_cron_job(struct check *c, const struct json_node *object, const struct json_node *old)
{
    const struct json_node *spec = member(object, "spec");
    struct slice name = text_in(c, member(object, "metadata"), "name");
    struct slice policy = text_in(c, spec, "concurrencyPolicy");
    const struct at *at = AT(NULL, "spec");
    check_schedule(c, AT(at, "schedule"), text_in(c, spec, "schedule"));
    check_not_negative(c, AT(at, "startingDeadlineSeconds"),
                       int_in(spec, "startingDeadlineSeconds", 0));
    if (member(spec, "timeZone") && !text_in(c, spec, "timeZone").len)
        bad_text(c, AT(at, "timeZone"), SLICE_EMPTY, "timeZone must be nil or non-empty string");
    if (policy.len)
        check_choice(c, AT(at, "concurrencyPolicy"), policy, "Allow,Forbid,Replace");
    check_job_template(c, AT(at, "jobTemplate"), member(spec, "jobTemplate"),
                       member(member(old, "spec"), "jobTemplate"));
    check_not_negative(c, AT(at, "successfulJobsHistoryLimit"),
                       int_in(spec, "successfulJobsHistoryLimit", 0));
    check_not_negative(c, AT(at, "failedJobsHistoryLimit"),
                       int_in(spec, "failedJobsHistoryLimit", 0));
    if (!old && name.len > CRON_NAME_BYTES_MAX)
        bad_text(c, AT(AT(NULL, "metadata"), "name"), name, "must be no more than 52 characters");
}
