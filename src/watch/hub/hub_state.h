/*
 * The data of a hub, only for files of src/watch/. Layers, each of which uses those above it:
 *
 *   index/   history, watcher, range_index         what events, watchers and their ranges are
 *            tag_index, tag_cache, history_window  indexes of the recent past
 *   hub/     message, stats, hub_state             responses as bytes; statistics; data of a hub
 *            hub_read, run, long_revision          shared reading; revisions of very many events
 *   stream/  stream_state, stats_scan              data of a stream; how far all of them are
 *            output: watcher_state, notify,        what writes into the room of a fill
 *                    large_response, live, catch_up
 *   stream/stream ─ hub ─ cursor                   requests and fills ─ turns ─ events one by one
 */
#ifndef VIGIL_WATCH_HUB_HUB_STATE_H
#define VIGIL_WATCH_HUB_HUB_STATE_H

#include "base/container/heap.h"
#include "base/container/list.h"
#include "base/random.h"
#include "watch/hub/message.h"
#include "watch/hub/options.h"
#include "watch/hub/stats.h"
#include "watch/index/history_window.h"
#include "watch/index/range_index.h"
#include "watch/index/tag_cache.h"
#include "watch/index/tag_index.h"

enum {
    /* A message up to this size is made at once; the stream keeps what does not fit the output. */
    WATCH_PIECE_BYTES_MAX = 64 * 1024,
    WATCH_RING_BATCHES = 1024, /* revisions read in one turn */
    WATCH_GAP_MAX = 4,         /* revisions for others that a stream reads between its own … */
    WATCH_STRETCH_MAX = 64,    /* … and all that it reads at once */
    WATCH_FILL_EVENTS = 4096,  /* events examined in one fill: about 0.3 ms */
    WATCH_WALK_EVENTS = 4 * WATCH_FILL_EVENTS, /* past events of all tagged cursors in a turn */
    WATCH_WALK_TAGGING = 16,    /* an event whose tags are not known yet counts as this many */
    WATCH_PAUSE_FROM = 16,      /* cursors woken by one turn before it is followed by a pause */
    WATCH_WINDOWS = 4,          /* parts of history that are searched in one turn */
    WATCH_FREE_PER_TURN = 2048, /* watchers freed in one turn; a stream counts as several */
    WATCH_WAITING_MAX = 16384, /* control responses of one stream: more than a window of requests */
    WATCH_HEADERS = 64,
    WATCH_ENCODED_SLOTS = 256,
    WATCH_ENCODED_BYTES = 512 * 1024,
};

/* The events of a response as encoded bytes, kept for other watchers of the same keys. */
struct encoded_events {
    int64_t revision; /* the last one; 0: the slot is empty */
    int64_t since;    /* the first one from which events were taken */
    const struct watch_range *range;
    unsigned variant;
    uint32_t events;
    const uint8_t *bytes;
    size_t len;
};

/* A range that covers some events of a revision, or of a run. */
struct watch_hit {
    struct watch_range *range;
    size_t first_event, last_event;
};

/* One revision of this turn. */
struct watch_slot {
    struct watch_batch batch;
    struct watch_place before; /* the place from which it is read */
    /* The stream that it concerns; only to be compared, since it may have been freed. NULL: none */
    const struct watch_stream *only;
    bool several; /* it concerns several streams */
};

/* A walk over all streams for the statistics (stats_scan.h). */
struct watch_stats_scan {
    struct watch_stream *at; /* the next one to examine; NULL: the end */
    bool under_way;
    bool wanted; /* something has changed since the last one began */
    int64_t next_ns;
    struct watch_report found;
};

/* The long revisions of a hub (long_revision.h). */
struct long_revisions {
    struct list held, gone;
    unsigned count;     /* number of entries in held */
    bool wanted;        /* some stream waits for a place among them */
    uint64_t turn;      /* counts turns */
    size_t budget;      /* units that fills and cursors may still use in this turn */
    size_t mark_budget; /* units that the tail may still use in this turn */
    bool used_up;       /* the budget was, when the current fill began */
};

struct watch_run;
struct watch_hub {
    struct watch_history *history;
    struct watch_hub_options options;
    struct pool *pool;
    struct range_index index;
    struct random random;
    struct message_identity identity;
    struct message_header headers[WATCH_HEADERS]; /* by revision, modulo */
    int64_t tail;                                 /* everything up to this revision was read */
    struct watch_place place;                     /* where the reading of history continues */
    struct watch_slot *ring; /* the revisions (ring_after, tail], of this turn only */
    size_t ring_count;
    int64_t ring_after;
    struct watch_batch reread; /* what hub_batch last read in this turn */
    struct watch_run *run;     /* the last that was read; owned (run.h) */
    struct long_revisions long_revisions;
    struct list streams, closing; /* closing: freed; their watchers are freed over several turns */
    size_t free_budget;           /* what may still be freed in this turn */
    struct list deferred; /* streams that continue in a later turn, because their fill took long */
    struct list starved;  /* the same, and they found the turn's units used up: woken first */
    struct list unwoken;  /* marked streams that are woken in a later turn; by in_deferred, too */
    size_t wake_budget;   /* how many may still be woken in this turn */
    struct list waiting;  /* streams that wait for the history */
    bool tail_waits;      /* the newest revisions wait for the history */
    struct heap ticks;    /* streams with watchers that want notifications */
    int64_t now_ns;
    uint64_t turn; /* grows whenever what was read becomes invalid; never 0 */
    watch_tagger tagger;
    void *tagger_ctx;
    size_t tagged;          /* cursors with a tag */
    size_t cursors;         /* among the streams */
    size_t own_watchers;    /* watchers of the server itself, which statistics leave out */
    int64_t pause_until_ns; /* new revisions are not read before; 0: no pause */
    struct tag_index tag_index, wide_index; /* wide_index: ranges that many cursors read */
    struct tag_cache tag_cache;
    size_t walk_budget; /* what is left of WATCH_WALK_EVENTS */
    size_t live;        /* watchers for which the tail must be read */
    size_t scans;       /* scans of all streams */
    /* Scratch of the turn, or of one call. */
    struct encoded_events encoded[WATCH_ENCODED_SLOTS];
    uint8_t *encoded_bytes;
    size_t encoded_used;
    uint8_t *piece;                /* a message that does not fit the output */
    struct watch_hit *hits;        /* ranges that cover events of one revision or run … */
    uint64_t hits_turn;            /* … of this turn; otherwise they are not for the next fill */
    int64_t hits_first, hits_last; /* its revisions */
    struct watch_event long_event; /* that a cursor has found in a long revision */
    size_t hit_count, hit_capacity;
    struct history_window windows[WATCH_WINDOWS];
    unsigned window_next; /* the one that is replaced next */
    uint32_t window_number;
    size_t budget; /* events that the current fill may still examine */
    struct watch_stats stats;
    struct watch_stats_scan stats_scan;
    struct watch_report report; /* result of the last stats_scan */
};

#endif
