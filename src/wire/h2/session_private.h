/*
 * The inside of a session: only for session.c, client.c, receive.c, frames.c and send.c.
 *
 *     session.c ─► receive.c ─► frames.c ─► client.c     bytes, frames, what a client does with them
 *         └──────► send.c                                what is ready to be sent
 *
 * The five sources are one object, and their calls form a circle: every step can find a violation,
 * and ends its stream or the whole session by a function of session.c, which then takes the stream
 * off the lists of send.c and releases what frames.c has charged for it.
 */
#ifndef VIGIL_WIRE_H2_SESSION_PRIVATE_H
#define VIGIL_WIRE_H2_SESSION_PRIVATE_H

#include "base/memory/budget.h"
#include "base/rate_limit.h"
#include "wire/h2/hpack.h"
#include "wire/h2/session.h"
#include "wire/h2/states.h"
#include "wire/h2/table.h"

enum { H2_CLOSED_KEPT = 32 };
/* Flag in h2_session.closed: we reset the stream or ended it early, so more of its frames may
 * arrive. */
#define H2_CLOSED_BY_US UINT32_C(0x80000000)

struct h2_session {
    const struct h2_limits *limits; /* borrowed */
    const struct h2_session_ops *ops;
    void *owner;
    struct account *account; /* borrowed; may be NULL */
    const char *reason;
    int64_t now_ns;
    enum h2_phase phase;
    enum h2_error error;
    unsigned inside; /* within feed, fill or tick: on_output is not called */
    uint8_t role;    /* enum h2_role */
    uint8_t exit_work;

    /* Streams. */
    struct h2_table table;
    struct list open;
    uint32_t open_plain;  /* open streams that are not bulk */
    size_t headers_bytes; /* size of the headers of all open streams; shared ones count each time */
    size_t streams_charged; /* charged to the account for streams and their headers */
    uint32_t last_id;       /* the highest id that the peer opened; of a client: the maximum, so
                               that nothing it receives opens a stream */
    uint32_t next_id;       /* client: of the next stream that it opens */
    uint32_t goaway_id;     /* client: the last id of the server's latest GOAWAY */
    uint32_t closed[H2_CLOSED_KEPT]; /* the ids closed last, a ring */
    unsigned closed_next;

    /* Sending. enum h2_stream_place tells which list a stream is on. */
    struct list ready, starved;           /* not bulk */
    struct list bulk_ready, bulk_starved; /* bulk */
    struct buf control;                   /* complete frames, sent before all others */
    int32_t send_window;
    int32_t send_window_peak;
    /* The peer's SETTINGS. */
    uint32_t peer_window;
    uint32_t peer_frame_bytes;
    uint32_t peer_streams_max;
    uint32_t peer_header_list_bytes;

    /* Receiving. */
    enum h2_reading reading;
    bool settings_seen;
    bool settings_acked; /* the peer has acknowledged our window */
    uint8_t head_len;    /* bytes of head or preface received so far */
    uint8_t head[H2_FRAME_HEAD_BYTES];
    struct h2_frame frame;
    struct buf partial;            /* payload of a frame that arrives in pieces */
    uint32_t left;                 /* bytes of DATA, or bytes to skip */
    uint32_t padding;              /* after the data */
    struct h2_stream *data_stream; /* receives the DATA; NULL: it is dropped */
    int32_t recv_window;
    uint32_t recv_owed; /* consumed, not yet given back */
    bool withheld;
    uint32_t empty_data; /* consecutive */

    /* A header block that arrives in pieces. */
    struct hpack_decoder hpack;
    struct buf block;
    uint32_t block_id; /* 0: no block is being received */
    uint32_t continuations;
    bool block_ends_stream;

    /* Timeouts and limits. */
    struct rate_limit resets, settings;
    unsigned ping_strikes;
    bool ping_pardon; /* we sent HEADERS or DATA since the last ping */
    int64_t last_ping_ns;
    int64_t last_read_ns;
    int64_t keepalive_sent_ns; /* 0: no answer is awaited */
    bool timed_out;            /* none arrived */
    int64_t drain_at_ns;
    int64_t frame_by_ns; /* when the frame or header block must be complete; INT64_MAX: none is
                            awaited */
};

/* The ping whose answer shows that the peer has read our first GOAWAY. */
#define H2_DRAIN_PING SLICE_LITERAL("vigilbye")

static inline bool h2_is_client(const struct h2_session *s)
{
    return s->role == H2_CLIENT;
}

/* session.c. The streams of a failed session are closed at the outermost exit, so that callers in
 * between may still use them. */
void h2_session_enter(struct h2_session *s);
void h2_session_exit(struct h2_session *s);
uint8_t *h2_control_put(struct h2_session *s, size_t len, enum h2_frame_type type, uint8_t flags,
                        uint32_t stream_id);
void h2_reset_put(struct h2_session *s, uint32_t stream_id, enum h2_error code);
void h2_stream_close(struct h2_stream *stream, enum h2_error code, bool by_us);
/* The peer violated a rule on this stream only. stream is NULL if it is not open. */
void h2_stream_fault(struct h2_session *s, uint32_t stream_id, struct h2_stream *stream,
                     enum h2_error code);
void h2_session_credit(struct h2_session *s, size_t n);
void h2_session_leave(struct h2_session *s);
void h2_phase_move(struct h2_session *s, enum h2_phase next);

/* A part of a frame or header block has arrived: its timeout begins, unless it runs already. */
void h2_frame_wait(struct h2_session *s);
/* receive.c: consumes some bytes, returns the rest. */
struct slice h2_receive(struct h2_session *s, struct slice bytes);
/* frames.c */
/* The stream was not opened yet, or cannot be opened. */
bool h2_is_idle(const struct h2_session *s, uint32_t id);
void h2_handle_frame(struct h2_session *s, struct slice payload);
/* A stream was closed: releases what was charged for it. */
void h2_streams_discharge(struct h2_session *s);

/* client.c */
bool h2_client_is_idle(const struct h2_session *s, uint32_t id);
bool h2_client_has_room(const struct h2_session *s);
/* A header block for a stream whose response is not complete. */
void h2_client_headers(struct h2_session *s, struct h2_stream *stream, bool ends,
                       struct h2_headers *headers);
/* The server has sent its last byte on the stream. */
void h2_client_ended(struct h2_stream *stream);
void h2_client_reset(struct h2_stream *stream, uint32_t code);
void h2_client_goaway(struct h2_session *s, struct slice payload);

/* send.c */
void h2_stream_unschedule(struct h2_stream *stream);
void h2_send_window_grown(struct h2_stream *stream);

#endif
