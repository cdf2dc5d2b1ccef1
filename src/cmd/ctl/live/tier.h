/*
 * What the metrics of a watch tier (vigil serve --upstream-kubeconfig) say: its collections, what
 * it answers, and what it asks of the kube-apiserver. Shown by `vigil doctor` and `vigil top`.
 */
#ifndef VIGIL_CMD_CTL_LIVE_TIER_H
#define VIGIL_CMD_CTL_LIVE_TIER_H

#include "cmd/ctl/live/findings.h"
#include "cmd/ctl/live/metrics.h"

enum {
    TIER_COLLECTIONS_SHOWN_MAX = 256,
    TIER_NAME_BYTES = 96,
    TIER_WORD_BYTES = 24,
    TIER_REASON_SHOWN_BYTES = 160,
};

/* Figures that are not known are -1. The texts can be shown: other characters than visible ASCII
 * are replaced. */
struct tier_collection_report {
    char name[TIER_NAME_BYTES]; /* "deployments.apps/v1" */
    char encoding[TIER_WORD_BYTES], phase[TIER_WORD_BYTES];
    char reason[TIER_REASON_SHOWN_BYTES]; /* or "" */
    bool connected;
    double objects, bytes, lag_s, age_s, fences, events_rate;
    double events, events_before; /* upstream, in both pages */
    struct slice labels;          /* a part of the page */
};

struct tier_report {
    bool is_tier; /* false: nothing else is set */
    double serving, loading, refused;
    double objects, bytes;
    /* What clients get. */
    double watches, events_rate, gets_rate, lists_rate, watches_rate;
    double passed_on_rate, unmirrored_rate, denied_rate;
    /* What the tier asks. Those without _rate are totals since its start, or numbers now. */
    double calls_rate, delayed_rate, delayed, calls;
    double reviews_rate, reviews_failed, reviews_refused, reviews_waiting, review_p99_s;
    double impersonations_refused;
    double fences, fences_failed, throttled;
    /* Those that do not serve come first. */
    struct tier_collection_report collections[TIER_COLLECTIONS_SHOWN_MAX];
    size_t count;
};

/* Rates are 0 without an older page. Borrows from `now`. */
void tier_report_read(struct tier_report *report, const struct metrics *older,
                      const struct metrics *now);
/* Without reading it. */
bool tier_report_is_of(const struct metrics *metrics);

/* The examinations of `vigil doctor`. */
void check_tier(struct findings *findings, const struct tier_report *report);

#endif
