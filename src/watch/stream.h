/*
 * One client's set of watches: what a Watch call is to the watch engine.
 *
 *   create from now or later ──► live: rides its stream ◄── has caught up ── catching up: own place
 *   create from the past ────────────────────────────────────────────────────►      │
 *   live, catching up ──► closed   (cancel · compacted below its place · permission lost · stream
 * gone)
 *
 *   stream: flowing ⇄ stopped (no room in the stream, the connection or the socket)
 *
 * Output is pulled: watch_stream_fill writes gRPC-framed WatchResponses. Order on the stream:
 * control responses (created, canceled, progress) in the order asked for; each revision's responses
 * whole per watcher; the pieces of a fragmented response follow each other with nothing between. A
 * progress response at R comes only after everything up to R.
 *
 * Belongs to its hub's shard. The service on top decodes requests and checks permissions.
 */
#ifndef VIGIL_WATCH_STREAM_H
#define VIGIL_WATCH_STREAM_H

#include "watch/hub.h"

struct watch_stream;

struct watch_stream_owner {
    /*
     * There is something to fill. Called at most once until the next fill, which must not happen
     * in here: the hub is in the middle of telling others.
     */
    void (*wake)(void *ctx);
    void *ctx;
    union {
        /* Who it is, for an operator: a text. May be NULL. */
        void (*describe)(void *ctx, char text[WATCH_PEER_BYTES]);
        /* Of a cursor (cursor.h): it may be woken in a moment. May be NULL. */
        void (*soon)(void *ctx);
    };
};

struct watch_stream *watch_stream_new(struct watch_hub *hub, struct watch_stream_owner owner);
void watch_stream_free(struct watch_stream *stream); /* accepts NULL */
DEFINE_CLEANUP(struct watch_stream *, watch_stream_free)

struct watch_create {
    struct slice key;
    struct slice range_end;
    int64_t start_revision;
    int64_t watch_id; /* 0: choose one */
    bool progress_notify;
    bool prev_kv;
    bool fragment;
    bool no_put, no_delete; /* filters */
};

/*
 * Makes a watcher and queues its created response. What etcd refuses (an empty range, an id in use,
 * a negative revision, too many) is answered with created and canceled in one response, as etcd
 * does; that is no failure here. ST_LIMIT: too many control responses wait, end the call.
 */
MUST_CHECK
enum status watch_stream_create(struct watch_stream *stream, const struct watch_create *create);
/* The same answer for a create that the service refuses itself, e.g. for lack of permission. */
MUST_CHECK
enum status watch_stream_refuse(struct watch_stream *stream, struct slice reason);
/* Of an unknown id: nothing happens, as in etcd. */
MUST_CHECK
enum status watch_stream_cancel(struct watch_stream *stream, int64_t watch_id);
/*
 * Ends every watcher whose range keep says no to, and says why in its canceled response. ST_LIMIT:
 * too many responses would wait, end the call; some were ended.
 */
MUST_CHECK
enum status watch_stream_keep(struct watch_stream *stream,
                              bool (*keep)(void *ctx, struct slice key, struct slice range_end),
                              void *ctx, struct slice reason);
/* Answered with id -1 once every watcher of the stream has been told everything up to now. */
MUST_CHECK
enum status watch_stream_progress(struct watch_stream *stream);

/*
 * ST_OK; ST_COMPACTED when the rest of a large message under way was compacted: the call cannot go
 * on and is to be ended, so that the client resumes and learns of the compaction. Ask when a fill
 * gave nothing.
 */
MUST_CHECK
enum status watch_stream_status(const struct watch_stream *stream);

/* Control responses wait that were not filled yet: a client that floods is slowed by not reading
 * it. */
size_t watch_stream_waiting(const struct watch_stream *stream);

/*
 * Watchers that may still send something; one whose past was compacted counts until its client was
 * sent that. With none left the stream stays silent until the next create.
 */
size_t watch_stream_watchers(const struct watch_stream *stream);

/* How many responses were made by all streams of its hub: for who counts those of a fill. */
uint64_t watch_stream_responses(const struct watch_stream *stream);

/* Writes at most room bytes; *ret_more: there is more to write now. */
size_t watch_stream_fill(struct watch_stream *stream, uint8_t *dst, size_t room, bool *ret_more);

#endif
