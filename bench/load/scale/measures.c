#include "load/scale/measures.h"

#include <stdio.h>
#include <string.h>

const char *scale_measure_name(enum scale_measure measure)
{
    static const char *const names[] = {
        [SCALE_RENEW] = "renew",
        [SCALE_REGISTER] = "register",
        [SCALE_NODE_STATUS] = "node_status",
        [SCALE_POD_CREATE] = "pod_create",
        [SCALE_POD_BIND] = "pod_bind",
        [SCALE_POD_STATUS] = "pod_status",
        [SCALE_POD_DELETE] = "pod_delete",
        [SCALE_SERVICE_UPDATE] = "service_update",
        [SCALE_SLICE_UPDATE] = "slice_update",
        [SCALE_GET] = "get",
        [SCALE_LIST] = "list",
        [SCALE_POD_DELAY] = "pod_delay",
        [SCALE_SERVICE_DELAY] = "service_delay",
        [SCALE_SLICE_DELAY] = "slice_delay",
        [SCALE_SLICE_LAST] = "slice_last",
        [SCALE_POD_READY] = "pod_ready",
        [SCALE_NODE_SYNC] = "node_sync",
        [SCALE_NODE_RESYNC] = "node_resync",
    };
    return names[measure];
}

const char *scale_count_name(enum scale_count count)
{
    static const char *const names[] = {
        [SCALE_EVENTS] = "events",
        [SCALE_BOOKMARKS] = "bookmarks",
        [SCALE_WATCHES_TIMED_OUT] = "watches_timed_out",
        [SCALE_WATCHES_ENDED] = "watches_ended",
        [SCALE_RELISTS] = "relists",
        [SCALE_RENEWALS_DUE] = "renewals_due",
        [SCALE_RENEWALS_MISSED] = "renewals_missed",
        [SCALE_CHANGES_MISSED] = "changes_missed",
        [SCALE_SLICES_UNSEEN] = "slices_unseen",
        [SCALE_ERRORS] = "errors",
    };
    return names[count];
}

void scale_sample_merge(struct scale_sample *into, const struct scale_sample *from)
{
    for (size_t i = 0; i < SCALE_MEASURES; i++)
        if (from->durations[i].count)
            bench_histogram_merge(&into->durations[i], &from->durations[i]);
    for (size_t i = 0; i < SCALE_COUNTS; i++)
        into->counts[i] += from->counts[i];
}

void scale_measures_init(struct scale_measures *measures)
{
    memset(measures, 0, sizeof(*measures));
    lock_init(&measures->lock);
}

void scale_measures_fini(struct scale_measures *measures)
{
    lock_fini(&measures->lock);
}

void scale_measures_add(struct scale_measures *measures, enum scale_measure measure,
                        uint64_t duration_ns)
{
    LOCK_SCOPE(&measures->lock);
    bench_histogram_add(&measures->sample.durations[measure], duration_ns);
}

void scale_measures_count(struct scale_measures *measures, enum scale_count count)
{
    LOCK_SCOPE(&measures->lock);
    measures->sample.counts[count]++;
}

static void note(struct scale_measures *measures, enum scale_count count, char *first,
                 const char *what, const char *text)
{
    LOCK_SCOPE(&measures->lock);
    measures->sample.counts[count]++;
    if (!*first)
        snprintf(first, SCALE_ERROR_BYTES, "%s: %s", what, text);
}

void scale_measures_error(struct scale_measures *measures, const char *what, const char *text)
{
    note(measures, SCALE_ERRORS, measures->first_error, what, text);
}

void scale_measures_end(struct scale_measures *measures, const char *what, const char *text)
{
    note(measures, SCALE_WATCHES_ENDED, measures->first_end, what, text);
}

void scale_measures_texts(struct scale_measures *measures, char error[static SCALE_ERROR_BYTES],
                          char end[static SCALE_ERROR_BYTES])
{
    LOCK_SCOPE(&measures->lock);
    memcpy(error, measures->first_error, SCALE_ERROR_BYTES);
    memcpy(end, measures->first_end, SCALE_ERROR_BYTES);
}

void scale_measures_take(struct scale_measures *measures, struct scale_sample *into)
{
    LOCK_SCOPE(&measures->lock);
    scale_sample_merge(into, &measures->sample);
    for (size_t i = 0; i < SCALE_MEASURES; i++)
        if (measures->sample.durations[i].count)
            memset(&measures->sample.durations[i], 0, sizeof(measures->sample.durations[i]));
    memset(measures->sample.counts, 0, sizeof(measures->sample.counts));
}
