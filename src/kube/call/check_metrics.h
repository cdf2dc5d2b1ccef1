/*
 * Counters of what single admission policies and their bindings have decided, as Kubernetes counts
 * it: validations that have failed, with what was done about them, and mutations. They are rows by
 * labels (kube/call/label_rows.h), one set for a server: an evaluation takes much longer than a
 * lock.
 */
#ifndef VIGIL_KUBE_CALL_CHECK_METRICS_H
#define VIGIL_KUBE_CALL_CHECK_METRICS_H

#include "base/slice.h"

enum { KUBE_CHECK_ROWS_MAX = 1000 };

struct kube_label_rows;

/* What was counted; texts are labels. */
struct kube_check {
    struct slice policy, binding;
    const char *error_type;
    const char *action; /* NULL: a mutation */
    int64_t elapsed_ns;
};

struct kube_label_rows *kube_check_metrics_new(void);

/* Any thread. */
void kube_check_count(struct kube_label_rows *metrics, const struct kube_check *check);

#endif
