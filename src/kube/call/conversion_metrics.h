/*
 * Calls of webhooks that convert custom resources, counted under the names of Kubernetes; there
 * each call has one object, and here one may have many. Rows by labels, one set for a server
 * (kube/call/label_rows.h).
 */
#ifndef VIGIL_KUBE_CALL_CONVERSION_METRICS_H
#define VIGIL_KUBE_CALL_CONVERSION_METRICS_H

#include "kube/custom/conversion_review.h"

struct kube_label_rows;

enum { KUBE_CONVERSION_ROWS_MAX = 1000 };

struct kube_label_rows *kube_conversion_metrics_new(void);

struct kube_conversion_count {
    struct slice definition; /* "widgets.example.com" */
    const char *from, *to;   /* versions: "v1" */
    enum conversion_failure failure;
    int64_t elapsed_ns;
};
/* metrics may be NULL: nothing is counted. */
void kube_conversion_metrics_call(struct kube_label_rows *metrics,
                                  const struct kube_conversion_count *count);

#endif
