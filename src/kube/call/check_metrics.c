#include "kube/call/check_metrics.h"

#include "kube/call/label_rows.h"

/* Kubernetes' buckets: 500 ns to 1 s. */
static const int64_t bounds[] = {500, 1000000, 10000000, 100000000, 1000000000};
static const struct metric_buckets durations = {bounds, COUNT_OF(bounds), 1000000000};

enum { VALIDATIONS, MUTATIONS };

static const struct kube_label_family families[] = {
    [VALIDATIONS] = {"apiserver_validating_admission_policy_check_duration_seconds",
                     "The time that these validations took to evaluate.", &durations,
                     "apiserver_validating_admission_policy_check_total",
                     "Validations of admission policies that have failed, by what was done."},
    [MUTATIONS] = {"apiserver_mutating_admission_policy_check_duration_seconds",
                   "The time that these mutations took.", &durations,
                   "apiserver_mutating_admission_policy_check_total",
                   "Mutations of admission policies, by their errors."},
};

struct kube_label_rows *kube_check_metrics_new(void)
{
    return kube_label_rows_new(families, COUNT_OF(families), KUBE_CHECK_ROWS_MAX);
}

void kube_check_count(struct kube_label_rows *metrics, const struct kube_check *check)
{
    const struct kube_label labels[] = {
        {"policy", check->policy, true},
        {"policy_binding", check->binding, true},
        {"error_type", slice_from_text(check->error_type), false},
        {"enforcement_action", slice_from_text(check->action ? check->action : ""), false},
    };
    /* Mutations have no action. */
    kube_label_rows_add(metrics, check->action ? VALIDATIONS : MUTATIONS, labels,
                        COUNT_OF(labels) - !check->action, check->elapsed_ns);
}
