/*
 * Examines a hub's streams, some at a time and about once a second, to find how far they are behind
 * and which are the slowest. A hub in which nothing has changed since the last scan is not scanned.
 * Only files of src/watch/ include it.
 */
#ifndef VIGIL_WATCH_STREAM_STATS_SCAN_H
#define VIGIL_WATCH_STREAM_STATS_SCAN_H

#include <stdint.h>

struct watch_hub;
struct watch_stream;

/* Raises the peaks of the stream and of its hub to how far the stream is behind. */
void stats_scan_raise_behind(struct watch_stream *stream);
/* Continues the scan if it is due. */
void stats_scan_turn(struct watch_hub *hub);
/* Examines all streams at once. */
void stats_scan_all(struct watch_hub *hub);
/* When the scan continues; CLOCK_NEVER: nothing has changed. */
int64_t stats_scan_next_ns(const struct watch_hub *hub);
/* Removes a stream that is being freed from the hub's list. */
void stats_scan_forget(struct watch_hub *hub, struct watch_stream *stream);

#endif
