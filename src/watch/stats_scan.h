/*
 * Walks a hub's streams, some at a time and about once a second, to see how far they are behind and
 * which are the slowest. A hub where nothing has moved since the last one is left alone. For the
 * files of this directory only.
 */
#ifndef VIGIL_WATCH_STATS_SCAN_H
#define VIGIL_WATCH_STATS_SCAN_H

#include "watch/stats.h"

struct watch_hub;
struct watch_stream;

struct watch_census {
    struct watch_stream *at; /* the next one to look at; NULL: the end */
    bool under_way;
    bool wanted; /* something has moved since the last one began */
    int64_t next_ns;
    struct watch_report found;
};

/* Revisions that are published and have not been sent on the stream. */
uint64_t census_behind(const struct watch_stream *stream);
/* Goes on if it is time to. */
void census_turn(struct watch_hub *hub);
/* When it has something to do; CLOCK_NEVER. */
int64_t census_next_ns(const struct watch_hub *hub);
/* Takes the stream, which goes, out of the hub's list. */
void census_forget(struct watch_hub *hub, struct watch_stream *stream);

#endif
