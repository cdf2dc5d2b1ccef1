/*
 * The metrics of the Kubernetes API: under the names of Kubernetes where it has one, else under
 * vigil_kube_. Labels come from fixed sets: all custom resources are counted together.
 *
 * One set for a server; each API adds to a block of its own (base/metric/metric.h).
 */
#ifndef VIGIL_KUBE_CALL_METRICS_H
#define VIGIL_KUBE_CALL_METRICS_H

#include "base/metric/page.h"
#include "kube/call/check_metrics.h"
#include "kube/policy/security/metrics.h"
#include "kube/types/kind.h"

struct kube_conversion_metrics;
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

/* What is counted for each kind. */
enum kube_count {
    KUBE_COUNT_WATCHES_BEGUN,
    KUBE_COUNT_WATCHES_ENDED,
    KUBE_COUNT_EVENTS, /* sent to watches */
    KUBE_COUNT_LISTS,
    KUBE_COUNT_FETCHED,  /* objects that lists have examined, */
    KUBE_COUNT_RETURNED, /* and those of them that were sent */
    KUBE_COUNTS
};

/* What is counted for the whole API. */
enum kube_total {
    KUBE_TOTAL_WAITING_IN, /* watches enter a phase and leave it */
    KUBE_TOTAL_WAITING_OUT,
    KUBE_TOTAL_INITIAL_IN,
    KUBE_TOTAL_INITIAL_OUT,
    KUBE_TOTAL_LIVE_IN,
    KUBE_TOTAL_LIVE_OUT,
    KUBE_TOTAL_WATCH_BYTES,
    KUBE_TOTAL_HELD_PEAK,     /* the most bytes that a watch had made and not sent */
    KUBE_TOTAL_UNDECODABLE,   /* values that are not objects, reported to the client */
    KUBE_TOTAL_SKIPPED,       /* and skipped */
    KUBE_TOTAL_EXPIRED,       /* watches whose revision was compacted */
    KUBE_TOTAL_ATTEMPTS,      /* decisions of changes */
    KUBE_TOTAL_HEARTBEATS,    /* those of them that have changed only a time */
    KUBE_TOTAL_QUEUED,        /* changes that waited for another one of the same object */
    KUBE_TOTAL_POLICY_AUDITS, /* failed validations of bindings with the action Audit */
    KUBE_TOTAL_HOOK_CALLS_IN, /* calls of webhooks begin and end */
    KUBE_TOTAL_HOOK_CALLS_OUT,
    KUBE_TOTALS
};

/* The counters of one API; zeroed: nothing is counted. */
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
/* Raises the total to `value` if it is lower. */
void kube_count_peak(const struct kube_counter *counter, enum kube_total what, uint64_t value);
void kube_count_check(const struct kube_counter *counter, const struct kube_check *check);
/* NULL: nothing is counted. kube/call/webhook_metrics.h, kube/call/conversion_metrics.h */
struct kube_label_rows *kube_counter_webhooks(const struct kube_counter *counter);
const struct kube_conversion_metrics *kube_counter_conversions(const struct kube_counter *counter);
struct pod_security_metrics *kube_counter_pods(const struct kube_counter *counter);
/* duration_ns -1: the duration is not measured. */
void kube_count_request(const struct kube_counter *counter, enum kube_verb verb,
                        const struct kube_kind *kind, unsigned code, int64_t duration_ns);

#endif
