/*
 * Statistics for operators: how many watches there are, how far they are behind, what they cost. A
 * hub counts as it works; a scan examines its streams about once a second, a few at a time, for
 * what cannot be counted (stats_scan.c). Both are written to a snapshot, which any thread reads
 * without a lock.
 */
#ifndef VIGIL_WATCH_HUB_STATS_H
#define VIGIL_WATCH_HUB_STATS_H

#include "base/macros.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Counts are current values, totals are since the start, a peak is the largest value so far. */
struct watch_stats {
    uint64_t streams, streams_peak;
    uint64_t streams_stopped; /* have something to send and no room for it */
    uint64_t streams_behind;  /* have not sent everything that is published; from the scan */
    uint64_t watchers, watchers_peak;
    uint64_t watchers_catching_up; /* started in the past and have not reached the present yet */
    uint64_t watchers_compacted; /* need compacted revisions, and the client was not informed yet */
    uint64_t watchers_behind;    /* all watchers of the streams that are behind; from the scan */
    uint64_t events_sent, responses_sent, bytes_sent;
    uint64_t held_bytes, held_bytes_peak; /* parts of messages that did not fit the output */
    uint64_t behind_max; /* revisions that the slowest stream is behind; from the scan */
    uint64_t behind_peak;
    /* Creates refused because of a limit, an id in use, or an invalid range or revision. */
    uint64_t refused;
};

enum { WATCH_PEER_BYTES = 96, WATCH_SLOWEST_MAX = 8 };

/* One stream. */
struct watch_stream_stats {
    char peer[WATCH_PEER_BYTES]; /* the owner's description of the client; may be empty */
    uint64_t watchers, watchers_catching_up;
    uint64_t events_sent, bytes_sent;
    uint64_t held_bytes, held_bytes_peak;
    uint64_t behind, behind_peak; /* revisions */
    uint64_t stopped;             /* 0 or 1 */
};

/* Sets *peak to the larger of both. */
void watch_stats_raise(uint64_t *peak, uint64_t value);
/* Adds the statistics of another hub; of maxima the larger counts, peaks are added up. */
void watch_stats_add(struct watch_stats *stats, const struct watch_stats *other);

/* Everything a hub publishes. */
struct watch_report {
    struct watch_stats stats;
    uint64_t slowest_count;
    struct watch_stream_stats slowest[WATCH_SLOWEST_MAX]; /* the one farthest behind first */
};

/* Inserts a stream among the slowest if it is one of them. */
void watch_report_add(struct watch_report *report, const struct watch_stream_stats *stream);

enum { WATCH_STATS_SNAPSHOT_WORDS = sizeof(struct watch_report) / sizeof(uint64_t) };

/* One hub writes, any thread reads. A zeroed one is an empty report. */
struct watch_stats_snapshot {
    _Atomic uint64_t sequence; /* odd while it is being written */
    _Atomic uint64_t words[WATCH_STATS_SNAPSHOT_WORDS];
    struct watch_stats written; /* the counters among the words; only the writer uses it */
};

/* Writes only the counters, in every turn that has changed them. */
void watch_stats_snapshot_write_changed(struct watch_stats_snapshot *snapshot,
                                        const struct watch_stats *stats);
static inline void watch_stats_snapshot_write_counters(struct watch_stats_snapshot *snapshot,
                                                       const struct watch_stats *stats)
{
    if (memcmp(&snapshot->written, stats, sizeof(*stats)) != 0)
        watch_stats_snapshot_write_changed(snapshot, stats);
}
void watch_stats_snapshot_write(struct watch_stats_snapshot *snapshot,
                                const struct watch_report *report);
void watch_stats_snapshot_read(const struct watch_stats_snapshot *snapshot,
                               struct watch_report *ret_report);

#endif
