/*
 * The inside of a vigil_watch.
 *
 *     new ──► queued ──► creating ──► live ──► parking ──► parked     every state ──► ended
 *             ▲ ▲ ▲         │          │          │           │
 *             │ │ └─ broken ┴──────────┘          │           │
 *             └─┴─────────── resumed ─────────────┴───────────┘
 *
 *     creating, live, parking ──► leaving          queued, creating, live, parked ──► ending
 *
 *     queued     waits until its create request can be sent
 *     creating   sent; the server answers in the order of the requests
 *     live       has an id and receives events
 *     parking    paused with a full buffer, and being cancelled at the server
 *     parked     the same, and the server has confirmed it
 *     leaving    it delivers nothing any more, but the server still has to answer its create
 * request or to confirm its cancel request ending     over at the server, but the user is paused
 * and has not received everything
 *
 * Its stream (client/watch/watch_stream.h) talks to the server. Everything here belongs to the
 * loop's thread, except for the fields that say otherwise. Mirrors watcherStream of etcd's
 * clientv3.
 */
#ifndef VIGIL_CLIENT_WATCH_WATCH_H
#define VIGIL_CLIENT_WATCH_WATCH_H

#include "base/container/hash_map.h"
#include "base/memory/arena.h"
#include "client/driver/shared.h"

#include <vigil/watch.h>

struct pb_watch_response;
struct client_message;
struct client_watch_stream;
struct watch_item;

enum watch_state {
    WATCH_NEW, /* the loop has not received it yet */
    WATCH_QUEUED,
    WATCH_CREATING,
    WATCH_LIVE,
    WATCH_PARKING,
    WATCH_PARKED,
    WATCH_LEAVING,
    WATCH_ENDING,
    WATCH_ENDED,
};

enum { WATCH_NO_ID = -1, WATCH_TOO_LARGE = 0xff /* for us, instead of a gRPC code */ };

/* An id at the server. */
struct watch_entry {
    int64_t id;
    bool unknown; /* no watch has this id: only this entry exists, and we have cancelled the id at
                     the server; otherwise the entry is embedded in its watch */
    uint32_t progress_after; /* see watch_progress_covers; 0: every answer covers the watch */
};

/* Small, because a program may have hundreds of thousands of them. */
struct vigil_watch {
    struct watch_entry entry; /* in client_watch_stream.ids unless its id is WATCH_NO_ID */
    _Atomic uint8_t state;    /* enum watch_state; read by any thread */
    bool prev_kv : 1, progress_notify : 1, no_put : 1, no_delete : 1, fragment : 1;
    bool require_leader : 1, paused : 1;
    bool created_wanted : 1; /* created is still to be delivered */
    bool cancel_sent : 1;    /* the server has not confirmed the cancel request */
    bool end_lost : 1;       /* there was no memory to hold the end; valid while ending */
    uint8_t end_code;        /* enum grpc_code of its end, or WATCH_TOO_LARGE */
    _Alignas(uint32_t) struct driver_object object; /* not in a word that others are read with */
    bool for_queue;                                 /* has an item instead of a callback */
    struct vigil_client *client;                    /* a reference */
    struct client_watch_stream *stream;             /* NULL: ending or ended */
    union {
        struct client_metadata *metadata; /* while new: of its stream; owned */
        struct list in_stream;            /* then: links a list of client_watch_stream */
    };
    int64_t next_revision;        /* the first one that the server has not sent; 0: from now on */
    _Atomic int64_t delivered;    /* the revision after which the user would resume; any thread */
    struct client_message *held;  /* received while paused; owned */
    struct client_message *parts; /* fragments of an unfinished response; owned */
    _Atomic uint32_t held_bytes, lives; /* how often it was live; both are read by any thread */
    uint32_t held_max;
    union {
        vigil_watch_fn fn;
        const struct watch_observer *observer; /* if the object is internal */
        struct watch_item *item;               /* if it is for a queue; owned */
    };
    void *user;
    struct driver_shared shared; /* references: the user's, and the loop's until it has ended */
    uint32_t key_len, end_len;
    uint8_t bytes[]; /* the key, then the end of the range */
};

/* Moves and checks the move. */
void watch_move(struct vigil_watch *watch, enum watch_state next);

static inline struct slice watch_key(const struct vigil_watch *watch)
{
    return slice_of(watch->bytes, watch->key_len);
}

static inline struct slice watch_range_end(const struct vigil_watch *watch)
{
    return slice_of(watch->bytes + watch->key_len, watch->end_len);
}

static inline int64_t watch_delivered(const struct vigil_watch *watch)
{
    return atomic_load_explicit(&watch->delivered, memory_order_relaxed);
}

void watch_unref(struct vigil_watch *watch);

/* A response for this live watch: created, events or progress. The message is borrowed, and the
 * response decoded from it may be changed. ST_LIMIT: it does not fit in the buffer; ST_NOMEM: in
 * both cases it must be sent again later. */
MUST_CHECK
enum status watch_receive(struct vigil_watch *watch, struct slice message,
                          struct pb_watch_response *response);
/* A progress response for all watches of the stream. If it is early, its revision means nothing. */
void watch_receive_progress(struct vigil_watch *watch, struct slice message,
                            const struct pb_watch_response *response, bool early);

/* The watch has left its stream: nothing follows from the server. The response is a cancelled
 * one; code is the status of the stream, or GRPC_OK if only this watch ended. */
void watch_finish(struct vigil_watch *watch, enum grpc_code code,
                  const struct pb_watch_response *response);
/* Delivers an end because of our own error and drops what is held. Only the release follows. */
void watch_deliver_failure(struct vigil_watch *watch, enum vigil_code code, const char *text);
/* Does both; the watch is in no stream. */
void watch_fail(struct vigil_watch *watch, enum vigil_code code, const char *text);

/* Delivers what is held until the user pauses again. ST_NOMEM: something is lost. */
MUST_CHECK
enum status watch_deliver_held(struct vigil_watch *watch);

/* The user will not receive what is held. */
void watch_drop_held(struct vigil_watch *watch);
/* Nothing more is delivered, not even an end. Releases the loop's reference. */
void watch_release(struct vigil_watch *watch);

/* Asserts every invariant; for tests. */
void watch_check(const struct vigil_watch *watch);

#endif
