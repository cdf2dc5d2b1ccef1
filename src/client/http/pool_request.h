/*
 * A request of HTTP as its owner sees it: what is sent, and what becomes of it.
 *
 *     idle ──http_pool_start──► waiting ──► sent: on_head, on_body… ──► on_end ──► idle
 *                                  └──────────(no connection)───────────▲
 *
 * Embedded by its owner; the loop's thread. http_pool.h sends it.
 */
#ifndef VIGIL_CLIENT_HTTP_POOL_REQUEST_H
#define VIGIL_CLIENT_HTTP_POOL_REQUEST_H

#include "base/status.h"
#include "wire/http/field.h"
#include "wire/http/source.h"

struct http_attempt;
struct pool_request;

/* What becomes of a request. on_head and on_body may cancel the request and free it; on_end may
 * also start it again. */
struct pool_request_ops {
    /* Borrowed; without interim responses and trailers. Names are compared without case. */
    void (*on_head)(struct pool_request *request, unsigned status, const struct http_field *fields,
                    size_t field_count);
    /* After a 101, also with no bytes once: the server has sent its last byte. */
    void (*on_body)(struct pool_request *request, struct slice bytes);
    /* Exactly once, unless the request is cancelled. ST_OK: the response is complete, even if the
     * request is not; after a 101, both directions have ended. Otherwise ST_CLOSED, ST_TIMEOUT,
     * ST_NOMEM, ST_MALFORMED (the server violated HTTP), ST_LIMIT (of descriptors, or more than our
     * limits or the server's allow), ST_INVALID (TLS is required and is not configured), and the
     * reason is a text for people, which names the server. */
    void (*on_end)(struct pool_request *request, enum status status, const char *reason);
};

/* How far a request has got; valid in on_end. */
enum pool_request_reached {
    POOL_REQUEST_UNREACHED, /* there was no connection, or the server certainly ignored it */
    POOL_REQUEST_SENT,      /* something of it may have been received */
    POOL_REQUEST_ANSWERED,  /* something of the response has arrived */
};

/* Texts are copied, except for a body that is borrowed. Fields do not include host, content-length,
 * and those that belong to a connection: connection, keep-alive, proxy-connection, te,
 * transfer-encoding, upgrade. */
struct pool_request_params {
    struct slice method;
    struct slice target; /* "/api/v1/pods?watch=1" */
    const struct http_field *fields;
    size_t field_count;
    struct slice body;
    bool borrows_body; /* it is not copied, and stays until the request has ended */
    bool waits;        /* for events: a response without progress is not a stall */
    /* Gives the body instead, from when the request is sent and as fast as the server takes it;
     * borrowed until the request has ended. It calls no function of the pool or the request. A
     * request of which it has given something is not sent again. */
    struct http_source *source;
    int64_t source_bytes; /* length of that body; POOL_BYTES_UNKNOWN */
    /* Not empty: asks for this protocol, with a connection of HTTP/1.1 for itself. There is no
     * body: after a 101 the source gives the bytes that follow, and its end ends only our
     * direction; until both have ended, there is no limit for silence. Any other status is an
     * ordinary response. */
    struct slice upgrade;
};
enum { POOL_BYTES_UNKNOWN = -1 };

/* Embedded by its owner; zeroed except for ops, it is idle. The other fields are the pool's. */
struct pool_request {
    const struct pool_request_ops *ops;
    enum pool_request_reached reached;
    uint32_t connection; /* valid in on_end: the pool's number of the one over which it was sent
                            last, counted from 1; 0: none */
    struct http_attempt *attempt; /* owned; NULL: idle */
};

/* No function is called any more. No effect if the request is idle. */
void pool_request_cancel(struct pool_request *request);
/* While set, the server is made to stop sending. What is on its way, at most a stream's window, is
 * still delivered. No effect if the request is idle. */
void pool_request_withhold(struct pool_request *request, bool withhold);
/* A parked source has something to send, or has ended. Cheap to call often. */
void pool_request_wake(struct pool_request *request);

#endif
