/*
 * The data of a stream: its watchers, its place in history and its unsent responses. Only files of
 * src/watch/ include it.
 */
#ifndef VIGIL_WATCH_STREAM_STREAM_STATE_H
#define VIGIL_WATCH_STREAM_STREAM_STATE_H

#include "watch/hub/hub_state.h"

/* Watchers of one stream that catch up over the same part of history, which is read once. */
struct watch_scan {
    struct list in_stream;
    struct list members;
    size_t member_count;
    struct watch_place place; /* no member needs anything before it */
    bool waiting;             /* for the history */
    int64_t long_revision;    /* the long one that is being sent; 0: none */
    size_t long_left; /* members, from the front on, to which it may not have been sent yet */
};

/* A watcher on a scan. */
struct scan_member {
    struct list in_scan;
    struct watch_scan *scan;
    struct watcher *watcher;
    int64_t from;    /* the watcher's */
    uint32_t window; /* the number of the window for which `at` holds */
    uint32_t at;     /* its position in that window's list; a hint */
};

/* Fields that events touch come first: there are many streams, and few of them are in a cache. */
struct watch_stream {
    struct watch_hub *hub;
    struct watch_stream_owner owner;

    /* Live: when dirty, responses are due from `place` to last_hit, the newest known. */
    int64_t last_hit;
    bool dirty : 1, filling : 1;  /* filling: during watch_stream_fill */
    bool woken : 1;               /* its owner has been asked for a fill, which has not ended yet */
    bool stopped : 1;             /* the last fill had no room for everything */
    bool ticking : 1, ticked : 1; /* a round of notifications is under way; WATCHER_TICKED */
    bool scan_turn : 1;           /* the watchers that catch up write next, not the live ones */
    bool tick_begun : 1;          /* its interval runs; otherwise the next tick begins it */
    bool deferred : 1; /* in hub->deferred: woken in a later turn, to continue these searches */
    bool live_deferred : 1, scan_deferred : 1, large_deferred : 1;
    bool live_waiting : 1, large_waiting : 1; /* for the history */
    bool cursor : 1; /* belongs to a cursor (cursor.c): its watcher is live wherever it starts */
    bool own : 1;    /* belongs to the server itself, not to a client */
    bool resume_long : 1; /* resume_hit is a bucket of watchers, and not one of the hub's hits */
    bool closing : 1;     /* it has no owner any more: never woken, and freed over several turns */
    bool ids_chosen : 1;  /* by its client, for some of its watchers */
    uint8_t broken, scan_count, scans_waiting; /* broken: enum status */
    uint8_t resume_span; /* the revisions at `place` that resume_at and resume_hit are about, if
                            they were not one: up to this many behind it */
    struct watch_place place;
    uint64_t events_sent;
    struct list in_hub;
    struct list in_deferred, in_waiting; /* link the hub's lists of these names */

    struct chain_table ids; /* its watchers */
    int64_t future_min;     /* no watcher counted in `futures` starts below */
    uint32_t futures, notifiers;
    uint32_t tick_bucket; /* bucket of ids at which the round of notifications, or the freeing,
                             continues */
    uint32_t behind_peak; /* revisions */
};

/* For a cursor, which is an object of the hub's pool with this stream as its first field. */
void stream_init_without_sending(struct watch_stream *stream, struct watch_hub *hub,
                                 struct watch_stream_owner owner);

void stream_wake(struct watch_stream *stream);
/* The stream cannot continue now: the hub wakes it in a later turn. */
void stream_defer(struct watch_stream *stream);
/* The same; the hub wakes it when the history is ready. */
void stream_wait_for_history(struct watch_stream *stream);

static inline void stream_count_events(struct watch_stream *stream, uint64_t events)
{
    stream->events_sent += events;
    stream->hub->stats.events_sent += events;
}

/* NULL: the stream has no watcher with this id. */
struct watcher *stream_find_watcher(const struct watch_stream *stream, int64_t id);
void stream_add_id(struct watch_stream *stream, struct watcher *watcher);
void stream_remove_id(struct watch_stream *stream, struct watcher *watcher);

#endif
