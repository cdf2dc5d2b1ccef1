/*
 * One HTTP/2 stream, embedded in whatever answers it.
 *
 *     open ──(peer half-closes)──► answering ──► closed
 *       └──────(reset, our answer complete, connection over)──────┘
 *
 * The session owns the protocol state; the embedder owns the memory, hands it over in on_open and
 * gets it back in on_close, which comes exactly once. Output is pulled: a stream says that it is
 * ready, and the session asks it for its header block, its bytes and its trailers when there is
 * room on the stream, the connection and in the output buffer. Thread of the connection.
 */
#ifndef VIGIL_WIRE_H2_STREAM_H
#define VIGIL_WIRE_H2_STREAM_H

#include "base/container/list.h"
#include "wire/h2/frame.h"
#include "wire/h2/headers.h"

struct h2_session;
struct h2_stream;

enum h2_fill {
    H2_FILL_MORE,   /* there is more, ask again */
    H2_FILL_PARKED, /* nothing until h2_stream_ready */
    H2_FILL_END,    /* that was all: trailers follow, if there are any */
};

/* A header block fits here; head and trailers never need more room. */
enum { H2_BLOCK_BYTES_MAX = 6 * 1024 };

struct h2_stream_ops {
    /* Bytes of the body. What was used is given back with h2_stream_consumed. */
    void (*on_data)(struct h2_stream *stream, struct slice bytes);
    /* The peer has sent everything. */
    void (*on_end)(struct h2_stream *stream);
    /* The stream is over and no longer the session's: the memory may go. */
    void (*on_close)(struct h2_stream *stream, enum h2_error code);

    /* Writes the block of the response head. With head_only set it ends the stream. */
    size_t (*head)(struct h2_stream *stream, uint8_t *dst, size_t room);
    /* Writes at most room bytes (never 0) of body. */
    enum h2_fill (*data)(struct h2_stream *stream, uint8_t *dst, size_t room, size_t *ret_len);
    /* Writes the block of the trailers. NULL: there are none, the last DATA ends the stream. */
    size_t (*trailers)(struct h2_stream *stream, uint8_t *dst, size_t room);
};

enum h2_stream_place {
    H2_NOWHERE,           /* has nothing to send */
    H2_READY,             /* on session.ready or session.bulk */
    H2_NO_WINDOW,         /* waits for window of its own */
    H2_NO_SESSION_WINDOW, /* on session.starved: waits for the connection's */
};

/* What sending touches stands first. */
struct h2_stream {
    struct h2_session *session; /* NULL before on_open returned and after on_close */
    const struct h2_stream_ops *ops;
    struct list in_ready; /* links session.ready, .bulk or .starved */
    uint32_t id;
    int32_t send_window; /* may be negative after a SETTINGS of the peer */
    uint8_t place;       /* enum h2_stream_place */
    bool bulk : 1;       /* set by the embedder before it is ready */
    bool head_only : 1;  /* set by the embedder: the head ends the stream */
    bool head_sent : 1;
    bool body_ended : 1; /* data said END: only trailers are left */
    bool remote_closed : 1;
    int32_t recv_window; /* what the peer may still send */
    uint32_t recv_owed;  /* consumed, not yet given back */
    uint32_t headers_bytes;
    struct list in_open; /* links session.open */
    int64_t body_left;   /* of the announced content-length; -1 when none was */
};

/* The stream has something to send. Cheap to call again. */
void h2_stream_ready(struct h2_stream *stream);

/* Its output goes behind that of others from now on. Before it was ready for the first time. */
void h2_stream_make_bulk(struct h2_stream *stream);

/* n received bytes were used up: the peer may send as many again. */
void h2_stream_consumed(struct h2_stream *stream, size_t n);

/* Lets the peer send at least n more bytes on this stream, beyond its usual window. */
void h2_stream_expect(struct h2_stream *stream, size_t n);

/* Ends the stream at once with RST_STREAM; on_close is called. Not from within on_data, on_end,
 * head, data or trailers. */
void h2_stream_reset(struct h2_stream *stream, enum h2_error code);

#endif
