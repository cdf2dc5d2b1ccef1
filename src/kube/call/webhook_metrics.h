/*
 * What admission webhooks and match conditions have done, counted as Kubernetes counts it. Rows by
 * labels, one set for a server (kube/call/label_rows.h). The functions are called with the counter
 * of an API (kube_counter_webhooks in kube/call/metrics.h), and accept NULL: nothing is counted.
 */
#ifndef VIGIL_KUBE_CALL_WEBHOOK_METRICS_H
#define VIGIL_KUBE_CALL_WEBHOOK_METRICS_H

#include "base/slice.h"

struct kube_label_rows;

enum { KUBE_WEBHOOK_ROWS_MAX = 2000 };

struct kube_label_rows *kube_webhook_metrics_new(void);

enum kube_webhook_outcome {
    KUBE_WEBHOOK_ADMITTED,
    KUBE_WEBHOOK_DENIED,
    KUBE_WEBHOOK_FAILED,      /* no verdict, with the failure policy Fail */
    KUBE_WEBHOOK_FAILED_OPEN, /* no verdict, with Ignore */
    KUBE_WEBHOOK_BROKEN,      /* an error of this server: a patch cannot be applied, … */
};

/* A call has ended. */
struct kube_webhook_count {
    struct slice name; /* that of the webhook */
    bool is_mutating;
    const char *operation; /* "CREATE" */
    enum kube_webhook_outcome outcome;
    unsigned code; /* the webhook's if it has denied, or the one Kubernetes' error has: 503, 400 */
    int64_t elapsed_ns;
};
void kube_webhook_metrics_call(struct kube_label_rows *metrics,
                               const struct kube_webhook_count *count);

/* The match conditions of a webhook or a policy were evaluated. */
struct kube_conditions_count {
    struct slice name; /* that of the webhook or policy */
    bool is_policy;
    bool is_mutating; /* a webhook */
    const char *operation;
    unsigned errors;  /* conditions that have failed */
    bool is_excluded; /* a webhook is not called, because they do not match */
    int64_t elapsed_ns;
};
void kube_webhook_metrics_conditions(struct kube_label_rows *metrics,
                                     const struct kube_conditions_count *count);

#endif
