#include "cmd/ctl/live/tier.h"

#include "base/clock.h"
#include "cmd/ctl/live/front.h"

#include <math.h>
#include <stdio.h>

/* -- Reading -- */

static bool is_named(const struct metrics_sample *sample, const char *name)
{
    return slice_is(sample->name, name);
}

bool tier_report_is_of(const struct metrics *metrics)
{
    return metrics_has(metrics, "vigil_tier_collections");
}

/* "pods/v1", "deployments.apps/v1" */
static void write_name(char to[TIER_NAME_BYTES], const struct metrics_sample *sample)
{
    char text[TIER_NAME_BYTES];
    struct slice group = metrics_label(sample, "group");
    int len = snprintf(text, sizeof(text), "%.*s%s%.*s/%.*s",
                       SLICE_ARGS(metrics_label(sample, "resource")), group.len ? "." : "",
                       SLICE_ARGS(group), SLICE_ARGS(metrics_label(sample, "version")));
    front_copy_visible(to, TIER_NAME_BYTES,
                       slice_of(text, size_min((size_t)len, sizeof(text) - 1)));
}

/* What identifies a collection on the page: the labels before those of vigil_tier_collection_info.
 */
static struct slice base_of(struct slice labels)
{
    const uint8_t *end = memmem(labels.ptr, labels.len, ",phase=\"", 8);
    return end ? slice_of(labels.ptr, (size_t)(end - labels.ptr)) : labels;
}

static void add_collections(struct tier_report *r, const struct metrics *now, bool serving)
{
    for (size_t i = 0; i < now->count; i++) {
        const struct metrics_sample *sample = &now->samples[i];
        if (!is_named(sample, "vigil_tier_collection_info") ||
            slice_is(metrics_label(sample, "phase"), "serving") != serving)
            continue;
        if (r->count == TIER_COLLECTIONS_SHOWN_MAX)
            return;
        struct tier_collection_report *c = &r->collections[r->count++];
        *c = (struct tier_collection_report){.objects = -1, .bytes = -1, .lag_s = -1, .age_s = -1};
        c->labels = base_of(sample->labels);
        write_name(c->name, sample);
        front_copy_visible(c->encoding, sizeof(c->encoding), metrics_label(sample, "encoding"));
        front_copy_visible(c->phase, sizeof(c->phase), metrics_label(sample, "phase"));
        front_copy_visible(c->reason, sizeof(c->reason), metrics_label(sample, "reason"));
    }
}

static void take(struct tier_collection_report *c, const struct metrics_sample *sample)
{
    double value = isfinite(sample->value) ? sample->value : -1;
    if (is_named(sample, "vigil_tier_upstream_events_total"))
        c->events = value;
    if (is_named(sample, "vigil_tier_connected"))
        c->connected = value > 0;
    else if (is_named(sample, "vigil_tier_objects"))
        c->objects = value;
    else if (is_named(sample, "vigil_tier_bytes"))
        c->bytes = value;
    else if (is_named(sample, "vigil_tier_lag_seconds"))
        c->lag_s = value;
    else if (is_named(sample, "vigil_tier_age_seconds"))
        c->age_s = value;
    else if (is_named(sample, "vigil_tier_fences_total"))
        c->fences = value;
}

static void take_older(struct tier_collection_report *c, const struct metrics_sample *sample)
{
    if (is_named(sample, "vigil_tier_upstream_events_total"))
        c->events_before = sample->value;
}

/* The families of a page have the collections in the same order, so the next one is tried first. */
static void fill_collections(struct tier_report *r, const struct metrics *page,
                             void (*use)(struct tier_collection_report *c,
                                         const struct metrics_sample *sample))
{
    size_t at = 0;
    for (size_t i = 0; i < page->count; i++) {
        const struct metrics_sample *sample = &page->samples[i];
        if (!slice_has_prefix(sample->name, SLICE_LITERAL("vigil_tier_")) || !sample->labels.len)
            continue;
        for (size_t k = 0; k < r->count; k++, at++) {
            struct tier_collection_report *c = &r->collections[at % r->count];
            if (!slice_equal(c->labels, sample->labels))
                continue;
            use(c, sample);
            break;
        }
    }
}

