/*
 * Calls of webhooks that convert custom resources, counted under the names of Kubernetes; there
 * each call has one object, and here one may have many. Rows by labels (kube/call/label_rows.h),
 * and which webhooks have failed lately. One set for a server.
 */
#ifndef VIGIL_KUBE_CALL_CONVERSION_METRICS_H
#define VIGIL_KUBE_CALL_CONVERSION_METRICS_H

#include "kube/custom/conversion_review.h"

struct kube_converter_states;
struct kube_label_rows;

struct kube_conversion_metrics {
    struct kube_label_rows *rows;         /* both owned */
    struct kube_converter_states *states; /* kube/call/converter_states.h */
};

enum { KUBE_CONVERSION_ROWS_MAX = 1000 };

struct kube_conversion_metrics kube_conversion_metrics_make(void);
void kube_conversion_metrics_fini(struct kube_conversion_metrics *metrics);

struct kube_conversion_count {
    struct slice definition; /* "widgets.example.com" */
    const char *from, *to;   /* versions: "v1" */
    enum conversion_failure failure;
    bool impatient; /* it has failed because its client gave it less time than others do */
    int64_t elapsed_ns;
};
/* metrics may be NULL: nothing is counted. */
void kube_conversion_metrics_call(const struct kube_conversion_metrics *metrics,
                                  const struct kube_conversion_count *count);

#endif
