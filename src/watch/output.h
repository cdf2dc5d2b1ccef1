/*
 * Who writes what into the room of a fill; for the files of this directory only. All write whole
 * messages one after the other; what of the last has no room is kept by the stream.
 */
#ifndef VIGIL_WATCH_OUTPUT_H
#define VIGIL_WATCH_OUTPUT_H

#include "watch/stream_private.h"

/* Where a fill writes. */
struct watch_output {
    uint8_t *start, *at, *end;
    uint8_t *pause; /* no message begins behind it: others take their turn */
};

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

/* -- live.c -- */

/*
 * One watcher's response for a long revision. ST_OK: it is begun, or there is none, and the watcher
 * has it behind it. ST_AGAIN: too much was done in this turn.
 */
MUST_CHECK
enum status live_tell_long(struct watch_stream *stream, struct watcher *watcher, int64_t *from,
                           struct watch_long *l, int64_t header_revision);

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
/* That of a long revision, if the watcher's range has events in it: they lie between the hit's. */
void large_begin_long(struct watch_stream *stream, const struct watcher *watcher,
                      const struct watch_long *l, const struct long_hit *hit,
                      int64_t header_revision);
void large_fill(struct watch_stream *stream, struct watch_output *out);
void large_free(struct watch_large *large);
/* A watcher of the stream is closed. */
void large_watcher_gone(struct watch_large *large, int64_t watch_id);

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
