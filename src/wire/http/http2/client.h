/*
 * One HTTP request from the client's side: a stream of an HTTP/2 session with a client's role. The
 * body of the response is passed on as it arrives, of any length, so that a response may also be a
 * stream of events that lasts for days.
 *
 *     idle ──start──► open: on_head, on_body… ──► on_end ──► idle
 *
 * Embedded in the object of its owner; zeroed except for ops, it is idle. on_end is called exactly
 * once for each successful start, unless the call is cancelled, and is the last function that is
 * called. Within on_head and on_body the call may be cancelled and freed, and within on_end also be
 * started again. Thread of the session. wire/http/http1/client.h is the same over HTTP/1.1.
 */
#ifndef VIGIL_WIRE_HTTP_HTTP2_CLIENT_H
#define VIGIL_WIRE_HTTP_HTTP2_CLIENT_H

#include "base/buf.h"
#include "wire/h2/session.h"
#include "wire/http/source.h"

struct http2_call;

struct http2_call_ops {
    /* The fields do not include the status, and are borrowed. Interim responses (1xx) are skipped,
     * and so are trailers. */
    void (*on_head)(struct http2_call *call, unsigned status, const struct http_field *fields,
                    size_t field_count);
    void (*on_body)(struct http2_call *call, struct slice bytes);
    /* ST_OK: the response is complete, even if the request is not. Otherwise ST_CLOSED, ST_TIMEOUT
     * (the server does not answer pings), or ST_MALFORMED (the server violated HTTP/2), and the
     * reason is a text for people. call->unprocessed: the server certainly ignored the request, so
     * it may be repeated. */
    void (*on_end)(struct http2_call *call, enum status status, const char *reason);
};

struct http2_call {
    const struct http2_call_ops *ops; /* set by the owner */
    struct h2_stream stream;
    struct h2_session *session; /* borrowed; NULL: idle */
    struct buf head;            /* the header block, until it is written */
    struct buf body;            /* body of the request; bytes before sent were written */
    size_t sent;
    struct http_source *source; /* gives the body instead; NULL when it has given everything */
    int64_t source_left;        /* bytes that it still has to give; HTTP2_UNKNOWN */
    size_t withheld_bytes;      /* received while withheld */
    bool *gone;                 /* set to true when the call ends within on_head or on_body */
    bool withheld : 1;
    bool answered : 1;    /* something of the response has arrived */
    bool unprocessed : 1; /* see on_end */
    bool silent : 1;      /* being cancelled: on_end is not called */
};

/* Copied. Names of fields may have upper-case letters; connection-specific fields, host and
 * content-length must not be among them. */
struct http2_client_request {
    struct slice method;
    struct slice target; /* "/api/v1/pods?watch=1" */
    struct slice authority;
    bool secure; /* for :scheme */
    const struct http_field *fields;
    size_t field_count;
    struct slice body;
    /* Gives the body instead, as the server gives window; borrowed while the call is under way. It
     * calls no function of the client. */
    struct http_source *source;
    int64_t source_bytes; /* length of that body; HTTP2_UNKNOWN: it is not announced */
};
enum { HTTP2_UNKNOWN = -1 };

/*
 * Begins the request. As h2_session_open, with ST_AGAIN (the server allows no further stream now)
 * and ST_CLOSED; and ST_LIMIT if the fields are longer than we send or the server accepts,
 * ST_INVALID if they contain bytes that cannot be sent, ST_NOMEM. Then the call stays idle.
 */
MUST_CHECK
enum status http2_client_start(struct h2_session *session, struct http2_call *call,
                               const struct http2_client_request *request);

/* The stream is reset, and on_end is not called. No effect if the call is idle. */
void http2_client_cancel(struct http2_call *call);

/* While set, the server gets no window back, so it stops sending. What it was allowed to send
 * before, at most a stream's window, is still delivered. */
void http2_client_withhold(struct http2_call *call, bool withhold);
/* A parked source has something to send, or has ended. Cheap to call often. */
void http2_client_wake(struct http2_call *call);

/* Frees the buffers of an idle call. */
void http2_call_fini(struct http2_call *call);

/* Asserts every invariant; for tests. */
void http2_call_check(const struct http2_call *call);

#endif