static void read_rates(struct tier_report *r, const struct metrics *older,
                       const struct metrics *now)
{
    const struct {
        const char *name;
        double *rate;
    } rates[] = {
        {"vigil_tier_events_total", &r->events_rate},
        {"vigil_tier_gets_total", &r->gets_rate},
        {"vigil_tier_lists_total", &r->lists_rate},
        {"vigil_tier_watches_total", &r->watches_rate},
        {"vigil_tier_passed_on_total", &r->passed_on_rate},
        {"vigil_tier_unmirrored_total", &r->unmirrored_rate},
        {"vigil_tier_denied_total", &r->denied_rate},
        {"vigil_tier_upstream_calls_total", &r->calls_rate},
        {"vigil_tier_upstream_calls_delayed_total", &r->delayed_rate},
        {"vigil_tier_reviews_total", &r->reviews_rate},
    };
    for (size_t i = 0; i < COUNT_OF(rates); i++)
        *rates[i].rate = metrics_rate(older, now, rates[i].name, NULL);
}

static void read_collections(struct tier_report *r, const struct metrics *older,
                             const struct metrics *now)
{
    double seconds = (double)(now->time_ns - older->time_ns) / (double)NS_PER_S;
    add_collections(r, now, false);
    add_collections(r, now, true);
    fill_collections(r, now, take);
    fill_collections(r, older, take_older);
    for (size_t i = 0; i < r->count && older->time_ns && seconds > 0; i++) {
        double change = r->collections[i].events - r->collections[i].events_before;
        r->collections[i].events_rate = change > 0 ? change / seconds : 0;
    }
}

void tier_report_read(struct tier_report *r, const struct metrics *older, const struct metrics *now)
{
    *r = (struct tier_report){.is_tier = tier_report_is_of(now)};
    if (!r->is_tier)
        return;
    static const char collections[] = "vigil_tier_collections";
    r->serving = metrics_sum(now, collections, "phase=\"serving\"");
    r->loading = metrics_sum(now, collections, "phase=\"loading\"") +
                 metrics_sum(now, collections, "phase=\"starting\"");
    r->refused = metrics_sum(now, collections, "phase=\"refused\"");
    r->objects = metrics_sum(now, "vigil_tier_objects", NULL);
    r->bytes = metrics_sum(now, "vigil_tier_bytes", NULL);
    r->watches = metrics_sum(now, "vigil_tier_watches", NULL);
    r->calls = metrics_sum(now, "vigil_tier_upstream_calls_total", NULL);
    r->delayed = metrics_sum(now, "vigil_tier_upstream_calls_delayed_total", NULL);
    r->reviews_failed = metrics_sum(now, "vigil_tier_reviews_total", "result=\"failed\"");
    r->reviews_refused = metrics_sum(now, "vigil_tier_reviews_refused_total", NULL);
    r->reviews_waiting = metrics_sum(now, "vigil_tier_reviews_waiting", NULL);
    r->impersonations_refused = metrics_sum(now, "vigil_tier_impersonations_refused_total", NULL);
    r->review_p99_s = metrics_quantile(older->time_ns ? older : NULL, now,
                                       "vigil_tier_review_duration_seconds", 0.99);
    r->fences = metrics_sum(now, "vigil_tier_fences_total", NULL);
    r->fences_failed = metrics_sum(now, "vigil_tier_fences_failed_total", NULL);
    r->throttled = metrics_sum(now, "vigil_tier_reviews_throttled_total", NULL) +
                   metrics_sum(now, "vigil_tier_upstream_throttled_total", NULL);
    read_collections(r, older, now);
    read_rates(r, older, now);
}

/* -- Examining -- */

/* Bookmarks come about once a minute, and a glance follows after 90 s of silence. */
#define OLD_S 150
#define VERY_OLD_S 600

enum { REVIEWS_WAITING = 100, FENCES_FEW = 10, CALLS_FEW = 100 };

static const char *advice_of(const char *reason)
{
    if (strstr(reason, "all resources together"))
        return "Its reads are passed on. Raise --upstream-mirror-bytes, if there is memory and "
               "disk "
               "for it.";
    if (strstr(reason, "too large"))
        return "Its reads are passed on. Raise --upstream-resource-bytes, if there is memory and "
               "disk for it.";
    if (strstr(reason, "forbidden") || strstr(reason, "cannot list") || strstr(reason, "Forbidden"))
        return "Its reads are passed on. Grant the tier's account get, list and watch of it "
               "(examples/tier/tier.yaml), or let it be.";
    return "Its reads are passed on to the kube-apiserver, which may be right; the reason says why "
           "it cannot be mirrored. It is tried again by itself.";
}

