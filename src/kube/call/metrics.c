#include "kube/call/metrics.h"
#include "kube/call/conversion_metrics.h"

#include "base/xalloc.h"
#include "kube/call/label_rows.h"
#include "kube/call/webhook_metrics.h"

#include <stdio.h>

static const unsigned codes[] = {200, 201, 202, 304, 400, 401, 403, 404, 405, 406,
                                 409, 410, 413, 415, 422, 429, 500, 503, 504, 0 /* others */};

static const char *const verbs[] = {
    [KUBE_VERB_GET] = "GET",       [KUBE_VERB_LIST] = "LIST",
    [KUBE_VERB_WATCH] = "WATCH",   [KUBE_VERB_POST] = "POST",
    [KUBE_VERB_PUT] = "PUT",       [KUBE_VERB_PATCH] = "PATCH",
    [KUBE_VERB_DELETE] = "DELETE", [KUBE_VERB_DELETE_COLLECTION] = "DELETECOLLECTION",
    [KUBE_VERB_OTHER] = "other",
};

/* Kubernetes' buckets of apiserver_request_duration_seconds. */
static const int64_t bounds[] = {5000000,     25000000,    50000000,    100000000,   200000000,
                                 400000000,   600000000,   800000000,   1000000000,  1250000000,
                                 1500000000,  2000000000,  3000000000,  4000000000,  5000000000,
                                 6000000000,  8000000000,  10000000000, 15000000000, 20000000000,
                                 30000000000, 45000000000, 60000000000};
static const struct metric_buckets durations = {bounds, COUNT_OF(bounds), 1000000000};

enum {
    REQUESTS = KUBE_VERBS * COUNT_OF(codes),
    OF_A_KIND = REQUESTS + KUBE_COUNTS,
    LABEL_BYTES = 256,
};

/*
 *     kind 0 │ kind 1 │ … │ custom ones │ totals │ durations of each verb
 */
struct kube_metrics {
    struct metric_set *set;           /* owned */
    struct kube_label_rows *checks;   /* owned */
    struct kube_label_rows *webhooks; /* the same */
    struct kube_conversion_metrics conversions;
    struct pod_security_metrics *pods; /* the same */
    const struct kube_kind *kinds;
    unsigned kind_count; /* number of built-in kinds; the next number is for all others */
};

static unsigned totals_at(const struct kube_metrics *metrics)
{
    return (metrics->kind_count + 1) * OF_A_KIND;
}

static unsigned duration_at(const struct kube_metrics *metrics, enum kube_verb verb)
{
    return totals_at(metrics) + KUBE_TOTALS + verb * METRIC_SLOTS;
}

enum status kube_metrics_new(struct kube_metrics **ret_metrics)
{
    struct kube_metrics *metrics = xcalloc(1, sizeof(*metrics));
    size_t count;
    metrics->kinds = kube_builtin_kinds(&count);
    metrics->kind_count = (unsigned)count;
    enum status status = metric_set_new(duration_at(metrics, KUBE_VERBS), &metrics->set);
    if (status != ST_OK) {
        free(metrics);
        return status;
    }
    metrics->checks = kube_check_metrics_new();
    metrics->webhooks = kube_webhook_metrics_new();
    metrics->conversions = kube_conversion_metrics_make();
    metrics->pods = pod_security_metrics_new();
    *ret_metrics = metrics;
    return ST_OK;
}

void kube_metrics_free(struct kube_metrics *metrics)
{
    if (!metrics)
        return;
    metric_set_free(metrics->set);
    kube_label_rows_free(metrics->checks);
    kube_label_rows_free(metrics->webhooks);
    kube_conversion_metrics_fini(&metrics->conversions);
    pod_security_metrics_free(metrics->pods);
    free(metrics);
}

/* -- Counting -- */

enum status kube_counter_init(struct kube_counter *counter, struct kube_metrics *metrics)
{
    *counter = (struct kube_counter){.metrics = metrics};
    return metrics ? metric_set_join(metrics->set, &counter->block) : ST_OK;
}

/* The first slot of a kind; NULL: not a known kind. */
static unsigned kind_at(const struct kube_metrics *metrics, const struct kube_kind *kind)
{
    bool builtin = kind >= metrics->kinds && kind < metrics->kinds + metrics->kind_count;
    unsigned number = builtin ? (unsigned)(kind - metrics->kinds) : metrics->kind_count;
    return number * OF_A_KIND;
}

void kube_count(const struct kube_counter *counter, const struct kube_kind *kind,
                enum kube_count what, uint64_t n)
{
    if (counter->block)
        metric_add(counter->block, kind_at(counter->metrics, kind) + REQUESTS + what, n);
}

void kube_count_total(const struct kube_counter *counter, enum kube_total what, uint64_t n)
{
    if (counter->block)
        metric_add(counter->block, totals_at(counter->metrics) + what, n);
}

