/*
 * A call and what the calls of one connection share. Only for the files of this directory:
 * call.c begins and ends calls, has the functions for services and writes the answer, route.c finds
 * the method, receive.c makes messages from DATA, and endpoint.c watches over time.
 */
#ifndef VIGIL_WIRE_GRPC_CALL_PRIVATE_H
#define VIGIL_WIRE_GRPC_CALL_PRIVATE_H

#include "base/memory/budget.h"
#include "wire/grpc/call.h"
#include "wire/grpc/server.h"
#include "wire/h2/session.h"

#include <stdlib.h>

enum {
    GRPC_CALL_BYTES = 1280,        /* a call with arena bytes for a get or put of 256 bytes */
    GRPC_PARKING_CALL_BYTES = 424, /* a call that parks: there may be 100,000 of them */
    GRPC_TEXT_BYTES_MAX = 4096,
};

/* Response bytes not yet sent. In the arena if the call has one response, else on the heap. */
struct grpc_chunk {
    struct grpc_chunk *next;
    size_t len;
    size_t sent;
    uint8_t bytes[];
};

/* What the calls of one connection share (endpoint.h). */
struct grpc_endpoint {
    struct grpc_server *server;
    struct h2_session *session; /* borrowed; NULL: a call from within the process (local.h) */
    /* Without a session: there is output, or the status is known. */
    void (*on_output)(void *owner);
    void *owner;
    const char *peer_name; /* name in the client's certificate; borrowed; may be NULL */
    struct wire_peer peer;
    int64_t (*fresh_ns)(void *owner); /* called with peer.owner; may be NULL */
    struct list timed;                /* calls with a deadline, or whose output may stall */
    int64_t now_ns;                   /* time of the current turn */
    int64_t check_at_ns;              /* no call in timed has to be checked before */
    struct account *account;          /* the connection's; outlives the endpoint; may be NULL */
    size_t queued_bytes;              /* in chunks */
    size_t held_bytes; /* size of messages delivered to calls whose answer has not begun */
    bool leaving;      /* shutting down: calls that park are refused */
    bool guarded;      /* see grpc_services_refuse_pages */
};

struct grpc_call {
    struct h2_stream stream;
    struct grpc_endpoint *endpoint; /* NULL once the stream is closed */
    struct grpc_server *server;
    const struct grpc_method *method; /* NULL: the call was refused */
    const struct grpc_row *row;       /* row of the method; NULL if method is */
    void *user;
    struct h2_headers *headers; /* a reference */
    void *caller;               /* set by the guard */
    struct list in_timed;       /* links endpoint.timed */
    int64_t deadline_ns;
    int64_t progress_ns; /* when bytes of the answer were last sent; 0: set in the next turn */
    int64_t message_ns;  /* when the message that is being received began */
    int64_t started_ns;

    /* The message that is being received. It and the answer are charged to arena.account. */
    struct buf message;
    struct slice request; /* request of a call with one message, once it has arrived */
    uint32_t message_len; /* from the prefix */
    uint32_t held;        /* bytes of request counted in endpoint.held_bytes */
    uint32_t withheld;    /* window in bytes that the peer gets back when the pause ends */
    uint32_t holds;
    uint8_t prefix[GRPC_PREFIX_BYTES];
    uint8_t prefix_len;

    /* Small members are together, so that a parking call keeps room for its service. */
    uint16_t http_status;   /* status of the answer */
    uint8_t code;           /* enum grpc_code, of the answer */
    bool known : 1;         /* on_message or on_half_close was called, so on_end is due */
    bool ended : 1;         /* on_end was called, if it was due */
    bool delivered : 1;     /* the request of a call with one request has arrived */
    bool finished : 1;      /* the status is known; the trailers follow the chunks */
    bool source_parked : 1; /* the source had nothing to send */
    bool paused : 1;        /* the peer gets no more window */
    bool sourced : 1;       /* has or had a source */
    bool small : 1;         /* it has GRPC_PARKING_CALL_BYTES and is not recycled */

    /* The answer. */
    struct grpc_source *source; /* owned by the service */
    struct grpc_chunk *first_chunk, *last_chunk;
    struct slice text; /* text of the status: static or in the arena */
    struct arena arena;
};

static inline struct grpc_call *grpc_call_of(struct h2_stream *stream)
{
    return CONTAINER_OF(stream, struct grpc_call, stream);
}

/* For chunks on the heap. */
static inline void grpc_chunk_free(struct grpc_call *call, struct grpc_chunk *chunk)
{
    account_release(call->arena.account, sizeof(*chunk) + chunk->len);
    free(chunk);
}

static inline void grpc_call_count(const struct grpc_call *call, unsigned what, uint64_t n)
{
    const struct grpc_row *row = call->row;
    if (row && row->counts)
        metric_add(row->counts, row->first_count + what, n);
}

/* call.c */
/* False: the stream is not a gRPC call but a plain HTTP request. */
bool grpc_is_call(const struct h2_stream *stream);
struct grpc_call *grpc_call_new(struct grpc_endpoint *endpoint, struct h2_headers *headers);
/* The bytes count as unanswered until output is queued. */
void grpc_call_add_held(struct grpc_call *call, size_t bytes);
/* The stream is closed: ends the call, and frees it unless it is held. */
void grpc_call_closed(struct grpc_call *call);
/* Its deadline has passed: drops the output and ends the call. */
void grpc_call_expire(struct grpc_call *call);

/* For texts of our own, of a few hundred bytes at most. */
void grpc_call_fail_format(struct grpc_call *call, enum grpc_code code, const char *format, ...)
    PRINTF_LIKE(3, 4);

/* route.c: finds the method, or fails the call. */
void grpc_call_route(struct grpc_call *call);

/* receive.c */
void grpc_call_on_data(struct h2_stream *stream, struct slice bytes);
/* A message is being received, or the only one of the call is expected. */
bool grpc_call_receives(const struct grpc_call *call);
void grpc_call_on_half_close(struct h2_stream *stream);
/* A whole message that did not come over HTTP/2; borrowed. */
void grpc_call_deliver(struct grpc_call *call, struct slice message);

/* endpoint.c: the call is checked when the message that it receives must be complete. */
void grpc_call_time(struct grpc_call *call);

/* call.c: the writing functions of h2_stream_ops. */
size_t grpc_call_head(struct h2_stream *stream, uint8_t *dst, size_t room);
enum h2_fill grpc_call_data(struct h2_stream *stream, uint8_t *dst, size_t room, size_t *ret_len);
size_t grpc_call_trailers(struct h2_stream *stream, uint8_t *dst, size_t room);

#endif
