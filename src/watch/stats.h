/*
 * What an operator looks at: how many watch, how far they are behind, what they cost. A hub counts
 * as it goes, and a census walks its streams about once a second, a few at a time, for what cannot
 * be counted (census.c). Both are written to a board, which any thread reads without a lock.
 */
#ifndef VIGIL_WATCH_STATS_H
#define VIGIL_WATCH_STATS_H

#include "base/macros.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Counts are of now, totals since the start, a peak is the most there was at any time. */
struct watch_stats {
    uint64_t streams, streams_peak;
    uint64_t streams_stopped; /* they have something to send and no room for it */
    uint64_t streams_behind;  /* some of what is published has not been sent on them; census */
    uint64_t watchers, watchers_peak;
    uint64_t watchers_catching_up; /* they started in the past and are not there yet */
    uint64_t watchers_compacted;   /* their past is gone and they are to be told so */
    uint64_t watchers_behind;      /* all watchers of the streams that are behind; census */
    uint64_t events_sent, responses_sent, bytes_sent;
    uint64_t held_bytes, held_bytes_peak; /* rests of messages that had no room */
    uint64_t behind_max;                  /* revisions the slowest stream is behind; census */
    uint64_t behind_peak;
    /* Turned away: for a limit, an id in use, a range or a revision that cannot be. */
    uint64_t refused;
};

enum { WATCH_PEER_BYTES = 96, WATCH_SLOWEST_MAX = 8 };

/* One stream. */
struct watch_stream_stats {
    char peer[WATCH_PEER_BYTES]; /* what its owner says of it; a text, may be empty */
    uint64_t watchers, watchers_catching_up;
    uint64_t events_sent, bytes_sent;
    uint64_t held_bytes, held_bytes_peak;
    uint64_t behind, behind_peak; /* revisions */
    uint64_t stopped;             /* 0 or 1 */
};

/* Adds what another hub counted: maxima become the larger, peaks are added up as if at one time. */
void watch_stats_add(struct watch_stats *stats, const struct watch_stats *other);

/* What a hub shows. */
struct watch_report {
    struct watch_stats stats;
    uint64_t slowest_count;
    struct watch_stream_stats slowest[WATCH_SLOWEST_MAX]; /* the farthest behind first */
};

/* Puts a stream where it belongs among the slowest, if it does. */
void watch_report_add(struct watch_report *report, const struct watch_stream_stats *stream);

enum { WATCH_BOARD_WORDS = sizeof(struct watch_report) / sizeof(uint64_t) };

/* One hub writes, any thread reads. A zeroed one says that there is nothing. */
struct watch_board {
    _Atomic uint64_t sequence; /* odd while it is being written */
    _Atomic uint64_t words[WATCH_BOARD_WORDS];
    struct watch_stats written; /* the counters among the words; only the writer looks at it */
};

/* The counters alone: for every turn. Those of most turns are already there. */
void watch_board_write_stats(struct watch_board *board, const struct watch_stats *stats);
void watch_board_write(struct watch_board *board, const struct watch_report *report);
void watch_board_read(const struct watch_board *board, struct watch_report *ret_report);

#endif