void kube_count_peak(const struct kube_counter *counter, enum kube_total what, uint64_t value)
{
    if (!counter->block)
        return;
    unsigned slot = totals_at(counter->metrics) + what;
    uint64_t now = atomic_load_explicit(&counter->block->values[slot], memory_order_relaxed);
    if (value > now)
        metric_add(counter->block, slot, value - now);
}

void kube_count_request(const struct kube_counter *counter, enum kube_verb verb,
                        const struct kube_kind *kind, unsigned code, int64_t duration_ns)
{
    const struct kube_metrics *metrics = counter->metrics;
    if (!counter->block)
        return;
    unsigned at = 0;
    while (at + 1 < COUNT_OF(codes) && codes[at] != code)
        at++;
    metric_add(counter->block, kind_at(metrics, kind) + verb * (unsigned)COUNT_OF(codes) + at, 1);
    if (duration_ns >= 0)
        metric_observe(counter->block, duration_at(metrics, verb), &durations, duration_ns);
}

void kube_count_check(const struct kube_counter *counter, const struct kube_check *check)
{
    if (counter->metrics)
        kube_check_count(counter->metrics->checks, check);
}

struct kube_label_rows *kube_counter_webhooks(const struct kube_counter *counter)
{
    return counter->metrics ? counter->metrics->webhooks : NULL;
}

const struct kube_conversion_metrics *kube_counter_conversions(const struct kube_counter *counter)
{
    return counter->metrics ? &counter->metrics->conversions : NULL;
}

struct pod_security_metrics *kube_counter_pods(const struct kube_counter *counter)
{
    return counter->metrics ? counter->metrics->pods : NULL;
}

/* -- The page -- */

static void kind_labels(const struct kube_metrics *metrics, unsigned number, char to[LABEL_BYTES])
{
    const struct kube_kind *kind = number < metrics->kind_count ? &metrics->kinds[number] : NULL;
    snprintf(to, LABEL_BYTES, "group=\"%s\",version=\"%s\",resource=\"%s\"",
             kind ? kind->group : "", kind ? kind->version : "", kind ? kind->plural : "other");
}

static void write_requests_of(const struct kube_metrics *metrics, unsigned number,
                              struct metric_page *page)
{
    char kind[LABEL_BYTES], labels[2 * LABEL_BYTES];
    kind_labels(metrics, number, kind);
    for (unsigned slot = 0; slot < REQUESTS; slot++) {
        uint64_t value = metric_sum(metrics->set, number * OF_A_KIND + slot);
        unsigned code = codes[slot % COUNT_OF(codes)];
        if (!value)
            continue;
        if (code)
            snprintf(labels, sizeof(labels), "verb=\"%s\",%s,code=\"%u\"",
                     verbs[slot / COUNT_OF(codes)], kind, code);
        else
            snprintf(labels, sizeof(labels), "verb=\"%s\",%s,code=\"other\"",
                     verbs[slot / COUNT_OF(codes)], kind);
        metric_page_row(page, "apiserver_request_total", labels, value);
    }
}

static void write_requests(const struct kube_metrics *metrics, struct metric_page *page)
{
    metric_page_head(page, "apiserver_request_total", METRIC_COUNTER,
                     "Requests for resources that were answered; a watch when its answer began.");
    for (unsigned i = 0; i <= metrics->kind_count; i++)
        write_requests_of(metrics, i, page);
    metric_page_head(page, "apiserver_request_duration_seconds", METRIC_HISTOGRAM,
                     "From a request to the end of its answer; without watches.");
    for (unsigned verb = 0; verb < KUBE_VERBS; verb++) {
        uint64_t slots[METRIC_SLOTS];
        char labels[LABEL_BYTES];
        if (verb == KUBE_VERB_WATCH)
            continue;
        snprintf(labels, sizeof(labels), "verb=\"%s\"", verbs[verb]);
        metric_sum_histogram(metrics->set, duration_at(metrics, verb), slots);
        metric_page_row_histogram(page, "apiserver_request_duration_seconds", labels, &durations,
                                  slots);
    }
}

/* One row for each kind with a nonzero value; `less` is subtracted unless it equals `what`. */
static void write_kinds(const struct kube_metrics *metrics, struct metric_page *page,
                        const char *name, enum metric_kind type, const char *help,
                        enum kube_count what, enum kube_count less)
{
    char labels[LABEL_BYTES], all[2 * LABEL_BYTES];
    metric_page_head(page, name, type, help);
    for (unsigned i = 0; i <= metrics->kind_count; i++) {
        /* The ended ones are read first, so that the difference is never negative. */
        uint64_t off =
            less != what ? metric_sum(metrics->set, i * OF_A_KIND + (REQUESTS + less)) : 0;
        uint64_t value = metric_sum(metrics->set, i * OF_A_KIND + (REQUESTS + what));
        if (!value)
            continue;
        kind_labels(metrics, i, labels);
        snprintf(all, sizeof(all), "%s%s", type == METRIC_GAUGE ? "verb=\"WATCH\"," : "", labels);
        metric_page_row(page, name, all, value - off);
    }
}

