/* The inside of calls and endpoints, shared by the files of this directory and nobody else. */
#ifndef VIGIL_WIRE_GRPC_ENDPOINT_PRIVATE_H
#define VIGIL_WIRE_GRPC_ENDPOINT_PRIVATE_H

#include "base/memory/budget.h"
#include "wire/grpc/endpoint.h"

#include <stdlib.h>

enum {
    GRPC_CALL_BYTES = 1280,        /* a whole call, with arena bytes for a get or put of 256 */
    GRPC_PARKING_CALL_BYTES = 424, /* one that parks lives long: there may be a 100,000 of them */
    GRPC_TEXT_BYTES_MAX = 4096,
};

/* Response bytes not yet sent. In the arena of a call with one response, else on the heap. */
struct grpc_chunk {
    struct grpc_chunk *next;
    size_t len;
    size_t sent;
    uint8_t bytes[];
};

struct grpc_endpoint {
    struct grpc_server *server;
    struct h2_session *session; /* owned; NULL: a call of this process (local.h) */
    const struct grpc_endpoint_ops *ops;
    void *owner;
    const char *peer_name;                         /* borrowed from the connection; may be NULL */
    void (*peer_address)(void *owner, char *text); /* may be NULL */
    int64_t (*fresh_ns)(void *owner);              /* may be NULL */
    void *peer_owner;
    struct list timed;       /* calls with a deadline, or whose output may stall */
    int64_t now_ns;          /* of the turn under way */
    int64_t check_at_ns;     /* no call of timed needs a look before */
    struct account *account; /* the connection's; outlives the endpoint; may be NULL */
    size_t queued_bytes;     /* in chunks */
    size_t held_bytes;       /* of messages delivered to calls whose answer has not begun */
    bool leaving;            /* shutting down: calls that park are refused */
    bool guarded;            /* see grpc_services_refuse_pages */
};

struct grpc_call {
    struct h2_stream stream;        /* first: on_close gets the call back from it */
    struct grpc_endpoint *endpoint; /* NULL once the stream is closed */
    struct grpc_server *server;
    const struct grpc_method *method; /* NULL while refused */
    const struct grpc_row *row;       /* of the method; NULL as it */
    void *user;
    struct h2_headers *headers; /* a reference */
    union {
        void *caller; /* the guard's */
        struct grpc_call *next_recycled;
    };
    struct list in_timed; /* links endpoint.timed */
    int64_t deadline_ns;
    int64_t progress_ns; /* when bytes of the answer last moved, while they ought to */
    int64_t message_ns;  /* when the message began that is being received; 0: none is */
    int64_t started_ns;

    /* The message that arrives. All of it, and of the answer, is charged to arena.account. */
    struct buf message;
    struct slice request; /* of a call with one message, once it is there */
    uint32_t message_len; /* as its prefix says */
    uint32_t held;        /* bytes of request counted in endpoint.held_bytes */
    uint32_t withheld;    /* bytes whose window the peer gets back when the pause ends */
    uint32_t holds;
    uint8_t prefix[GRPC_PREFIX_BYTES];
    uint8_t prefix_len;

    /* Small members are together, so that a parking call keeps room for its service. */
    uint16_t http_status;   /* of the answer */
    uint8_t code;           /* enum grpc_code, of the answer */
    bool known : 1;         /* the service has heard of it */
    bool ended : 1;         /* and heard the end, or never will hear of it */
    bool delivered : 1;     /* a call with one request: it has come */
    bool finished : 1;      /* the status is known; after the chunks come the trailers */
    bool source_parked : 1; /* asked in vain */
    bool paused : 1;        /* the peer gets no more window */
    bool sourced : 1;       /* has or had a source */
    bool small : 1;         /* of GRPC_PARKING_CALL_BYTES; not recycled */

    /* The answer. */
    struct grpc_source *source; /* the service's */
    struct grpc_chunk *first_chunk, *last_chunk;
    struct slice text; /* of the status: static or in the arena */
    struct arena arena;
};

static inline struct grpc_call *grpc_call_of(struct h2_stream *stream)
{
    return CONTAINER_OF(stream, struct grpc_call, stream);
}

/* One that lies on the heap. */
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

/* life.c */
/* A stream may be somebody else's. */
bool grpc_is_call(const struct h2_stream *stream);
struct grpc_call *grpc_call_new(struct grpc_endpoint *endpoint, struct h2_headers *headers);
/* The service hears no more of the call; what it queued is dropped unless it is finished. */
void grpc_call_end(struct grpc_call *call);
void grpc_call_drop_output(struct grpc_call *call);
void grpc_call_add_held(struct grpc_call *call, size_t bytes);
void grpc_call_drop_held(struct grpc_call *call);
void grpc_call_closed(struct grpc_call *call);
/* From now on it is the client's reading that takes its time. */
void grpc_call_answer_begins(struct grpc_call *call);
/* Its deadline has passed. */
void grpc_call_expire(struct grpc_call *call);
/* The status is known, or will never be. */
void grpc_call_count_handled(const struct grpc_call *call, enum grpc_code code);

/* call.c: texts of our own making, some hundred bytes at most. */
void grpc_call_fail_format(struct grpc_call *call, enum grpc_code code, const char *format, ...)
    PRINTF_LIKE(3, 4);

/* route.c: finds the method or decides on the refusal. */
bool grpc_is_request(const struct h2_headers *headers);
void grpc_call_route(struct grpc_call *call);

/* receive.c */
void grpc_call_on_data(struct h2_stream *stream, struct slice bytes);
/* A message is being received, or the call waits for its only one. */
bool grpc_call_receives(const struct grpc_call *call);
/* endpoint.c: looks at the call when that must have come. */
void grpc_call_time(struct grpc_call *call);
void grpc_call_on_half_close(struct h2_stream *stream);
/* A whole message that came without DATA; borrowed. */
void grpc_call_deliver(struct grpc_call *call, struct slice message);

/* reply.c: the writers of h2_stream_ops. */
size_t grpc_call_head(struct h2_stream *stream, uint8_t *dst, size_t room);
enum h2_fill grpc_call_data(struct h2_stream *stream, uint8_t *dst, size_t room, size_t *ret_len);
size_t grpc_call_trailers(struct h2_stream *stream, uint8_t *dst, size_t room);

#endif
