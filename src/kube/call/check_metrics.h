/*
 * Counters of what single admission policies and their bindings have decided, as Kubernetes counts
 * it: validations that have failed, with what was done about them, and mutations. Their labels name
 * policies, so that rows are made when they are needed; beyond a limit all others share a row.
 *
 * One for a server, with a lock: an evaluation takes much longer.
 */
#ifndef VIGIL_KUBE_CALL_CHECK_METRICS_H
#define VIGIL_KUBE_CALL_CHECK_METRICS_H

#include "base/metric/page.h"
#include "base/slice.h"

/* A scrape writes them all in one turn of a loop: some 10 lines each. */
enum { KUBE_CHECK_ROWS_MAX = 1000 };

struct kube_check_metrics;

/* What was counted; texts are labels. */
struct kube_check {
    struct slice policy, binding;
    const char *error_type;
    const char *action; /* NULL: a mutation */
    int64_t elapsed_ns;
};

struct kube_check_metrics *kube_check_metrics_new(void);
void kube_check_metrics_free(struct kube_check_metrics *metrics); /* accepts NULL */

/* Any thread. */
void kube_check_count(struct kube_check_metrics *metrics, const struct kube_check *check);
void kube_check_metrics_write(struct kube_check_metrics *metrics, struct metric_page *page);

#endif
