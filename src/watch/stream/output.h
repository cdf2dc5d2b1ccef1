/*
 * The parts of a stream that write into the room of a fill. Only files of src/watch/ include it.
 */
#ifndef VIGIL_WATCH_STREAM_OUTPUT_H
#define VIGIL_WATCH_STREAM_OUTPUT_H

#include "watch/stream/sending.h"

struct long_revision;
struct long_revision_hit;

/* -- live.c: responses of the watchers that follow their stream -- */

/*
 * Begins one watcher's response for a long revision and moves *from behind it. ST_OK: begun, or the
 * revision has no events for the watcher. ST_AGAIN: the turn's work is used up.
 */
MUST_CHECK
enum status live_send_long(struct watch_stream *stream, struct watcher *watcher, int64_t *from,
                           struct long_revision *long_rev, int64_t header_revision);

/* Writes the responses from stream->place on, until the output is full. */
void live_fill(struct watch_stream *stream, struct watch_output *out);

/* -- catch_up.c: responses of the watchers that started in the past -- */

void catch_up_begin(struct watcher *watcher);
void catch_up_end(struct watcher *watcher);
/* Does one step of the first scan. */
void catch_up_fill(struct watch_stream *stream, struct watch_output *out);

/* -- large_response.c: a response that is written in pieces -- */

/* Begins the response of one revision that is too large for a piece, or is split into fragments. */
void large_response_begin(struct watch_stream *stream, const struct watcher *watcher,
                          int64_t revision, int64_t header_revision);
/* The same for a long revision; the events of the watcher's range are between the hit's. */
void large_response_begin_long(struct watch_stream *stream, const struct watcher *watcher,
                               const struct long_revision *long_rev,
                               const struct long_revision_hit *hit, int64_t header_revision);
void large_response_fill(struct watch_stream *stream, struct watch_output *out);
void large_response_free(struct large_response *large);
/* A watcher of the stream was closed. */
void large_response_watcher_gone(struct large_response *large, int64_t watch_id);

/* -- notify.c: progress notifications, by interval and on request -- */

void notify_watcher_added(struct watcher *watcher);
/* It has become live, perhaps ahead of its stream: progress must not be reported before its start.
 */
void notify_watcher_live(struct watcher *watcher);
void notify_watcher_gone(struct watcher *watcher);
/* The hub's clock has reached the stream's tick. */
void notify_tick(struct watch_stream *stream);
/* Notifications can be written now: some are due, and the stream is at the tail. */
bool notify_due(const struct watch_stream *stream);
void notify_fill(struct watch_stream *stream, struct watch_output *out);
void notify_ask(struct watch_stream *stream, int64_t most);
/* Writes the answer to a progress request, or nothing where etcd does not answer. */
void notify_answer(struct watch_stream *stream, struct watch_output *out, int64_t revision);
/* No watcher of the stream starts beyond revision + 1. */
bool notify_none_future(struct watch_stream *stream, int64_t revision);

#endif
