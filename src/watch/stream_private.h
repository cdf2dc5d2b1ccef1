/*
 * The parts of a stream, for the files of this directory only.
 *
 *   hub.c       new revisions, whom they concern, ticks
 *   stream.c    requests, control responses, what is filled next
 *   live.c      responses of the watchers that ride their stream
 *   catch_up.c  responses of those that started in the past
 *   large.c     a response that is written in pieces
 *   long.c      revisions with very many events
 *   notify.c    progress notifications, by interval and asked for
 */
#ifndef VIGIL_WATCH_STREAM_PRIVATE_H
#define VIGIL_WATCH_STREAM_PRIVATE_H

#include "watch/hub_private.h"
#include "watch/stream.h"

/* A control response that waits. */
struct watch_control {
    int64_t watch_id;
    int64_t revision;
    struct slice reason; /* owned by the stream when reason_owned */
    bool created, canceled, reason_owned;
};

/* Watchers of one stream that catch up over the same stretch: one reading for all of them. */
struct watch_scan {
    struct list in_stream;
    struct list rides;
    size_t ride_count;
    struct watch_place place; /* no rider wants anything before it */
    bool waiting;             /* for the history */
    int64_t long_revision;    /* the long one that is being told; 0: none */
    size_t long_left;         /* riders from the front on that may not have been told it */
};

/* A watcher on a scan. */
struct watch_ride {
    struct list in_scan;
    struct watch_scan *scan;
    struct watcher *watcher;
    int64_t from;     /* the watcher's */
    uint32_t stretch; /* where it is in the list of the stretch of that number; a hint */
    uint32_t at;
};

struct watch_large;

/* What an event touches stands first: there are many streams, and most of them lie in no cache. */
struct watch_stream {
    struct watch_hub *hub;
    struct watch_stream_owner owner;

    /* Live: when dirty, responses are due from place on, and the last known at last_hit. */
    int64_t last_hit;
    bool dirty : 1, woken : 1, filling : 1, stopped : 1, ticking : 1, ticked : 1, scan_turn : 1;
    bool tick_begun : 1; /* its interval runs; otherwise the next tick begins it */
    bool hungry : 1;     /* in hub->hungry: woken in a later turn, when these searches go on */
    bool live_hungry : 1, scan_hungry : 1, large_hungry : 1;
    bool live_waiting : 1, large_waiting : 1; /* for the history */
    bool cursor : 1; /* one of cursor.c: its watcher is live wherever it starts */
    bool dying : 1;  /* it has no owner any more: never woken, and freed as the turns go */
    uint8_t broken;  /* enum status */
    uint8_t scan_count, scans_waiting;
    struct watch_place place;
    /* In the revision at place all before these were served: a hint, dropped when a watcher comes
     * or goes. */
    struct watcher *resume_at;
    uint32_t resume_hit;
    uint32_t behind_peak; /* revisions */
    uint64_t events_sent, bytes_sent;
    uint32_t turn_bytes; /* written since live and catching-up last changed turns */
    uint32_t held_peak;  /* bytes of `rest` */

    struct list scans; /* taking turns: the first is read next */
    struct watcher *compacted;

    struct list in_hub;
    struct list in_hungry, in_waiting; /* link the hub's lists of these names */

    struct chain_table ids; /* its watchers */
    int64_t next_id;
    int64_t future_min; /* no watcher counted in `futures` starts below */
    uint32_t futures, notifiers;

    struct watch_control *controls; /* a ring */
    uint16_t control_first, control_count, control_capacity;

    uint8_t *rest; /* of a message that had no room; owned */
    uint32_t rest_len, rest_at;
    struct watch_large *large; /* the message under way when it is too large for that */

    int64_t progress_wanted; /* asked for, and to be told at this revision or later; 0: not */
    int64_t progress_newest; /* what was last asked for; counts while one is wanted */
    struct heap_link tick;
    int64_t tick_ns;      /* its interval */
    uint32_t tick_bucket; /* of ids: where the round of notifications, or the end, goes on */
};

_Static_assert(sizeof(struct watch_stream) <= 320, "an idle call takes a kilobyte in all");

void stream_wake(struct watch_stream *stream);
/* Frees of the hub's dying streams as much as this turn may. */
void stream_bury(struct watch_hub *hub);
/* Counts what the stream is sent, and how far it was behind. */
static inline void stream_count_events(struct watch_stream *stream, uint64_t events)
{
    stream->events_sent += events;
    stream->hub->stats.events_sent += events;
}
void stream_raise_behind(struct watch_stream *stream, uint64_t behind);
/* It cannot go on now: the hub will wake it, in a later turn or when the history is ready. */
void stream_park_hungry(struct watch_stream *stream);
void stream_park_waiting(struct watch_stream *stream);
/* Watchers came, went or moved: what was remembered of them does not hold. */
static inline void stream_changed(struct watch_stream *stream)
{
    stream->resume_at = NULL;
    stream->resume_hit = 0;
}
/* Of a create that was checked, and counted among all (hub_take_one). */
struct watcher *stream_add_watcher(struct watch_stream *stream, const struct watch_create *create,
                                   struct slice key);
/* NULL: there is none of that id. */
struct watcher *stream_find_watcher(const struct watch_stream *stream, int64_t id);
void watcher_move(struct watcher *watcher, enum watcher_state next);
void watcher_close(struct watcher *watcher);
/* Its past is gone: the client will be told. */
void watcher_compacted(struct watcher *watcher);
void watcher_damaged(struct watcher *watcher); /* the same, for another reason */

#endif
