/*
 * Metrics whose labels are not known beforehand, because they name objects of clients: rows are
 * made when they are needed, and beyond a limit the names of all others are "other".
 *
 *     family ─► labels ─► row: a counter, or a histogram
 *
 * One lock for all families of a set; for what is rare, or much slower than a lock. Any thread.
 */
#ifndef VIGIL_KUBE_CALL_LABEL_ROWS_H
#define VIGIL_KUBE_CALL_LABEL_ROWS_H

#include "base/metric/page.h"
#include "base/slice.h"

enum { KUBE_LABELS_MAX = 5 };

struct kube_label_family {
    const char *name, *help;
    const struct metric_buckets *buckets; /* NULL: a counter */
    /* A counter of what a histogram has observed, written before it; NULL: there is none. */
    const char *total, *total_help;
};

struct kube_label {
    const char *name;
    struct slice value; /* truncated in the row, as metric_page_escape does */
    bool is_name;       /* becomes "other" beyond the limit; all other labels have few values */
};

struct kube_label_rows;

/* The families are borrowed. rows_max: of all families together. A scrape writes them all in one
 * turn of a loop: some 10 lines for each histogram. */
struct kube_label_rows *kube_label_rows_new(const struct kube_label_family *families, size_t count,
                                            size_t rows_max);
void kube_label_rows_free(struct kube_label_rows *rows); /* accepts NULL */

/* Adds to a counter, or observes a value in a histogram. Without memory nothing is counted. */
void kube_label_rows_add(struct kube_label_rows *rows, size_t family,
                         const struct kube_label *labels, size_t count, int64_t value);

/* The families in their order, and the rows of each in the order in which they were made. */
void kube_label_rows_write(struct kube_label_rows *rows, struct metric_page *page);

#endif