static uint64_t total(const struct kube_metrics *metrics, enum kube_total what)
{
    return metric_sum(metrics->set, totals_at(metrics) + what);
}

static void write_states(const struct kube_metrics *metrics, struct metric_page *page)
{
    static const struct {
        const char *labels;
        enum kube_total in, out;
    } states[] = {
        {"state=\"waiting\"", KUBE_TOTAL_WAITING_IN, KUBE_TOTAL_WAITING_OUT},
        {"state=\"initial\"", KUBE_TOTAL_INITIAL_IN, KUBE_TOTAL_INITIAL_OUT},
        {"state=\"live\"", KUBE_TOTAL_LIVE_IN, KUBE_TOTAL_LIVE_OUT},
    };
    metric_page_head(page, "vigil_kube_watches", METRIC_GAUGE,
                     "Watches, by state: waiting for a revision, sending initial events, live.");
    for (size_t i = 0; i < COUNT_OF(states); i++) {
        uint64_t out = total(metrics, states[i].out);
        metric_page_row(page, "vigil_kube_watches", states[i].labels,
                        total(metrics, states[i].in) - out);
    }
}

void kube_metrics_write(const struct kube_metrics *metrics, struct metric_page *page)
{
    write_requests(metrics, page);
    write_kinds(metrics, page, "apiserver_longrunning_requests", METRIC_GAUGE, "Watches under way.",
                KUBE_COUNT_WATCHES_BEGUN, KUBE_COUNT_WATCHES_ENDED);
    write_kinds(metrics, page, "apiserver_watch_events_total", METRIC_COUNTER,
                "Events sent to watches.", KUBE_COUNT_EVENTS, KUBE_COUNT_EVENTS);
    write_kinds(metrics, page, "apiserver_storage_list_total", METRIC_COUNTER, "Lists.",
                KUBE_COUNT_LISTS, KUBE_COUNT_LISTS);
    write_kinds(metrics, page, "apiserver_storage_list_fetched_objects_total", METRIC_COUNTER,
                "Objects that lists have looked at.", KUBE_COUNT_FETCHED, KUBE_COUNT_FETCHED);
    write_kinds(metrics, page, "apiserver_storage_list_returned_objects_total", METRIC_COUNTER,
                "Objects that lists have sent.", KUBE_COUNT_RETURNED, KUBE_COUNT_RETURNED);
    write_states(metrics, page);
    static const char name[] = "vigil_kube_undecodable_values_total";
    metric_page_head(page, name, METRIC_COUNTER,
                     "Stored values that are not JSON objects, counted each time one is read.");
    metric_page_row(page, name, "policy=\"error\"", total(metrics, KUBE_TOTAL_UNDECODABLE));
    metric_page_row(page, name, "policy=\"skip\"", total(metrics, KUBE_TOTAL_SKIPPED));
    metric_page_counter(page, "vigil_kube_watch_sent_bytes_total", "Bytes of events.",
                        total(metrics, KUBE_TOTAL_WATCH_BYTES));
    metric_page_counter(page, "vigil_kube_watches_expired_total",
                        "Watches that were told that their past is compacted.",
                        total(metrics, KUBE_TOTAL_EXPIRED));
    metric_page_counter(page, "vigil_kube_change_attempts_total",
                        "Decisions of updates, patches and deletes over what is stored; more than "
                        "one for a request whose object others changed meanwhile.",
                        total(metrics, KUBE_TOTAL_ATTEMPTS));
    metric_page_counter(page, "vigil_kube_heartbeats_total",
                        "Updates of Leases that have changed only the time, and were written "
                        "without examining the rest.",
                        total(metrics, KUBE_TOTAL_HEARTBEATS));
    metric_page_counter(page, "vigil_kube_changes_queued_total",
                        "Updates, patches and deletes that waited for one of the same object.",
                        total(metrics, KUBE_TOTAL_QUEUED));
    metric_page_counter(page, "vigil_kube_policy_audited_failures_total",
                        "Failed validations of admission policies whose binding has the action "
                        "Audit.",
                        total(metrics, KUBE_TOTAL_POLICY_AUDITS));
    uint64_t ended = total(metrics, KUBE_TOTAL_HOOK_CALLS_OUT);
    metric_page_gauge(page, "vigil_kube_webhook_calls",
                      "Calls of webhooks under way, also those that wait for a connection.",
                      total(metrics, KUBE_TOTAL_HOOK_CALLS_IN) - ended);
    kube_label_rows_write(metrics->checks, page);
    kube_label_rows_write(metrics->webhooks, page);
    kube_label_rows_write(metrics->conversions.rows, page);
    pod_security_metrics_write(metrics->pods, page);
    metric_page_gauge(page, "vigil_kube_watch_held_bytes_peak",
                      "The most that a watch had made and not sent; of each thread, added up.",
                      total(metrics, KUBE_TOTAL_HELD_PEAK));
}
