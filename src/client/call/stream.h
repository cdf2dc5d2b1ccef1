/*
 * A gRPC stream that lasts: it is opened again after every break, if necessary at another endpoint,
 * and with another token if the server refuses the old one. Watches and leases use it.
 *
 *     idle ──► waiting ──► open
 *      ▲ │      ▲  │        │ │
 *      ├─┼──────┼──┴────────┘ │
 *      │ └► ┐   └── pausing ◄─┘ broken
 *      │    └───────► │
 *      └──────────────┘ not wanted any more
 *
 * A stream that is refused is idle. If its owner wants it again, it pauses as after a break.
 *
 * Embedded by its owner; the loop's thread. Opening, closing and giving up take effect at the end
 * of the turn, so they may be called inside every hook.
 */
#ifndef VIGIL_CLIENT_CALL_STREAM_H
#define VIGIL_CLIENT_CALL_STREAM_H

#include "client/call/client.h"
#include "codec/pb/pb.h"

enum client_stream_state {
    STREAM_IDLE,
    STREAM_WAITING, /* for the channel */
    STREAM_OPEN,
    STREAM_PAUSING, /* before another attempt */
};

struct client_stream;

struct client_stream_hooks {
    void (*on_open)(struct client_stream *stream);
    void (*on_message)(struct client_stream *stream, struct slice message);
    /* The server has forgotten what it was sent. The stream will be opened again. */
    void (*on_break)(struct client_stream *stream);
    /* After on_break: the server refuses the stream, and another attempt would not help. */
    void (*on_refused)(struct client_stream *stream, enum grpc_code code, struct slice text);
};

struct client_stream {
    struct vigil_client *client;
    const struct client_stream_hooks *hooks;
    struct slice path;
    const struct client_metadata *metadata; /* set by the owner, and borrowed; NULL: none */
    bool require_leader;
    bool wanted;
    bool canceling; /* on_end is called because of us */
    bool given_up;  /* the call is cancelled at the end of this turn */
    bool of_use;    /* something new was received since it was opened */
    bool too_large; /* a message was too large for us; valid in on_refused */
    enum client_stream_state state;
    struct grpc_client_call call;
    struct channel_waiter waiter;
    struct channel_lasting lasting;
    struct timer pause;
    struct deferred settle;
    unsigned failures;   /* in a row: determines the pause */
    int64_t opened_ns;   /* valid while open */
    int64_t again_ns;    /* not opened before this time, after it was refused */
    unsigned renewals;   /* consecutive renewals of the token */
    uint64_t generation; /* generation of the connection */
};

/* path and hooks are borrowed. */
void client_stream_init(struct client_stream *stream, struct vigil_client *client,
                        const struct client_stream_hooks *hooks, struct slice path,
                        bool require_leader);
/* Ends the stream at once, without hooks. */
void client_stream_fini(struct client_stream *stream);

/* Whether the stream is needed. */
void client_stream_want(struct client_stream *stream, bool wanted);

static inline bool client_stream_is_open(const struct client_stream *stream)
{
    return stream->state == STREAM_OPEN && !stream->given_up;
}

/* Only while it is open. Without memory the stream is given up. */
void client_stream_send(struct client_stream *stream, const struct pb_message *type,
                        const void *message);

/* The server violates the protocol, or there is no memory: the stream is closed and opened again.
 */
void client_stream_give_up(struct client_stream *stream);
/* A message takes too much memory, and would again: the stream is closed, and on_refused is called.
 */
void client_stream_overflow(struct client_stream *stream);
/* The server refused something because of its token. True: the stream is opened again with another
 * one. */
bool client_stream_renew_token(struct client_stream *stream, struct slice reason);
/* The server has answered as it should: its token is valid. */
void client_stream_works(struct client_stream *stream);
/* Something new was received that is not sent again: the next failure is the first again. */
void client_stream_progressed(struct client_stream *stream);

/* Asserts every invariant; for tests. */
void client_stream_check(const struct client_stream *stream);

#endif
