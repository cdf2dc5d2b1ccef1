/*
 * What a stream has that sends responses: every one except those of cursors. Only files of
 * src/watch/ include it.
 */
#ifndef VIGIL_WATCH_STREAM_SENDING_H
#define VIGIL_WATCH_STREAM_SENDING_H

#include "watch/stream/stream_state.h"

struct large_response;

/* A control response that waits to be sent. */
struct watch_control {
    int64_t watch_id;
    int64_t revision;
    struct slice reason; /* owned by the stream when reason_owned */
    bool created, canceled, reason_owned;
};

/* Embeds the stream, so that those of cursors are shorter by the rest. */
struct watch_sending {
    struct watch_stream stream; /* first */
    /* Everything before these was sent of the revision, or run of revisions, at `place`: a hint,
     * dropped when a watcher is added or removed, or a long revision is not long any more because
     * the history reads it from elsewhere. */
    struct watcher *resume_at;
    uint32_t resume_hit;
    uint32_t turn_bytes; /* written since live and catching-up watchers last took turns */
    struct list scans;   /* the first is read next, then moves to the back */
    struct watcher *compacted;
    int64_t next_id;
    uint64_t bytes_sent;

    struct watch_control *controls; /* a ring */
    uint16_t control_first, control_count, control_capacity;

    uint8_t *rest; /* the part of a message that did not fit the output; owned */
    uint32_t rest_len, rest_at;
    struct large_response *large; /* the message under way when it is too large for that */

    int64_t progress_wanted; /* a request is to be answered at this revision or later; 0: none */
    int64_t progress_newest; /* revision of the newest request; valid while one is wanted */
    struct heap_link tick;
    int64_t tick_ns;        /* its interval */
    uint32_t progress_less; /* an answer has at most the revision progress_newest minus this;
                               UINT32_MAX: no limit */
    uint32_t held_peak;     /* bytes of `rest` */
};

_Static_assert(sizeof(struct watch_sending) <= 320, "an idle call takes a kilobyte in all");

static inline struct watch_sending *sending(const struct watch_stream *stream)
{
    assert(!stream->cursor);
    return CONTAINER_OF((struct watch_stream *)(uintptr_t)stream, struct watch_sending, stream);
}

/* Watchers were added, removed or moved: the remembered positions are invalid. */
static inline void stream_changed(struct watch_stream *stream)
{
    if (stream->cursor)
        return;
    sending(stream)->resume_at = NULL;
    sending(stream)->resume_hit = 0;
}

/* Where a fill writes. Each part of a stream writes whole messages, one after the other; the stream
 * keeps what does not fit of the last one. */
struct watch_output {
    uint8_t *start, *at, *end;
    uint8_t *pause; /* no message begins behind it, so that other watchers get their turn */
    bool closed;    /* the next message is left to the next fill, where it has room */
};

/* More messages may begin. */
static inline bool output_open(const struct watch_stream *stream, const struct watch_output *out)
{
    return out->at < out->pause && !out->closed && !sending(stream)->rest &&
           !sending(stream)->large;
}
/* Room for a message of at most WATCH_PIECE_BYTES_MAX; output_end keeps what does not fit. */
uint8_t *output_begin(struct watch_stream *stream, struct watch_output *out, size_t len);
void output_end(struct watch_stream *stream, struct watch_output *out, const uint8_t *from,
                size_t len);
void output_message(struct watch_stream *stream, struct watch_output *out,
                    const struct message *message, int64_t revision);

#endif
