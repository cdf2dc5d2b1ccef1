/*
 * One HTTP/2 stream, embedded in the object that answers it or that sends the request: a gRPC call
 * or an HTTP exchange.
 *
 *     server:  open ──(peer half-closes)──► answering ──► closed
 *                └──────(reset, our answer complete, connection over)──────┘
 *
 *     client:  opened ──(head sent)──► requesting ──(last byte sent)──► waiting ──► closed
 *                └──────(reset, the peer's answer complete, connection over)──────────┘
 *
 * The session owns the protocol state. The embedder owns the memory, which the session uses from
 * on_open or h2_session_open until on_close, which is called exactly once. Output is pulled: a
 * stream declares itself ready, and the session calls its head, data and trailers when the stream's
 * window, the connection's window and the output buffer have room. Thread of the connection.
 */
#ifndef VIGIL_WIRE_H2_STREAM_H
#define VIGIL_WIRE_H2_STREAM_H

#include "base/container/list.h"
#include "wire/h2/frame.h"
#include "wire/h2/headers.h"

struct h2_session;
struct h2_stream;

enum h2_fill {
    H2_FILL_MORE,   /* there is more: is called again */
    H2_FILL_PARKED, /* nothing to send until h2_stream_ready */
    H2_FILL_END,    /* that was all: trailers follow, if there are any */
};

/* The maximum size of a header block, for the head or the trailers. */
enum { H2_BLOCK_BYTES_MAX = 12 * 1024 };

struct h2_stream_ops {
    /* Bytes of the body. After using them, call h2_stream_consumed. */
    void (*on_data)(struct h2_stream *stream, struct slice bytes);
    /* Server: the peer has sent everything. */
    void (*on_end)(struct h2_stream *stream);
    /*
     * The stream is over and no longer used by the session: its memory may be freed. On a client
     * the stream's ended_by and unprocessed say more about the end; with H2_ENDED_COMPLETE the
     * whole response has arrived, whether or not the whole request was sent.
     */
    void (*on_close)(struct h2_stream *stream, enum h2_error code);

    /* Writes the header block of the response or request. With head_only set it ends the stream. 0:
     * there is not enough room. */
    size_t (*head)(struct h2_stream *stream, uint8_t *dst, size_t room);
    /* Writes at most room bytes of body. room is 0 while there is no window. */
    enum h2_fill (*data)(struct h2_stream *stream, uint8_t *dst, size_t room, size_t *ret_len);
    /* Writes the header block of the trailers. NULL: there are none, and the last DATA ends the
     * stream. */
    size_t (*trailers)(struct h2_stream *stream, uint8_t *dst, size_t room);
    /*
     * Client: the head of the response, then its trailers if there are any; both are well-formed.
     * Informational responses (1xx) are skipped. ended: nothing follows but on_close. The stream
     * may be reset within on_headers and on_data, which may free it.
     */
    void (*on_headers)(struct h2_stream *stream, struct h2_headers *headers, bool ended);
};

/* Why a client's stream was closed. */
enum h2_ended_by {
    H2_ENDED_COMPLETE,     /* the response is complete, or h2_stream_reset was called */
    H2_ENDED_BY_PEER,      /* RST_STREAM with the code, or refused by GOAWAY */
    H2_ENDED_BY_FAULT,     /* the peer violated the protocol on this stream */
    H2_ENDED_WITH_SESSION, /* the session failed or was freed */
};

enum h2_stream_place {
    H2_NOWHERE,           /* has nothing to send */
    H2_READY,             /* on session.ready or session.bulk_ready */
    H2_NO_WINDOW,         /* waits for its own window */
    H2_NO_SESSION_WINDOW, /* on session.starved or session.bulk_starved: waits for the connection's
                             window */
};

/* The fields that sending uses come first. */
struct h2_stream {
    struct h2_session *session; /* NULL before on_open has returned and after on_close */
    const struct h2_stream_ops *ops;
    struct list in_ready; /* links the list that place tells */
    uint32_t id;
    int32_t send_window; /* may be negative after a SETTINGS frame of the peer */
    uint8_t place;       /* enum h2_stream_place */
    bool bulk : 1;       /* set by the embedder before the stream is ready */
    bool head_only : 1;  /* set by the embedder: the head ends the stream */
    bool head_sent : 1;
    bool body_ended : 1; /* data returned END: only the trailers are missing */
    bool remote_closed : 1;
    bool local_closed : 1; /* client: the request is complete */
    bool answered : 1;     /* client: the head of the response has arrived */
    bool unprocessed : 1;  /* client, for on_close: the peer certainly ignored the request */
    bool bodiless : 1;     /* client, set by the embedder: HEAD, whose response has only a length */
    uint8_t ended_by;      /* enum h2_ended_by: client, for on_close */
    int32_t recv_window;   /* bytes that the peer may still send; -1 before it may send any */
    uint32_t recv_owed;    /* consumed, not yet given back */
    uint32_t headers_bytes;
    struct list in_open; /* links session.open */
    int64_t body_left;   /* rest of the given content-length; -1: none was given */
};

/* The stream has something to send. Cheap to call again. */
void h2_stream_ready(struct h2_stream *stream);

/* From now on its output is sent after that of other streams. Only before it is ready for the first
 * time. */
void h2_stream_make_bulk(struct h2_stream *stream);

/* n received bytes were used: the peer may send as many again. */
void h2_stream_consumed(struct h2_stream *stream, size_t n);

/* Lets the peer send at least n more bytes on this stream, beyond its usual window. */
void h2_stream_expect(struct h2_stream *stream, size_t n);

/* Ends the stream immediately with RST_STREAM; on_close is called. Not within on_end, head, data or
 * trailers; and within on_data only on a client. */
void h2_stream_reset(struct h2_stream *stream, enum h2_error code);

#endif
