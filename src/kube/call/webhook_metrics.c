#include "kube/call/webhook_metrics.h"

#include "kube/call/label_rows.h"

#include <stdio.h>

static const int64_t call_bounds[] = {5000000,    25000000,   100000000,   500000000,
                                      1000000000, 2500000000, 10000000000, 25000000000};
static const struct metric_buckets call_buckets = {call_bounds, COUNT_OF(call_bounds), 1000000000};

static const int64_t condition_bounds[] = {1000000,   5000000,   10000000, 25000000,
                                           100000000, 200000000, 250000000};
static const struct metric_buckets condition_buckets = {condition_bounds,
                                                        COUNT_OF(condition_bounds), 1000000000};

enum { CALLS, DURATIONS, REJECTIONS, FAIL_OPENS, CONDITION_ERRORS, EXCLUSIONS, CONDITION_TIMES };

#define PREFIX "apiserver_admission_"

static const struct kube_label_family families[] = {
    [CALLS] = {.name = PREFIX "webhook_request_total",
               .help = "Calls of admission webhooks, by whether the request was rejected and by "
                       "the code; at most 600."},
    [DURATIONS] = {.name = PREFIX "webhook_admission_duration_seconds",
                   .help = "The time that calls of admission webhooks took.",
                   .buckets = &call_buckets},
    [REJECTIONS] = {.name = PREFIX "webhook_rejection_count",
                    .help = "Requests that were rejected by an admission webhook, or because it "
                            "failed; codes are at most 600."},
    [FAIL_OPENS] = {.name = PREFIX "webhook_fail_open_count",
                    .help = "Calls of admission webhooks that have failed and were ignored."},
    [CONDITION_ERRORS] = {.name = PREFIX "match_condition_evaluation_errors_total",
                          .help = "Match conditions whose evaluation has failed."},
    [EXCLUSIONS] = {.name = PREFIX "match_condition_exclusions_total",
                    .help = "Requests that a webhook was not called for because of its match "
                            "conditions."},
    [CONDITION_TIMES] = {.name = PREFIX "match_condition_evaluation_seconds",
                         .help = "The time that evaluations of match conditions took.",
                         .buckets = &condition_buckets},
};

struct kube_label_rows *kube_webhook_metrics_new(void)
{
    return kube_label_rows_new(families, COUNT_OF(families), KUBE_WEBHOOK_ROWS_MAX);
}

static const char *error_type(enum kube_webhook_outcome outcome)
{
    if (outcome == KUBE_WEBHOOK_DENIED)
        return "no_error";
    return outcome == KUBE_WEBHOOK_BROKEN ? "apiserver_internal_error" : "calling_webhook_error";
}

static struct slice code_of(const struct kube_webhook_count *count, char text[16])
{
    unsigned code = count->outcome == KUBE_WEBHOOK_ADMITTED ? 200 : count->code;
    if (count->outcome == KUBE_WEBHOOK_BROKEN)
        code = 0;
    snprintf(text, 16, "%u", code < 600 ? code : 600);
    return slice_from_text(text);
}

void kube_webhook_metrics_call(struct kube_label_rows *metrics,
                               const struct kube_webhook_count *count)
{
    char text[16];
    bool rejected =
        count->outcome != KUBE_WEBHOOK_ADMITTED && count->outcome != KUBE_WEBHOOK_FAILED_OPEN;
    struct slice code = code_of(count, text);
    const struct kube_label name = {"name", count->name, true};
    const struct kube_label type = {
        "type", slice_from_text(count->is_mutating ? "admit" : "validating"), false};
    const struct kube_label operation = {"operation", slice_from_text(count->operation), false};
    const struct kube_label is_rejected = {"rejected", slice_from_text(rejected ? "true" : "false"),
                                           false};
    if (!metrics)
        return;
    kube_label_rows_add(
        metrics, CALLS,
        (struct kube_label[]){name, type, operation, {"code", code, false}, is_rejected}, 5, 1);
    kube_label_rows_add(metrics, DURATIONS,
                        (struct kube_label[]){name, type, operation, is_rejected}, 4,
                        count->elapsed_ns);
    if (rejected)
        kube_label_rows_add(metrics, REJECTIONS,
                            (struct kube_label[]){
                                name,
                                type,
                                operation,
                                {"error_type", slice_from_text(error_type(count->outcome)), false},
                                {"rejection_code", code, false}},
                            5, 1);
    if (count->outcome == KUBE_WEBHOOK_FAILED_OPEN)
        kube_label_rows_add(metrics, FAIL_OPENS, (struct kube_label[]){name, type}, 2, 1);
}

void kube_webhook_metrics_conditions(struct kube_label_rows *metrics,
                                     const struct kube_conditions_count *count)
{
    /* Kubernetes says the same of policies that change objects. */
    bool admits = count->is_mutating && !count->is_policy;
    struct kube_label labels[] = {
        {"name", count->name, true},
        {"kind", slice_from_text(count->is_policy ? "policy" : "webhook"), false},
        {"type", slice_from_text(admits ? "admit" : "validate"), false},
        {"operation", slice_from_text(count->operation), false},
    };
    if (!metrics)
        return;
    if (count->is_excluded)
        kube_label_rows_add(metrics, EXCLUSIONS, labels, COUNT_OF(labels), 1);
    /* It has another word for validating webhooks in the other two. */
    if (!admits && !count->is_policy)
        labels[2].value = SLICE_LITERAL("validating");
    if (count->errors)
        kube_label_rows_add(metrics, CONDITION_ERRORS, labels, COUNT_OF(labels), count->errors);
    kube_label_rows_add(metrics, CONDITION_TIMES, labels, COUNT_OF(labels), count->elapsed_ns);
}
