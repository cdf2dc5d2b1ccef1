/*
 * One gRPC call from the client's side: a stream of an HTTP/2 session with a client's role.
 *
 * Embedded in the object of its owner, which also owns the session or knows when it ends. A zeroed
 * call is idle. Messages may be queued before it is started and while it is open. It can be started
 * again when it is idle, and then uses its buffers again, so a recycled call allocates nothing.
 *
 *     idle ──start──► open: on_message… ──► on_end ──► idle
 *
 * on_end is called exactly once for each successful start, and is the last function that is called.
 * Within on_message the call may be ended, and within on_end also be started again or freed. Thread
 * of the session.
 */
#ifndef VIGIL_WIRE_GRPC_CLIENT_H
#define VIGIL_WIRE_GRPC_CLIENT_H

#include "base/buf.h"
#include "wire/grpc/head.h"
#include "wire/grpc/outcome.h"
#include "wire/grpc/prefix.h"
#include "wire/h2/session.h"

struct grpc_client_call;

struct grpc_client_ops {
    /* One whole message; borrowed. It is not copied if it arrived in one piece. */
    void (*on_message)(struct grpc_client_call *call, struct slice message);
    /* A message of this length has begun and will be kept until its rest has come. The call may be
     * withheld from within, but not ended. False: there is no room, and the call ends. May be
     * NULL. */
    bool (*on_begin)(struct grpc_client_call *call, size_t len);
    void (*on_end)(struct grpc_client_call *call, const struct grpc_outcome *outcome);
    /* Everything that was queued has been written to the session's output. More may be queued from
     * within; the call may not be ended. May be NULL. */
    void (*on_drained)(struct grpc_client_call *call);
};

struct grpc_client_request {
    struct grpc_head *head; /* the call takes a reference */
    struct slice path;      /* "/etcdserverpb.KV/Put"; borrowed until on_end */
    int64_t deadline_ns;    /* on the session's clock; INT64_MAX: none. The server gets the rest
                               of the time; the owner ends the call when it has passed. */
    uint32_t receive_max;   /* bytes of one message */
    bool replayable;        /* keeps the messages and sends them again if it is started again */
};

struct grpc_client_call {
    struct h2_stream stream;
    const struct grpc_client_ops *ops; /* set by the owner */
    struct grpc_client_request request;
    struct h2_session *session;         /* borrowed; only while the call is open */
    struct h2_headers *trailers;        /* a reference */
    const struct grpc_outcome *failure; /* set while the call is ended from this side */
    bool *gone;                         /* set to true when the call ends within on_message */

    struct buf output;  /* queued messages with their prefixes */
    size_t sent;        /* bytes of output that were written */
    struct buf message; /* the beginning of a message that arrives in pieces */
    uint32_t message_len;
    uint32_t withheld_bytes; /* received while withheld */
    uint8_t prefix[GRPC_PREFIX_BYTES];
    uint8_t prefix_len;
    bool half_closed : 1; /* grpc_client_call_half_close was called */
    bool withheld : 1;
    bool encoded : 1; /* the response names an encoding */
};

/*
 * Begins the call; queued messages follow immediately. As h2_session_open, with ST_AGAIN and
 * ST_CLOSED; and ST_LIMIT if the server does not accept a head of this size. Otherwise the call
 * stays idle.
 */
MUST_CHECK
enum status grpc_client_call_start(struct grpc_client_call *call, struct h2_session *session,
                                   const struct grpc_client_request *request);

static inline bool grpc_client_call_is_open(const struct grpc_client_call *call)
{
    return call->session != NULL;
}

/*
 * Queues one message: returns len bytes for it, to be written before the session writes output.
 * NULL: there is no memory. The owner limits what it queues.
 */
MUST_CHECK
uint8_t *grpc_client_call_message(struct grpc_client_call *call, size_t len);
/* Queues a copy of the message. */
MUST_CHECK
enum status grpc_client_call_send(struct grpc_client_call *call, struct slice message);
/* No further message follows. */
void grpc_client_call_half_close(struct grpc_client_call *call);
/* Drops what is queued by an idle call: its next start sends other messages. */
void grpc_client_call_clear(struct grpc_client_call *call);
/* Bytes that are queued and not written. */
size_t grpc_client_call_queued_bytes(const struct grpc_client_call *call);

/* While set, the server gets no window back, so it stops sending. What it was allowed to send
 * before, at most a stream's window, is still delivered. */
void grpc_client_call_withhold(struct grpc_client_call *call, bool withhold);

/* Ends an open call: its stream is reset, and on_end is called with this outcome before the
 * function returns. text is borrowed. */
void grpc_client_call_end(struct grpc_client_call *call, enum grpc_code code, const char *text);
void grpc_client_call_cancel(struct grpc_client_call *call);

/* Frees the buffers of an idle call. */
void grpc_client_call_fini(struct grpc_client_call *call);

/* Asserts every invariant; for tests. */
void grpc_client_call_check(const struct grpc_client_call *call);

#endif
