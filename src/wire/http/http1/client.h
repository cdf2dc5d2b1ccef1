/*
 * The client's side of an HTTP/1.1 connection: bytes in, bytes out; no socket, no clock. It sends
 * one request at a time and hands the body of the response on as it arrives, of any length, so that
 * a response may also be a stream of events that lasts for days.
 *
 *                   ┌──────(the connection is kept)───────┐
 *                   ▼                                     │
 *                 idle ──► waiting ──► receiving ─────────┤
 *                   │         ├──► raw ────┤              │
 *                   └─────────┴────────────┴──► over ◄────┘
 *
 *     waiting     the request is being sent, and the head of the response has not arrived
 *     receiving   its body arrives; that of the request may still be sent
 *     raw         upgraded: the bytes of the connection belong to the call
 *     over        nothing can be sent or received any more
 *
 * Everything that a server controls is limited: the bytes and the number of header fields, the
 * lines of chunks, trailers, and the time without progress. The body is limited by its receiver.
 * Owned by one connection; its thread. Missing memory ends the call and the connection.
 */
#ifndef VIGIL_WIRE_HTTP_HTTP1_CLIENT_H
#define VIGIL_WIRE_HTTP_HTTP1_CLIENT_H

#include "base/status.h"
#include "wire/http/http1/parser.h"
#include "wire/http/source.h"

struct http1_client;
struct http1_call;

struct http1_client_limits {
    /* Limit on the head of a response, with all interim responses before it. */
    uint32_t head_bytes_max;
    uint32_t fields_max;
    /* From the start of a request to the end of the response's head; from the latest byte of a body
     * that is pulled, while it has more. */
    int64_t head_ns;
    int64_t stall_ns; /* without a byte of the body, unless the call waits for events */
};

#define HTTP1_CLIENT_LIMITS_DEFAULT           \
    ((struct http1_client_limits){            \
        .head_bytes_max = 64 * 1024,          \
        .fields_max = 100,                    \
        .head_ns = 30 * INT64_C(1000000000),  \
        .stall_ns = 30 * INT64_C(1000000000), \
    })

/* What becomes of a call. No function is called from within http1_client_start. on_head and on_body
 * may cancel the call; on_end may start another one, or free the call. */
struct http1_call_ops {
    /* Borrowed during the call. Interim responses (1xx) are skipped, except for a 101 that was
     * requested. */
    void (*on_head)(struct http1_call *call, const struct http1_response *response);
    /* After a 101, also with no bytes once: the server has sent its last byte. */
    void (*on_body)(struct http1_call *call, struct slice bytes);
    /* Exactly once, unless the call is cancelled. ST_OK: the response is complete, even if the
     * request is not; after a 101, both directions have ended. Otherwise ST_CLOSED, ST_TIMEOUT,
     * ST_NOMEM, ST_MALFORMED (the bytes are not HTTP), ST_LIMIT (more than the limits allow),
     * ST_INVALID (the source is shorter than its length), and the reason is a text for people. */
    void (*on_end)(struct http1_call *call, enum status status, const char *reason);
};

/* Embedded by its owner; zeroed except for ops, it is not started. */
struct http1_call {
    const struct http1_call_ops *ops;
    struct http1_client *client; /* while it is under way; otherwise NULL */
    bool waits;                  /* for events: a response without progress is not a stall */
    bool answered;               /* something of the response has arrived */
};

/* Texts are copied. */
struct http1_client_request {
    struct slice method;
    struct slice target; /* "/v2/keys/a?wait=true" */
    struct slice host;
    const struct http_field *fields;
    size_t field_count;
    struct slice body;
    /* Gives the body instead, as fast as the server takes it; borrowed while the call is under way.
     * It calls no function of the client. */
    struct http_source *source;
    int64_t source_bytes; /* length of that body; HTTP1_UNKNOWN: it is sent in chunks */
    /* Not empty: asks for this protocol. There is no body then: if the answer is 101, the source
     * gives the bytes that follow, and its end ends only our direction. */
    struct slice upgrade;
};
enum { HTTP1_UNKNOWN = -1 };

/* on_output: there is output where there was none, or wants_read or is_over has changed; not called
 * during feed, fill and tick. */
struct http1_client_hooks {
    void (*on_output)(void *owner);
    void *owner;
};

/* limits are borrowed. */
MUST_CHECK
enum status http1_client_new(const struct http1_client_limits *limits,
                             struct http1_client_hooks hooks, struct http1_client **ret_client);
/* Ends a call that is under way (ST_CLOSED). */
void http1_client_free(struct http1_client *client);
DEFINE_CLEANUP(struct http1_client *, http1_client_free)

/* ST_AGAIN: another call is under way. ST_CLOSED: it is over. ST_INVALID: the request contains
 * bytes that cannot be sent. ST_NOMEM. */
MUST_CHECK
enum status http1_client_start(struct http1_client *client, struct http1_call *call,
                               const struct http1_client_request *request, int64_t now_ns);
/* on_end is not called any more. The connection cannot be used for another call, and is over. No
 * effect if the call is not under way. */
void http1_client_cancel(struct http1_call *call);

/* While set, http1_client_wants_read is false once the body has begun, and its stop is not a stall.
 * Bytes that are fed nevertheless are delivered. No effect if the call is not under way. */
void http1_client_withhold(struct http1_call *call, bool withhold, int64_t now_ns);
/* A parked source has something to send, or has ended. Cheap to call often. */
void http1_client_wake(struct http1_call *call, int64_t now_ns);

void http1_client_feed(struct http1_client *client, struct slice bytes, int64_t now_ns);
/* The server sends nothing any more. It is over afterwards, unless it is raw. */
void http1_client_feed_end(struct http1_client *client);
/* The connection is lost: ends the call with ST_CLOSED and this reason. */
void http1_client_lost(struct http1_client *client, const char *reason);
size_t http1_client_fill(struct http1_client *client, uint8_t *dst, size_t room, int64_t now_ns);

bool http1_client_wants_read(const struct http1_client *client);
bool http1_client_wants_write(const struct http1_client *client);
/* Raw, and nothing more will be sent: tell the server. */
bool http1_client_output_ended(const struct http1_client *client);
bool http1_client_is_idle(const struct http1_client *client);
bool http1_client_is_over(const struct http1_client *client);
/* Why it is over: ST_CLOSED, ST_TIMEOUT, ST_NOMEM, ST_MALFORMED or ST_LIMIT. */
enum status http1_client_reason(const struct http1_client *client, const char **ret_reason);

/* No call is started any more; it is over as soon as the one under way has ended. */
void http1_client_shutdown(struct http1_client *client);

/* When to call tick; CLOCK_NEVER for never. */
int64_t http1_client_timeout(const struct http1_client *client);
void http1_client_tick(struct http1_client *client, int64_t now_ns);

/* Asserts every invariant; for tests, between calls. */
void http1_client_check(const struct http1_client *client);

#endif
