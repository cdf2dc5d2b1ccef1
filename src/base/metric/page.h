/*
 * A page of metrics in Prometheus' text format, version 0.0.4: the answer to GET /metrics. Families
 * are written one after the other: the head first, then its rows.
 *
 * Running out of memory is recorded in `status`, which the caller checks once, at the end.
 */
#ifndef VIGIL_BASE_METRIC_PAGE_H
#define VIGIL_BASE_METRIC_PAGE_H

#include "base/buf.h"
#include "base/metric/metric.h"

enum metric_kind { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };

/* Zeroed, it is an empty page. */
struct metric_page {
    struct buf text;
    enum status status; /* ST_NOMEM: the page is incomplete */
    /* The bounds as text of the buckets written last: most histograms share theirs. */
    const struct metric_buckets *bounds_of;
    char bounds[METRIC_BOUNDS_MAX][32];
};

void metric_page_fini(struct metric_page *page);

/* help is one line of plain text. */
void metric_page_head(struct metric_page *page, const char *name, enum metric_kind kind,
                      const char *help);

/* labels: `op="put",success="true"`, or ""; values that a client chose are escaped with
 * metric_page_escape. */
void metric_page_row(struct metric_page *page, const char *name, const char *labels,
                     uint64_t value);
void metric_page_row_real(struct metric_page *page, const char *name, const char *labels,
                          double value);
/* The rows of one histogram from its slots, as metric_sum_histogram gives them. */
void metric_page_row_histogram(struct metric_page *page, const char *name, const char *labels,
                               const struct metric_buckets *buckets,
                               const uint64_t slots[METRIC_SLOTS]);

/* Head and one row without labels. */
void metric_page_counter(struct metric_page *page, const char *name, const char *help,
                         uint64_t value);
void metric_page_gauge(struct metric_page *page, const char *name, const char *help,
                       uint64_t value);

/* Writes text as a label's value, truncated to fit; returns dst. */
const char *metric_page_escape(const char *text, char *dst, size_t room);

#endif
