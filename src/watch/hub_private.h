/* The parts of a hub, for the files of this directory only. stream_private.h says who does what. */
#ifndef VIGIL_WATCH_HUB_PRIVATE_H
#define VIGIL_WATCH_HUB_PRIVATE_H

#include "base/container/heap.h"
#include "base/random.h"
#include "watch/cursor.h"
#include "watch/history_batch.h"
#include "watch/long.h"
#include "watch/message.h"
#include "watch/range_index.h"
#include "watch/stats_scan.h"
#include "watch/tags.h"
#include "watch/trail.h"

enum {
    /* A message up to this size is made in one piece; what has no room is kept by its stream. */
    WATCH_PIECE_BYTES_MAX = 64 * 1024,
    WATCH_RING_BATCHES = 1024,     /* revisions taken in by one turn */
    WATCH_TURN_EVENTS = 8192,      /* events looked at by one turn's begin, */
    WATCH_TURN_MARKS = 256 * 1024, /* streams it looks at, */
    WATCH_TAG_MARKS = 64,          /* an event whose tags are asked for counts as so many, */
    WATCH_FILL_EVENTS = 4096,      /* and by one fill: a fraction of a millisecond */
    WATCH_WALK_EVENTS = 4 * WATCH_FILL_EVENTS, /* of the past, by all cursors with tags in a turn */
    WATCH_WALK_TAGGING = 16,                   /* so many is one whose tags are not known yet */
    WATCH_STRETCHES = 4,                       /* parts of history that are searched in one turn */
    WATCH_HUNGRY_LOOKS = 512,   /* streams that are looked at for who goes on in each */
    WATCH_HUNGRY_WAKES = 64,    /* streams that go on with something else in one turn */
    WATCH_FREE_PER_TURN = 2048, /* watchers; a stream counts as some */
    WATCH_FREE_STREAM = 4,
    WATCH_TURN_BYTES = 64 * 1024, /* live and catching-up watchers take turns after so much */
    WATCH_WAITING_MAX = 16384, /* control responses of one stream: more than a window of requests */
    WATCH_SCANS_MAX = 8,       /* of one stream */
    WATCH_SCAN_NEAR = 4096,    /* revisions: a watcher that starts so near joins a scan */
    WATCH_BATCH_REVISIONS = 1000, /* in one response of a catching-up watcher, as in etcd */
    WATCH_HEADERS = 64,
    WATCH_REST_FROM = 16, /* cursors woken by one turn: less is told as it comes */
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

struct watch_hub {
    struct watch_history *history;
    struct watch_hub_options options;
    struct pool *pool;
    struct range_index index;
    struct random random;
    struct message_identity identity;
    struct message_header headers[WATCH_HEADERS]; /* by revision, modulo */
    int64_t tail;                                 /* all up to here is taken in */
    struct watch_place place;                     /* where the history goes on */
    struct watch_slot *ring; /* the revisions (ring_after, tail], of this turn only */
    size_t ring_count;
    int64_t ring_after;
    struct watch_batch large; /* what hub_batch last read in this turn */
    struct watch_longs longs; /* long revisions */
    struct list streams;
    struct list dying;   /* streams that are freed some watchers at a time */
    size_t free_budget;  /* what may still be freed in this turn */
    struct list hungry;  /* streams that stopped searching because their fill took long */
    struct list waiting; /* streams that wait for the history */
    struct heap ticks;   /* streams with watchers that want notifications */
    int64_t now_ns;
    uint64_t turn; /* grows whenever what was read becomes invalid; never 0 */
    watch_tagger tagger;
    void *tagger_ctx;
    size_t tagged;         /* cursors with a tag */
    size_t cursors;        /* among the streams */
    int64_t rest_until_ns; /* nothing new is looked at before; 0: no rest */
    struct watch_trail trail;
    struct watch_tags tags; /* of the past */
    size_t walk_budget;     /* what is left of WATCH_WALK_EVENTS */
    size_t live;            /* watchers that the tail must be read for */
    size_t scans;           /* of all streams */
    /* Scratch, of the turn or of one call. */
    struct watch_tail tails[WATCH_TAIL_SLOTS];
    uint8_t *tail_bytes;
    size_t tail_used;
    uint8_t *piece;         /* a message that has no room */
    struct watch_hit *hits; /* the ranges that events of one revision are in */
    size_t hit_count, hit_capacity;
    struct watch_stretch stretches[WATCH_STRETCHES];
    unsigned stretch_next; /* the one that is given up next */
    uint32_t stretch_number;
    size_t budget; /* events the fill under way may still look at */
    struct watch_stats stats;
    struct watch_census census;
    struct watch_report report; /* of the last census */
};

/* The stream behind a link of hub->streams; NULL at the end. */
struct watch_stream *hub_stream_after(struct watch_hub *hub, const struct list *link);
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
/* One watcher more of all there are, if that is allowed. */
MUST_CHECK
bool hub_take_one(struct watch_hub *hub);
/* The entry of a range in hub->hits, or NULL. */
struct watch_hit *hub_find_hit(const struct watch_hub *hub, const struct watch_range *range);
struct watch_hit *hub_add_hit(struct watch_hub *hub, struct watch_range *range);
/* A range was freed: nothing that is kept may be taken for its successor's. */
void hub_range_gone(struct watch_hub *hub, const struct watch_range *range);
/* What was read for those that catch up does not hold for all of them any more. */
void hub_stretches_drop(struct watch_hub *hub);
/* While nobody is live the tail need not be read: it jumps to where the history is. */
void hub_catch_tail(struct watch_hub *hub);
static inline struct slice hub_prev(struct watch_hub *hub, unsigned flags,
                                    const struct watch_event *event)
{
    return flags & WATCHER_PREV_KV ? hub->history->ops->prev(hub->history, event) : SLICE_EMPTY;
}

#endif