static void check_collection(struct findings *f, const struct tier_collection_report *c)
{
    const char *colon = *c->reason ? ": " : "";
    if (strcmp(c->phase, "refused") == 0)
        findings_add(f, FINDING_WARNING, "mirror", advice_of(c->reason),
                     "%s (%s) is not mirrored%s%s", c->name, c->encoding, colon, c->reason);
    else if (strcmp(c->phase, "serving") != 0)
        findings_add(f, *c->reason ? FINDING_WARNING : FINDING_GOOD, "mirror",
                     "Reads of it wait, or are passed on. See whether the kube-apiserver runs and "
                     "can be reached, and the rights of the tier's account.",
                     "the state of %s (%s) is being read%s%s", c->name, c->encoding, colon,
                     c->reason);
    else if (!c->connected || c->lag_s > OLD_S)
        findings_add(f, c->lag_s > VERY_OLD_S ? FINDING_BAD : FINDING_WARNING, "mirror",
                     "Watches are late, and reads without a version are passed on. See whether the "
                     "kube-apiserver runs and can be reached, and the log for this mirror.",
                     "%s (%s) may be %.0f s old%s%s%s", c->name, c->encoding,
                     c->lag_s > 0 ? c->lag_s : 0, c->connected ? "" : ", and is not watched", colon,
                     c->reason);
}

static void check_reviews(struct findings *f, const struct tier_report *r)
{
    if (r->reviews_refused > 0)
        findings_add(f, FINDING_BAD, "reviews",
                     "Without them no read can be answered. Grant the tier's account the role "
                     "system:auth-delegator (examples/tier/tier.yaml), and see whether its token "
                     "or certificate is valid.",
                     "the kube-apiserver has refused %.0f reviews to the tier's account (401, 403)",
                     r->reviews_refused);
    else if (r->reviews_failed > 0)
        findings_add(f, FINDING_WARNING, "reviews",
                     "Users without an answer get 503. The log says why: \"a review was not "
                     "answered\".",
                     "%.0f reviews of tokens and rights had no answer since the start",
                     r->reviews_failed);
    else
        findings_add(f, FINDING_GOOD, "reviews", NULL,
                     "all reviews of tokens and rights were answered");
    if (r->reviews_waiting > REVIEWS_WAITING)
        findings_add(f, FINDING_WARNING, "reviews",
                     "The kube-apiserver or its webhooks answer slowly, or --upstream-qps is too "
                     "low. A longer --upstream-rights-ttl needs fewer reviews.",
                     "%.0f questions about tokens and rights wait", r->reviews_waiting);
    if (r->impersonations_refused > 0)
        findings_add(f, FINDING_BAD, "impersonation",
                     "Calls of clients with certificates are passed on by impersonation. Grant the "
                     "tier's account the rights for it (examples/tier/tier.yaml), or let these "
                     "clients use tokens.",
                     "the tier's account could not impersonate the sender of %.0f requests",
                     r->impersonations_refused);
}

static void check_load(struct findings *f, const struct tier_report *r)
{
    if (r->throttled > 0)
        findings_add(f, FINDING_WARNING, "throttling",
                     "Give the tier's account a priority level of its own (FlowSchema), or let it "
                     "ask less: --upstream-qps, --upstream-rights-ttl.",
                     "the kube-apiserver has answered 429 to %.0f calls of the tier's account",
                     r->throttled);
    if (r->calls > CALLS_FEW && r->delayed > r->calls / 10)
        findings_add(f, FINDING_WARNING, "throttling", "Raise --upstream-qps.",
                     "%.0f of %.0f calls of the tier's account waited for --upstream-qps",
                     r->delayed, r->calls);
    if (r->fences > FENCES_FEW)
        findings_add(f, r->fences_failed > r->fences / 10 ? FINDING_WARNING : FINDING_GOOD,
                     "fences",
                     "The reads that waited for them were passed on. The kube-apiserver is slow, "
                     "or its watches are late; --upstream-reads=forward needs no fences.",
                     "%.0f of %.0f fences have failed", r->fences_failed, r->fences);
}

void check_tier(struct findings *f, const struct tier_report *r)
{
    size_t old = 0;
    for (size_t i = 0; i < r->count; i++)
        check_collection(f, &r->collections[i]);
    for (size_t i = 0; i < r->count; i++)
        old += !r->collections[i].connected || r->collections[i].lag_s > OLD_S;
    if (r->refused == 0 && old == 0)
        findings_add(f, FINDING_GOOD, "mirror", NULL,
                     "%.0f collections are mirrored, with %.0f objects", r->serving, r->objects);
    check_reviews(f, r);
    check_load(f, r);
}
