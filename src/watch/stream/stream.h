/*
 * One client's set of watches: what a Watch call is to the watch engine.
 *
 *   create from now or later ──► live: follows its stream ◄── caught up ── catching up: own place
 *   create from the past ──────────────────────────────────────────────────────►  │
 *   live, catching up ──► closed   (canceled, compacted, permission lost, stream freed)
 *
 *   stream: flowing ⇄ stopped (no room in the stream, the connection or the socket)
 *
 * Output is pulled: watch_stream_fill writes gRPC-framed WatchResponses. The order on the stream:
 * control responses (created, canceled, progress) in the order of their requests; the responses of
 * each revision complete per watcher; the pieces of a fragmented response without anything between
 * them. A progress response at R comes only after everything up to R.
 *
 * A stream belongs to its hub's shard. The service above it decodes requests and checks
 * permissions.
 */
#ifndef VIGIL_WATCH_STREAM_STREAM_H
#define VIGIL_WATCH_STREAM_STREAM_H

#include "watch/hub/options.h"

struct watch_hub;
struct watch_stream;

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
 * a negative revision, too many watches) is answered with created and canceled in one response, as
 * etcd does; such a create also returns ST_OK. ST_LIMIT: too many control responses wait; end the
 * call.
 */
MUST_CHECK
enum status watch_stream_create(struct watch_stream *stream, const struct watch_create *create);
/* Queues the same answer for a create that the service refuses itself, for example for lack of
 * permission. */
MUST_CHECK
enum status watch_stream_refuse(struct watch_stream *stream, struct slice reason);
/* An unknown id has no effect, as in etcd. */
MUST_CHECK
enum status watch_stream_cancel(struct watch_stream *stream, int64_t watch_id);
/*
 * Ends every watcher for whose range `keep` returns false, with the reason in its canceled
 * response. Examines about *units watchers, and subtracts them. ST_OK: all were examined. ST_AGAIN:
 * there are more; call it again with the same *at, which is 0 at first. Watchers may come and go
 * meanwhile; those that come need not be examined. ST_LIMIT: too many responses would wait; end the
 * call. Some watchers were ended.
 */
MUST_CHECK
enum status watch_stream_keep(struct watch_stream *stream,
                              bool (*keep)(void *ctx, struct slice key, struct slice range_end),
                              void *ctx, struct slice reason, uint32_t *at, size_t *units);
/*
 * Answered with id -1 once everything up to now was sent to every watcher of the stream. The answer
 * has at most the revision `most`: others, whose events are not sent by this stream, may be
 * complete only up to it. INT64_MAX: there are none.
 */
MUST_CHECK
enum status watch_stream_progress(struct watch_stream *stream, int64_t most);

/* ST_OK; ST_COMPACTED when the rest of a large message under way was compacted: the call cannot
 * continue and must be ended, so that the client resumes and learns of the compaction. To be
 * checked when a fill wrote nothing. */
MUST_CHECK
enum status watch_stream_status(const struct watch_stream *stream);

/* Control responses that were not filled yet. The service stops reading requests while there are
 * many, which slows a client that floods. */
size_t watch_stream_waiting(const struct watch_stream *stream);

/* Watchers that may still send something; one that was compacted counts until its client was sent
 * that. With none left the stream stays silent until the next create. */
size_t watch_stream_watchers(const struct watch_stream *stream);

/* The number of responses made by all streams of its hub, to count those of one fill. */
uint64_t watch_stream_responses(const struct watch_stream *stream);

/* Whether it has a watcher with this id. */
bool watch_stream_has(const struct watch_stream *stream, int64_t watch_id);
/* What was filled ends within a response, or between fragments. */
bool watch_stream_is_within(const struct watch_stream *stream);

/* Writes at most room bytes; *ret_more: there is more to write now. */
size_t watch_stream_fill(struct watch_stream *stream, uint8_t *dst, size_t room, bool *ret_more);

#endif
