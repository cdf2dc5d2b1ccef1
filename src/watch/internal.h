/*
 * The parts of a hub and of a stream, for the files of this directory only.
 *
 *   hub.c       new revisions, whom they concern, ticks
 *   stream.c    requests, control responses, what is filled next
 *   live.c      responses of the watchers that ride their stream
 *   catch_up.c  responses of those that started in the past
 *   large.c     a response that is written in pieces
 *   notify.c    progress notifications, by interval and asked for
 */
#ifndef VIGIL_WATCH_INTERNAL_H
#define VIGIL_WATCH_INTERNAL_H

#include "base/heap.h"
#include "base/list.h"
#include "base/random.h"
#include "watch/message.h"
#include "watch/range_index.h"
#include "watch/stream.h"

enum {
    /* A message up to this size is made in one piece; what has no room is kept by its stream. */
    WATCH_PIECE_BYTES_MAX = 64 * 1024,
    WATCH_RING_BATCHES = 1024,     /* revisions taken in by one turn */
    WATCH_TURN_EVENTS = 8192,      /* events looked at by one turn's begin, */
    WATCH_TURN_MARKS = 256 * 1024, /* streams it looks at, */
    WATCH_FILL_EVENTS = 4096,      /* and by one fill: a fraction of a millisecond */
    WATCH_HUNGRY_PER_TURN = 8,     /* streams that go on searching in one turn */
    WATCH_TURN_BYTES = 64 * 1024,  /* live and catching-up watchers take turns after so much */
    WATCH_WAITING_MAX = 16384, /* control responses of one stream: more than a window of requests */
    WATCH_SCANS_MAX = 8,       /* of one stream */
    WATCH_SCAN_NEAR = 4096,    /* revisions: a watcher that starts so near joins a scan */
    WATCH_BATCH_REVISIONS = 1000, /* in one response of a catching-up watcher, as in etcd */
    WATCH_HEADERS = 64,
    WATCH_TAIL_SLOTS = 256,
    WATCH_TAIL_BYTES = 512 * 1024,
};

/* The events of a response as they stand in it, kept for the next watcher of the same keys. */
struct watch_tail {
    int64_t revision; /* 0: nothing */
    const struct watch_range *range;
    unsigned variant;
    uint32_t events;
    const uint8_t *bytes;
    size_t len;
};

/* A range that some events of the revision at hand are in. */
struct watch_hit {
    struct watch_range *range;
    struct watcher *first; /* of the stream at hand */
    size_t first_event, last_event;
};

/* One revision of this turn. */
struct watch_slot {
    struct watch_batch batch;
    struct watch_place before; /* where a reading of it begins */
};

/* What a chunk of history holds for catching-up watchers; see catch_up.c. */
struct watch_found {
    const struct watch_event *event;
    int64_t revision;
    uint32_t next; /* of the same watcher; UINT32_MAX: the last */
};

struct watch_rider {
    struct watcher *watcher;
    uint32_t first, last;
};

struct watch_hub {
    struct watch_history *history;
    struct watch_hub_options options;
    struct pool *pool;
    struct range_index index;
    struct random random;
    struct message_identity identity;
    struct message_header headers[WATCH_HEADERS]; /* by revision, modulo */

    int64_t tail;             /* all up to here is taken in */
    struct watch_place place; /* where the history goes on */
    struct watch_slot *ring;  /* the revisions (ring_after, tail], of this turn only */
    size_t ring_count;
    int64_t ring_after;
    struct watch_batch large; /* what hub_batch last read in this turn */

    struct list streams;
    struct list hungry;  /* streams that stopped searching because their fill took long */
    struct list waiting; /* streams that wait for the history */
    struct heap ticks;   /* streams with watchers that want notifications */
    int64_t now_ns;
    size_t live; /* watchers that the tail must be read for */

    /* Scratch, of the turn or of one call. */
    struct watch_tail tails[WATCH_TAIL_SLOTS];
    uint8_t *tail_bytes;
    size_t tail_used;
    uint8_t *piece; /* a message that has no room */
    struct watch_hit *hits;
    size_t hit_count, hit_capacity;
    struct watch_found *found;
    size_t found_count, found_capacity;
    struct watch_rider *riders;
    size_t rider_count, rider_capacity;
    size_t budget; /* events the fill under way may still look at */

    struct watch_stats stats;
};

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
};

/* A watcher on a scan. */
struct watch_ride {
    struct list in_scan;
    struct watch_scan *scan;
    struct watcher *watcher;
    int64_t from;  /* the watcher's */
    uint32_t slot; /* scratch: its place among the hub's riders, if it is there */
};

struct watch_large;

struct watch_stream {
    struct watch_hub *hub;
    struct watch_stream_owner owner;
    struct list in_hub;
    struct list in_hungry, in_waiting; /* link the hub's lists of these names */

    struct chain_table ids; /* its watchers */
    int64_t next_id;
    int64_t future_min; /* no watcher counted in `futures` starts below */
    uint32_t futures, notifiers;

    /* Live: when dirty, responses are due from place on, and the last known at last_hit. */
    struct watch_place place;
    int64_t last_hit;
    struct watcher
        *resume_at;      /* in the revision at place: all before it have been served; a hint, */
    uint32_t resume_hit; /* dropped whenever a watcher comes or goes */

    struct list scans; /* taking turns: the first is read next */
    struct watcher *compacted;

