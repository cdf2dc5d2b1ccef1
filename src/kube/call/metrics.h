/*
 * What the Kubernetes face counts, for /metrics: under the names that Kubernetes' dashboards use
 * where it has one, under vigil_kube_ where it has none. Labels are of fixed sets: what is not
 * built in counts together, whatever it is called.
 *
 * One set for a server; each face adds to a block of its own (base/metric/metric.h).
 */
#ifndef VIGIL_KUBE_CALL_METRICS_H
#define VIGIL_KUBE_CALL_METRICS_H

#include "base/metric/page.h"
#include "kube/resource/kind.h"

struct kube_metrics;

MUST_CHECK
enum status kube_metrics_new(struct kube_metrics **ret_metrics);
void kube_metrics_free(struct kube_metrics *metrics); /* accepts NULL */
void kube_metrics_write(const struct kube_metrics *metrics, struct metric_page *page);

enum kube_verb {
    KUBE_VERB_GET,
    KUBE_VERB_LIST,
    KUBE_VERB_WATCH,
    KUBE_VERB_POST,
    KUBE_VERB_PUT,
    KUBE_VERB_PATCH,
    KUBE_VERB_DELETE,
    KUBE_VERB_DELETE_COLLECTION,
    KUBE_VERB_OTHER,
    KUBE_VERBS
};

/* Of one kind. */
enum kube_count {
    KUBE_COUNT_WATCHES_BEGUN,
    KUBE_COUNT_WATCHES_ENDED,
    KUBE_COUNT_EVENTS, /* told to watches */
    KUBE_COUNT_LISTS,
    KUBE_COUNT_FETCHED,  /* objects that lists have looked at, */
    KUBE_COUNT_RETURNED, /* and those of them that were sent */
    KUBE_COUNTS
};

/* Of the face. */
enum kube_total {
    KUBE_TOTAL_WAITING_IN, /* watches come to a state and leave it */
    KUBE_TOTAL_WAITING_OUT,
    KUBE_TOTAL_INITIAL_IN,
    KUBE_TOTAL_INITIAL_OUT,
    KUBE_TOTAL_LIVE_IN,
    KUBE_TOTAL_LIVE_OUT,
    KUBE_TOTAL_WATCH_BYTES,
    KUBE_TOTAL_HELD_PEAK,   /* the most bytes that a watch had made and not sent */
    KUBE_TOTAL_UNDECODABLE, /* values that are no objects, told to who asked */
    KUBE_TOTAL_SKIPPED,     /* and passed over */
    KUBE_TOTAL_EXPIRED,     /* watches that were told that their past is gone */
    KUBE_TOTAL_ATTEMPTS,    /* decisions over what is stored, of changes */
    KUBE_TOTAL_QUEUED,      /* changes that waited for another one of the same object */
    KUBE_TOTALS
};

/* One face's; zeroed it counts nothing. */
struct kube_counter {
    const struct kube_metrics *metrics;
    struct metric_block *block;
};

/* metrics may be NULL. */
MUST_CHECK
enum status kube_counter_init(struct kube_counter *counter, struct kube_metrics *metrics);

void kube_count(const struct kube_counter *counter, const struct kube_kind *kind,
                enum kube_count what, uint64_t n);
void kube_count_total(const struct kube_counter *counter, enum kube_total what, uint64_t n);
/* It becomes `value` if that is more. */
void kube_count_peak(const struct kube_counter *counter, enum kube_total what, uint64_t value);
/* duration_ns -1: it was none that is measured. */
void kube_count_request(const struct kube_counter *counter, enum kube_verb verb,
                        const struct kube_kind *kind, unsigned code, int64_t duration_ns);

#endif
