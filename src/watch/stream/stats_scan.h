/*
 * Examines a hub's streams, some at a time and about once a second, to find how far they are behind
 * and which are the slowest. A hub in which nothing has changed since the last scan is not scanned.
 * Only files of src/watch/ include it.
 */
#ifndef VIGIL_WATCH_STREAM_STATS_SCAN_H
#define VIGIL_WATCH_STREAM_STATS_SCAN_H

#include "base/clock.h"
#include "watch/stream/stream_state.h"

/* For stats_scan_raise_behind. */
void stats_scan_raise_peaks(struct watch_stream *stream);
/* Raises the peaks of the stream and of its hub to how far the stream is behind. */
static inline void stats_scan_raise_behind(struct watch_stream *stream)
{
    int64_t behind = stream->dirty ? stream->hub->tail + 1 - stream->place.revision : 0;
    if (UNLIKELY(stream->scan_count || behind > stream->behind_peak))
        stats_scan_raise_peaks(stream);
}
/* Continues the scan, which is due. */
void stats_scan_turn(struct watch_hub *hub);
/* Examines all streams at once. */
void stats_scan_all(struct watch_hub *hub);
/* When the scan continues; CLOCK_NEVER: nothing has changed. */
static inline int64_t stats_scan_next_ns(const struct watch_hub *hub)
{
    const struct watch_stats_scan *scan = &hub->stats_scan;
    return scan->wanted || scan->under_way ? scan->next_ns : CLOCK_NEVER;
}
/* Removes a stream that is being freed from the hub's list. */
void stats_scan_forget(struct watch_hub *hub, struct watch_stream *stream);

#endif
