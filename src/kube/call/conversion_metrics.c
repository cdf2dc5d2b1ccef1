#include "kube/call/conversion_metrics.h"

#include "kube/call/converter_states.h"
#include "kube/call/label_rows.h"

/* Kubernetes' buckets: 5 ms to 60 s, and 1 ms to 16 s, each twice the one before. */
static const int64_t call_bounds[] = {5000000,     10000000,    20000000,    50000000,
                                      100000000,   200000000,   500000000,   1000000000,
                                      2000000000,  5000000000,  10000000000, 20000000000,
                                      30000000000, 45000000000, 60000000000};
static const struct metric_buckets call_buckets = {call_bounds, COUNT_OF(call_bounds), 1000000000};
static const int64_t version_bounds[] = {
    1000000,   2000000,   4000000,    8000000,    16000000,   32000000,   64000000,   128000000,
    256000000, 512000000, 1024000000, 2048000000, 4096000000, 8192000000, 16384000000};
static const struct metric_buckets version_buckets = {version_bounds, COUNT_OF(version_bounds),
                                                      1000000000};

enum { CALLS, DURATIONS, VERSIONS };

static const struct kube_label_family families[] = {
    [CALLS] = {.name = "apiserver_conversion_webhook_request_total",
               .help = "Calls of conversion webhooks, by what has failed."},
    [DURATIONS] = {.name = "apiserver_conversion_webhook_duration_seconds",
                   .help = "The time that calls of conversion webhooks took.",
                   .buckets = &call_buckets},
    [VERSIONS] = {.name = "apiserver_crd_conversion_webhook_duration_seconds",
                  .help = "The same by definition and versions.",
                  .buckets = &version_buckets},
};

struct kube_conversion_metrics kube_conversion_metrics_make(void)
{
    return (struct kube_conversion_metrics){
        .rows = kube_label_rows_new(families, COUNT_OF(families), KUBE_CONVERSION_ROWS_MAX),
        .states = kube_converter_states_new(),
    };
}

void kube_conversion_metrics_fini(struct kube_conversion_metrics *metrics)
{
    kube_label_rows_free(metrics->rows);
    kube_converter_states_free(metrics->states);
}

void kube_conversion_metrics_call(const struct kube_conversion_metrics *metrics,
                                  const struct kube_conversion_count *count)
{
    bool failed = count->failure != CONVERSION_FINE;
    const struct kube_label labels[] = {
        {"result", slice_from_text(failed ? "failure" : "success"), false},
        {"failure_type", slice_from_text(conversion_failure_name(count->failure)), false},
    };
    const struct kube_label versions[] = {
        {"crd_name", count->definition, true},
        {"from_version", slice_from_text(count->from), true},
        {"to_version", slice_from_text(count->to), true},
        {"succeeded", slice_from_text(failed ? "false" : "true"), false},
    };
    if (!metrics)
        return;
    kube_label_rows_add(metrics->rows, CALLS, labels, COUNT_OF(labels), 1);
    kube_label_rows_add(metrics->rows, DURATIONS, labels, COUNT_OF(labels), count->elapsed_ns);
    kube_label_rows_add(metrics->rows, VERSIONS, versions, COUNT_OF(versions), count->elapsed_ns);
    if (!count->impatient)
        kube_converter_states_note(metrics->states, count->definition, count->from, count->to,
                                   count->failure);
}
