/* The inside of a session, shared by session.c, receive.c and send.c and nobody else. */
#ifndef VIGIL_WIRE_H2_SESSION_PRIVATE_H
#define VIGIL_WIRE_H2_SESSION_PRIVATE_H

#include "base/memory/budget.h"
#include "base/rate_limit.h"
#include "wire/h2/hpack.h"
#include "wire/h2/session.h"
#include "wire/h2/table.h"

enum { H2_CLOSED_KEPT = 32 };
/* In h2_session.closed: we reset it or ended it early, so more frames of it may be on the way. */
#define H2_CLOSED_BY_US UINT32_C(0x80000000)

/*
 *     preface ──► head ⇄ payload (small frames, whole)
 *                  │ ⇅
 *                  │ pad length ──► data ──► skip (padding)
 *                  └──► skip (unknown frames, data nobody wants)
 */
enum h2_reading {
    H2_READ_PREFACE,
    H2_READ_HEAD,
    H2_READ_PAYLOAD,
    H2_READ_PAD_LENGTH,
    H2_READ_DATA,
    H2_READ_SKIP,
};

enum h2_phase {
    H2_OPEN,
    H2_DRAINING, /* first GOAWAY sent: new streams are still answered */
    H2_LEAVING,  /* last GOAWAY sent: those up to goaway_id are answered */
    H2_FAILED,   /* GOAWAY with an error is queued; nothing else happens */
};

struct h2_session {
    const struct h2_limits *limits; /* borrowed */
    const struct h2_session_ops *ops;
    void *owner;
    struct account *account; /* borrowed; may be NULL */
    const char *reason;
    int64_t now_ns;
    enum h2_phase phase;
    enum h2_error error;
    unsigned inside; /* within feed, fill, tick: no on_output */

    /* Streams. */
    struct h2_table table;
    struct list open;
    uint32_t open_plain;    /* of them not bulk */
    size_t headers_bytes;   /* of all their headers, also where some share them */
    size_t streams_charged; /* to the account, for streams and their headers */
    uint32_t last_id;       /* highest the peer opened */
    uint32_t goaway_id;
    uint32_t closed[H2_CLOSED_KEPT]; /* the latest closed ids, a ring */
    unsigned closed_next;

    /* Sending. Who is on which list: enum h2_stream_place. */
    struct list ready, starved;           /* not bulk */
    struct list bulk_ready, bulk_starved; /* bulk */
    struct buf control;                   /* whole frames, sent before all others */
    int32_t send_window;
    int32_t send_window_peak;
    uint32_t peer_window; /* the peer's SETTINGS_INITIAL_WINDOW_SIZE */
    uint32_t peer_frame_bytes;

    /* Receiving. */
    enum h2_reading reading;
    bool settings_seen;
    bool settings_acked; /* the peer knows our window */
    uint8_t head_len;    /* of head or preface seen so far */
    uint8_t head[H2_FRAME_HEAD_BYTES];
    struct h2_frame frame;
    struct buf partial;            /* payload of a frame that came in pieces */
    uint32_t left;                 /* of data or to skip */
    uint32_t padding;              /* after the data */
    struct h2_stream *data_stream; /* whose data it is; NULL when nobody's */
    int32_t recv_window;
    uint32_t recv_owed; /* used up, not yet given back */
    bool withheld;
    uint32_t empty_data; /* in a row */

    /* A header block in pieces. */
    struct hpack_decoder hpack;
    struct buf block;
    uint32_t block_id; /* 0: none under way */
    uint32_t continuations;
    bool block_ends_stream;

    /* Patience. */
    struct rate_limit resets, settings;
    unsigned ping_strikes;
    bool ping_pardon; /* we sent HEADERS or DATA since the last ping */
    int64_t last_ping_ns;
    int64_t last_read_ns;
    int64_t keepalive_sent_ns; /* 0: none under way */
    int64_t drain_at_ns;
    int64_t
        frame_by_ns; /* when the frame or header block in pieces must be whole; INT64_MAX: none */
};

/* What we send to learn that the peer has heard our first GOAWAY. */
#define H2_DRAIN_PING SLICE_LITERAL("vigilbye")

/* session.c. Streams of a failed session are closed at the outermost exit, so that whoever holds
 * one in between may finish with it. */
void h2_session_enter(struct h2_session *s);
void h2_session_exit(struct h2_session *s);
uint8_t *h2_control_put(struct h2_session *s, size_t len, enum h2_frame_type type, uint8_t flags,
                        uint32_t stream_id);
void h2_reset_put(struct h2_session *s, uint32_t stream_id, enum h2_error code);
void h2_stream_close(struct h2_stream *stream, enum h2_error code, bool by_us);
/* The peer broke a rule on this stream only. stream may be NULL when it is not open. */
void h2_stream_fault(struct h2_session *s, uint32_t stream_id, struct h2_stream *stream,
                     enum h2_error code);
void h2_session_credit(struct h2_session *s, size_t n);
void h2_session_leave(struct h2_session *s);

/* A frame, or a header block, has come in part: its time begins, unless it runs already. */
void h2_frame_wait(struct h2_session *s);
/* receive.c: takes some bytes, returns the rest. */
struct slice h2_receive(struct h2_session *s, struct slice bytes);
/* frames.c */
void h2_handle_frame(struct h2_session *s, struct slice payload);
/* A stream was closed: what it held is not charged any more. */
void h2_streams_discharge(struct h2_session *s);

/* send.c */
void h2_stream_unschedule(struct h2_stream *stream);
void h2_send_window_grown(struct h2_stream *stream);

#endif