    struct watch_control *controls; /* a ring */
    uint16_t control_first, control_count, control_capacity;

    uint8_t *rest; /* of a message that had no room; owned */
    uint32_t rest_len, rest_at;
    struct watch_large *large; /* the message under way when it is too large for that */

    int64_t progress_wanted; /* asked for, and to be told at this revision or later; 0: not */
    int64_t progress_newest; /* what was last asked for; counts while one is wanted */
    struct heap_link tick;
    int64_t tick_ns;      /* its interval */
    uint32_t tick_bucket; /* of ids: where the round of notifications goes on */
    uint32_t turn_bytes;  /* written since live and catching-up last changed turns */
    enum status broken;
    uint8_t scan_count, scans_waiting;
    bool dirty, woken, filling, stopped, ticking, ticked, scan_turn;
    bool hungry; /* its search goes on in a later turn */
    bool live_waiting, large_waiting;
};

/* Where a fill writes. */
struct watch_output {
    uint8_t *start, *at, *end;
    uint8_t *pause; /* no message begins behind it: others take their turn */
};

/* -- stream.c -- */

void stream_wake(struct watch_stream *stream);
/* It cannot go on searching now: the hub will wake it, next turn or when the history is ready. */
void stream_park_hungry(struct watch_stream *stream);
void stream_park_waiting(struct watch_stream *stream);
/* Watchers came, went or moved: what was remembered of them does not hold. */
static inline void stream_changed(struct watch_stream *stream)
{
    stream->resume_at = NULL;
    stream->resume_hit = 0;
}
/* More messages may begin. */
static inline bool output_open(const struct watch_stream *stream, const struct watch_output *out)
{
    return out->at < out->pause && !stream->rest && !stream->large;
}
/* Room for a message of at most WATCH_PIECE_BYTES_MAX, and its end: what does not fit is kept. */
uint8_t *output_begin(struct watch_stream *stream, struct watch_output *out, size_t len);
void output_end(struct watch_stream *stream, struct watch_output *out, const uint8_t *from,
                size_t len);
void output_message(struct watch_stream *stream, struct watch_output *out,
                    const struct message *message, int64_t revision);

void watcher_move(struct watcher *watcher, enum watcher_state next);
void watcher_close(struct watcher *watcher);
/* Its past is gone: the client will be told. */
void watcher_compacted(struct watcher *watcher);

/* -- hub.c -- */

const struct message_header *hub_header(struct watch_hub *hub, int64_t revision);
/* As watch_history_ops.next up to the tail, from this turn's revisions if they are there. */
MUST_CHECK
enum status hub_next(struct watch_hub *hub, struct watch_place *place,
                     struct watch_batch *ret_batch);
/* Exactly that revision, for whoever comes back to it in every fill. ST_END: it has no events. */
MUST_CHECK
enum status hub_batch(struct watch_hub *hub, int64_t revision, struct watch_batch *ret_batch);
/*
 * The events of the batch in [first, last] that a watcher of the range is told. NULL when they are
 * too large to be kept.
 */
const struct watch_tail *hub_tail(struct watch_hub *hub, const struct watch_batch *batch,
                                  const struct watch_range *range, unsigned variant, size_t first,
                                  size_t last);
/* A range was freed: nothing that is kept may be taken for its successor's. */
void hub_range_gone(struct watch_hub *hub);
/* While nobody is live the tail need not be read: it jumps to where the history is. */
void hub_catch_tail(struct watch_hub *hub);
static inline struct slice hub_prev(struct watch_hub *hub, unsigned flags,
                                    const struct watch_event *event)
{
    return flags & WATCHER_PREV_KV ? hub->history->ops->prev(hub->history, event) : SLICE_EMPTY;
}

/* -- live.c -- */

/* The responses from stream->place on, as far as there is room. */
void live_fill(struct watch_stream *stream, struct watch_output *out);

/* -- catch_up.c -- */

void catch_up_begin(struct watcher *watcher);
void catch_up_end(struct watcher *watcher);
/* One step of the first scan. */
void catch_up_fill(struct watch_stream *stream, struct watch_output *out);

/* -- large.c -- */

/* The response of one revision that is too large for a piece, or is to be cut into fragments. */
void large_begin(struct watch_stream *stream, const struct watcher *watcher, int64_t revision,
                 int64_t header_revision);
void large_fill(struct watch_stream *stream, struct watch_output *out);
void large_free(struct watch_large *large);

/* -- notify.c -- */

void notify_watcher_added(struct watcher *watcher);
/* It has become live, perhaps ahead of its stream: then progress must not fall behind it. */
void notify_watcher_live(struct watcher *watcher);
void notify_watcher_gone(struct watcher *watcher);
/* The hub's clock has reached the stream's tick. */
void notify_tick(struct watch_stream *stream);
/* Notifications can be written now: some wait, and the stream stands at the tail. */
bool notify_due(const struct watch_stream *stream);
void notify_fill(struct watch_stream *stream, struct watch_output *out);
void notify_ask(struct watch_stream *stream);
/* The answer to a request for progress, or none if etcd would give none. */
void notify_answer(struct watch_stream *stream, struct watch_output *out, int64_t revision);
/* No watcher of the stream starts beyond revision + 1. */
bool notify_none_future(struct watch_stream *stream, int64_t revision);

#endif
